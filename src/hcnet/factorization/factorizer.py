"""Learning the factors: several starts, the number of components, the posterior mean."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hcnet.engine.driver import (
    Keeper,
    Limits,
    Measurement,
    Outcome,
    Process,
    Record,
    Status,
    bounded,
    run,
)
from hcnet.engine.engines import Engine, ReadyEngine
from hcnet.factorization.binary_factors import Factors, Table, marginal_log_joint
from hcnet.factorization.fewest_errors import FewestErrors
from hcnet.factorization.packed import Packed, SparseTable
from hcnet.factorization.sampling import (
    Annealing,
    PosteriorMean,
    Sampler,
    climb_to_maximum,
    project,
)
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning.message_passing import MessagePassing, memory_needed
from hcnet.memory import check_memory
from hcnet.objective import Priors
from hcnet.progress import Progress
from hcnet.solutions.explanation import Canvas, Explanation
from hcnet.solutions.improver import Improver

# Message passing on a table has flat priors (with sparse ones, though true, nothing is learned if
# the noise is strong), evidence as for 10 % noise, whatever it is, and is half damped.
PASSING_PRIORS = Priors(p_S=0.5, p_W=0.5, p01=0.1, p10=0.1)
PASSING_DAMPING = 0.5
PASSING_SWEEPS = 60
# Starts if the number of components is given: one by message passing, two by annealing.
STARTS = 3
# The search for the fewest errors also starts from messages where they are at most so many.
MOST_MESSAGES = 10**6
# While the number of components is open, each is searched with this share of the moves, and so many
# more are tried after the best.
SHARE, BEYOND = 0.15, 3
# The share where components are added to those that annealing found.
GROWTH = 0.03


class _CutShortError(Exception):
    """A limit or a person has stopped a run; the best factors so far are the result."""


@dataclass(eq=False)
class Factorizer:
    """Learns the factors of one table; every loop runs in the driver."""

    table: Table | SparseTable  # sparse ones only for the fewest errors
    fixed: Priors
    rng: np.random.Generator
    progress: Progress
    max_seconds: float | None
    max_memory: int | None
    keeper: Keeper | None

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._history: list[Record] = []
        self._status = Status.FINISHED
        self._best: tuple[float, Factors] = (-np.inf, Factors.zeros(self.table, 0))

    @cached_property
    def _dense(self) -> Table:
        assert isinstance(self.table, Table)
        return self.table

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self._dense, self.rng)

    def by_messages(self, rank: int, engine: ReadyEngine, sweeps: int | None) -> Outcome[Factors]:
        """Factors by the paper's message passing alone."""
        try:
            self._consider(self._pass_messages(rank, engine, sweeps or PASSING_SWEEPS))
        except _CutShortError:
            return self._result(Factors.zeros(self.table, rank))
        return self._result(self._best[1])

    def refined(self, rank: int | None, most: int, n_init: int | None) -> Outcome[Factors]:
        """Binary factors of the posterior mean, which is sampled from the best of several starts.

        If the `rank` is None, it is chosen, up to `most` components.
        """
        try:
            if rank is None:
                self._search_rank(most)
            else:
                self._start(rank, n_init or STARTS)
            start = self._best[1]
            if start.rank == 0:
                return self._result(start)
            process = PosteriorMean(start, self._dense, self.fixed, rank is not None, self.rng)
            self._run("Averaging", process, process.total)
            self._stop_if_cut_short()
            with self._in_time():
                factors = project(process.majority, [process.vote, start], self.rng)
        except _CutShortError:
            factors = self._best[1]
            if rank is not None and factors.rank < rank:  # nothing was found yet
                factors = Factors.zeros(self.table, rank)
        return self._result(factors if rank is not None else factors.used())

    def fewest_errors(self, rank: int | None, most: int, n_init: int | None) -> Outcome[Factors]:
        """Factors with the fewest wrong entries; their number is chosen by description length.

        The description is that of `marginal_log_joint`.
        """
        packed = self.table.packed
        factors = Factors.zeros(self.table, rank or 0)
        try:
            if rank is None:
                factors = self._shortest(packed, most, n_init)
                rank = factors.rank
            else:
                starts = self._start_by_messages(rank)
                factors = self._search_errors(packed, rank, starts, n_init)
        except _CutShortError:
            if rank is None or self._best[1].rank == rank:
                factors = self._best[1]
        return self._result(factors)

    def _search_errors(
        self,
        packed: Packed,
        rank: int,
        starts: list[Factors],
        n_init: int | None,
        effort: float = 1.0,
    ) -> Factors:
        process = FewestErrors(packed, rank, self.rng, starts, n_init, effort)
        outcome = self._run(f"Moves of {rank} components", process, process.total)
        found = outcome.best
        assert isinstance(found, Factors)
        if self._status.cut_short:
            self._best = (marginal_log_joint(found, self.table), found)
            raise _CutShortError
        return found

    def _start_by_messages(self, rank: int) -> list[Factors]:
        rows, columns = self.table.shape
        if rows * columns * rank > MOST_MESSAGES or isinstance(self.table, SparseTable):
            return []
        engine = Engine("dense", damping=PASSING_DAMPING).on("cpu")
        start = self._pass_messages(rank, engine, PASSING_SWEEPS)
        self._stop_if_cut_short()
        return [start]

    def _shortest(self, packed: Packed, most: int, n_init: int | None) -> Factors:
        """More components until the description is no longer getting shorter."""
        factors = Factors.zeros(self.table, 0)
        best, chosen = marginal_log_joint(factors, self.table), factors
        for rank in range(1, most + 1):
            factors = self._search_errors(packed, rank, [factors], n_init, SHARE)
            value = marginal_log_joint(factors.used(), self.table)
            if value > best:
                best, chosen = value, factors.used()
            elif rank >= chosen.rank + BEYOND:
                break
        if chosen.rank == 0:
            return chosen
        return self._search_errors(packed, chosen.rank, [chosen], n_init)

    def _start(self, rank: int, n_init: int) -> None:
        # A start is small: all messages are stored, on the processor.
        engine = Engine("dense", damping=PASSING_DAMPING).on("cpu")
        factors = self._pass_messages(rank, engine, PASSING_SWEEPS)
        self._consider(factors)
        with self._in_time():
            climb_to_maximum(factors, self._sampler, self.fixed)
        self._consider(factors)
        self._stop_if_cut_short()
        for _ in range(n_init - 1):
            self._anneal(rank)

    def _search_rank(self, most: int) -> None:
        """Anneal with many components and prune; then anneal anew with one more and one less."""
        self._consider(self._prune(self._anneal(most)))
        tried: set[int] = set()
        rank = -1
        while rank != self._best[1].rank:
            rank = self._best[1].rank
            for near in (rank, rank - 1, rank + 1):
                if near not in tried and 1 <= near <= most:
                    tried.add(near)
                    self._consider(self._prune(self._anneal(near)))
        self._grow(most)
        self._consider(Factors.zeros(self.table, 0))

    def _grow(self, most: int) -> None:
        """More components than annealing found, one after the other, by the fewest errors.

        Real tables have many weak components, which annealing from many loses at once.  What comes
        after does not depend on the random numbers of this search.
        """
        rng = np.random.default_rng(0)
        packed = self.table.packed
        tried = self._best[1].rank
        fewest = self._best[1]
        while tried < min(most, self._best[1].rank + BEYOND):
            tried += 1
            process = FewestErrors(packed, tried, rng, [fewest], 1, GROWTH)
            outcome = self._run(f"Moves of {tried} components", process, process.total)
            fewest = outcome.best
            self._consider(fewest.used())
            self._stop_if_cut_short()
            likely = fewest.copy()
            with self._in_time():
                climb_to_maximum(likely, self._sampler, self.fixed)
            self._consider(likely.used())

    def _anneal(self, rank: int) -> Factors:
        process = Annealing(self._dense, rank, self.fixed, self.rng)
        outcome = self._run(f"Annealing {rank} components", process, process.total)
        self._consider(outcome.best if self._status.cut_short else process.factors)
        self._stop_if_cut_short()
        return process.factors

    def _pass_messages(self, rank: int, engine: ReadyEngine, sweeps: int) -> Factors:
        rows, columns = self.table.shape
        values = self._dense.values.reshape(rows, columns, 1, 1)
        images = Images(values, self._dense.observed.reshape(rows, columns, 1, 1))
        layer = FeatureLayer(rank, columns, (1, 1), (1, 1), "valid")
        remedy = (
            f"lower n_components (now {rank}) or the number of observed entries (now "
            f"{images.n_observed}), pass n_components=None, which samples instead of passing "
            f"messages"
        )
        needed = memory_needed(layer, images, engine)
        check_memory("Message passing", needed, self.max_memory, remedy, engine.free_memory())
        # States are compared under the priors of message passing: at the estimated ones, strong
        # noise would make "no component at all" the best state of every run.
        priors = self.fixed.filled(PASSING_PRIORS)
        with self._in_time():
            improver = Improver(Canvas(layer, images), priors)
            process = MessagePassing(layer, images, improver, priors, engine, self.rng)
        outcome = self._run("Message passing", process, sweeps)
        return _as_factors(outcome.best, rank, self.table)

    def _prune(self, factors: Factors) -> Factors:
        """Remove components while that raises the joint probability; others may replace them."""
        factors = factors.used()
        best = marginal_log_joint(factors, self.table)
        again = True
        while again:
            again = False
            for f in self.rng.permutation(factors.rank):
                if f >= factors.rank:
                    continue
                fewer = factors.keep(np.arange(factors.rank) != f)
                with self._in_time():
                    climb_to_maximum(fewer, self._sampler, self.fixed, rounds=2)
                value = marginal_log_joint(fewer, self.table)
                if value > best:
                    factors, best, again = fewer.used(), value, True
        return factors

    def _run(self, name: str, process: Process[Any], total: int) -> Outcome[Any]:
        self.progress.stage(name, total)
        left = None
        if self.max_seconds is not None:
            left = max(self.max_seconds - (time.perf_counter() - self._began), 1e-3)

        def report(iteration: int, measurement: Measurement, seconds: float) -> None:
            if isinstance(process, PosteriorMean):  # its objective is the number of samples
                measurement = replace(measurement, objective=self._best[0])
            self.progress.step(measurement, lambda: self._current_factors(process))

        outcome = run(process, Limits(max_iter=total, max_seconds=left), report, self.keeper)
        self._history += outcome.history
        if outcome.status.cut_short:
            self._status = outcome.status
        return outcome

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Work between two runs, which ends with the limits."""
        deadline = None if self.max_seconds is None else self._began + self.max_seconds
        with bounded(deadline) as bound:
            yield
        if bound.status is not None:
            self._status = bound.status
            raise _CutShortError

    def _stop_if_cut_short(self) -> None:
        if self._status.cut_short:
            raise _CutShortError

    def _current_factors(self, process: Process[Any]) -> Factors:
        state = process.state()
        if isinstance(state, Explanation):
            return _as_factors(state, len(state.features), self.table)
        if isinstance(state, PosteriorMean):
            return state.vote if state.n_samples else self._best[1]
        factors: Factors = state
        return factors

    def _consider(self, factors: Factors) -> None:
        """Keep factors if they are the best so far."""
        value = marginal_log_joint(factors, self.table)
        if value > self._best[0]:
            self._best = (value, factors.copy())

    def _result(self, factors: Factors) -> Outcome[Factors]:
        value, seconds = marginal_log_joint(factors, self.table), time.perf_counter() - self._began
        return Outcome(factors, value, self._status, len(self._history), seconds, self._history)


def _as_factors(found: Explanation, rank: int, table: Table | SparseTable) -> Factors:
    """Factors from an explanation of the rows as images of one pixel."""
    factors = Factors.zeros(table, rank)
    for f, feature in enumerate(found.features):
        factors.W[:, f] = feature.weights[:, 0, 0]
    factors.S[found.placements[:, 0], found.placements[:, 1]] = 1
    return factors
