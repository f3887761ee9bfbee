"""What all benchmarks share: options, rows, machine facts, tables, JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np

from hcnet.environment import processor, versions

Row = dict[str, Any]


@dataclass
class Benchmark:
    """A named benchmark: columns to show, and where the rows go."""

    name: str
    description: str
    json_path: Path | None = None
    rows: list[Row] = field(default_factory=list)

    def add(self, **row: Any) -> Row:
        """Store a row with the facts that make it comparable later."""
        self.rows.append(row)
        if self.json_path is not None:
            with self.json_path.open("a") as file:
                file.write(json.dumps({"benchmark": self.name, **row, **facts()}) + "\n")
        return row


def start(
    name: str,
    description: str,
    arguments: Sequence[str] | None = None,
    add_options: Callable[[argparse.ArgumentParser], None] | None = None,
) -> tuple[Benchmark, argparse.Namespace]:
    """Parse the options that every benchmark has, and those that this one adds."""
    parser = argparse.ArgumentParser(prog=f"make bench NAME={name} ARGS=…", description=description)
    parser.add_argument("--quick", action="store_true", help="a small version, under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="one object per row")
    parser.add_argument("--seeds", type=int, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=8000)
    parser.add_argument("--only", help="comma-separated part of the benchmark")
    if add_options is not None:
        add_options(parser)
    options = parser.parse_args(arguments)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text("")
    print(f"{name}: {description}\n{machine_line()}\n", flush=True)
    return Benchmark(name, description, options.json), options


def selected(only: str | None, items: Sequence[Any]) -> tuple[Any, ...]:
    """Of numbers those in `only`, of names those that begin with something in it; else all.

    ``0.01,cnn`` selects a level of noise and some methods.
    """
    wanted = tuple(only.lower().split(",")) if only else ()
    chosen = [
        item
        for item in items
        if (item.lower().startswith(wanted) if isinstance(item, str) else str(item) in wanted)
    ]
    return tuple(chosen or items)


def facts() -> Row:
    """Machine and versions."""
    return {
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": numba.get_num_threads(),
            "system": platform.system(),
        },
        "versions": versions(),
    }


def machine_line() -> str:
    """One line about the machine, for people."""
    return f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def measure(work: Callable[[], Any]) -> tuple[Any, float, float | None]:
    """Result, seconds, and megabytes that the process grew by at its peak (Linux only)."""
    before = _reset_peak()
    began = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - began
    peak = _status("VmHWM")
    grown = None if before is None or peak is None else max(peak - before, 0) / 1024
    return result, seconds, grown


def _reset_peak() -> int | None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _status(name: str) -> int | None:
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return None


def table(header: Sequence[str], rows: Iterable[Sequence[object]], file: Any = None) -> str:
    """Print an aligned table that is also Markdown; return it.

    A column without any value is left out.
    """
    cells = [list(header), *[[str(cell) for cell in row] for row in rows]]
    kept = [k for k in range(len(header)) if any(row[k] != "–" for row in cells[1:])]
    cells = [[row[k] for k in kept] for row in cells]
    widths = [max(len(row[k]) for row in cells) for k in range(len(kept))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    text = "\n".join(lines)
    print(text, file=file or sys.stdout, flush=True)
    return text


def seeds(rows: Iterable[Row]) -> str:
    """First and last seed of some rows."""
    used = [row["seed"] for row in rows]
    return f"{min(used)}–{max(used)}" if used else "–"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and range; the mean alone where all values read the same."""
    v = np.asarray(values, float)
    if len(v) == 0:
        return "–"
    mean, least, most = (f"{x:.{digits}f}" for x in (v.mean(), v.min(), v.max()))
    return mean if least == most else f"{mean} ({least}–{most})"


def paper_value(
    paper: float, digits: int, ours: Mapping[str, Sequence[float]], higher_is_better: bool = False
) -> str:
    """The paper's figure, and "not reached" behind it where our mean is worse.

    Ours is rounded as the paper's is before it is compared.  The keys say where or by what, if
    there is more than one of them: "at 19×19".
    """
    sign = -1 if higher_is_better else 1
    worse = [
        key
        for key, values in ours.items()
        if len(values) and sign * round(float(np.mean(values)), digits) > sign * paper
    ]
    missed = f", not reached {' and '.join(worse)}".rstrip() if worse else ""
    return f"{paper:.{digits}f}{missed}"
