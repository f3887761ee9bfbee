"""The command line: read the arguments, call, report errors in one sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hcnet import __version__

# What a shell reports for a program that Ctrl-C has ended.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the number is the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _demo(options.output, options.seed)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        print(f"hcnet: error: {_sentence(error)}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hcnet", description="Finds the parts that binary images are made of."
    )
    parser.add_argument("--version", action="version", version=f"hcnet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "learn the letters of a noisy picture, and draw what was found"
    demo = commands.add_parser("demo", help=text, description=f"{text.capitalize()}.")
    demo.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder for pictures and model"
    )
    demo.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="another picture (default: 0)"
    )
    return parser


def _demo(folder: Path, seed: int) -> int:
    # Only here: compiling and drawing libraries would slow down --help and --version.
    from hcnet.demo import run_demo

    print(run_demo(folder, seed))
    return 0


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return value


def _sentence(error: OSError) -> str:
    """What went wrong, with which file, and what to do."""
    if error.filename is None:
        return str(error)
    reason = (error.strerror or "unknown error").lower()
    return f"cannot write to {error.filename} ({reason}); choose another folder with --output."
