"""What a command is, and what all of them share: options, exit codes, how results are said."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DONE = 0
FAILED = 1
WRONG_ARGUMENTS = 2
FILE_IN_THE_WAY = 3
INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C has ended
READER_GONE = 141  # and for one whose output nobody reads any more


@dataclass(frozen=True)
class Command:
    """A word after ``hcnet``.  Its module imports the library only when it runs."""

    name: str
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Options that every command has."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress and no notes")
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="TOML file with options of this command, named as in Python (n_features = 8); what "
        "the command line says wins",
    )


def note(options: argparse.Namespace, text: str) -> None:
    """Say something beside the result."""
    if not options.quiet:
        print(f"hcnet: {text}", file=sys.stderr)


def on_a_terminal(options: argparse.Namespace) -> bool:
    """Whether somebody watches progress."""
    return sys.stderr.isatty() and not options.quiet


def say(options: argparse.Namespace, result: Mapping[str, Any], text: str) -> None:
    """Print the result: for machines if they asked, otherwise for people."""
    print(as_json(result) if options.json else text)


def as_json(result: Any) -> str:
    """JSON that every reader takes: numbers that are not finite are null."""
    return json.dumps(_finite(result), indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Columns of text; the first is padded, the rest follow."""
    table = [list(row) for row in rows]
    width = max((len(row[0]) for row in table), default=0)
    return "\n".join(f"{row[0]:<{width}}  {'  '.join(row[1:])}".rstrip() for row in table)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns with a header; the first begins at the left, figures end at the right."""
    lines = [header, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    return "\n".join(
        "  ".join([f"{line[0]:<{widths[0]}}", *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    )
