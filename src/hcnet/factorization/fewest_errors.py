"""Factors with the fewest wrong entries: a search by moves, a process of the driver."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement, look
from hcnet.factorization.binary_factors import Bits, Factors
from hcnet.factorization.error_kernels import best_codes, climb, count, mix, search
from hcnet.factorization.packed import Packed, Words, packed_bits

# Up to so many components, all combinations of them are tried for each row and column.
EXACT_RANK = 12
# ... where that takes at most so many words: about a second.
EXACT_WORDS = 3 * 10**8
# Moves of a run; a run is one start, or one pair of solutions mixed.
MOVES = 300
# Runs from nothing, and runs in all, unless the table is large.
STARTS, RUNS = 20, 240
# The search ends when it has not improved for so many runs, and as many as it took.
PATIENCE = 80
# Temperatures of a start, and of what is mixed from two solutions, in wrong entries.
HEAT, MIX_HEAT, COLD = 3.0, 1.5, 0.3
# Probability that a component is passed over while two solutions are mixed.
SKIP = 0.3
# Nanoseconds that a move takes for each word of the table and component, about.
MOVE_COST = 30.0
# Seconds for all moves, about, and for a step: the number of moves follows, and never the clock.
SEARCH_SECONDS, STEP_SECONDS = 6.0, 0.1
FIGURE = "wrong entries, negative"


class FewestErrors(Stateful):
    """The search for a number of components; a step is a few moves.

    The first runs start from nothing, or from given factors.  Every later run mixes two of the best
    solutions: components that are good in both, one after the other, and moves from there.
    """

    def __init__(
        self,
        table: Packed,
        rank: int,
        rng: np.random.Generator,
        starts: list[Factors] | None = None,
        n_init: int | None = None,
        effort: float = 1.0,
    ) -> None:
        self._table, self._rank, self._rng = table, rank, rng
        self._given = [grown(start, rank) for start in starts or []]
        (rows, planes, words), (columns, _, words_T) = table.on.shape, table.on_T.shape
        size = planes * rank * (rows * words + columns * words_T)
        affordable = int(effort * SEARCH_SECONDS * 1e9 / (MOVE_COST * size))
        moves = max(affordable, 3 * rank)
        self.moves = min(moves, MOVES)  # of a run
        self._piece = int(np.clip(STEP_SECONDS * 1e9 / (MOVE_COST * size), 1, self.moves))
        runs = max(min(moves // self.moves, int(RUNS * effort)), 1)
        self._starts = max(1, min(STARTS, runs // 3))
        if n_init is not None:
            runs, self._starts = max(n_init * runs // self._starts, n_init), n_init
        self.runs = max(runs, len(self._given) + 1)
        self.total = self.runs * -(-self.moves // self._piece)
        self._exact = rank <= EXACT_RANK and (
            (rows * words + columns * words_T) * planes << rank <= EXACT_WORDS
        )
        self._pool: list[Factors] = []
        self._pool_errors: list[int] = []
        self._run = self._move = self._best_run = 0
        self._best = Factors(*(np.zeros((n, rank), np.int8) for n in table.shape))
        self._least = table.n_ones
        self._now, self._own = self._best.copy(), self._best.copy()
        self._errors = np.full(2, self._least, np.int64)  # of the present and the best of this run

    @property
    def wrong(self) -> float:
        """Weight of the entries that are wrong in the best solution."""
        return self._least * self._table.step

    def step(self) -> bool:
        """A few moves; the last ones of a run also put its best solution among the others."""
        table = self._table
        if self._move == 0:
            self._begin()
        last = min(self._move + self._piece, self.moves)
        heat = HEAT if self._from_nothing else MIX_HEAT
        search(
            *(table.on, table.off, table.on_T, table.off_T),
            *((self._now.S, self._now.W), (self._own.S, self._own.W)),
            self._errors,
            np.array([self._move, last, self.moves]),
            np.array([heat, COLD]) * table.typical,
            self._seeds(),
        )
        self._move = last
        if self._errors[1] < self._least:
            self._improve(int(self._errors[1]), self._own)
        if self._move < self.moves:
            return self._least > 0
        self._end()
        patient = self._run - self._best_run < PATIENCE + self._best_run
        return self._least > 0 and self._run < self.runs and patient

    @property
    def _from_nothing(self) -> bool:
        return self._run < max(self._starts, len(self._given)) or len(self._pool) < 2

    def _seeds(self) -> Words:
        return np.array([self._rng.integers(1, 2**63)], np.uint64)

    def _begin(self) -> None:
        if self._run < len(self._given):
            self._now = self._given[self._run].copy()
        elif self._from_nothing:
            self._now = Factors(*(np.zeros_like(bits) for bits in (self._best.S, self._best.W)))
        else:
            pair = self._rng.choice(len(self._pool), 2, replace=False)
            S = np.hstack([self._pool[k].S for k in pair])
            W = np.hstack([self._pool[k].W for k in pair])
            chosen = np.zeros(self._rank, np.int64)
            on, off = self._table.on, self._table.off
            mix(on, off, S, packed_bits(W.T), SKIP, self._seeds(), chosen)
            self._now = Factors(S, W).keep(chosen)
        # The first move changes what it starts from; it is judged by what the next ones reach.
        self._errors[:] = errors_of(self._table, self._now)
        self._own = self._now.copy()

    def _end(self) -> None:
        errors = int(self._errors[1])
        if self._exact:
            errors = best_responses(self._table, self._own)
        if errors < self._least:
            self._improve(errors, self._own)
        if errors not in self._pool_errors or self._from_nothing:
            self._pool.append(self._own)
            self._pool_errors.append(errors)
            if len(self._pool) > STARTS:
                worst = int(np.argmax(self._pool_errors))
                del self._pool[worst], self._pool_errors[worst]
        self._run += 1
        self._move = 0

    def _improve(self, errors: int, factors: Factors) -> None:
        self._least, self._best, self._best_run = errors, factors.copy(), self._run

    def saved_fields(self, finished: bool) -> Fields:
        """The solutions, and how far the search has come."""
        kind, number = self._best.kind, kinds.whole_number()
        return {
            "_rng": kinds.generator(),
            "_run": number,
            "_move": number,
            "_best_run": number,
            "_least": number,
            "_best": kind,
            "_now": kind,
            "_own": kind,
            "_errors": kinds.array(np.int64, (2,), least=0),
            "_pool": kinds.list_of(kind, most=STARTS + 1),
            "_pool_errors": kinds.list_of(number, most=STARTS + 1),
        }

    @property
    def saved_best(self) -> Kind:
        """Factors."""
        return self._best.kind

    def measure(self) -> Measurement:
        """Wrong entries, negative: the more, the better."""
        return Measurement(-self.wrong, figure=FIGURE)

    def state(self) -> Factors:
        """A copy of the best factors."""
        return self._best.copy()


def grown(factors: Factors, rank: int) -> Factors:
    """Factors with empty components up to a number, or with the first ones."""
    kept = factors.keep(np.arange(min(factors.rank, rank)))
    pad = ((0, 0), (0, rank - kept.rank))
    return Factors(np.pad(kept.S, pad), np.pad(kept.W, pad))


def errors_of(table: Packed, factors: Factors) -> int:
    """Weight of the wrong entries, in steps."""
    return sum(count(table.on, table.off, factors.S, packed_bits(factors.W.T)))


def best_responses(table: Packed, factors: Factors) -> int:
    """Improve the factors in turn, each by its best response, until that ends; the errors."""
    least: int | None = None
    while True:
        look()
        best_side(table.on, table.off, factors.S, packed_bits(factors.W.T))
        errors = best_side(table.on_T, table.off_T, factors.W, packed_bits(factors.S.T))
        if least is not None and errors >= least:
            return errors
        least = errors


def best_side(on: Words, off: Words, bits: Bits, given: Words) -> int:
    """The best bits of one side in place, by all combinations or else by climbing; the errors."""
    rank, total = given.shape[0], 0
    if rank > EXACT_RANK:
        return sum(climb(on, off, bits, given, 50, np.ones(1, np.uint64)))
    rows = max(1, (EXACT_WORDS // 4 >> rank) // max(on[0].size, 1))
    for first in range(0, len(on), rows):
        look()
        total += int(best_codes(on, off, bits, given, first, min(first + rows, len(on))))
    return total


def coded(on: Any, off: Any, components: Bits) -> Bits:
    """The components (columns, rank) of each row that leave the fewest wrong entries."""
    bits = np.zeros((len(on), components.shape[1]), np.int8)
    best_side(on, off, bits, packed_bits(components.T))
    return bits
