"""``hcnet bench``: how well and how fast the installed library is on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, on_a_terminal, say, table

KINDS = ("parts", "network", "speed")
NOTE = (
    "Paper: of its own images, which are not published; these are made after its description.\n"
    "True: what is reached by the parts, or the network, that the images were made of."
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        choices=KINDS,
        metavar="WHAT",
        help=f"only {', '.join(KINDS[:-1])} or {KINDS[-1]} (default: all of them)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="leave out what takes more than a few seconds"
    )
    parser.add_argument(
        "--seed", type=arguments.seed, default=0, metavar="N", help="other images (default: 0)"
    )


def _run(options: argparse.Namespace) -> int:
    from hcnet.benchmark.measuring import measure_all
    from hcnet.environment import environment
    from hcnet.progress import Bar, Silence

    kinds = KINDS if options.kind is None else (options.kind,)
    machine = environment()
    progress = Bar() if on_a_terminal(options) else Silence()
    found = measure_all(kinds, options.quick, options.seed, progress)
    version = machine["versions"]["hcnet"]
    about = f"hcnet {version} on {machine['processor']}, {machine['cores']} cores"
    tables = [_TABLES[kind](rows) for kind, rows in found.items()]
    text = "\n\n".join([about, *tables, *([NOTE] if set(kinds) - {"speed"} else [])])
    say(options, found | {"environment": machine}, text)
    return DONE


def _parts(rows: list[dict[str, Any]]) -> str:
    title = "Parts: bits with them, in percent of the bits without; lower is better"
    header = ("image", "hcnet", "true", "paper", "parts exact", "time", "paper")
    lines = [
        (
            row["data"],
            f"{row['ratio']:.1%}",
            f"{row['ratio_true']:.1%}",
            f"{row['ratio_paper']:.0%}",
            f"{row['parts_exact']} of {row['parts_true']}",
            _time(row["seconds"]),
            _time(row["seconds_paper"]),
        )
        for row in rows
    ]
    return f"{title}\n{table(header, lines)}"


def _network(rows: list[dict[str, Any]]) -> str:
    title = "Network of two layers, learned with labels: wrong classes of new images"
    header = ("images", "hcnet", "true", "paper", "time", "paper")
    lines = [
        (
            f"{row['images']} {row['data']}, {row['test_images']:,} new ones",
            f"{row['error']:.2%}",
            f"{row['error_true']:.2%}",
            f"{row['error_paper']:.2%}",
            _time(row["seconds"]),
            _time(row["seconds_paper"]),
        )
        for row in rows
    ]
    return f"{title}\n{table(header, lines)}"


def _speed(rows: list[dict[str, Any]]) -> str:
    title = "Speed: a sweep over all messages, beside a plain copy of them"
    header = ("messages of", "million pairs", "sweep", "copy", "ratio")
    lines = [
        (
            row["shape"],
            f"{row['ands'] / 1e6:.1f}",
            f"{1e3 * row['seconds_sweep']:.1f} ms",
            f"{1e3 * row['seconds_copy']:.1f} ms",
            f"{row['ratio_to_copy']:.2f}",
        )
        for row in rows
    ]
    return f"{title}\n{table(header, lines)}"


_TABLES = {"parts": _parts, "network": _network, "speed": _speed}


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"


COMMANDS = (
    Command(
        "bench",
        "measure how well and how fast hcnet is on this machine",
        "hcnet bench --quick",
        _arguments,
        _run,
    ),
)
