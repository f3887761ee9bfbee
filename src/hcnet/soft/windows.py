"""Parts inside ink that hangs together: proposals that are cut out of what no part explains.

On a sheet of music or in a drawing, lines join what repeats to one large piece.  Ink without a part
is therefore cut into smaller pieces, by taking long lines away, and a second search looks for
copies among these, with the parts that are known.  How long a line has to be is decided in bits:
the shortest description is kept, and it may be the one without any cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.soft import coding
from hcnet.soft.channel import Table, part_cost
from hcnet.soft.pieces import IntArray, Pieces, find_pieces, joined, selected
from hcnet.soft.rules import without_lines
from hcnet.soft.soft_search import EARLY, STAGES, Known, SoftSearch

# Pixels of the shortest line that is taken away.  If the first saves bits, the others are tried.
LENGTHS = (96, 32, 288)
# Fewer pieces that lay on lines are not searched.
FEWEST = 8


class Cut(NamedTuple):
    """Pieces that lay on lines, the lines, and the bits that each piece adds to its page."""

    pieces: Pieces
    lines: BoolArray
    bits: NDArray[np.float64]


def ink_of(pieces: Pieces, which: IntArray, page: BoolArray, number: int) -> BoolArray:
    """The ink of some pieces on a page."""
    ink = np.zeros(page.shape, bool)
    for i in which[pieces.page[which] == number].tolist():
        own = pieces.bitmap(i).view(bool)
        y, x = pieces.top[i], pieces.left[i]
        ink[y : y + own.shape[0], x : x + own.shape[1]] |= own
    return ink


def cut_pieces(
    left: BoolArray, number: int, length: int, largest: tuple[int, int] | None, cost_alone: Table
) -> Cut | None:
    """Pieces of the ink that is left on a page, without its long lines; None if there are few."""
    rest, lines = without_lines(left, length)
    if not lines.any():
        return None
    pieces = find_pieces(rest, number, largest)
    boxes = np.stack([pieces.top, pieces.left, pieces.height, pieces.width], axis=1).tolist()
    beside = [
        bool(lines[max(y - 1, 0) : y + h + 1, max(x - 1, 0) : x + w + 1].any())
        for y, x, h, w in boxes
    ]
    if sum(beside) < FEWEST:
        return None
    pieces = selected(pieces, np.flatnonzero(beside))
    hidden = [
        lines[y : y + h, x : x + w].ravel()
        for (y, x, h, w), on in zip(boxes, beside, strict=True)
        if on
    ]
    pieces = replace(pieces, hidden=np.concatenate(hidden).view(np.uint8))
    given = pieces.arrays(), pieces.top, pieces.left, left.view(np.uint8)
    return Cut(pieces, lines, coding.added_bits(*given, cost_alone))


class WindowSearch(SoftSearch):
    """A search for copies among new pieces; those of a finished search stay what they are."""

    def __init__(self, found: SoftSearch, cuts: list[Cut], seed: int) -> None:
        self.lines = [cut.lines for cut in cuts]
        pieces = joined([cut.pieces for cut in cuts])
        kept = np.flatnonzero(found.explained)
        number = np.full(len(found.pieces), -1)
        number[kept] = np.arange(len(kept))
        # The canvas of a part is that of its first copy.
        _, first, inverse = np.unique(found.assigned[kept], return_index=True, return_inverse=True)
        part = np.full(len(found.pieces), -1)
        part[found.assigned[kept]] = first[inverse]
        known = Known(selected(found.pieces, kept), first[inverse], found.shift[kept], found.cost)
        self._kept = len(kept)
        self._in_place = np.concatenate([cut.bits for cut in cuts])
        self._found_with = found.cost_alone, found.total
        super().__init__((), pieces, seed, known)
        self.bits[: len(kept)], self.saved[: len(kept)] = found.bits[kept], found.saved[kept]
        self.covers = found.covers[number[found.covers[:, 0]] >= 0]
        self.covers[:, 0], self.covers[:, 1] = number[self.covers[:, 0]], part[self.covers[:, 1]]
        n = len(self.pieces)
        last = STAGES.index("align"), STAGES.index("align"), STAGES.index("cover")
        self._plan = [(s, len(kept), n) for s in (*range(len(EARLY)), *last)]
        self._counts = np.zeros(coding.TABLE)
        known_copies = np.where(np.arange(n) < len(kept), self.assigned, -1)
        given = self.pieces.arrays(), self.parts.arrays(), known_copies, self.shift
        coding.price(*given, 1, self.cost, self._counts)

    def _begin(self, pieces: Pieces) -> None:
        self.cost_alone, self.total = self._found_with
        super()._begin(pieces)
        self.alone[self._kept :] = self._in_place

    def _ordered(self, name: str) -> IntArray:
        """As always, without what was there before."""
        order = super()._ordered(name)
        return order[order >= self._kept]

    def channel(self, block: slice = slice(None)) -> tuple[Table, NDArray[np.float64]]:
        """The channel and the bits of new copies; of all copies, if no block is given."""
        if block.start is None:
            return super().channel()
        counts = self._counts.copy()
        assigned = np.full(len(self.pieces), -1)
        assigned[block] = self.assigned[block]
        given = self.pieces.arrays(), self.parts.arrays(), assigned, self.shift
        coding.price(*given, 1, self.cost, counts)
        cost = part_cost(counts)
        return cost, coding.price(*given, 1, cost, coding.NO_COUNTS)


def window_search(
    pages: Sequence[BoolArray],
    found: SoftSearch,
    length: int,
    largest: tuple[int, int] | None,
    seed: int,
) -> WindowSearch | None:
    """A search among pieces of what is not explained, cut at lines; None if there is no line."""
    which, cuts = np.flatnonzero(found.explained), []
    for number, page in enumerate(pages):
        left = page & ~ink_of(found.pieces, which, page, number)
        cut = cut_pieces(left, number, length, largest, found.cost_alone)
        if cut is None:
            none = selected(found.pieces, which[:0])
            cut = Cut(none, np.zeros(page.shape, bool), np.zeros(0))
        cuts.append(cut)
    if not any(len(cut.pieces) for cut in cuts):
        return None
    return WindowSearch(found, cuts, seed)
