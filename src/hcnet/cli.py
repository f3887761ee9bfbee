"""The command line: finds the command, runs it, and prints errors in one sentence."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from hcnet import __version__
from hcnet.commands import classify, command, encode, learn, restore, show, tools
from hcnet.commands.command import WRONG_ARGUMENTS, Command
from hcnet.commands.command_line import SettingsError, suggestion, with_dashes, with_settings
from hcnet.commands.outputs import check_outputs

MODULES = (learn, show, restore, classify, encode, tools)
COMMANDS: tuple[Command, ...] = tuple(one for module in MODULES for one in module.COMMANDS)
# If the environment has this variable, errors are raised with their traceback.
TRACEBACK = "HCNET_TRACEBACK"
# Advice of the library, in words of the command line.
ADVICE = {
    "pass overwrite=True to replace it": "pass --force to replace it",
    "pass a file that save() wrote": "pass a model that hcnet learn wrote",
}


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
        parser.error(f"there is no command {words[0]!r}{suggestion(words[0], commands)}")
    options, rest = parser.parse_known_args(words)
    if rest:
        one = commands[options.command]
        one.error(
            f"unrecognized arguments: {' '.join(rest)}"
            f"{suggestion(rest[0].partition('=')[0], one._option_string_actions)}"
        )
    options.parser, options.parsers = parser, commands
    return _run(options)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are two lines, also if the usage would fill the screen."""

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
    for each in COMMANDS:
        one = places.add_parser(
            each.name,
            help=each.summary,
            description=f"{each.summary[0].upper()}{each.summary[1:]}.",
            epilog=f"Example:\n  {each.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        each.add_arguments(one)
        command.add_shared(one)
        one.set_defaults(run=each.run, outputs=each.outputs)
        parsers[each.name] = one
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
        return command.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; the rest of the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return command.READER_GONE
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        print(f"hcnet: error: {_sentence(error)}", file=sys.stderr)
        existing = isinstance(error, FileExistsError)
        return command.FILE_IN_THE_WAY if existing else command.FAILED


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    print(f"hcnet: note: {' '.join(str(message).split())}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    """The error on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        reason = (error.strerror or "unknown error").lower()
        return f"{error.filename} cannot be used ({reason}); choose another."
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) and not text:
        return "There is not enough memory; take fewer or smaller images, or set --max-memory."
    for python, here in ADVICE.items():
        text = text.replace(python, here)
    if isinstance(error, ValueError | TypeError | OSError | MemoryError | ImportError):
        return text
    return f"This is an error of hcnet itself ({type(error).__name__}: {text})."
