"""Learning the factors: starts, rank, posterior mean."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hcnet.engine.devices import room_for
from hcnet.engine.driver import Keeper, Limits, Measurement, Outcome, Process, Record, Status, run
from hcnet.factorization.annealing import Annealing, PosteriorMean, project, settle
from hcnet.factorization.factors import Factors, Sampler, Table, marginal_log_joint
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning.passing import MessagePassing, PassingOptions, memory_needed
from hcnet.memory import check_memory
from hcnet.objective import Priors
from hcnet.progress import Progress
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver

# Message passing on a table: flat priors (with the true, sparse ones nothing is learned where
# the noise is strong), evidence as for 10 % noise whatever it really is, half-damped.
PASSING_PRIORS = Priors(p_S=0.5, p_W=0.5, p01=0.1, p10=0.1)
PASSING_DAMPING = 0.5
PASSING_SWEEPS = 60
# Starts where the number of components is given: one from message passing, two annealed.
STARTS = 3


@dataclass
class Factorized:
    """What learning returns."""

    factors: Factors
    log_joint: float
    status: Status
    n_iter: int
    seconds: float
    history: list[Record]


class _CutShort(Exception):  # noqa: N818
    """A limit or a person stopped a run; what there is by then must do."""


class Factorizer:
    """Learns the factors of one table; every loop runs in the driver."""

    def __init__(
        self,
        table: Table,
        fixed: Priors,
        rng: np.random.Generator,
        progress: Progress,
        max_seconds: float | None = None,
        max_memory: int | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.table = table
        self.fixed = fixed
        self.rng = rng
        self.sampler = Sampler(table, rng)
        self._progress = progress
        self._began = time.perf_counter()
        self._max_seconds = max_seconds
        self._max_memory = max_memory
        self._keeper = keeper
        self._history: list[Record] = []
        self._status = Status.FINISHED
        self._best: tuple[float, Factors] = (-np.inf, self._empty())

    def by_messages(self, rank: int, options: PassingOptions, sweeps: int | None) -> Factorized:
        """The paper's algorithm alone."""
        with suppress(_CutShort):
            self._pass_messages(rank, options, sweeps or PASSING_SWEEPS, polish=False)
        return self._result(self._best[1])

    def refined(self, rank: int | None, most: int, n_init: int | None) -> Factorized:
        """Best of several starts, then the posterior mean made binary."""
        try:
            if rank is None:
                self._search_rank(most)
            else:
                self._start(rank, n_init or STARTS)
            start = self._best[1]
            if start.rank == 0:
                return self._result(start)
            process = PosteriorMean(
                start, self.table, self.fixed, shared=rank is not None, rng=self.rng
            )
            self._run("Averaging", process, process.total)
            factors = project(process.mean, [process.vote, start], self.sampler)
        except _CutShort:
            factors = self._best[1]
        return self._result(factors if rank is not None else factors.used())

    def _start(self, rank: int, n_init: int) -> None:
        # A start is small: all messages are stored, on the processor.
        options = PassingOptions("dense", damping=PASSING_DAMPING)
        for k in range(n_init):
            if k == 0:
                self._pass_messages(rank, options, PASSING_SWEEPS, polish=True)
            else:
                self._anneal(rank)

    def _search_rank(self, most: int) -> None:
        """Anneal with many components and prune; then anneal afresh with one more and less."""
        self._consider(self._prune(self._anneal(most)))
        tried: set[int] = set()
        rank = -1
        while rank != self._best[1].rank:
            rank = self._best[1].rank
            for near in (rank, rank - 1, rank + 1):
                if near not in tried and 1 <= near <= most:
                    tried.add(near)
                    self._consider(self._prune(self._anneal(near)))
        self._consider(self._empty())

    def _anneal(self, rank: int) -> Factors:
        process = Annealing(self.table, rank, self.fixed, self.rng)
        self._run(f"Annealing {rank} components", process, process.total)
        self._consider(process.factors)
        return process.factors

    def _pass_messages(self, rank: int, options: PassingOptions, sweeps: int, polish: bool) -> None:
        rows, columns = self.table.shape
        values = self.table.values.reshape(rows, columns, 1, 1)
        images = Images(values, self.table.observed.reshape(rows, columns, 1, 1))
        layer = FeatureLayer(rank, columns, (1, 1), (1, 1), "valid")
        remedy = (
            f"lower n_components (now {rank}) or the number of observed entries (now "
            f"{images.n_observed}), pass n_components=None, which samples instead of passing "
            f"messages"
        )
        needed = memory_needed(layer, images, options)
        room = room_for(options.engine)
        check_memory("Message passing", needed, self._max_memory, remedy, room)
        # States are compared under the priors that messages are passed with: at the plug-in
        # ones, strong noise would make "no component at all" the best state of every run.
        priors = self.fixed.filled(PASSING_PRIORS)
        improver = Improver(Canvas(layer, images), priors)
        process = MessagePassing(layer, images, improver, priors, options, self.rng)
        outcome = self._run("Message passing", process, sweeps, stop=False)
        factors = _as_factors(outcome.best, rank, self.table)
        if polish:
            settle(factors, self.sampler, self.fixed)
        self._consider(factors)
        if outcome.status.cut_short:
            raise _CutShort

    def _prune(self, factors: Factors) -> Factors:
        """Take components away while the joint probability rises; the others may absorb them."""
        factors = factors.used()
        best = marginal_log_joint(factors, self.table)
        again = True
        while again:
            again = False
            for f in self.rng.permutation(factors.rank):
                if f >= factors.rank:
                    continue
                fewer = factors.keep(np.arange(factors.rank) != f)
                settle(fewer, self.sampler, self.fixed, rounds=2)
                value = marginal_log_joint(fewer, self.table)
                if value > best:
                    factors, best, again = fewer.used(), value, True
        return factors

    def _run(self, name: str, process: Process[Any], total: int, stop: bool = True) -> Outcome[Any]:
        self._progress.stage(name, total)
        left = None
        if self._max_seconds is not None:
            left = max(self._max_seconds - (time.perf_counter() - self._began), 1e-3)

        def tell(iteration: int, measurement: Measurement, seconds: float) -> None:
            if isinstance(process, PosteriorMean):  # counts its samples; these are no better
                measurement = replace(measurement, objective=self._best[0])
            self._progress.step(measurement, lambda: self._now(process))

        limits = Limits(max_iter=total, max_seconds=left)
        outcome = run(process, limits, tell, self._keeper)
        self._history += outcome.history
        if outcome.status.cut_short:
            self._status = outcome.status
            if stop:
                if isinstance(outcome.best, Factors):
                    self._consider(outcome.best)
                raise _CutShort
        return outcome

    def _now(self, process: Process[Any]) -> Factors:
        """The factors that a process has come to."""
        state = process.state()
        if isinstance(state, Explanation):
            return _as_factors(state, len(state.features), self.table)
        if isinstance(state, PosteriorMean):
            return state.vote if state.n_samples else self._best[1]
        factors: Factors = state
        return factors

    def _consider(self, factors: Factors) -> None:
        value = marginal_log_joint(factors, self.table)
        if value > self._best[0]:
            self._best = (value, factors.copy())

    def _empty(self) -> Factors:
        rows, columns = self.table.shape
        return Factors(np.zeros((rows, 0), np.int8), np.zeros((columns, 0), np.int8))

    def _result(self, factors: Factors) -> Factorized:
        return Factorized(
            factors=factors,
            log_joint=marginal_log_joint(factors, self.table),
            status=self._status,
            n_iter=len(self._history),
            seconds=time.perf_counter() - self._began,
            history=self._history,
        )


def _as_factors(found: Explanation, rank: int, table: Table) -> Factors:
    """A solution of the layer with 1×1 images as the two factors."""
    rows, columns = table.shape
    factors = Factors(np.zeros((rows, rank), np.int8), np.zeros((columns, rank), np.int8))
    for f, feature in enumerate(found.features):
        factors.W[:, f] = feature.weights[:, 0, 0]
    factors.S[found.placements[:, 0], found.placements[:, 1]] = 1
    return factors
