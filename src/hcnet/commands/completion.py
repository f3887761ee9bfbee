"""``hcnet completion``: the script with which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
from pathlib import Path

from hcnet.commands.command import DONE, Command

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _run(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError(
            "Completion scripts are made by the package shtab; install it with "
            "pip install 'hcnet[completion]'."
        ) from None
    for parser in options.parsers.values():
        for action in parser._actions:
            if action.type is Path or action.metavar == "FILE":
                action.complete = shtab.FILE
    print(shtab.complete(options.parser, options.shell))
    return DONE


COMMANDS = (
    Command(
        "completion",
        "print a script that completes hcnet's commands and options in a shell",
        'eval "$(hcnet completion bash)"      # in ~/.bashrc; zsh: after compinit in ~/.zshrc\n'
        "  hcnet completion fish | source       # in ~/.config/fish/config.fish",
        _arguments,
        _run,
    ),
)
