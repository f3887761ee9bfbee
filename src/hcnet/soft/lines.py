"""Lines of text: the row that the letters around a piece stand on, and the gap to the left of it.

Copies of a part stand at the same height of their lines, so that most positions cost a few bits
only.  Pieces that stand in no line have any position on the page.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import entry
from hcnet.soft.coding import NO_ROW
from hcnet.soft.pieces import Pieces

# In median heights: how far the letters of a line are looked for, how much their lower edges may
# differ from that of a piece, and the least height of a letter (dots and dashes have less).
AROUND, LEVEL, LETTER = 6.0, 1.0, 0.5
# So many letters around a piece are a line.
LETTERS = 3
# Gaps between letters, and a pseudo-count for each.
GAPS, PRIOR = np.arange(-8, 56), 0.5


def in_lines(pieces: Pieces) -> Pieces:
    """The pieces of a page, with the lines in which they stand and the bits of their columns."""
    if not len(pieces):
        return pieces
    order = np.argsort(pieces.left, kind="stable")
    median = float(np.median(pieces.height[pieces.area >= 20])) if (pieces.area >= 20).any() else 1
    line, gap = _lines(
        pieces.top[order], pieces.left[order], pieces.height[order], pieces.width[order], median
    )
    lines, bits = np.full(len(pieces), NO_ROW), np.full(len(pieces), np.nan)
    lines[order] = line
    known = (gap >= GAPS[0]) & (gap <= GAPS[-1])
    counts = np.bincount(gap[known] - GAPS[0], minlength=len(GAPS)) + PRIOR
    bits[order[known]] = -np.log2(counts / counts.sum())[gap[known] - GAPS[0]]
    return replace(pieces, line=lines, gap=bits)


def places(pieces: Pieces, total: float, n: float) -> NDArray[np.float64]:
    """Bits of the position of each piece and of one of n names; of any position log2(total)."""
    free = np.full(len(pieces), np.log2(total))
    return np.fmin(free, np.log2(max(n, 1)) + pieces.gap)


@entry
def _lines(top, left, height, width, median):
    """The row that each piece stands on, and the columns between it and the piece to the left.

    The pieces are sorted by their left sides.
    """
    N = top.size
    line, gap = np.full(N, NO_ROW), np.full(N, NO_ROW)
    room = np.zeros(N, np.int64)
    first = 0
    for i in range(N):
        bottom, right = top[i] + height[i], left[i] + width[i]
        while left[first] < left[i] - 2 * AROUND * median:
            first += 1
        found = 0
        nearest = NO_ROW
        j = first
        while j < N and left[j] <= right + AROUND * median:
            below = top[j] + height[j]
            if j != i and height[j] >= LETTER * median and height[j] <= 3 * median:
                near = left[j] + width[j] >= left[i] - AROUND * median
                if near and abs(below - bottom) <= LEVEL * median:
                    room[found] = below
                    found += 1
            common = min(below, bottom + median) - max(top[j], top[i] - median)
            if j < i and common > 0 and abs(below - bottom) <= LEVEL * median:
                nearest = max(nearest, left[j] + width[j])
            j += 1
        if found >= LETTERS:
            line[i] = np.sort(room[:found])[found // 2]
            if nearest > NO_ROW:
                gap[i] = left[i] - nearest
    return line, gap
