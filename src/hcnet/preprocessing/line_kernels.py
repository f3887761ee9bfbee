"""The loops over straight lines: which of them are bright from side to side."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from hcnet.engine.threads import over_threads
from hcnet.images import BoolArray

# Steps per pixel in which the ends of lines are tried.  With whole pixels, lines one pixel wide
# are lost between two of those that are tried; with thirds it takes twice as long as with halves.
STEPS = 2

_kernel: Any = nb.njit(nogil=True, cache=True)


def bright_lines(bright: BoolArray, share: float, shortest: float) -> BoolArray:
    """The pixels of all lines that run through the columns of images and are bright.

    Of slopes up to one pixel per column; images are (n, height, width).  A line has one pixel in
    each column that it meets, at least ``shortest`` of them, and at least a ``share`` of them is
    bright.
    """
    width = bright.shape[2]
    across = max(width - 1, 1)
    start = np.arange(STEPS)[:, None, None]
    rise = np.arange(-STEPS * across, STEPS * across + 1)[:, None]
    # The nearest row, halves upwards, in whole numbers: the same on every machine.
    doubled = 2 * (start * across + rise * np.arange(width))
    rows = (doubled + STEPS * across) // (2 * STEPS * across)
    marked = np.zeros(bright.shape, bool)
    _mark(len(bright), np.ascontiguousarray(bright), rows, share, shortest, marked)
    return marked


@over_threads
@_kernel
def _mark(first, last, bright, rows, share, shortest, marked):
    """``rows`` (start, rise, column) of lines that start in the first row or just below it."""
    height, width = bright.shape[1:]
    # From so many rows above the image to so many below it.
    beyond = max(width - 1, 1)
    most_dark = width - share * width
    for n in range(first, last):
        for down in range(-beyond, height + beyond):
            for s in range(rows.shape[0]):
                for k in range(rows.shape[1]):
                    ends = down + rows[s, k, 0], down + rows[s, k, width - 1]
                    if max(ends) < 0 or min(ends) >= height:
                        continue
                    length = dark = 0
                    for x in range(width):
                        y = down + rows[s, k, x]
                        if 0 <= y < height:
                            length += 1
                            if not bright[n, y, x]:
                                dark += 1
                                if dark > most_dark:
                                    break
                    if length < shortest or length - dark < share * length:
                        continue
                    for x in range(width):
                        y = down + rows[s, k, x]
                        if 0 <= y < height:
                            marked[n, y, x] = True
