"""Lines of text: the row that the letters around a piece stand on, and the gap to the left of it.

Copies of a part stand at the same height of their lines, so that most positions cost a few bits
only.  Pieces that stand in no line have any position on the page.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcnet.soft import coding
from hcnet.soft.pieces import Pieces

# Gaps between letters, and a pseudo-count for each.
GAPS, PRIOR = np.arange(-8, 56), 0.5


def in_lines(pieces: Pieces) -> Pieces:
    """The pieces of a page, with the lines in which they stand and the bits of their columns."""
    if not len(pieces):
        return pieces
    order = np.argsort(pieces.left, kind="stable")
    median = float(np.median(pieces.height[pieces.area >= 20])) if (pieces.area >= 20).any() else 1
    line, gap = coding.lines(
        pieces.top[order], pieces.left[order], pieces.height[order], pieces.width[order], median
    )
    lines, bits = np.full(len(pieces), coding.NO_ROW), np.full(len(pieces), np.nan)
    lines[order] = line
    known = (gap >= GAPS[0]) & (gap <= GAPS[-1])
    counts = np.bincount(gap[known] - GAPS[0], minlength=len(GAPS)) + PRIOR
    bits[order[known]] = -np.log2(counts / counts.sum())[gap[known] - GAPS[0]]
    return replace(pieces, line=lines, gap=bits)


def places(pieces: Pieces, total: float, n: float) -> NDArray[np.float64]:
    """Bits of the position of each piece and of one of n names; of any position log2(total)."""
    free = np.full(len(pieces), np.log2(total))
    return np.asarray(np.fmin(free, np.log2(max(n, 1)) + pieces.gap))
