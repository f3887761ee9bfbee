"""The search for soft parts: a description of the pages in as few bits as possible.

Every piece of ink is a copy of a part or stands by itself.  The bits of a part with n copies are
those of one copy by itself, of the others given the part (each with itself left out), and of n
positions and names.  Moves: reassign copies, merge parts, merge variants whose edges alone differ,
align copies, dissolve parts that several others explain, join fragments of a copy, cover pieces by
several parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement
from hcnet.images import BoolArray
from hcnet.soft import coding, copying, merging
from hcnet.soft.channel import Table, part_cost, start_cost, template_cost
from hcnet.soft.lines import places
from hcnet.soft.parts import Parts, cover
from hcnet.soft.pieces import (
    IntArray,
    Pieces,
    best_pairs,
    joined,
    neighbours,
    selected,
    unions,
    with_cracked,
)

# Pieces that differ from a part in less than this share of their ink join it at the beginning.
ALIKE = 0.14
# Rounds of reassigning and merging; bits that variants may cost more, per copy and edge pixel.
ROUNDS = 4
VARIANTS = (0.1, 0.2, 0.4, 0.6, 0.6)
STAGES = (
    "gather",
    *("reassign", "merge") * ROUNDS,
    *["variants"] * len(VARIANTS),
    "align",
    "align",
)
STAGES += ("dissolve", "cover", "join")
# Stages that are done with one block of pieces after the other, with the parts of those before:
# time grows with the number of pieces, and not with its square.
EARLY = STAGES[: STAGES.index("align")]
BLOCK = 5000
# Known copies from which the channel can be estimated.
ENOUGH = 200
# Pieces, or parts, of one step: a step takes well below a second.
CHUNKS = {
    "gather": 1000,
    "reassign": 1000,
    "merge": 300,
    "variants": 300,
    "align": 3000,
    "cover": 40,
}
# Time that stages take for a piece, compared with the first: on pages of text.
WORK = {"variants": 0.6, "align": 0.7, "dissolve": 5.0, "cover": 5.0, "join": 1.0}
# Fragments are at most so many median heights apart; a dot is at most so large.
GAP, DOT = 0.35, 0.5
# Parts that may explain a piece with others have so many copies, in a brief search such a share of
# all, and so many pixels.  Parts that may be dissolved are so much larger than the typical one and
# have at most so many copies.
COPIES, COMMON, PIXELS = 3, 0.02, 30
LARGER, MOST_COPIES = 1.3, 60
# Pieces with fewer pixels are not taken for several parts.
SEVERAL = 60


@dataclass(frozen=True, eq=False)
class Known:
    """Parts of earlier pages: some of their copies, and pieces that have no part yet."""

    pieces: Pieces
    assigned: IntArray
    shift: IntArray
    cost: Table  # bits of pixels given their part

    @property
    def enough(self) -> bool:
        """Whether the bits of pixels given their part are those of many copies."""
        n = np.bincount(self.assigned, minlength=1)
        return bool(n[n > 1].sum() >= ENOUGH)


class SoftSearch(Stateful):
    """A process for the driver: from pieces to parts, one small step after the other.

    `known` parts of earlier pages come first; `counts` are those of pixels without a part in
    earlier pages, to which these pages are added.  A `brief` search has one round, and looks for
    common parts only inside a piece.  A part is dissolved into others that have at most
    `dissolving` times its bits.
    """

    def __init__(
        self,
        pages: Sequence[BoolArray],
        pieces: Pieces,
        seed: int,
        known: Known | None = None,
        counts: NDArray[np.float64] | None = None,
        brief: bool = False,
        dissolving: float = 1.0,
    ) -> None:
        if known is not None:
            pieces = joined([known.pieces, pieces])
        self._found, self._seed = pieces, seed
        plan = _plan(len(pieces), known is None or not known.enough)
        self._plan = _brief(plan) if brief else plan
        self._is_brief, self._dissolving = brief, dissolving
        # A copy of a part with n has log2(total / n) bits for its position and name: the limit of
        # the paper's E(S) for few placements on many pixels.  In a line of text it has fewer.
        self.total = math.e * max(sum(page.size for page in pages), 1)
        self.cost_alone = template_cost(pages, counts)
        self.cost: Table = start_cost()
        self.joins = np.zeros((0, 2), np.int64)  # pieces that were put together
        self._stage, self._at = 0, 0
        self._order = np.zeros(0, np.int64)  # of the pieces or parts of the stage
        self._begin(pieces)
        if known is not None:
            K, self.cost = len(known.pieces), known.cost
            self.assigned[:K], self.shift[:K] = known.assigned, known.shift
            given = known.pieces.arrays(), self.parts.arrays()
            copying.fill(*given, self.assigned[:K], self.shift[:K])
            copying.tighten(self.parts.arrays())

    def _begin(self, pieces: Pieces) -> None:
        self.pieces, N = pieces, len(pieces)
        self.alone = coding.template_bits(pieces.arrays(), self.cost_alone)
        self.place = places(pieces, self.total, N)
        self.parts = Parts(np.stack([pieces.height, pieces.width], axis=1), pieces.reference)
        self.assigned = np.full(N, -1)
        self.shift = np.zeros((N, 2), np.int64)
        self.bits, self.saved = np.zeros(N), np.zeros(N)
        self.covers = np.zeros((0, 4), np.int64)  # piece, part, and corner of its box in the piece

    @property
    def expected_steps(self) -> int:
        """How many steps there will be in all."""
        N = max(len(self.pieces), 1)
        return sum(-(-(end - begin) // CHUNKS.get(STAGES[s], N)) for s, begin, end in self._plan)

    @property
    def done(self) -> float:
        """Which share of the time is over, about."""
        work = [WORK.get(STAGES[s], 1.0) * (end - begin) for s, begin, end in self._plan]
        over = sum(work[: self._stage])
        if self._at:
            over += work[self._stage] * min(self._at / max(len(self._order), 1), 1.0)
        return over / max(sum(work), 1.0)

    def step(self) -> bool:
        """Do a chunk of the current stage; False when the last one is over."""
        if not len(self.pieces) or self._stage == len(self._plan):
            return False
        name = STAGES[self._plan[self._stage][0]]
        if self._at == 0:
            self._order = self._ordered(name)
        chunk = self._order[self._at : self._at + CHUNKS.get(name, len(self._order) + 1)]
        self._work(name, chunk)
        self._at += max(len(chunk), 1)
        if self._at >= len(self._order):
            self.learn()
            self._stage, self._at = self._stage + 1, 0
        return self._stage < len(self._plan)

    def _ordered(self, name: str) -> IntArray:
        """The pieces or parts of a stage."""
        rng = np.random.default_rng([self._seed, self._stage])
        block = np.arange(*self._plan[self._stage][1:])
        if name == "reassign":
            return rng.permutation(block)
        if name in ("merge", "variants"):
            some = np.flatnonzero(self.parts.n)
            return some[np.argsort(self.parts.n[some], kind="stable")]
        if name == "cover":
            return np.flatnonzero(~self.shared & (self.pieces.area >= SEVERAL))
        return block

    def _work(self, name: str, chunk: IntArray) -> None:
        pieces, parts = self.pieces.arrays(), self.parts.arrays()
        stage, _, end = self._plan[self._stage]
        placed = self.assigned[:end], self.shift[:end]
        if name in ("gather", "reassign"):
            alike = ALIKE if name == "gather" else 0.0
            copying.reassign(
                chunk, pieces, parts, self.alone, *placed, self.cost, alike, self.place
            )
        elif name in ("merge", "variants"):
            slack = VARIANTS[stage - STAGES.index("variants")] if name == "variants" else 0.0
            rest = self.alone, *placed, self.bits, self.cost, slack, self.place
            merging.merge(chunk, pieces, parts, *rest)
        elif name == "align":
            copying.realign(chunk, pieces, parts, *placed, self.cost)
        elif name == "dissolve":
            self._dissolve()
        elif name == "join":
            self._join()
        else:
            covers, saved = self._cover(chunk, self.pieces, self.assigned)
            self.covers, self.saved = np.concatenate([self.covers, covers]), self.saved + saved

    def learn(self) -> None:
        """Estimate the channel anew, and price the copies of the block with it."""
        copying.tighten(self.parts.arrays())
        block = slice(*self._plan[self._stage][1:])
        self.cost, bits = self.channel(block)
        self.bits[block] = bits[block]

    def channel(self, block: slice = slice(None)) -> tuple[Table, NDArray[np.float64]]:
        """The channel and the bits of a block's copies as they are now, also within a stage."""
        if not len(self.pieces):
            return self.cost, self.bits
        counts, assigned = np.zeros(coding.TABLE), np.full(len(self.pieces), -1)
        assigned[block] = self.assigned[block]
        given = self.pieces.arrays(), self.parts.arrays(), assigned, self.shift
        coding.price(*given, 1, self.cost, counts)
        cost = part_cost(counts)
        return cost, coding.price(*given, 1, cost, coding.NO_COUNTS)

    @property
    def shared(self) -> BoolArray:
        """Which pieces are copies of a part that has others."""
        return np.asarray((self.assigned >= 0) & (self.parts.n[self.assigned] > 1))

    @property
    def explained(self) -> BoolArray:
        """Which pieces are copies, or made of several parts that have copies still."""
        found = self.shared
        lost = self.covers[self.parts.n[self.covers[:, 1]] < 2, 0]
        found[np.setdiff1d(self.covers[:, 0], lost)] = True
        return found

    def costs(self, bits: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Bits of every piece: its pixels, and if it is a copy, its position and its name."""
        n = np.where(self.shared, self.parts.n[self.assigned], 1)
        copy = (self.bits if bits is None else bits) + self.place - np.log2(n)
        copy += self._rows()
        return np.asarray(np.where(n > 1, copy, self.alone - self.saved))

    def _rows(self) -> NDArray[np.float64]:
        """Bits of the rows of all copies in their lines."""
        given = self.pieces.arrays(), self.parts.arrays(), self.assigned, self.shift
        return np.asarray(coding.rows_price(*given))

    @property
    def _inside(self) -> float:
        """Bits of the position of a part beside another in a piece, and of one of all names."""
        return float(np.median(self.place))

    def energy(self) -> float:
        """Bits of all pieces and parts."""
        n, K = self.parts.n, len(self.parts.n)
        some = self.assigned >= 0
        more = np.bincount(self.assigned[some], (self.alone - self.bits)[some], K)
        return float(self.costs().sum() + (more / np.maximum(n, 1))[n > 1].sum())

    def _cover(
        self, which: IntArray, pieces: Pieces, assigned: IntArray
    ) -> tuple[IntArray, NDArray[np.float64]]:
        """Explain pieces by several parts: rows as in `covers`, and the bits saved by piece."""
        parts = self.parts
        least = max(COMMON * len(self.pieces), COPIES) if self._is_brief else COPIES
        usable = np.flatnonzero((parts.n >= least) & (parts.mass >= PIXELS * parts.n))
        place = np.minimum(places(pieces, self.total, len(self.pieces)), self._inside)
        return cover(which, pieces, parts, usable, assigned, self.cost_alone, self.cost, place)

    def _dissolve(self) -> None:
        """Give up parts whose copies cost less as several other parts."""
        n, box = self.parts.n, self.parts.box
        size = (box[:, 1] - box[:, 0]) * (box[:, 3] - box[:, 2])
        if not self.shared.any():
            return
        typical = np.median((self.pieces.height * self.pieces.width)[self.shared])
        wide = np.flatnonzero((n >= 2) & (n <= MOST_COPIES) & (size > LARGER * typical))
        which = np.flatnonzero(np.isin(self.assigned, wide))
        covers, saved = self._cover(which, self.pieces, self.assigned)
        several = np.bincount(covers[:, 0], minlength=len(self.pieces)) >= 2
        costs, first = self.costs(), np.bincount(self.assigned, self.alone - self.bits, len(n))
        gone: set[int] = set()
        needed: set[int] = set()
        for k in wide[np.argsort(-size[wide], kind="stable")].tolist():
            copies = which[self.assigned[which] == k]
            now = costs[copies].sum() + first[k] / n[k]
            then = (self.alone - saved)[copies].sum()
            by = set(covers[np.isin(covers[:, 0], copies), 1].tolist())
            if (
                then < self._dissolving * now
                and several[copies].mean() > 0.5
                and not by & gone
                and k not in needed
            ):
                gone.add(k)
                needed |= by
        out = np.flatnonzero(np.isin(self.assigned, sorted(gone)))
        copying.release(out, self.pieces.arrays(), self.parts.arrays(), self.assigned, self.shift)

    def _join(self) -> None:
        """Put neighbours together that are a broken copy, or several parts, if that is cheaper.

        A piece may also be a broken copy by itself.
        """
        p, shared = self.pieces, self.shared
        if not shared.any():
            return
        height = float(np.median(p.height[shared]))
        pairs = neighbours(p, GAP * height)
        pairs = pairs[~shared[pairs].all(axis=1)]
        pairs, lacking = with_cracked(pairs, ~shared)
        if not len(pairs):
            return
        both = unions(p, pairs)
        alone = coding.template_bits(both.arrays(), self.cost_alone)
        known = self.parts.arrays(least=2)
        place = places(both, self.total, len(p))
        given = both.arrays(), known, alone, self.cost, place, self.cost_alone
        part, shift, bits = copying.match(*given, lacking)
        # A dot may belong to several parts that touch.
        dots = np.maximum(p.height, p.width)[pairs].min(axis=1) <= DOT * height
        dots &= pairs[:, 0] != pairs[:, 1]
        several = np.flatnonzero(dots & (both.area >= SEVERAL) & (part < 0))
        covers, saved = self._cover(several, both, np.full(len(both), -1))
        costs = self.costs()
        costs = np.where(lacking < copying.LACKING, costs[pairs[:, 0]], costs[pairs].sum(axis=1))
        gain = costs - np.minimum(bits, alone - saved)
        gain[(part < 0) & (saved == 0)] = 0
        self._replace(pairs, best_pairs(pairs, gain), part, shift, covers, saved)

    def _replace(
        self,
        pairs: IntArray,
        chosen: IntArray,
        part: IntArray,
        shift: IntArray,
        covers: IntArray,
        saved: NDArray[np.float64],
    ) -> None:
        """Replace the chosen pairs of pieces by copies of parts, or by several parts."""
        left = np.setdiff1d(np.arange(len(self.pieces)), pairs[chosen])
        # Pieces by themselves get names of their own.
        new = np.where(part[chosen] >= 0, part[chosen], -1 - np.arange(len(chosen)))
        named = np.concatenate([self.assigned[left], new])
        shift = np.concatenate([self.shift[left], shift[chosen]])
        saved = np.concatenate([self.saved[left], saved[chosen]])
        old = _renumbered(self.covers, left, len(self.pieces), 0)
        more = _renumbered(covers, chosen, len(pairs), len(left))
        self.joins = pairs[chosen]
        self._begin(_with_joins(self.pieces, self.joins))
        # The canvas of a part is that of its first copy.
        names, first, inverse = np.unique(named, return_index=True, return_inverse=True)
        self.assigned, self.shift, self.saved = first[inverse], shift, saved
        self.covers = np.concatenate([old, more])
        self.covers[:, 1] = first[np.searchsorted(names, self.covers[:, 1])]
        copying.fill(self.pieces.arrays(), self.parts.arrays(), self.assigned, self.shift)

    def measure(self) -> Measurement:
        """Bits so far, as a log-probability."""
        if self._stage == 0:
            return Measurement(-math.inf, note="pieces")
        bits = self.energy()
        note = f"{(self.parts.n > 1).sum()} parts, {bits:,.0f} bits"
        return Measurement(-bits * math.log(2), note=note)

    def state(self) -> None:
        """Every state is a solution; the last is the one to keep."""
        return

    @property
    def saved_best(self) -> Kind:
        """Nothing besides the fields."""
        return kinds.constant(None)

    def saved_fields(self, finished: bool) -> Fields:
        """Which piece is a copy of what, and where the search is."""
        N, number = kinds.array(np.int64, (None,)), kinds.whole_number()
        most = kinds.LARGEST_COUNT
        rows = {n: kinds.array(np.int64, (None, n), -most, most) for n in (2, 4)}
        bits = kinds.array(np.float64, (None,))
        return {
            **dict.fromkeys(("_seed", "_stage", "_at"), number),
            **dict.fromkeys(("assigned", "_order"), N),
            **dict.fromkeys(("shift", "joins"), rows[2]),
            **dict.fromkeys(("covers", "_boxes"), rows[4]),
            **dict.fromkeys(("bits", "saved"), bits),
            "cost": kinds.array(np.float32, coding.TABLE, 0, 1000),
        }

    @property
    def _boxes(self) -> IntArray:
        return self.parts.box

    @_boxes.setter
    def _boxes(self, box: IntArray) -> None:
        self._restored_boxes = box

    def after_restore(self, finished: bool) -> None:
        """Parts follow from their copies."""
        own = self.assigned, self.shift, self.covers, self.bits, self.saved
        pairs = self.joins
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < len(self._found)):
            raise ValueError("its joins are not of its pieces")
        self._begin(_with_joins(self._found, pairs) if pairs.size else self._found)
        self.assigned, self.shift, self.covers, self.bits, self.saved = own
        N = len(self.pieces)
        lengths = {len(self.assigned), len(self.shift), len(self.bits), len(self.saved)}
        if lengths != {N} or self._restored_boxes.shape != (N, 4) or self._stage > len(self._plan):
            raise ValueError("its copies are not those of its pieces")
        inside = (self.assigned >= -1) & (self.assigned < N)
        covered = (self.covers[:, :2] >= 0) & (self.covers[:, :2] < N)
        canvas = np.stack([self.parts.height, self.parts.width], axis=1)
        far = (np.abs(self.shift) > canvas.max(initial=0)).any()
        if not inside.all() or not covered.all() or far:
            raise ValueError("its copies are of unknown parts")
        if not np.isin(self._order, np.arange(N)).all():
            raise ValueError("its order is not of its pieces")
        placed = np.flatnonzero(self.assigned >= 0)
        given = selected(self.pieces, placed).arrays()
        copying.fill(given, self.parts.arrays(), self.assigned[placed], self.shift[placed])
        box = self._restored_boxes
        outside = ((box[:, ::2] < 1) | (box[:, 1::2] >= canvas)).any(axis=1)
        if (outside & (self.parts.n > 0)).any():
            raise ValueError("its parts do not lie on their canvases")
        self.parts.box[:] = box


def _renumbered(covers: IntArray, kept: IntArray, total: int, first: int) -> IntArray:
    """The rows of pieces that are kept, which are numbered anew."""
    number = np.full(total, -1)
    number[kept] = first + np.arange(len(kept))
    rows = covers[number[covers[:, 0]] >= 0].copy()
    rows[:, 0] = number[rows[:, 0]]
    return rows


def _plan(n: int, gather: bool) -> list[tuple[int, int, int]]:
    """Stages as numbers in STAGES, each with begin and end of the pieces that it is done with."""
    blocks, variants = max(-(-n // BLOCK), 1), EARLY.index("variants")
    ends = [n * b // blocks for b in range(blocks + 1)]
    plan = [(s, 0, ends[1]) for s in range(0 if gather else variants - 4, len(EARLY))]
    # Known parts are good: two rounds are enough for more pieces, and one for all of them.
    plan += [(s, *pair) for pair in pairwise(ends[1:]) for s in range(variants - 4, len(EARLY))]
    last = variants - 2 if blocks > 1 else len(EARLY)
    return plan + [(s, 0, n) for s in range(last, len(STAGES))]


def _brief(plan: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """A plan that gathers pieces, merges variants, aligns copies and covers pieces, each once."""
    again, align = EARLY.index("variants") - 2, STAGES.index("align")
    kept = {0, align - 1, align, STAGES.index("cover")}
    # Pieces of later blocks join the parts of those before.
    return [one for one in plan if one[0] in (kept | {again} if one[1] else kept)]


def _with_joins(pieces: Pieces, pairs: IntArray) -> Pieces:
    """The pieces with pairs of them put together, at the end."""
    left = np.setdiff1d(np.arange(len(pieces)), pairs)
    return joined([selected(pieces, left), unions(pieces, pairs)])
