"""``hcnet demo``: learn the letters of a noisy picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, on_a_terminal, print_result


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        "-o",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for pictures and model",
    )
    parser.add_argument(
        "--seed", type=arguments.seed, default=0, metavar="N", help="another picture (default: 0)"
    )
    arguments.add_force(parser)


def _run(options: argparse.Namespace) -> int:
    from hcnet.demo import run_demo

    found = run_demo(options.output, options.seed, on_a_terminal(options), options.force)
    print_result(options, found.result, found.text)
    return DONE


COMMANDS = (
    Command(
        "demo",
        "learn the letters of a noisy picture, and draw the result",
        "hcnet demo --output demo-output",
        _arguments,
        _run,
    ),
)
