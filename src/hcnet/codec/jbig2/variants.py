"""A part as one symbol or several: light and dark copies, or those of two sizes, may each have one.

A symbol more costs its difference from another one, and saves bits of all copies that are closer to
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2.copies import Copies
from hcnet.codec.jbig2.prices import Prices, Symbol
from hcnet.images import BoolArray
from hcnet.soft.pieces import IntArray, smallest_box

# Empty pixels around a symbol.  Most copies then lie inside, so that their size and place need not
# be coded; without, feyn.tif has 1 % more bytes.
MARGIN = 1
# Bits of a symbol besides its pixels: steps of height and width.  A variant also has the number of
# its reference; but then the bits of pixels, from all copies, are too many for it.  Between 4 and
# 10 bits feyn.tif and witten.tif become shortest.
DIRECT, VARIANT = 10.0, 6.0
# Rounds of assigning copies to the nearer of two symbols.
ROUNDS = 8
# Copies that may be the symbol instead of what most have: those next to it.
NEXT = 3
# The share of its bits by itself that a symbol costs, since most are variants of others.
SHARE = 0.5


class Part:
    """The copies of a part on a common board."""

    def __init__(self, copies: Copies, members: IntArray) -> None:
        self.number, self.members = int(copies.part[members[0]]), members
        bitmaps, low = copies.bitmaps, copies.place[members]
        high = low + np.stack([bitmaps.height, bitmaps.width], axis=1)[members]
        self.low = low.min(axis=0) - MARGIN
        height, width = (high.max(axis=0) - self.low + MARGIN).tolist()
        self.stack = np.zeros((len(members), height, width), bool)
        for board, i, (y, x) in zip(
            self.stack, members.tolist(), (low - self.low).tolist(), strict=True
        ):
            own = bitmaps[i]
            board[y : y + own.shape[0], x : x + own.shape[1]] = own

    def symbol(self, rows: IntArray, pixels: BoolArray) -> Symbol:
        """A symbol with these pixels of the board, for some copies."""
        top, bottom, left, right = smallest_box(pixels).tolist()
        top, left = max(top - MARGIN, 0), max(left - MARGIN, 0)
        bitmap = pixels[top : bottom + MARGIN, left : right + MARGIN].astype(np.uint8)
        return Symbol(bitmap, self.low + np.array([top, left]), self.number, self.members[rows])

    def majority(self, rows: IntArray) -> Symbol:
        """What most of some copies have."""
        return self.symbol(rows, self._most(rows))

    def _most(self, rows: IntArray) -> BoolArray:
        return np.asarray(2 * self.stack[rows].sum(axis=0, dtype=np.int64) > len(rows))

    def divided(self, prices: Prices) -> list[Symbol]:
        """Symbols for the copies: as many as pay."""
        todo, done = [np.arange(len(self.members))], []
        while todo:
            rows = todo.pop()
            halves = self._halves(rows, prices)
            if halves is None:
                done.append(self._best(rows, prices))
            else:
                todo += halves
        return done

    def _halves(self, rows: IntArray, prices: Prices) -> list[IntArray] | None:
        """Two groups of copies that cost less with two symbols than with one."""
        least, best = float(prices.of_members(self.majority(rows)).sum()), None
        for a, b in self._proposals(rows):
            one, other = self.majority(a), self.majority(b)
            bits = prices.of_members(one).sum() + prices.of_members(other).sum()
            bits += VARIANT + prices.of_symbols(other, [one])[0]
            bits += _names(len(rows)) - _names(len(a)) - _names(len(b))
            if bits < least:
                least, best = float(bits), [a, b]
        return best

    def _proposals(self, rows: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Two groups around two symbols, from three starts."""
        if len(rows) < 2:
            return
        flat = self.stack[rows].reshape(len(rows), -1)
        count = flat.sum(axis=0)
        flat = flat[:, (count > 0) & (count < len(rows))].astype(np.float32)
        if not flat.size:
            return
        first = _distances(flat, flat.sum(axis=0) * 2 > len(rows))
        far = np.argmax(first)
        second = _distances(flat, flat[far])
        opposite = _distances(flat, flat[np.argmax(second)])
        uncertain = np.argmin(np.abs(flat.sum(axis=0) * 2 - len(rows)))
        for start in (second < first, second < opposite, flat[:, uncertain] > 0):
            which = start
            for _ in range(ROUNDS):
                if which.all() or not which.any():
                    break
                centres = [flat[w].sum(axis=0) * 2 > w.sum() for w in (which, ~which)]
                before = which
                which = _distances(flat, centres[0]) < _distances(flat, centres[1])
                if (which == before).all():
                    break
            if which.any() and not which.all():
                yield rows[which], rows[~which]

    def _best(self, rows: IntArray, prices: Prices) -> Symbol:
        """What most copies have, or one of the copies, which then costs nothing."""
        most = self._most(rows)
        best = self.symbol(rows, most)
        least = prices.of_members(best).sum() + SHARE * prices.alone([best])[0]
        different = (self.stack[rows] != most).sum(axis=(1, 2))
        for j in np.argsort(different, kind="stable")[:NEXT].tolist():
            one = self.symbol(rows, self.stack[rows[j]])
            bits = prices.of_members(one)
            total = bits.sum() - bits[j] + SHARE * prices.alone([one])[0]
            if total < least:
                best, least = one, total
        return best


def _names(n: int) -> float:
    """Bits that n copies of a symbol save since it is frequent."""
    return n * math.log2(n)


def _distances(flat: NDArray[np.float32], centre: NDArray[np.generic]) -> NDArray[np.float32]:
    """In how many pixels rows differ from a centre; float32 is exact below 2²⁴."""
    on = centre.astype(np.float32)
    return np.asarray(flat.sum(axis=1) + on.sum() - 2 * (flat @ on))
