"""Learning from a batch of images: start, refine, restart, keep the best."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from hcnet.engine.choice import keeps_active_set
from hcnet.engine.devices import on_gpu, room_for
from hcnet.engine.driver import (
    Keeper,
    Limits,
    Measurement,
    Outcome,
    Process,
    Record,
    Report,
    Status,
    interruptible,
    run,
)
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning.options import (
    AUTO_FEATURES,
    GPU_STARTS,
    MPMP_PATIENCE,
    LearningOptions,
    dead_start,
    restarts,
    starting_priors,
)
from hcnet.learning.passing import MessagePassing, memory_needed
from hcnet.learning.starting import ManyStarts, memory_of_starts
from hcnet.memory import check_memory
from hcnet.objective import Priors, estimate
from hcnet.progress import Progress, Silence, State
from hcnet.refine.search import MoveStatistics, Search
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.explanation import NOWHERE, Explanation
from hcnet.solutions.improver import Improver


@dataclass
class Learned:
    """What learning returns."""

    explanation: Explanation
    priors: Priors
    status: Status
    n_iter: int
    seconds: float
    memory: int
    history: list[Record] = field(default_factory=list)
    moves: dict[str, MoveStatistics] = field(default_factory=dict)


def learn(
    images: Images,
    layer: FeatureLayer,
    priors: Priors,
    options: LearningOptions,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> Learned:
    """Learn features from images.

    ``layer.n_features`` is the most features allowed; 0 leaves their number open.  A `keeper`
    writes down how far learning has come.
    """
    progress = progress or Silence()
    began = time.perf_counter()
    started = layer.with_features(layer.n_features or AUTO_FEATURES)
    memory = check_passing_memory(started, images, options)
    improver = Improver(Canvas(layer, images), priors)
    starts = _starts(priors, options, images, started)
    problem = dead_start(starts[0][0], layer.feature_pixels) if options.sweeps else None
    if problem:
        warnings.warn(problem, UserWarning, stacklevel=3)
    deadline = None if options.max_seconds is None else began + options.max_seconds
    learner = _Learner(
        started,
        images,
        improver,
        layer.n_features or None,
        options,
        rng,
        progress,
        deadline,
        keeper,
    )
    runs: list[Learned] = []
    try:
        with interruptible():
            for outcome in learner.outcomes(starts):
                runs.append(learner.finish(outcome))
                if runs[-1].status.cut_short:
                    break
    finally:
        progress.close()
    best = min(runs, key=lambda r: r.explanation.bits)
    if runs[-1].status.cut_short:
        best.status = runs[-1].status
    best.seconds = time.perf_counter() - began
    best.memory = memory
    return best


def _starts(
    priors: Priors, options: LearningOptions, images: Images, layer: FeatureLayer
) -> list[tuple[Priors, int]]:
    """Priors and sweeps of message passing for every start.

    Refinement starts from message passing and from nothing in turn: where one of them tends
    to get stuck the other often does not.
    """
    grid = starting_priors(priors, layer.feature_pixels)
    if on_gpu(options.passing.engine):
        # With all priors of the grid in turn; only the best are refined.
        together = passes_together(layer, images, options)
        n = options.n_init or (GPU_STARTS if together else len(grid))
        return [(grid[k % len(grid)], options.sweeps) for k in range(n)]
    n = restarts(options, images.n_observed, layer.feature_pixels)
    if options.algorithm == "mpmp":
        return [(start, options.sweeps) for start in grid] * n
    return [(grid[0], options.sweeps if k % 2 == 0 else 0) for k in range(n)]


def passes_together(layer: FeatureLayer, images: Images, options: LearningOptions) -> bool:
    """Whether all starts pass their messages at the same time: on a GPU, if all are stored."""
    engine = options.passing.engine
    size = engine, layer, images.n_images, images.n_observed
    return on_gpu(engine) and not keeps_active_set(*size)


def starts_at_once(
    layer: FeatureLayer, images: Images, options: LearningOptions, wanted: int
) -> int:
    """As many of the wanted starts as the memory of the GPU has room for; at least one."""
    room = min(room_for(options.passing.engine) or 0, options.max_memory or sys.maxsize)
    while wanted > 1 and memory_of_starts(layer, images, options.passing, wanted) > room:
        wanted = wanted * 3 // 4
    return wanted


def check_passing_memory(layer: FeatureLayer, images: Images, options: LearningOptions) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    needed = 0
    if options.sweeps > 0 and passes_together(layer, images, options):
        n = starts_at_once(layer, images, options, options.n_init or GPU_STARTS)
        needed = memory_of_starts(layer, images, options.passing, n)
    elif options.sweeps > 0:
        needed = memory_needed(layer, images, options.passing)
    ways = [
        f"n_features (now {layer.n_features})",
        f"feature_size (now {layer.feature_size[0]}×{layer.feature_size[1]})",
        f"images per fit (now {images.n_images} of {images.size[0]}×{images.size[1]})",
    ]
    remedy = f"lower {', '.join(ways[:-1])} or {ways[-1]}"
    if options.algorithm == "refined":
        remedy += ", pass max_iter=0, which refines from an empty start and stores no messages"
    room = room_for(options.passing.engine)
    return check_memory("Message passing", needed, options.max_memory, remedy, room)


@dataclass(frozen=True, eq=False)
class _Learner:
    """One start after the other, all with the same images, options and deadline."""

    layer: FeatureLayer
    images: Images
    improver: Improver
    max_features: int | None
    options: LearningOptions
    rng: np.random.Generator
    progress: Progress
    deadline: float | None
    keeper: Keeper | None = None

    def outcomes(self, starts: list[tuple[Priors, int]]) -> Iterator[Outcome[Explanation]]:
        """What message passing from every start comes to; those with 0 sweeps are empty."""
        if on_gpu(self.options.passing.engine):
            yield from self._best_of(starts)
            return
        for start, sweeps in starts:
            yield self._pass_messages(start, sweeps) if sweeps else self._empty()

    def finish(self, outcome: Outcome[Explanation]) -> Learned:
        """What follows message passing: refinement, unless it is to stay alone."""
        history = list(outcome.history)
        found, status = outcome.best, outcome.status
        moves: dict[str, MoveStatistics] = {}
        if self.options.algorithm == "refined" and not status.cut_short:
            search = Search(self.improver, found, self.rng, self.max_features)
            refined = self._refine(search)
            # What the search holds is never worse than the driver's best, and tidier if as good.
            found = self.improver.centred(search.now)
            status, moves = refined.status, search.statistics
            history += [
                replace(
                    r, iteration=r.iteration + outcome.n_iter, seconds=r.seconds + outcome.seconds
                )
                for r in refined.history
            ]
        return Learned(
            explanation=found,
            priors=estimate(found.counts, self.improver.priors),
            status=status,
            n_iter=len(history),
            seconds=0.0,
            memory=0,
            history=history,
            moves=moves,
        )

    def _empty(self) -> Outcome[Explanation]:
        return self._outcome(self.improver.evaluate([], NOWHERE))

    @staticmethod
    def _outcome(found: Explanation) -> Outcome[Explanation]:
        return Outcome(found, -found.bits * math.log(2), Status.ITERATION_LIMIT, 0, 0.0)

    def _best_of(self, starts: list[tuple[Priors, int]]) -> Iterator[Outcome[Explanation]]:
        """The best of all starts, which pass their messages on a GPU.

        Message passing alone returns the best.  Refinement goes on from the best, from nothing,
        from the second-best, and so on, as often as there are starts where they are not so cheap.
        """
        many = [start for start, sweeps in starts if sweeps]
        n = 1
        if self.options.algorithm == "refined":
            open_number = replace(self.options, n_init=None)
            n = restarts(open_number, self.images.n_observed, self.layer.feature_pixels)
            n = min(n, self.options.n_init or n)
        outcome, leaders = self._pass_many(many, starts[0][1], -(-n // 2)) if many else (None, [])
        if outcome is not None:
            yield outcome
        for k in range(1 if outcome is not None else 0, n):
            again = k % 2 == 0 and k // 2 < len(leaders)
            yield self._outcome(leaders[k // 2]) if again else self._empty()

    def _pass_many(
        self, starts: list[Priors], sweeps: int, leaders: int
    ) -> tuple[Outcome[Explanation], list[Explanation]]:
        """As many starts at once as the memory has room for, until all had their turn.

        Those that keep an active set go one after the other.
        """
        size = 1
        if passes_together(self.layer, self.images, self.options):
            size = starts_at_once(self.layer, self.images, self.options, len(starts))
        best: Outcome[Explanation] | None = None
        found: list[Explanation] = []
        for first in range(0, len(starts), size):
            outcome, some = self._pass_group(starts[first : first + size], sweeps, leaders)
            found += some
            if best is None or outcome.objective > best.objective:
                best = outcome
            if outcome.status.cut_short:
                best = replace(best, status=outcome.status)
                break
        assert best is not None
        found.sort(key=lambda one: one.bits)
        return best, found[:leaders]

    def _pass_group(
        self, starts: list[Priors], sweeps: int, leaders: int
    ) -> tuple[Outcome[Explanation], list[Explanation]]:
        """The best of some starts, and the leaders among them."""
        if not passes_together(self.layer, self.images, self.options):
            outcome = self._pass_messages(starts[0], sweeps)
            return outcome, [outcome.best]
        what = self.layer, self.images, self.improver, starts, self.options.passing, self.rng
        process = ManyStarts(*what, leaders)
        return self._pass(process, sweeps), process.leaders()

    def _pass_messages(self, start: Priors, sweeps: int) -> Outcome[Explanation]:
        what = self.layer, self.images, self.improver, start, self.options.passing, self.rng
        return self._pass(MessagePassing(*what), sweeps)

    def _pass(self, process: Process[Explanation], sweeps: int) -> Outcome[Explanation]:
        self.progress.stage("Message passing", sweeps)
        limits = Limits(max_iter=sweeps, max_seconds=self._left(), patience=MPMP_PATIENCE)
        report = _reporter(self.progress, process.state, lambda: None)
        return run(process, limits, report, self.keeper)

    def _refine(self, search: Search) -> Outcome[Explanation]:
        self.progress.stage("Refining", search.expected_steps)
        report = _reporter(self.progress, search.state, lambda: search.expected_steps)
        with closing(search):
            return run(search, Limits(max_seconds=self._left()), report, self.keeper)

    def _left(self) -> float | None:
        """Seconds until the deadline; a run always makes one step."""
        if self.deadline is None:
            return None
        return max(self.deadline - time.perf_counter(), 1e-3)


def _reporter(progress: Progress, state: State, expected: Callable[[], int | None]) -> Report:
    def report(iteration: int, measurement: Measurement, seconds: float) -> None:
        progress.step(measurement, state, expected())

    return report
