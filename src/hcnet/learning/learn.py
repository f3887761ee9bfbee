"""Learning from a batch of images: options and their defaults; start, refine, restart."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logit

from hcnet.engine.driver import (
    Keeper,
    Limits,
    Measurement,
    Outcome,
    Record,
    Report,
    Status,
    bounded,
    interruptible,
    run,
)
from hcnet.engine.engines import ReadyEngine
from hcnet.images import FloatArray, Images
from hcnet.layers import FeatureLayer
from hcnet.learning.message_passing import MessagePassing, memory_needed
from hcnet.memory import check_memory
from hcnet.names import ExactAlgorithm
from hcnet.objective import Priors, estimate
from hcnet.progress import Progress, State
from hcnet.refine.search import SAME, MoveStatistics, Search
from hcnet.solutions.explanation import NOWHERE, Canvas, Explanation
from hcnet.solutions.improver import Improver

# So many starts that end at the same shortest code are enough, unless their number is given.
ENOUGH = 3
# Features that message passing starts with where the number is left open.
AUTO_FEATURES = 16
# Pixels × weights that all starts of a fit may have together where their number is left open.
RESTART_WORK = 4_000_000
MOST_RESTARTS = 8
# Sweeps of message passing: as an algorithm of its own, and as the start of a refinement.
MPMP_SWEEPS = 50
START_SWEEPS = 10
# It is over when so many sweeps have not made the decoded state more probable.
MPMP_PATIENCE = 15

# Max-product is scale-free: only the ratios of evidence and priors matter.  With the noise at
# 1e-6 the evidence of a pixel is 13.8; a placement must then outweigh so many pixels, and a
# weight's prior is so probable.  The first pair is the start of a refinement.
NOISE = 1e-6
PIXELS_PER_PLACEMENT = (2.5, 6.0)
WEIGHT_DENSITIES = (0.4, 0.2)
# A placement must not have to outweigh more pixels than a small feature has.
MOST_OF_A_FEATURE = 0.8
# log of the smallest float, about: beyond, exp() overflows and p_S would be 0.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """How to learn."""

    algorithm: ExactAlgorithm = "refined"
    engine: ReadyEngine = field(default_factory=ReadyEngine)
    n_init: int | None = None
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None

    @property
    def sweeps(self) -> int:
        """Sweeps of message passing per start."""
        if self.max_iter is not None:
            return self.max_iter
        return MPMP_SWEEPS if self.algorithm == "mpmp" else START_SWEEPS


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
    progress = progress or Progress()
    began = time.perf_counter()
    started = layer.with_features(layer.n_features or AUTO_FEATURES)
    memory = check_passing_memory(started, images, options)
    improver = Improver(Canvas(layer, images), priors)
    grid = starting_priors(priors, layer.feature_pixels)
    problem = dead_start(grid[0], layer.feature_pixels) if options.sweeps else None
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
    best: Learned | None = None
    ends: list[float] = []  # code lengths
    with closing(progress), interruptible():
        n = restarts(options, images.n_observed, layer.feature_pixels)
        for start, sweeps in _starts(grid, options, n):
            found = learner.finish(learner.start(start, sweeps), ends)
            ends.append(found.explanation.bits)
            if best is None or ends[-1] < best.explanation.bits:
                best = found
            if found.status.cut_short:
                best.status = found.status
                break
            if _enough(ends, options):
                break
    assert best is not None
    best.seconds = time.perf_counter() - began
    best.memory = memory
    return best


def _enough(ends: list[float], options: LearningOptions) -> bool:
    """Whether further starts can be left out: several have come to the same shortest code."""
    if options.n_init is not None or options.algorithm != "refined":
        return False
    return sum(bits < min(ends) + SAME for bits in ends) >= ENOUGH


def _starts(grid: list[Priors], options: LearningOptions, n: int) -> Iterator[tuple[Priors, int]]:
    """Priors and sweeps of message passing for every start, one by one: there may be very many.

    Refinement starts from message passing and from nothing in turn: where one of them tends
    to get stuck the other often does not.
    """
    for k in range(n):
        if options.algorithm == "mpmp":
            yield from ((start, options.sweeps) for start in grid)
        else:
            yield grid[0], options.sweeps if k % 2 == 0 else 0


def check_passing_memory(layer: FeatureLayer, images: Images, options: LearningOptions) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    needed = 0
    if options.sweeps > 0:
        needed = memory_needed(layer, images, options.engine)
    ways = [
        f"n_features (now {layer.n_features})",
        f"feature_size (now {layer.feature_size[0]}×{layer.feature_size[1]})",
        f"images per fit (now {images.n_images} of {images.size[0]}×{images.size[1]})",
    ]
    remedy = f"lower {', '.join(ways[:-1])} or {ways[-1]}"
    if options.algorithm == "refined":
        remedy += ", pass max_iter=0, which refines from an empty start and stores no messages"
    free = options.engine.free_memory()
    return check_memory("Message passing", needed, options.max_memory, remedy, free)


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
    memory: list[FloatArray] = field(default_factory=list)  # of regions

    def start(self, start: Priors, sweeps: int) -> Outcome[Explanation]:
        """Pass messages, if there are sweeps and time to begin with them."""
        status: Status | None = Status.ITERATION_LIMIT
        if sweeps:
            with bounded(self.deadline) as setting_up:
                passing = self.passing(start, sweeps)
            status = setting_up.status
        if status is None:
            return run(*passing)
        found = self.improver.evaluate([], NOWHERE)
        return Outcome(found, -found.bits * math.log(2), status, 0, 0.0)

    def passing(
        self, start: Priors, sweeps: int
    ) -> tuple[MessagePassing, Limits, Report, Keeper | None]:
        """Message passing from a start, as the driver runs it."""
        what = self.layer, self.images, self.improver, start, self.options.engine, self.rng
        process = MessagePassing(*what, self.memory)
        self.progress.stage("Message passing", sweeps)
        limits = Limits(max_iter=sweeps, max_seconds=self._left(), patience=MPMP_PATIENCE)
        report = _reporter(self.progress, process.state, lambda: None)
        return process, limits, report, self.keeper

    def finish(self, outcome: Outcome[Explanation], known_ends: list[float]) -> Learned:
        """Refine what message passing found, unless it is to stay alone."""
        history = list(outcome.history)
        found, status = outcome.best, outcome.status
        moves: dict[str, MoveStatistics] = {}
        if self.options.algorithm == "refined" and not status.cut_short:
            search = Search(self.improver, found, self.rng, self.max_features, known_ends)
            self.progress.stage("Refining", search.expected_steps)
            report = _reporter(self.progress, search.state, lambda: search.expected_steps)
            limits = Limits(max_seconds=self._left())
            refined = run(search, limits, report, self.keeper)
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

    def _left(self) -> float | None:
        """Seconds until the deadline; a run always makes one step."""
        if self.deadline is None:
            return None
        return max(self.deadline - time.perf_counter(), 1e-3)


def _reporter(progress: Progress, state: State, expected: Callable[[], int | None]) -> Report:
    def report(iteration: int, measurement: Measurement, seconds: float) -> None:
        progress.step(measurement, state, expected())

    return report


def restarts(options: LearningOptions, pixels: int, feature_pixels: int) -> int:
    """How many starts: as told, or more the smaller the problem is.

    A small image has few placements to tell solutions apart, and a fit takes no time: alone,
    one in four starts on the two bars ends beside the optimum.
    """
    if options.n_init is not None:
        return options.n_init
    if options.algorithm == "mpmp":
        return 1
    return int(min(max(RESTART_WORK // max(pixels * feature_pixels, 1), 1), MOST_RESTARTS))


def starting_priors(open_priors: Priors, feature_pixels: int) -> list[Priors]:
    """Complete priors to pass messages with, the most useful first.

    What the user gave stays; the rest is the grid that the paper searches, too.
    """
    known = open_priors.filled(Priors(p01=NOISE, p10=NOISE))
    evidence = known.noise.k1
    costs = [
        min(pixels, MOST_OF_A_FEATURE * feature_pixels) * evidence
        for pixels in PIXELS_PER_PLACEMENT
    ]
    grid = [
        known.filled(Priors(p_S=1 / (1 + math.exp(min(cost, LARGEST_EXPONENT))), p_W=density))
        for density in WEIGHT_DENSITIES
        for cost in costs
    ]
    return list(dict.fromkeys(grid))


def dead_start(priors: Priors, feature_pixels: int) -> str | None:
    """Say why nothing can be learned from these priors, if that is so."""
    assert priors.p_S is not None
    assert priors.p_W is not None
    evidence = priors.noise.k1
    if evidence + logit(priors.p_W) <= 0:
        return (
            f"Nothing can be learned with p_W={priors.p_W:g} and p10={priors.p10:g}: the "
            f"evidence of an on pixel, log((1-p01)/p10)={evidence:.2f}, cannot outweigh the "
            f"prior of a weight, logit(p_W)={logit(priors.p_W):.2f}; raise p_W or lower p10."
        )
    if feature_pixels * evidence + logit(priors.p_S) <= 0:
        return (
            f"Nothing can be learned with p_S={priors.p_S:g}: even a feature with all its "
            f"{feature_pixels} pixels on cannot outweigh the prior of its placement, "
            f"logit(p_S)={logit(priors.p_S):.1f}; raise p_S or lower p01 and p10."
        )
    return None
