"""The command line: finds the command, runs it, and prints errors in one sentence.

Options of a TOML file become words before those that were typed, so that the same checks hold for
both and the last word wins.
"""

from __future__ import annotations

import argparse
import difflib
import os
import reprlib
import signal
import sys
import threading
import time
import tomllib
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hcnet import __version__
from hcnet.commands import command, compressing, factoring, learn, show, text, using
from hcnet.commands.command import WRONG_ARGUMENTS, Command, check_outputs
from hcnet.engine.driver import Press

MODULES = (learn, show, using, text, compressing, factoring)
COMMANDS: tuple[Command, ...] = tuple(one for module in MODULES for one in module.COMMANDS)
# If the environment has this variable, errors are raised with their traceback.
TRACEBACK = "HCNET_TRACEBACK"
# Seconds after which a signal that was dropped comes again.
SOON = 0.01
# Characters of an error about words: a settings file may hold anything.
MOST_SAID = 600
# Advice of the library, in words of the command line.
ADVICE = {
    "pass overwrite=True to replace it": "pass --force to replace it",
    "pass salvage=True to read what is complete": "pass --salvage to write what is complete",
    "pass a file that save() wrote": "pass a model that hcnet learn wrote",
    "device='cuda' cannot": "--device cuda cannot",
    "pass device='cpu'": "pass --device cpu",
}
# Words of the library that are no commands, and what to do instead.
ELSEWHERE = {
    "export": "; models are exported in Python, with hcnet.export",
    "factorise": "; did you mean factor?",
    "factorize": "; did you mean factor?",
    "fit": "; did you mean learn?",
    "predict": "; did you mean classify?",
    "train": "; did you mean learn?",
    "transform": "; did you mean encode?",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the number is the exit code."""
    with Ending() as ending:
        try:
            # Signals raise in this block alone: nobody would catch what is raised around it.  To
            # set an attribute is one step, which no signal can break.
            try:
                ending.press.heard = True
                if ending.came:  # before this block
                    raise KeyboardInterrupt
                code = _printed(list(sys.argv[1:] if arguments is None else arguments), ending)
            finally:
                ending.press.heard = False
        except KeyboardInterrupt:
            print(f"\n{ending.word}.", file=sys.stderr)
            code = command.INTERRUPTED
    return 128 + ending.number if code == command.INTERRUPTED else code


class Ending:
    """Handles the signals that end a command, within a `with` block: unfinished files are removed.

    Ctrl-C raises, or is a flag while something learns; the others do the same.
    """

    number = signal.SIGINT  # the signal that came
    _losing = False  # whether Python is dropping what was raised

    def __init__(self) -> None:
        self.press, self._terminated = Press(), False

    @property
    def came(self) -> bool:
        """Whether a signal came."""
        return self._terminated or self.press.came

    @property
    def word(self) -> str:
        """What has happened."""
        return "Interrupted" if self.number == signal.SIGINT else "Terminated"

    def __enter__(self) -> Ending:
        self._before: dict[int, Any] = {}
        self.press.heard = False
        self._hook, sys.unraisablehook = sys.unraisablehook, self._lost
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self.press)
            for name in ("SIGTERM", "SIGHUP"):  # Windows has not all of them
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                    self._before[number] = signal.signal(number, self)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        sys.unraisablehook = self._hook

    def _lost(self, about: sys.UnraisableHookArgs) -> None:
        """Python drops what is raised where it clears up, such as an interrupt: it comes again."""
        if self.press.heard and issubclass(about.exc_type, KeyboardInterrupt):
            self._losing = True
            self.press.again()
            timer = threading.Timer(SOON, self._again)
            timer.daemon = True
            timer.start()
            self._losing = False
        else:
            self._hook(about)

    def _again(self) -> None:
        while self._losing:  # what is raised there is dropped, too
            time.sleep(SOON)
        if self.press.heard:
            signal.pthread_kill(threading.main_thread().ident or 0, self.number)

    def __call__(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        self.number, self._terminated = signal.Signals(number), True
        ctrl_c = signal.getsignal(signal.SIGINT)
        if self.press.heard and callable(ctrl_c):
            ctrl_c(number, frame)
        elif self.press.heard:  # nobody is to end this by Ctrl-C
            raise KeyboardInterrupt


def _printed(words: list[str], ending: Ending) -> int:
    """Run the command with streams that can be printed to."""
    code = command.DONE
    try:
        _open_streams()
        try:
            code = _command(words, ending)
        finally:
            sys.stdout.flush()  # also what argparse has printed
    except OSError as error:
        # The rest of the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            code = command.READER_GONE
        elif code == command.DONE:
            reason = (error.strerror or "unknown error").lower()
            print(f"hcnet: error: The result cannot be printed ({reason}).", file=sys.stderr)
            code = command.FAILED
    return code


def _open_streams() -> None:
    """Open streams that are closed: a file of the command must not get their numbers.

    A terminal that cannot show × must not end a command, either.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _command(words: list[str], ending: Ending) -> int:
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
        instead = ELSEWHERE.get(words[0]) or suggestion(words[0], commands)
        parser.error(f"there is no command {words[0]!r}{instead}")
    options, rest = parser.parse_known_args(words)
    if rest:
        one = commands[options.command]
        one.error(
            f"unrecognized arguments: {' '.join(rest)}"
            f"{suggestion(rest[0].partition('=')[0], one._option_string_actions)}"
        )
    options.parser, options.parsers = parser, commands
    return _run(options, ending)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are two lines, also if usage or value would fill the screen."""

    def error(self, message: str) -> NoReturn:
        if len(message) > MOST_SAID:
            message = f"{message[:MOST_SAID]}…"
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
        "failed, 2 wrong arguments or settings, 3 a file is in the way (--force), 130 interrupted, "
        "143 terminated.",
    )
    parser.add_argument("--version", action="version", version=f"hcnet {__version__}")
    places = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for each in COMMANDS:
        one = places.add_parser(
            each.name,
            help=each.summary[0].lower() + each.summary[1:].removesuffix("."),
            description=each.summary,
            epilog=f"Example:\n  {each.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        each.add_arguments(one)
        add_shared(one)
        one.set_defaults(run=each.run, outputs=each.outputs)
        parsers[each.name] = one
    return parser, parsers


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Options of every command."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="print no progress and no notes")
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="TOML file with options of this command, named as in Python (n_features = 8); options "
        "on the command line win",
    )


def _run(options: argparse.Namespace, ending: Ending) -> int:
    warnings.showwarning = _show_warning
    try:
        check_outputs(options)
        code: int = options.run(options)
        return code
    except BrokenPipeError:
        raise
    except Exception as error:
        if ending.came:
            # A library that was being imported says that this failed.
            raise KeyboardInterrupt from error
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


class SettingsError(ValueError):
    """A settings file that cannot be used."""


def with_settings(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The words after a command, with those of its settings file before them.

    `parser` is that of the command.
    """
    finder = argparse.ArgumentParser(prog=parser.prog, add_help=False, allow_abbrev=False)
    finder.add_argument("--settings", type=Path)
    path = finder.parse_known_args(words)[0].settings
    if path is None:
        return list(words)
    known = {
        action.dest: action
        for action in parser._actions
        if action.option_strings and action.dest not in ("help", "settings")
    }
    found: list[str] = []
    for key, value in _read(path).items():
        action = known.get(key.replace("-", "_"))
        if action is None:
            raise SettingsError(
                f"{path} has the key {reprlib.repr(key)}, which {parser.prog} does not have; it "
                f"has {', '.join(sorted(known))}."
            )
        repeated = isinstance(action, argparse._AppendAction)
        if repeated and any(word.partition("=")[0] in action.option_strings for word in words):
            continue  # a list is replaced as a whole
        for item in value if isinstance(value, list) and repeated else [value]:
            found += _option(path, key, action, item)
    return [*found, *words]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise SettingsError(f"{path} cannot be read ({reason}); pass a TOML file.") from None
    except (ValueError, RecursionError) as error:  # no TOML, no text, or nested too deep
        from hcnet.checks import in_short

        raise SettingsError(f"{path} is not a TOML file ({in_short(error)}).") from None


def _option(path: Path, key: str, action: argparse.Action, value: Any) -> list[str]:
    """One option and its value as words."""
    flag = action.option_strings[0]
    if action.nargs == 0:  # a switch
        if not isinstance(value, bool):
            raise SettingsError(f"{path}: {key} must be true or false, got {reprlib.repr(value)}.")
        off = [other for other in action.option_strings if other.startswith("--no-")]
        return [flag] if value else off
    return [f"{flag}={_text(path, key, value)}"]


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(type(side) is int for side in value):
        return "x".join(map(str, value))  # height and width
    if isinstance(value, dict):  # a layer; an empty one holds the templates
        pairs = [f"{name}={_text(path, key, item)}" for name, item in value.items()]
        return ",".join(pairs) or "templates"
    raise SettingsError(f"{path}: {key} cannot be {reprlib.repr(value)}.")


def suggestion(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, as the end of a sentence; nothing if none is near."""
    names = [name for name in known if name.startswith("--") or not name.startswith("-")]
    near = difflib.get_close_matches(word, names, 1)
    if not near:  # --features differs from --n-features in too many letters
        near = [name for name in names if len(word) > 4 and word.lstrip("-") in name][:1]
    return f"; did you mean {near[0]}?" if near else ""


def with_dashes(words: Sequence[str]) -> list[str]:
    """Options spelled as in Python, such as --feature_size, with dashes."""
    end = words.index("--") if "--" in words else len(words)
    found = []
    for word in words[:end]:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-") if name.startswith("--") else name
        found.append(f"{name}{equals}{value}")
    return [*found, *words[end:]]
