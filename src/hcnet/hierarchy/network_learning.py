"""Learning the weights of all levels: Algorithm 1, a vote over its best passes, restarts."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logit

from hcnet.archive.kinds import (
    BinaryArray,
    EachOf,
    Kind,
    ListOf,
    Number,
    NumberOrInfinity,
    Object,
    WholeNumber,
)
from hcnet.archive.state import Fields, Part, Stateful
from hcnet.checkpoint import Checkpoint
from hcnet.engine.choice import DEFAULT_ENGINE
from hcnet.engine.devices import room_for
from hcnet.engine.driver import Limits, Measurement, Outcome, Record, Status, interruptible, run
from hcnet.engine.schedules import Schedule
from hcnet.hierarchy.joint_probability import joint_memory, start_joint
from hcnet.hierarchy.network import Network
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, passing_memory
from hcnet.hierarchy.template_classes import reassign_templates
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.learning.passing import weight_prior
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Forward and backward passes of a start.
PASSES = 60
# Starts.  One in ten ends beside the solution, and half-way it shows.
N_INIT = 2
# Message passing wanders around a solution instead of settling, so that each pass has some weights
# wrong.  The weights of so many passes vote, those with the highest joint log-probability.
VOTERS = 15


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """How to learn."""

    damping: tuple[float, ...]  # per level
    engine: str = DEFAULT_ENGINE
    schedule: Schedule = field(default_factory=Schedule)
    vote: bool = True
    n_init: int = N_INIT
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None

    @property
    def passes(self) -> int:
        """Passes of a start."""
        return PASSES if self.max_iter is None else self.max_iter


@dataclass
class LearnedNetwork:
    """What learning returns."""

    network: Network
    weights: list[BoolArray]
    log_joint: float
    status: Status
    n_iter: int
    seconds: float
    memory: int
    history: list[Record]


@dataclass(frozen=True, eq=False)
class Decided:
    """Weights, and the joint log-probability of the best configuration found with them."""

    weights: list[BoolArray]
    log_joint: float

    @staticmethod
    def kind(network: Network) -> Kind:
        """Decided weights of a network, for files."""
        weights = EachOf([BinaryArray(level.weight_shape) for level in network.levels])
        return Object(Decided, weights=weights, log_joint=Number())


class NetworkLearning(Stateful):
    """A process for the driver: one forward and one backward pass per step."""

    def __init__(
        self,
        network: Network,
        images: Images,
        allowed: BoolArray,
        options: NetworkOptions,
        rng: np.random.Generator,
    ) -> None:
        self._network, self._options = network, options
        priors = [weight_prior(level.p_W, level.weight_shape, rng) for level in network.levels]
        evidence = images.evidence_on_grid(network.noise)
        start = network, evidence, priors, allowed, options.engine, rng
        self._passing = NetworkPassing(*start, exact=True)
        self._joint = start_joint(options.engine, network, images, allowed)
        self._voters: list[Decided] = []
        self._beliefs = self._passing.weight_beliefs()
        self._now = self.decide(on_weights(self._beliefs))
        self._changed, self._belief_change = 0, math.inf

    def step(self) -> bool:
        """One forward and one backward pass."""
        self._passing.forward(self._options.schedule, self._options.damping)
        self._passing.backward()
        before, self._beliefs = self._beliefs, self._passing.weight_beliefs()
        changes = [
            float(np.abs(new - old).max()) for new, old in zip(self._beliefs, before, strict=True)
        ]
        # The messages from the pools move for a while before any weight does.
        self._belief_change = max(*changes, self._passing.change)
        weights = on_weights(self._beliefs)
        self._changed = sum(
            int((new != old).sum()) for new, old in zip(weights, self._now.weights, strict=True)
        )
        self._now = self.decide(weights)
        self._voters.append(self._now)
        self._voters.sort(key=lambda decided: -decided.log_joint)
        del self._voters[VOTERS:]
        return True

    def measure(self) -> Measurement:
        """Joint log-probability of what the weights decode to, and how much the step changed."""
        return Measurement(self._now.log_joint, self._changed, self._belief_change)

    def state(self) -> Decided:
        """The weights, decided."""
        return self._now

    def saved_fields(self, finished: bool) -> Fields:
        """All messages, and the voters; once it is finished, only these."""
        decided = self.saved_best
        return {
            "_now": decided,
            "_voters": ListOf(decided, most=VOTERS),
            "_changed": WholeNumber(),
            "_belief_change": NumberOrInfinity(),
            "_passing": Part(finished),
        }

    @property
    def saved_best(self) -> Kind:
        """Decided weights."""
        return Decided.kind(self._network)

    def after_restore(self, finished: bool) -> None:
        """Beliefs follow from the messages."""
        self._beliefs = self._passing.weight_beliefs()

    def vote(self) -> Decided:
        """Every weight as it was in most of the best passes."""
        if not self._voters:
            return self._now
        return self.decide(majority([decided.weights for decided in self._voters]))

    def decide(self, weights: list[BoolArray]) -> Decided:
        """Weights with the joint log-probability that they reach."""
        return Decided(weights, self._joint.of(weights))


def majority(voters: Sequence[Sequence[BoolArray]]) -> list[BoolArray]:
    """Every weight as most have it; each voter has the weights of all levels."""
    return [np.mean(level, axis=0) > 0.5 for level in zip(*voters, strict=True)]


def on_weights(beliefs: Sequence[FloatArray]) -> list[BoolArray]:
    """Weights that are more probably on than off."""
    return [np.ascontiguousarray(belief > 0) for belief in beliefs]


def learn_network(
    network: Network,
    images: Images,
    allowed: BoolArray,
    options: NetworkOptions,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Checkpoint | None = None,
) -> LearnedNetwork:
    """Learn all weights.

    `allowed` (images, templates) leaves out the templates that contradict a label.  A `keeper`
    writes down how far learning has come.
    """
    progress = progress or Progress()
    began = time.perf_counter()
    n_ink = count_ink(options.engine, network, images)
    memory = check_passing_memory(network, images.n_images, options, n_ink)
    problem = dead_start(network)
    if problem:
        warnings.warn(problem, UserWarning, stacklevel=3)
    deadline = None if options.max_seconds is None else began + options.max_seconds
    race = _Race(network, images, allowed, options, rng, progress, deadline, keeper)
    try:
        with interruptible():
            process, outcome = race.run()
    finally:
        progress.close()
    decided = process.vote() if options.vote else outcome.best
    status = outcome.status
    if status is Status.ITERATION_LIMIT and options.max_iter is None:
        status = Status.PASSES_DONE  # it wanders around a solution: more would not be better
    regrouped = process.decide(reassign_templates(network, decided.weights, images, allowed))
    decided = max(decided, regrouped, key=lambda one: one.log_joint)
    return LearnedNetwork(
        network=network,
        weights=decided.weights,
        log_joint=decided.log_joint,
        status=status,
        n_iter=outcome.n_iter,
        seconds=time.perf_counter() - began,
        memory=memory,
        history=outcome.history,
    )


@dataclass(frozen=True, eq=False)
class _Race:
    """Several starts, of which the best at half-time goes on."""

    network: Network
    images: Images
    allowed: BoolArray
    options: NetworkOptions
    rng: np.random.Generator
    progress: Progress
    deadline: float | None
    keeper: Checkpoint | None = None

    def run(self) -> tuple[NetworkLearning, Outcome[Decided]]:
        """The start that won, and how it ended."""
        options = self.options
        half = options.passes // 2 if options.n_init > 1 else options.passes
        best = None
        for k in range(options.n_init):
            process = NetworkLearning(self.network, self.images, self.allowed, options, self.rng)
            if self.keeper is not None:
                self.keeper.beside = [] if best is None else [best[0]]
            outcome = self._go(process, f"Start {k + 1} of {options.n_init}", half)
            if best is None or outcome.objective > best[1].objective:
                best = process, outcome
            if outcome.status.cut_short:
                return best[0], replace(best[1], status=outcome.status)
        assert best is not None
        process, first = best
        if first.status is not Status.ITERATION_LIMIT or options.passes == half:
            return best
        if self.keeper is not None:
            self.keeper.beside = []
        second = self._go(process, "Best start", options.passes - half)
        return process, _one_after_the_other(first, second)

    def _go(self, process: NetworkLearning, name: str, passes: int) -> Outcome[Decided]:
        self.progress.stage(name, passes)
        left = None
        if self.deadline is not None:  # a run always makes one step
            left = max(self.deadline - time.perf_counter(), 1e-3)
        return run(
            process,
            Limits(max_iter=passes, max_seconds=left),
            lambda k, measurement, seconds: self.progress.step(measurement, process.state),
            self.keeper,
        )


def _one_after_the_other(first: Outcome[Decided], second: Outcome[Decided]) -> Outcome[Decided]:
    """Two runs of the same process as one."""
    later = [
        replace(
            record,
            iteration=record.iteration + first.n_iter,
            seconds=record.seconds + first.seconds,
        )
        for record in second.history
    ]
    best = max(first, second, key=lambda outcome: outcome.objective)
    return replace(
        second,
        best=best.best,
        objective=best.objective,
        n_iter=first.n_iter + second.n_iter,
        seconds=first.seconds + second.seconds,
        history=first.history + later,
    )


def check_passing_memory(
    network: Network, n_images: int, options: NetworkOptions, n_ink: int | None = None
) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    lanes = options.schedule.lanes(n_images)
    needed = passing_memory(options.engine, network, n_images, lanes, n_ink)
    needed += joint_memory(options.engine, network, n_images)
    if options.n_init > 1:  # the best start so far, and the one that is running
        needed *= 2
    remedy = f"lower the n_features or the size of a layer, or the images per fit (now {n_images})"
    room = room_for(options.engine)
    return check_memory("Message passing", needed, options.max_memory, remedy, room)


def dead_start(network: Network) -> str | None:
    """Why nothing can ever be learned with these parameters, if so.

    As long as all weights are off, a placement hears of a pixel only where the evidence outweighs
    the prior of the weight, and a weight only where it outweighs what the levels above expect of
    the placement.
    """
    first, *above = network.levels
    evidence = network.noise.k1 + float(first.log_prior.max())
    weight = float(logit(first.p_W))
    placement = sum(float(logit(level.p_W) + level.log_prior.max()) for level in above)
    if evidence + max(weight, placement) > 0:
        return None
    return (
        f"An on pixel gives evidence of {network.noise.k1:.1f} less {-first.log_prior.max():.1f} "
        f"for the choice within its pool, which outweighs neither the log-odds {weight:.1f} of a "
        f"weight of the first layer nor those {placement:.1f} of a placement, so that nothing can "
        f"be learned: lower p01 and p10, or raise the p_W of the layers."
    )
