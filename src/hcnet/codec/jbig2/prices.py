"""Symbols, and the bits of copies and of other symbols given them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2 import pricing, regions, symbols
from hcnet.codec.jbig2.bitmaps import Bitmaps, together
from hcnet.codec.jbig2.copies import Copies
from hcnet.soft.channel import ALONE, Table, bits_of
from hcnet.soft.pieces import IntArray

Floats = NDArray[np.float64]

# Prices are those of this refinement template; the segment is written with the better one.
TEMPLATE = 0


@dataclass(frozen=True, eq=False)
class Symbol:
    """A symbol, and the copies that it is made from."""

    bitmap: NDArray[np.uint8]
    origin: IntArray  # its corner on the canvas of the part
    part: int
    members: IntArray


class Prices:
    """Bits per pixel in its context, estimated from all copies and their symbols."""

    def __init__(self, copies: Copies, cost_alone: Table) -> None:
        self._copies, self._cost_alone = copies, cost_alone
        own, others = regions.OWN[TEMPLATE], regions.REFERENCE[TEMPLATE]
        self._pixels = regions.as_array(own), regions.as_array(others)
        self._cost = np.ones((1 << len(own + others), 2), np.float32)

    def learn(self, some: Sequence[Symbol]) -> None:
        """Estimate the bits anew, from symbols with their members."""
        counts = np.zeros((len(self._cost), 2))
        members = np.concatenate([s.members for s in some])
        which = np.repeat(np.arange(len(some)), [len(s.members) for s in some])
        self.of_copies(members, some, which, counts)
        self._cost = bits_of((counts[:, 1] + ALONE) / (counts.sum(axis=1) + 2 * ALONE))

    def of_copies(
        self, which: IntArray, some: Sequence[Symbol], given: IntArray, counts: Floats | None = None
    ) -> Floats:
        """Bits of copies, each given one of some symbols; adds pixels to counts by context."""
        place = self._copies.place[which] - _origins(some)[given]
        pairs = np.column_stack([which, given, place])
        return self._bits(self._copies.bitmaps, some, pairs, counts)

    def of_members(self, symbol: Symbol) -> Floats:
        """Bits of the members of a symbol."""
        return self.of_copies(symbol.members, [symbol], np.zeros_like(symbol.members))

    def of_symbols(self, one: Symbol, others: Sequence[Symbol]) -> Floats:
        """Bits of a symbol given each of others."""
        n = np.arange(len(others))
        place = one.origin - _origins(others)
        pairs = np.column_stack([np.zeros_like(n), n, place])
        return self._bits(together([one.bitmap]), others, pairs, None)

    def alone(self, some: Sequence[Symbol]) -> Floats:
        """Bits of symbols by themselves."""
        return together(s.bitmap for s in some).bits_alone(self._cost_alone)

    def _bits(
        self, copies: Bitmaps, some: Sequence[Symbol], pairs: IntArray, counts: Floats | None
    ) -> Floats:
        given = together(s.bitmap for s in some)
        height, width = (
            int(a.max(initial=0) + b.max(initial=0))
            for a, b in ((given.height, copies.height), (given.width, copies.width))
        )
        boards = np.zeros((2, symbols.room(height, width)), np.uint8)
        counts = np.zeros((0, 2)) if counts is None else counts
        arrays = given.arrays, copies.arrays
        bits = pricing.refined_bits(pairs, *arrays, *self._pixels, self._cost, counts, boards)
        return np.asarray(bits)


def _origins(some: Sequence[Symbol]) -> IntArray:
    return np.array([s.origin for s in some], np.int64).reshape(-1, 2)
