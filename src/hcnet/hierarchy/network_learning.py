"""Learning the weights of all levels: Algorithm 1, a vote over its best passes, restarts."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful, part
from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import Limits, Measurement, Outcome, Record, Status, interruptible, run
from hcnet.engine.engines import ReadyEngine
from hcnet.hierarchy.joint_probability import joint_function, joint_memory
from hcnet.hierarchy.network import Network
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, passing_memory
from hcnet.hierarchy.template_classes import reassign_templates
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.learning.message_passing import weight_prior
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Forward and backward passes of a start.
PASSES = 60
# Starts.  One in twenty ends beside the solution, which its joint log-probability shows.
N_INIT = 2
# A start that has not improved during this fraction of all passes may be stuck.
STALLED = 12
# Message passing wanders around a solution instead of converging, so that each pass has some wrong
# weights.  The passes with the highest joint log-probability vote; this is their number.
VOTERS = 15


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options of learning."""

    damping: tuple[float, ...]  # per level
    engine: ReadyEngine = field(default_factory=ReadyEngine)
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
    """The weights, and how learning went."""

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
        weights = kinds.each_of(
            [kinds.binary_array(level.weight_shape) for level in network.levels]
        )
        return kinds.object_of(Decided, weights=weights, log_joint=kinds.number())


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
        self._joint = joint_function(options.engine, network, images, allowed)
        self._voters: list[Decided] = []
        self._beliefs = self._passing.weight_beliefs()
        self._now = self.decide(on_weights(self._beliefs))
        self._changed, self._belief_change = 0, math.inf

    def step(self) -> bool:
        """One forward and one backward pass."""
        self._passing.forward(self._options.damping)
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
        self._now = Decided(weights, self._joint(weights))
        self._voters.append(self._now)
        self._voters.sort(key=lambda decided: -decided.log_joint)
        del self._voters[VOTERS:]
        return True

    def measure(self) -> Measurement:
        """Joint log-probability of the decoded images, and how much the step changed."""
        return Measurement(self._now.log_joint, self._changed, self._belief_change)

    def state(self) -> Decided:
        """The decided weights."""
        return self._now

    def saved_fields(self, finished: bool) -> Fields:
        """All messages, and the voters; once it is finished, only these."""
        decided = self.saved_best
        return {
            "_now": decided,
            "_voters": kinds.list_of(decided, most=VOTERS),
            "_changed": kinds.whole_number(),
            "_belief_change": kinds.number_or(math.inf),
            "_passing": part(finished),
        }

    @property
    def saved_best(self) -> Kind:
        """Decided weights."""
        return Decided.kind(self._network)

    def after_restore(self, finished: bool) -> None:
        """Beliefs follow from the messages."""
        self._beliefs = self._passing.weight_beliefs()

    def vote(self) -> Decided:
        """Every weight by the majority of the best passes."""
        if not self._voters:
            return self._now
        return self.decide(majority([decided.weights for decided in self._voters]))

    def decide(self, weights: list[BoolArray]) -> Decided:
        """Weights with the joint log-probability that they reach."""
        return Decided(weights, self._joint(weights))


def majority(voters: Sequence[Sequence[BoolArray]]) -> list[BoolArray]:
    """Every weight by the majority; each voter has the weights of all levels."""
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

    `allowed` (images, templates) leaves out the templates that contradict a label.
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
    reassigned = process.decide(reassign_templates(network, decided.weights, images, allowed))
    decided = max(decided, reassigned, key=lambda one: one.log_joint)
    return LearnedNetwork(
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
    """Several starts, of which only the best goes on once that is clear."""

    network: Network
    images: Images
    allowed: BoolArray
    options: NetworkOptions
    rng: np.random.Generator
    progress: Progress
    deadline: float | None
    keeper: Checkpoint | None = None

    def run(self) -> tuple[NetworkLearning, Outcome[Decided]]:
        """The best start, and its outcome.

        Half-way the leader is known, unless it has not improved for a while: it may be stuck beside
        the solution, and the other start still on its way.  Both then go on until three quarters.
        """
        options, passes = self.options, self.options.passes
        half = passes // 2 if options.n_init > 1 else passes
        leader = None
        for k in range(options.n_init):
            name = f"Start {k + 1} of {options.n_init}"
            process = NetworkLearning(self.network, self.images, self.allowed, options, self.rng)
            start = self._advance((process, None), half, name, leader)
            both = [start] if leader is None else [leader, start]
            leader = _best(both)
            stalled = leader[1].n_iter - leader[1].best_at >= max(passes // STALLED, 1)
            if len(both) > 1 and stalled and not start[1].status.cut_short:
                both[0] = self._advance(both[0], 3 * passes // 4, "First of two starts", both[1])
                both[1] = self._advance(both[1], 3 * passes // 4, "Second of two", both[0])
                leader = _best(both)
            for _, outcome in both:
                if outcome.status.cut_short:
                    return leader[0], replace(leader[1], status=outcome.status)
        assert leader is not None
        return self._advance(leader, passes, "Best start", None)

    def _advance(
        self, start: _Start | _New, passes: int, name: str, beside: _Start | None
    ) -> _Start:
        """A start after so many passes in all; `beside` is written into a checkpoint with it."""
        process, before = start
        if before is not None and (
            before.status is not Status.ITERATION_LIMIT or before.n_iter >= passes
        ):
            return process, before
        if self.keeper is not None:
            self.keeper.paused = [] if beside is None else [beside[0]]
        left = None
        if self.deadline is not None:  # a run always makes one step
            left = max(self.deadline - time.perf_counter(), 1e-3)
        n = passes - (0 if before is None else before.n_iter)
        self.progress.stage(name, n)
        outcome = run(
            process,
            Limits(max_iter=n, max_seconds=left),
            lambda k, measurement, seconds: self.progress.step(measurement, process.state),
            self.keeper,
        )
        return process, outcome if before is None else _joined(before, outcome)


_Start = tuple[NetworkLearning, Outcome[Decided]]
_New = tuple[NetworkLearning, None]


def _best(starts: Sequence[_Start]) -> _Start:
    """The start with the highest joint log-probability, the first of equals."""
    return max(starts, key=lambda start: start[1].objective)


def _joined(first: Outcome[Decided], second: Outcome[Decided]) -> Outcome[Decided]:
    """Two runs of the same process as one."""
    later = [
        replace(
            record,
            iteration=record.iteration + first.n_iter,
            seconds=record.seconds + first.seconds,
        )
        for record in second.history
    ]
    better = second.objective > first.objective
    return replace(
        second if better else replace(first, status=second.status),
        best_at=first.n_iter + second.best_at if better else first.best_at,
        n_iter=first.n_iter + second.n_iter,
        seconds=first.seconds + second.seconds,
        history=first.history + later,
    )


def check_passing_memory(
    network: Network, n_images: int, options: NetworkOptions, n_ink: int | None = None
) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    needed = passing_memory(options.engine, network, n_images, n_ink)
    needed += joint_memory(options.engine, network, n_images)
    if options.n_init > 1:  # the best start so far, and the one that is running
        needed *= 2
    remedy = f"lower the n_features or the size of a layer, or the images per fit (now {n_images})"
    room = options.engine.free_memory()
    return check_memory("Message passing", needed, options.max_memory, remedy, room)


def dead_start(network: Network) -> str | None:
    """The reason if nothing can ever be learned with these parameters.

    As long as all weights are off, a pixel has influence on a placement only if its evidence
    outweighs the prior of the weight, and on a weight only if it outweighs the messages from the
    levels above to the placement.
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
