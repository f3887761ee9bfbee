"""The order of symbols: one of each part by itself, then the others, each given an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hcnet.codec.jbig2.prices import Prices, Symbol
from hcnet.soft.pieces import IntArray


def families_of(some: Sequence[Symbol]) -> list[IntArray]:
    """The numbers of symbols, for each part."""
    part = np.array([s.part for s in some], np.int64)
    return [np.flatnonzero(part == k) for k in np.unique(part)]


def ordered(some: Sequence[Symbol], prices: Prices) -> tuple[list[int], IntArray]:
    """The numbers of symbols in their order, and what is given for the last ones of them.

    Both kinds are sorted by height, as a dictionary must be.  What is given are rows as in
    `Dictionary`.  A symbol is only given one of its own part: given one of another part (an h
    given an n), only 5 of 124 on feyn.tif would cost less than by themselves.
    """
    roots = set(_roots(some, prices))
    by_size = sorted(range(len(some)), key=lambda k: some[k].bitmap.shape)
    order = [k for k in by_size if k in roots]
    earlier = {some[k].part: [q] for q, k in enumerate(order)}
    rows = []
    for k in by_size:
        if k in roots:
            continue
        mine = earlier[some[k].part]
        bits = prices.of_symbols(some[k], [some[order[q]] for q in mine])
        best = mine[int(np.argmin(bits))]
        rows.append((best, *(some[order[best]].origin - some[k].origin).tolist()))
        mine.append(len(order))
        order.append(k)
    return order, np.array(rows, np.int64).reshape(-1, 3)


def _roots(some: Sequence[Symbol], prices: Prices) -> list[int]:
    """The symbol of each part that it costs least to derive the others from."""
    alone, roots = prices.alone(some), []
    for family in families_of(some):
        mine = [some[k] for k in family.tolist()]
        bits = np.stack([prices.of_symbols(one, mine) for one in mine])
        np.fill_diagonal(bits, 0)
        roots.append(int(family[np.argmin(alone[family] + bits.sum(axis=0))]))
    return roots
