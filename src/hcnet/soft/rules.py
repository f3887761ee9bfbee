"""Long thin lines, which hold together what is drawn on them: staves, wires, frames, rules.

A line is a long run of pixels along a row or a column that is thin in most places.  Where the ink
across it is thicker, something lies on the line, and the ink is left to that.
"""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import entry
from hcnet.images import BoolArray

# A run is a line if it is so many times as long as it is thick in most places, and ink across it
# belongs to it up to so many times this thickness and a pixel.
SLENDER = 8
THICKER = 1.5


@entry
def _across(ink, length):
    """Length of the run of on pixels across the rows that each pixel belongs to."""
    height, width = ink.shape
    for x in range(width):
        y = 0
        while y < height:
            end = y
            while end < height and ink[end, x]:
                end += 1
            for v in range(y, end):
                length[v, x] = end - y
            y = end + 1


@entry
def _mark(ink, across, least, slender, thicker, line, below):
    """Mark the runs of lines along the rows, and the ink that belongs to lines alone."""
    height, width = ink.shape
    thick = np.zeros(width, np.int32)
    for y in range(height):
        x = 0
        while x < width:
            end = x
            while end < width and ink[y, end]:
                end += 1
            n = end - x
            if n >= least:
                for u in range(x, end):
                    thick[u - x] = across[y, u]
                usual = np.sort(thick[:n])[n // 2]
                if usual * slender <= n:
                    # Where something lies on the line, it goes on as it was before.
                    low = high = y
                    for u in range(x, end):
                        if across[y, u] <= thicker * usual + 1:
                            low = high = y
                            while low > 0 and ink[low - 1, u]:
                                low -= 1
                            while high < height - 1 and ink[high + 1, u]:
                                high += 1
                            for v in range(low, high + 1):
                                line[v, u] = True
                        else:
                            for v in range(low, high + 1):
                                below[v, u] |= ink[v, u]
            x = end + 1


def without_lines(ink: BoolArray, least: int) -> tuple[BoolArray, BoolArray]:
    """Ink without lines of at least this length, along rows and then along columns; these lines.

    The lines go on below what lies on them.
    """
    lines = np.zeros(ink.shape[::-1], bool)
    for _ in range(2):
        across, line = np.zeros(ink.shape, np.int32), np.zeros(ink.shape, bool)
        below = np.zeros(ink.shape, bool)
        _across(ink, across)
        _mark(ink, across, least, SLENDER, THICKER, line, below)
        lines = lines.T | line | below
        ink = np.ascontiguousarray((ink & ~line).T)
    return ink, np.ascontiguousarray(lines.T)
