"""Soft parts on canvases, and pieces that several of them explain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.driver import look
from hcnet.soft import copying, covering
from hcnet.soft.channel import Table
from hcnet.soft.pieces import IntArray, Pieces

# Pieces between two looks at the clock.
CHUNK = 40
NO_PIXELS = np.zeros(0, np.uint8)


def _margin(side: IntArray) -> IntArray:
    return np.asarray(np.maximum(3, np.ceil(0.15 * side).astype(np.int64)) + copying.FARTHEST + 3)


def canvas_of(side: IntArray) -> IntArray:
    """Height and width of the canvases of parts with copies of these sides."""
    return side + 2 * _margin(side)


class Parts:
    """Soft parts on canvases, as compiled loops take them (see `coding`)."""

    def __init__(self, side: IntArray, reference: IntArray) -> None:
        canvas = canvas_of(side)
        start = np.concatenate([[0], np.cumsum(canvas.prod(axis=1))])
        K = len(side)
        self.sums = np.zeros(start[-1], np.int32)
        self.start = start[:-1]
        self.height, self.width = canvas[:, 0].copy(), canvas[:, 1].copy()
        self.reference = reference + _margin(side)
        self.n, self.mass = np.zeros(K, np.int64), np.zeros(K, np.int64)
        self.box = np.zeros((K, 4), np.int64)
        self.level = np.zeros((K, 2), np.int64)
        self.side = side

    def arrays(self, least: int = 1) -> tuple[NDArray[np.generic], ...]:
        """The parts with at least so many copies."""
        n = np.where(self.n >= least, self.n, 0) if least > 1 else self.n
        first = self.sums, self.start, self.height, self.width, self.reference
        return *first, n, self.box, self.mass, self.side, self.level

    def counts(self, k: int) -> NDArray[np.int32]:
        """In how many copies each pixel of the box is on."""
        h, w = self.height[k], self.width[k]
        canvas = self.sums[self.start[k] : self.start[k] + h * w].reshape(h, w)
        top, bottom, left, right = self.box[k]
        return canvas[top:bottom, left:right]


def cover(
    which: IntArray,
    pieces: Pieces,
    parts: Parts,
    usable: IntArray,
    assigned: IntArray,
    cost_alone: Table,
    cost: Table,
    place: NDArray[np.float64],
    hidden: NDArray[np.uint8] = NO_PIXELS,
) -> tuple[IntArray, NDArray[np.float64]]:
    """Explain pieces by several parts: rows of piece, part and corner, and the bits saved.

    Behind `hidden` pixels one part is enough.
    """
    rows, saved = [np.zeros((0, 4), np.int64)], np.zeros(len(pieces))
    for at in range(0, len(which), CHUNK):
        look()
        some = which[at : at + CHUNK]
        room = np.zeros((20 * len(some), 4), np.int64)
        given = pieces.arrays(), hidden, parts.arrays(), usable, assigned
        n, more = covering.cover(some, *given, cost_alone, cost, place, room)
        rows.append(room[:n])
        saved += more
    return np.concatenate(rows), saved
