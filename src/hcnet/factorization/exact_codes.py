"""Factors with the fewest wrong entries: annealing of one side, a process of the driver."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement
from hcnet.factorization.binary_factors import Bits, Factors
from hcnet.factorization.error_kernels import anneal
from hcnet.factorization.fewest_errors import EXACT_RANK, FIGURE, best_responses, coded
from hcnet.factorization.packed import Packed, unpacked

# Most sweeps, and the fewest with which annealing is worth its while.
MOST_SWEEPS, LEAST_SWEEPS = 8000, 200
# First and last temperature, in wrong entries: shares of the observed entries of a column.  Real
# tables freeze in between, with 100 rows as well as with 400.
HEAT, COLD = 1 / 60, 1 / 240
# Nanoseconds of a trial: for each byte of the errors of a code, for each code and for itself.
# Where most trials are accepted, it takes up to twice as long.
BYTE_COST, CODE_COST, TRIAL_COST = 0.006, 1.2, 330.0
# Seconds for all sweeps, about, in so many steps: their number follows, and never the clock.
ANNEALING_SECONDS, STEPS = 4.0, 40
# Rows of zeros fill up the last lines of the processor's vectors.
LINE = 32


def affordable_sweeps(table: Packed, rank: int, effort: float) -> int:
    """How many sweeps annealing has: none where they would be too few."""
    if rank > EXACT_RANK:
        return 0
    few, many = sorted(table.shape)
    trial = (BYTE_COST * number_type(table).itemsize * many + CODE_COST) * 2.0**rank + TRIAL_COST
    affordable = ANNEALING_SECONDS * 1e9 / (trial * few * rank)
    sweeps = int(min(affordable, MOST_SWEEPS) * effort)
    return sweeps if sweeps >= LEAST_SWEEPS else 0


def number_type(table: Packed) -> np.dtype[np.unsignedinteger[Any]]:
    """That of the errors of a row: bytes where they suffice, as the work is that of memory."""
    small = table.on.shape[1] == 1 and min(table.shape) <= 255
    return np.dtype(np.uint8 if small else np.uint32)


class ExactCodes(Stateful):
    """Annealing of the bits of the shorter side; the other always has the best of all codes.

    It starts from given factors, which stay if it finds no better ones; a step is a few sweeps.
    """

    def __init__(
        self, table: Packed, start: Factors, rng: np.random.Generator, effort: float = 1.0
    ) -> None:
        self._table, self._rng = table, rng
        rank = start.rank
        self._tall = table.shape[0] >= table.shape[1]
        on, off = (table.on, table.off) if self._tall else (table.on_T, table.off_T)
        few = min(table.shape)
        # What covering an entry adds to the errors; equal rows are one.
        change, times = np.unique(
            unpacked(off, few) - unpacked(on, few), axis=0, return_counts=True
        )
        pad = -len(times) % LINE
        change = np.pad(change, ((0, pad), (0, 0)))
        kind = number_type(table)
        self._times = np.pad(times, (0, pad))
        self._change = np.ascontiguousarray(change.T).astype(kind)
        self._base = np.maximum(-change, 0).sum(axis=1).astype(kind)
        self._heat = np.array([HEAT, COLD]) * max(table.n_ones + table.n_zeros, 1) / few
        self.sweeps = affordable_sweeps(table, rank, effort)
        self.total = min(self.sweeps, math.ceil(STEPS * effort))
        self._sweep = 0
        self._best = start.copy()
        self._least = best_responses(table, self._best)
        side = self._best.W if self._tall else self._best.S
        self._now = side.astype(np.int64) @ (1 << np.arange(rank))
        self._values = np.full(2, self._least, np.int64)  # of the present and the best bits

    @property
    def wrong(self) -> float:
        """Weight of the entries that are wrong in the best solution."""
        return self._least * self._table.step

    def step(self) -> bool:
        """A few sweeps."""
        piece = -(-self.sweeps // self.total)
        last = min(self._sweep + piece, self.sweeps)
        best = self._now.copy()
        rank = self._best.rank
        anneal(
            *(self._change, self._base, self._times, self._now, best, self._values),
            np.array([self._sweep, last, self.sweeps, rank]),
            self._heat,
            np.array([self._rng.integers(1, 2**63)], np.uint64),
        )
        self._sweep = last
        if self._values[1] < self._least:
            self._improve((best[:, None] >> np.arange(rank) & 1).astype(np.int8))
        return self._least > 0 and last < self.sweeps

    def _improve(self, side: Bits) -> None:
        """Take the best bits of one side, and the best ones of the other."""
        table = self._table
        if self._tall:
            self._best = Factors(coded(table.on, table.off, side), side)
        else:
            self._best = Factors(side, coded(table.on_T, table.off_T, side))
        self._least = best_responses(table, self._best)
        self._values[1] = self._least

    def saved_fields(self, finished: bool) -> Fields:
        """The present bits, the best factors, and how far annealing has come."""
        number = kinds.whole_number()
        return {
            "_rng": kinds.generator(),
            "_sweep": number,
            "_least": number,
            "_best": self._best.kind,
            "_now": kinds.array(np.int64, self._now.shape, least=0),
            "_values": kinds.array(np.int64, (2,), least=0),
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
