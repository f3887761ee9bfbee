"""Frames of symbols, such that neighbours on a line lie side by side.

A text region codes where the lower left corner of a symbol lies from the lower right one of the
symbol before.  Empty pixels cost next to nothing.  With enough of them below, letters with and
without descenders end in the same row; with enough of them at its sides, a letter begins where the
one before ends, as in a font.  Frames belong to parts, so that variants of a symbol share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2.copies import Copies
from hcnet.codec.jbig2.prices import Symbol
from hcnet.soft.pieces import IntArray

# Neighbours are at most so many median heights apart, and those of one word so many.
REACH, WORD = 2.0, 0.35
# Rounds of fitting frames to neighbours.
ROUNDS = 5
# This share of symbols ends within the common rows and columns; a frame is at most so many
# median heights larger than its symbol.
SHARE, MOST = 0.98, 1.5


@dataclass(frozen=True, eq=False)
class _Lines:
    """Neighbours on lines: the part of each (as a row of frames), and its canvas on the page."""

    left: IntArray  # parts of the left neighbours
    right: IntArray
    down: IntArray  # canvas of the right one less that of the left one
    across: IntArray
    same_word: NDArray[np.bool_]


def framed(some: Sequence[Symbol], owner: IntArray, copies: Copies) -> list[Symbol]:
    """The symbols with frames that fit the lines of the pages."""
    names, part = np.unique([s.part for s in some], return_inverse=True)
    low = np.full((len(names), 2), np.iinfo(np.int64).max)
    high = np.full((len(names), 2), np.iinfo(np.int64).min)
    np.minimum.at(low, part, [s.origin for s in some])
    np.maximum.at(high, part, [s.origin + s.bitmap.shape for s in some])
    used = np.flatnonzero(owner >= 0)
    height = float(np.median(copies.bitmaps.height[used]))
    lines = _lines(copies, used, part[owner[used]], height)
    n = np.bincount(part[owner[used]], minlength=len(names))
    bottom = _fitted_rows(lines, high[:, 0])
    left, right = _fitted_columns(lines, low[:, 1], high[:, 1])
    most = int(MOST * height)
    bottom = np.clip(bottom + _enough(high[:, 0] - bottom, n), high[:, 0], high[:, 0] + most)
    left = np.clip(left - _enough(left - low[:, 1], n), low[:, 1] - most, low[:, 1])
    right = np.clip(right + _enough(high[:, 1] - right, n), high[:, 1], high[:, 1] + most)
    return [
        _padded(s, int(bottom[k]), int(left[k]), int(right[k]))
        for s, k in zip(some, part.tolist(), strict=True)
    ]


def _padded(symbol: Symbol, bottom: int, left: int, right: int) -> Symbol:
    """A symbol whose bitmap ends in these rows and columns of the canvas."""
    (h, w), (y, x) = symbol.bitmap.shape, symbol.origin.tolist()
    bitmap = np.pad(symbol.bitmap, ((0, bottom - y - h), (x - left, right - x - w)))
    return replace(symbol, bitmap=bitmap, origin=np.array([y, left]))


def _enough(lacking: IntArray, n: IntArray) -> int:
    """So many pixels are enough for most symbols, of which each has n copies."""
    order = np.argsort(lacking, kind="stable")
    share = np.cumsum(n[order]) / n.sum()
    return int(lacking[order][np.searchsorted(share, SHARE)])


def _lines(copies: Copies, used: IntArray, part: IntArray, height: float) -> _Lines:
    """Pairs of copies, each with the next one on its right."""
    top, left = copies.corner[used].T
    bottom, right = top + copies.bitmaps.height[used], left + copies.bitmaps.width[used]
    page = copies.page[used]
    order = np.lexsort((left, page))
    place = page * (int(right.max()) + int(REACH * height) + 1)  # pages side by side
    lefts = (place + left)[order]
    pairs = []
    for i in range(len(used)):
        ends = np.searchsorted(lefts, place[i] + [left[i] + 1, right[i] + int(REACH * height)])
        near = order[slice(*ends.tolist())]
        near = near[(top[near] < bottom[i]) & (bottom[near] > top[i])]
        if len(near):
            pairs.append((i, int(near[0])))
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    canvas = copies.corner[used] - copies.place[used]
    down, across = (canvas[other] - canvas[one]).T
    same_word = left[other] - right[one] < WORD * height
    return _Lines(part[one], part[other], down, across, same_word)


def _fitted_rows(lines: _Lines, bottom: IntArray) -> IntArray:
    """The row of each canvas that lies on the line of the neighbours."""
    for _ in range(ROUNDS):
        differ = bottom[lines.right] + lines.down - bottom[lines.left]
        part = np.concatenate([lines.left, lines.right])
        bottom = bottom + _medians(part, np.concatenate([differ, -differ]), len(bottom))
    return bottom


def _fitted_columns(lines: _Lines, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Columns of each canvas between which a letter of a word fills its place on the line."""
    w = lines.same_word
    one, other, across = lines.left[w], lines.right[w], lines.across[w]
    for _ in range(ROUNDS):
        left = left - _medians(other, left[other] + across - right[one], len(left))
        right = right + _medians(one, left[other] + across - right[one], len(left))
    return left, right


def _medians(part: IntArray, value: IntArray, n: int) -> IntArray:
    """The median of the values of each part; 0 if it has none."""
    found = np.zeros(n, np.int64)
    order = np.lexsort((value, part))
    names, first, count = np.unique(part[order], return_index=True, return_counts=True)
    found[names] = value[order][first + (count - 1) // 2]
    return found
