"""Any number of components, the most probable ones: a search by moves, a process of the driver."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement
from hcnet.factorization.binary_factors import (
    Factors,
    Parameters,
    Table,
    estimate_parameters,
    marginal_log_joint,
)
from hcnet.factorization.fewest_errors import grown
from hcnet.factorization.packed import SparseTable
from hcnet.factorization.probability_kernels import explore
from hcnet.images import Noise
from hcnet.objective import Priors

# Moves of a search, and searches, unless the table is large.
MOVES, SEARCHES = 1000, 4
# Nanoseconds that a move takes for each word of the table and component, about.
MOVE_COST = 14.0
# Seconds for all moves, about, and for a step: the number of moves follows, and never the clock.
SEARCH_SECONDS, STEP_SECONDS = 3.0, 0.1
# A step makes at most so many moves, because parameters are estimated once in a step.
PIECE = 20
# First and last temperature, in units of the log-probability.
HEAT = np.array([10.0, 1.0])
# From nothing, this share of the moves has evidence as for so much noise: estimates would take
# what is not covered yet for noise.
LOW_SHARE, LOW_NOISE = 0.5, Noise(0.05, 0.05)


def affordable_moves(table: Table | SparseTable, most: int) -> float:
    """How many moves take about `SEARCH_SECONDS`."""
    size = table.packed.on.size + table.packed.on_T.size
    return SEARCH_SECONDS * 1e9 / (MOVE_COST * most * size)


class MostProbable(Stateful):
    """The search for the most probable factors with up to `most` components."""

    def __init__(
        self,
        table: Table | SparseTable,
        most: int,
        fixed: Priors,
        rng: np.random.Generator,
        start: Factors,
    ) -> None:
        self._table, self._fixed, self._rng = table, fixed, rng
        affordable = affordable_moves(table, most)
        self.moves = int(np.clip(affordable, most, MOVES))
        self._piece = int(np.clip(affordable * STEP_SECONDS / SEARCH_SECONDS, 1, PIECE))
        self._low = int(LOW_SHARE * self.moves) if start.rank == 0 else 0
        self.total = -(-self.moves // self._piece)
        self._move = 0
        self._now, self._best = grown(start, most), grown(start, most)
        # Of the present and the best factors.
        self._values = np.full(2, marginal_log_joint(start.used(), table))
        given = [math.inf if p is None else float(logit(p)) for p in (fixed.p_S, fixed.p_W)]
        self._odds = np.array(given)

    def step(self) -> bool:
        """A few moves."""
        table = self._table.packed
        last = min(self._move + self._piece, self.moves)
        explore(
            (table.on, table.off, table.on_T, table.off_T),
            *((self._now.S, self._now.W), (self._best.S, self._best.W)),
            self._values,
            Parameters(self._noise(), self._odds, self._odds).evidence * table.step,
            self._odds,
            np.array([table.n_ones, table.n_zeros, table.step]),
            np.array([self._move, last, self.moves]),
            HEAT,
            np.array([self._rng.integers(1, 2**63)], np.uint64),
        )
        self._move = last
        return self._move < self.moves

    def _noise(self) -> Noise:
        if self._fixed.p01 is None and self._move < self._low:
            return LOW_NOISE
        return estimate_parameters(self._now, self._table, self._fixed, shared=False).noise

    def saved_fields(self, finished: bool) -> Fields:
        """The factors, and how far the search has come."""
        kind = self._best.kind
        return {
            "_rng": kinds.generator(),
            "_move": kinds.whole_number(),
            "_now": kind,
            "_best": kind,
            "_values": kinds.array(np.double, (2,)),
        }

    @property
    def saved_best(self) -> Kind:
        """Factors, some of whose components may be empty."""
        return self._best.kind

    def measure(self) -> Measurement:
        """Joint log-probability, parameters integrated out."""
        return Measurement(float(self._values[1]))

    def state(self) -> Factors:
        """A copy of the best factors, some of whose components may be empty."""
        return self._best.copy()
