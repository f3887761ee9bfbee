"""The command: its options, exit codes, and how results are printed."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DONE = 0
FAILED = 1
WRONG_ARGUMENTS = 2
FILE_IN_THE_WAY = 3
INTERRUPTED = 130  # as a shell reports a program that Ctrl-C has ended
READER_GONE = 141  # and one whose output nobody reads any more


@dataclass(frozen=True)
class Command:
    """A word after ``hcnet``.  Its module imports the library only when it runs."""

    name: str
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    # Options that name a file to write, and its kind: checked before the command runs.
    outputs: Mapping[str, str] = field(default_factory=dict)


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


def note(options: argparse.Namespace, text: str) -> None:
    """Print something beside the result."""
    if not options.quiet:
        print(f"hcnet: {text}", file=sys.stderr)


def on_a_terminal(options: argparse.Namespace) -> bool:
    """Whether to show progress."""
    return sys.stderr.isatty() and not options.quiet


def print_result(options: argparse.Namespace, result: Mapping[str, Any], text: str) -> None:
    """Print the result: as JSON with --json, otherwise the text."""
    print(as_json(result) if options.json else text)


def as_json(result: Any) -> str:
    """Standard JSON: numbers that are not finite are null."""
    return json.dumps(_finite(result), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Two columns of text; the first is padded."""
    table = list(rows)
    width = max((len(name) for name, _ in table), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in table)
