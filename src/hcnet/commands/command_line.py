"""Words of the command line: options from TOML files, underscores for dashes, suggestions.

Options of a file become words before those that were typed, so that the same checks hold for both
and the last word wins.
"""

from __future__ import annotations

import argparse
import difflib
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """A settings file that cannot be used."""


def with_settings(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The words after a command, with those of its settings file before them.

    `parser` is that of the command.
    """
    finder = argparse.ArgumentParser(prog=parser.prog, add_help=False, allow_abbrev=False)
    finder.add_argument("--settings")
    path = finder.parse_known_args(words)[0].settings
    return list(words) if path is None else [*_words(parser, Path(path), words), *words]


def _words(parser: argparse.ArgumentParser, path: Path, typed: Sequence[str]) -> list[str]:
    known = {
        action.dest: action
        for action in parser._actions
        if action.option_strings and action.dest not in ("help", "settings")
    }
    words: list[str] = []
    for key, value in _read(path).items():
        action = known.get(key.replace("-", "_"))
        if action is None:
            raise SettingsError(
                f"{path} has the key {key!r}, which {parser.prog} does not have; it has "
                f"{', '.join(sorted(known))}."
            )
        repeated = isinstance(action, argparse._AppendAction)
        if repeated and any(word.partition("=")[0] in action.option_strings for word in typed):
            continue  # a list is replaced as a whole
        values = value if isinstance(value, list) and repeated else [value]
        for item in values:
            words += _option(path, key, action, item)
    return words


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise SettingsError(f"{path} cannot be read ({reason}); pass a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not a TOML file ({error}).") from None


def _option(path: Path, key: str, action: argparse.Action, value: Any) -> list[str]:
    """One option and its value as words."""
    flag = action.option_strings[0]
    if action.nargs == 0:  # a switch
        if not isinstance(value, bool):
            raise SettingsError(f"{path}: {key} must be true or false, got {value!r}.")
        if value:
            return [flag]
        off = [other for other in action.option_strings if other.startswith("--no-")]
        return off[:1]
    return [f"{flag}={_text(path, key, value)}"]


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(type(side) is int for side in value):
        return "x".join(map(str, value))  # height and width
    if isinstance(value, dict):  # a layer; an empty one holds the templates
        pairs = [f"{name}={_text(path, key, item)}" for name, item in value.items()]
        return ",".join(pairs) or "templates"
    raise SettingsError(f"{path}: {key} cannot be {value!r}.")


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
