"""``hcnet completion``: what a shell needs to complete commands and options.

The script that a shell reads asks this command what may come next, so that there is one answer for
all shells and it never falls behind the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence

from hcnet.commands.command import DONE, Command

WORDS = "words"
SCRIPTS = {
    "bash": """\
_hcnet() {
    local IFS=$'\\n'
    COMPREPLY=($(hcnet completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _hcnet hcnet
""",
    "zsh": """\
#compdef hcnet
_hcnet() {
    local -a found
    found=("${(@f)$(hcnet completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _hcnet hcnet
""",
    "fish": """\
function __hcnet_words
    set -l before (commandline -opc)
    hcnet completion words -- $before[2..] (commandline -ct) 2>/dev/null
end
complete -c hcnet -a '(__hcnet_words)'
""",
}


def candidates(parsers: Mapping[str, argparse.ArgumentParser], words: Sequence[str]) -> list[str]:
    """What the last of the words after ``hcnet`` may become; empty: a file, or anything."""
    *before, now = words or [""]
    if not before:
        return _starting([*parsers, "--help", "--version"], now)
    parser = parsers.get(before[0])
    if parser is None:
        return []
    asked = _option(parser, before[-1]) if len(before) > 1 else None
    if asked is not None and asked.nargs != 0:
        return _starting(map(str, asked.choices or ()), now)
    if now.startswith("-"):
        return _starting(parser._option_string_actions, now)
    places = [action for action in parser._actions if not action.option_strings]
    choices = places[0].choices if places and len(before) == 1 else None
    return _starting(map(str, choices or ()), now)


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)


def _starting(options: Iterable[str], now: str) -> list[str]:
    return [option for option in options if option.startswith(now)]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell",
        choices=(*SCRIPTS, WORDS),
        metavar="SHELL",
        help="bash, zsh or fish: print its script",
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)


def _run(options: argparse.Namespace) -> int:
    if options.shell == WORDS:
        for word in candidates(options.parsers, options.words):
            print(word)
    else:
        print(SCRIPTS[options.shell], end="")
    return DONE


COMMANDS = (
    Command(
        "completion",
        "print the script that makes a shell complete hcnet's commands and options",
        'eval "$(hcnet completion bash)"      # in ~/.bashrc; zsh: the same in ~/.zshrc\n'
        "  hcnet completion fish | source       # in ~/.config/fish/config.fish",
        _arguments,
        _run,
    ),
)
