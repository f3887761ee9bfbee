"""The command line: find the command, run it, say errors in one sentence."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from hcnet import __version__
from hcnet.commands import (
    classify,
    completion,
    demo,
    encode,
    info,
    learn,
    restore,
    show,
)
from hcnet.commands.command import INTERRUPTED, READER_GONE, WRONG_ARGUMENTS, Command, add_shared
from hcnet.commands.failures import exit_code, sentence
from hcnet.commands.outputs import check_outputs
from hcnet.commands.settings import SettingsError, with_settings
from hcnet.commands.spelling import likely, with_dashes

COMMANDS: tuple[Command, ...] = (
    *learn.COMMANDS,
    *show.COMMANDS,
    *restore.COMMANDS,
    *classify.COMMANDS,
    *encode.COMMANDS,
    *demo.COMMANDS,
    *info.COMMANDS,
    *completion.COMMANDS,
)
# With this in the environment an error also shows where in the code it happened.
TRACEBACK = "HCNET_TRACEBACK"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the number is the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show × must not end a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    parser, commands = make_parser()
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if words and words[0] in commands:
        words[1:] = with_dashes(words[1:])
        try:
            words[1:] = with_settings(commands[words[0]], words[1:])
        except SettingsError as error:
            print(f"hcnet: error: {error}", file=sys.stderr)
            return WRONG_ARGUMENTS
    elif words and not words[0].startswith("-"):
        parser.error(f"there is no command {words[0]!r}{likely(words[0], commands)}")
    options, rest = parser.parse_known_args(words)
    if rest:
        one = commands[options.command]
        one.error(
            f"unrecognized arguments: {' '.join(rest)}"
            f"{likely(rest[0].partition('=')[0], one._option_string_actions)}"
        )
    options.parser, options.parsers = parser, commands
    return _run(options)


class _Parser(argparse.ArgumentParser):
    """One whose errors are two lines, also where the usage would fill the screen."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            WRONG_ARGUMENTS,
            f"usage: {self.prog} …, as {self.prog} --help explains\n"
            f"{self.prog}: error: {message}\n",
        )


def make_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and that of every command."""
    parser = _Parser(
        prog="hcnet",
        description="Finds the parts that binary images are made of, and uses them.",
        epilog="hcnet COMMAND --help explains a command, with an example.  Exit codes: 0 done, 1 "
        "failed, 2 wrong arguments or settings, 3 a file is in the way (--force), 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"hcnet {__version__}")
    places = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for command in COMMANDS:
        one = places.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=f"Example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(one)
        add_shared(one)
        one.set_defaults(run=command.run, outputs=command.outputs)
        parsers[command.name] = one
    return parser, parsers


def _run(options: argparse.Namespace) -> int:
    warnings.showwarning = _show_warning
    try:
        check_outputs(options)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more; what is still in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"hcnet: error: {sentence(error)}", file=sys.stderr)
        return exit_code(error)


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    print(f"hcnet: note: {' '.join(str(message).split())}", file=sys.stderr)
