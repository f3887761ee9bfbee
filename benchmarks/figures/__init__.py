"""The figures of docs/results.md, drawn from rows: a function and what it shows, by benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from benchmarks.figures import digits, networks, parts
from benchmarks.figures.style import DPI, RC
from benchmarks.harness import Row


class Drawing(NamedTuple):
    """How a figure is drawn, and its text for those who do not see it."""

    draw: Callable[[list[Row]], Figure]
    shows: str


FIGURES = {
    "table1": Drawing(
        parts.table_1,
        "Compression ratio and seconds on the five images: every seed, the true parts, the paper",
    ),
    "online": Drawing(
        parts.streams,
        "The worst character and the code length in the three settings, and memory by length",
    ),
    "shapes": Drawing(
        networks.with_and_without_labels,
        "Test errors of all fits by size and way of classifying, beside the paper's",
    ),
    "alternatives": Drawing(
        networks.instead, "Test errors of all methods at two sizes, beside the paper's"
    ),
    "semisupervised": Drawing(networks.few_labels, "Test errors over the number of labels"),
    "noise": Drawing(
        networks.noisy_training,
        "Test errors over flipped pixels in training: networks on the left, classic methods on the "
        "right",
    ),
    "inpainting": Drawing(
        networks.filled_in, "What each method misses and makes up, for blocks and random pixels"
    ),
    "mnist": Drawing(
        digits.digits,
        "Test errors by corruption beside the paper's, and over the number of digits learned from",
    ),
}


def write(name: str, rows: list[Row], path: Path) -> None:
    """Draw the figure of a benchmark into a file."""
    with matplotlib.rc_context(RC):
        FIGURES[name].draw(rows).savefig(path, dpi=DPI)
