"""Copies of parts in the order in which a page is read: lines from left to right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
# A copy follows another if it begins at most so far to the right of its end, or to the left, and
# they overlap in height by this share of the smaller one.
GAP, OVERLAP, SHARE = 70, 25, 0.3


def lines_of(placements: IntArray, sizes: IntArray) -> list[IntArray]:
    """Rows of part, top and left as lines, from top to bottom."""
    placements = placements[np.lexsort((placements[:, 2], placements[:, 1]))]
    part, top, left = placements.T
    height, width = sizes[part].T
    bottom, right = top + height, left + width
    follower = np.full(len(part), -1)
    begins = np.ones(len(part), bool)
    order = np.argsort(left, kind="stable")
    for i in order.tolist():
        overlap = np.minimum(bottom, bottom[i]) - np.maximum(top, top[i])
        near = overlap > SHARE * np.minimum(height, height[i])
        near &= (left < left[i]) & (left[i] - right < GAP) & (left[i] - right > -OVERLAP)
        found = np.flatnonzero(near & (follower < 0))
        if len(found):
            far = np.abs(left[i] - right[found]) + 2 * np.abs(bottom[found] - bottom[i])
            follower[found[np.argmin(far)]] = i
            begins[i] = False
    lines = []
    for i in np.flatnonzero(begins).tolist():
        line = [i]
        while follower[line[-1]] >= 0:
            line.append(follower[line[-1]])
        lines.append(line)
    lines.sort(key=lambda line: (top[line[0]], left[line[0]]))
    return [placements[line] for line in lines]
