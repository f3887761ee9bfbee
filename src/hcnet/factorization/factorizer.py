"""Learning the factors: several starts, the number of components, the posterior mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
from hcnet.factorization.binary_factors import (
    Factors,
    Table,
    estimate_parameters,
    marginal_log_joint,
)
from hcnet.factorization.exact_codes import ExactCodes, affordable_sweeps
from hcnet.factorization.fewest_errors import STARTS as STARTS_OF_MOVES
from hcnet.factorization.fewest_errors import FewestErrors, grown
from hcnet.factorization.most_probable import MOVES, SEARCHES, MostProbable, affordable_moves
from hcnet.factorization.packed import SparseTable
from hcnet.factorization.sampling import (
    Annealing,
    PosteriorMean,
    Sampler,
    climb_to_maximum,
    likely_codes,
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
# Starts by messages, all of which are stored, where they are at most so many.
MOST_STORED = 10**7
# Larger tables have no posterior mean, whose entries are all stored; their most probable factors
# are hardly uncertain.  If they are sparse, they stay so.
MOST_DENSE = 10**7
# While the number of components is open, each that is tried has this share of the moves; the search
# for a number ends when so many in turn are no better.
SHARE, BEYOND = 0.08, 3
# Where annealing with exact codes follows, this share of the moves is made before it.
MOVES_BEFORE = 0.4
# The posterior mean may cost this share of the log-probability: 0.2 % where it is right, on tables
# with many flips, and up to 3 % on real tables.
TOLERANCE = 0.003
# While the number of components is open, annealing begins with so many: most are lost at once.
ANNEALED = 20
# A table with more rows is factored from one row of so many.
MOST_ROWS, THINNING = 3000, 4


class _CutShortError(Exception):
    """A limit or a person has stopped a run; the best factors so far are the result."""


@dataclass(eq=False)
class Factorizer:
    """Learns the factors of one table; every loop runs in the driver."""

    table: Table | SparseTable
    fixed: Priors
    rng: np.random.Generator
    progress: Progress
    max_seconds: float | None
    max_memory: int | None
    keeper: Keeper | None
    whole: Factorizer | None = None  # that of the whole table, if this one has some of its rows

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._history: list[Record] = []
        self._status = Status.FINISHED
        self._best: tuple[float, Factors] = (-np.inf, Factors.zeros(self.table, 0))

    @cached_property
    def _dense(self) -> Table:
        if isinstance(self.table, Table):
            return self.table
        on, off, _ = self.table.rows(0, self.table.shape[0])
        return Table(on, on | off)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.table, self.rng)

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
            start = self._best[1] if rank is None else grown(self._best[1], rank)
            if start.rank == 0 or self.table.shape[0] * self.table.shape[1] > MOST_DENSE:
                return self._result(start)
            process = PosteriorMean(start, self._dense, self.fixed, rank is not None, self.rng)
            self._run("Averaging", process, process.total)
            self._stop_if_cut_short()
            with self._in_time():
                factors = project(process.majority, [process.vote, start], self.rng)
                if rank is None:
                    factors = self._probable(factors.used())
        except _CutShortError:
            factors = self._best[1] if rank is None else grown(self._best[1], rank)
        return self._result(factors if rank is not None else factors.used())

    def fewest_errors(self, rank: int | None, most: int, n_init: int | None) -> Outcome[Factors]:
        """Factors with the fewest wrong entries; their number is chosen by description length.

        The description is that of `marginal_log_joint`.
        """
        try:
            self._search_fewest(rank, most, n_init)
        except _CutShortError:
            if rank is not None and self._best[1].rank != rank:
                self._best = -np.inf, Factors.zeros(self.table, rank)
        return self._result(self._best[1])

    def _search_fewest(self, rank: int | None, most: int, n_init: int | None) -> None:
        if self.table.shape[0] > MOST_ROWS:
            starts = [self._of_some_rows(lambda few: few._search_fewest(rank, most, n_init))]
            found = starts[0] if rank is None else Factors.zeros(self.table, rank)
            if found.rank:
                found = self._search_errors(found.rank, starts, n_init)
        elif rank is None:
            found = self._shortest(most, n_init)
        else:
            found = self._search_errors(rank, self._start_by_messages(rank), n_init)
        self._best = marginal_log_joint(found, self.table), found

    def _shortest(self, most: int, n_init: int | None) -> Factors:
        """Factors whose number makes the description shortest: in growing steps, then by ones.

        Fewer errors may need a longer description.  The one that is chosen has been searched to
        the end, and then still is the shortest.
        """
        found = {0: Factors.zeros(self.table, 0)}
        values = {0: marginal_log_joint(found[0], self.table)}

        def best() -> int:
            return max(values, key=lambda rank: values[rank])

        def search(rank: int) -> None:
            near = max(r for r in found if r < rank), min((r for r in found if r > rank), default=0)
            starts = [found[r] for r in near if r]
            found[rank] = self._search_errors(rank, starts, n_init, SHARE)
            values[rank] = marginal_log_joint(found[rank].used(), self.table)

        rank = worse = 0
        while rank < most and worse < BEYOND:
            rank = min(max(rank + 1, rank * 4 // 3), most)
            search(rank)
            worse = 0 if best() == rank else worse + 1
        while near := [r for r in (best() - 1, best() + 1) if 1 <= r <= most and r not in found]:
            search(near[0])
        done = {0}
        while (rank := best()) not in done:
            done.add(rank)
            found[rank] = self._search_errors(rank, [found[rank]], n_init)
            values[rank] = marginal_log_joint(found[rank].used(), self.table)
        return found[rank].used()

    def _search_errors(
        self, rank: int, starts: list[Factors], n_init: int | None, effort: float = 1.0
    ) -> Factors:
        packed = self.table.packed
        of_codes = effort * (n_init or STARTS_OF_MOVES) / STARTS_OF_MOVES
        sweeps = affordable_sweeps(packed, rank, of_codes)
        share = MOVES_BEFORE if sweeps else 1.0
        moves = FewestErrors(packed, rank, self.rng, starts, n_init, effort * share)
        found = self._found(f"Moves of {rank} components", moves)
        if sweeps:
            codes = ExactCodes(packed, found, self.rng, of_codes)
            found = self._found(f"Exact codes of {rank} components", codes)
        return found

    def _found(self, name: str, process: FewestErrors | ExactCodes) -> Factors:
        """The best factors of a search, after which this one may be over."""
        found = self._run(name, process, process.total).best
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

    def _start(self, rank: int, n_init: int) -> None:
        rows, columns = self.table.shape
        few = rows * columns * rank <= MOST_STORED
        if rows > MOST_ROWS:
            factors = self._of_some_rows(lambda part: part._start(rank, n_init))
        elif few:
            # All messages are stored, on the processor.
            engine = Engine("dense", damping=PASSING_DAMPING).on("cpu")
            factors = self._pass_messages(rank, engine, PASSING_SWEEPS)
            self._consider(factors)
        else:
            self._search(Factors.zeros(self.table, 0), rank)
            factors = self._best[1].copy()
        with self._in_time():
            climb_to_maximum(factors, self._sampler, self.fixed)
        self._consider(factors)
        self._stop_if_cut_short()
        for _ in range(n_init - 1 if few and rows <= MOST_ROWS else 0):
            self._anneal(rank)

    def _search_rank(self, most: int) -> None:
        """The best number of components up to `most`, by moves and, on small tables, annealing."""
        start = Factors.zeros(self.table, 0)
        self._consider(start)
        if self.table.shape[0] > MOST_ROWS:
            start = self._of_some_rows(lambda few: few._search_rank(most))
        else:
            self._anneal_ranks(min(most, ANNEALED))
        self._search(start, most)

    def _search(self, start: Factors, most: int) -> None:
        """By moves; small tables have several searches, and the last one starts from their best."""
        searches = int(np.clip(affordable_moves(self.table, most) / MOVES, 1, SEARCHES))
        for _ in range(searches):
            self._search_from(start, most)
        if start.rank == 0:
            rank = self._best[1].rank
            for near in (rank + 1, rank * 3 // 4):  # too many broad ones may be there, too
                self._correct(int(np.clip(near, 1, most)))
        if searches > 1:
            self._search_from(self._best[1], most)

    def _correct(self, rank: int) -> None:
        """The fewest errors leave states where broad components stand for several."""
        process = FewestErrors(self.table.packed, rank, self.rng, [self._best[1]], None, SHARE)
        outcome = self._run(f"Moves of {rank} components", process, process.total)
        likely = outcome.best.used()
        self._consider(likely)
        self._stop_if_cut_short()
        with self._in_time():
            climb_to_maximum(likely, self._sampler, self.fixed)
        self._consider(likely.used())

    def _search_from(self, start: Factors, most: int) -> None:
        process = MostProbable(self.table, most, self.fixed, self.rng, start)
        outcome = self._run(f"Moves of up to {most} components", process, process.total)
        self._consider(outcome.best.used())
        self._stop_if_cut_short()

    def _anneal_ranks(self, most: int) -> None:
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

    def _probable(self, factors: Factors) -> Factors:
        """Factors, or the best ones if these are clearly more probable."""
        likely = factors.copy()
        climb_to_maximum(likely, self._sampler, self.fixed)
        self._consider(likely.used())
        value, best = marginal_log_joint(factors, self.table), self._best
        return factors if value > best[0] - TOLERANCE * abs(best[0]) else best[1]

    def _of_some_rows(self, work: Callable[[Factorizer], None]) -> Factors:
        """The best factors of some of the rows, then with the codes of all."""
        n = self.table.shape[0]
        rows = np.sort(self.rng.permutation(n)[: n // THINNING])
        few = replace(self, table=self.table.some(rows), whole=self)
        few._began, few._history = self._began, self._history
        with suppress(_CutShortError):
            work(few)
        self._status = few._status
        with self._in_time():
            found = few._widened(few._best[1])
        self._consider(found)
        self._stop_if_cut_short()
        return found

    def _widened(self, factors: Factors) -> Factors:
        """Factors with the codes of all rows, if this table has only some of them."""
        if self.whole is None:
            return factors
        parameters = estimate_parameters(factors, self.table, self.fixed, shared=False)
        return Factors(likely_codes(self.whole.table, factors.W, parameters), factors.W.copy())

    def _anneal(self, rank: int) -> Factors:
        process = Annealing(self.table, rank, self.fixed, self.rng)
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
        factors, learner = self._state_of(process), self
        while learner.whole is not None:
            factors, learner = learner._widened(factors), learner.whole
        return factors

    def _state_of(self, process: Process[Any]) -> Factors:
        state = process.state()
        if isinstance(state, Explanation):
            return _as_factors(state, len(state.features), self.table)
        if isinstance(state, PosteriorMean):
            return state.vote if state.n_samples else self._best[1]
        factors: Factors = state
        return factors.used() if isinstance(process, MostProbable) else factors

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
