"""Learning the weights of all levels: Algorithm 1, a vote over its best passes, restarts."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful, part
from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import (
    Limits,
    Measurement,
    Outcome,
    Status,
    bounded,
    interruptible,
    look,
    run,
)
from hcnet.engine.engines import ReadyEngine
from hcnet.hierarchy.explaining import explain, joint_function, joint_memory, joint_of_nothing
from hcnet.hierarchy.grouping import levels_with_variants, next_priors, round_passes
from hcnet.hierarchy.network import Network, Weights, explaining_memory, in_batches
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, passing_memory
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
# Votes for the present class of a template, to break ties.
INERTIA = 1e-3


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options of learning."""

    damping: tuple[float, ...]  # per level
    engine: ReadyEngine = field(default_factory=ReadyEngine)
    learned_pools: tuple[int, ...] = ()  # levels whose pools get their priors from the images
    vote: bool = True
    n_init: int = N_INIT
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None


@dataclass(frozen=True, eq=False)
class Decided:
    """Weights, and the joint log-probability of the best configuration found with them."""

    weights: list[BoolArray]
    log_joint: float
    network: Network | None = None  # with learned pools, if there are any


class NetworkLearning(Stateful):
    """A process for the driver: one forward and one backward pass per step."""

    def __init__(
        self,
        network: Network,
        images: Images,
        allowed: BoolArray,
        options: NetworkOptions,
        rng: np.random.Generator,
        priors: Sequence[FloatArray] | None = None,
    ) -> None:
        """Start from log-odds of the weights; None: as they are before anything is known."""
        self._network, self._options = network, options
        if priors is None:
            priors = [weight_prior(level.p_W, level.weight_shape, rng) for level in network.levels]
        evidence = images.evidence_on_grid(network.noise)
        start = network, evidence, priors, allowed, options.engine, rng
        self._passing = NetworkPassing(*start, exact=True)
        self._joint = joint_function(options.engine, network, images, allowed)
        self._voters: list[Decided] = []
        self._beliefs = self._passing.weight_beliefs()
        weights = on_weights(self._beliefs)
        self._now = Decided(weights, self._joint(weights))
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
        return {
            "_now": self.saved_best,
            "_voters": kinds.list_of(self.saved_best, most=VOTERS),
            "_changed": kinds.whole_number(),
            "_belief_change": kinds.number_or(math.inf),
            "_passing": part(finished),
        }

    @property
    def saved_best(self) -> Kind:
        """Decided weights."""
        levels = [kinds.binary_array(level.weight_shape) for level in self._network.levels]
        return kinds.object_of(Decided, weights=kinds.each_of(levels), log_joint=kinds.number())

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
) -> tuple[Outcome[Decided], int]:
    """Learn all weights: the outcome of the best start, and the bytes that learning takes.

    `allowed` (images, templates) leaves out the templates that contradict a label.
    """
    progress = progress or Progress()
    began = time.perf_counter()
    deadline = None if options.max_seconds is None else began + options.max_seconds
    new = partial(NetworkLearning, network, images, allowed, options, rng)
    passes = PASSES if options.max_iter is None else options.max_iter
    forms, turns = levels_with_variants(network), max(len(round_passes(passes)) - 1, 1)

    def regrouped(decided: Decided, turn: int) -> NetworkLearning:
        """A round from the features of the one before, in other groups."""
        # Lower levels first: the levels above one that changes its groups start anew.
        level = forms[min(turn * len(forms) // turns, len(forms) - 1)]
        known = decided.weights, images, allowed, level, rng
        return new(priors=next_priors(network, *known))

    race = _Race(new, options.n_init, passes, deadline, regrouped if forms else None)
    memory = 0

    def report(k: int, measurement: Measurement, seconds: float) -> None:
        progress.step(measurement, start.process.state)

    with closing(progress), interruptible():
        with bounded(deadline):
            n_ink = count_ink(options.engine, network, images)
            memory = check_passing_memory(network, images.n_images, options, n_ink)
            problem = dead_start(network)
            if problem:
                warnings.warn(problem, UserWarning, stacklevel=3)
        for start, passes, name, beside in race.runs():
            if keeper is not None:
                keeper.paused = [] if beside is None else [beside.process]
            left = None
            if deadline is not None:  # a run always makes one step
                left = max(deadline - time.perf_counter(), 1e-3)
            progress.stage(name, passes - start.outcome.n_iter)
            limits = Limits(max_iter=passes, max_seconds=left)
            start.outcome = run(start.process, limits, report, keeper, start.outcome)
        if race.leader is None:  # no start could be set up
            nothing = Decided(
                [np.zeros(level.weight_shape, bool) for level in network.levels],
                joint_of_nothing(network, images, allowed),
            )
            seconds = time.perf_counter() - began
            return Outcome(nothing, nothing.log_joint, race.status, 0, seconds), memory
        process, outcome = race.leader.process, race.leader.outcome
        if outcome.status is Status.ITERATION_LIMIT and options.max_iter is None:
            # It wanders around a solution: more passes would not be better.
            outcome.status = Status.PASSES_DONE
        decided = outcome.best
        with bounded(deadline) as finishing:
            decided = process.vote() if options.vote else outcome.best
            other = reassign_templates(network, decided.weights, images, allowed)
            decided = max(decided, process.decide(other), key=lambda one: one.log_joint)
            if options.learned_pools:
                decided = _with_pools(decided, network, images, allowed, options)
        outcome.status = finishing.status or outcome.status
    outcome.best, outcome.objective = decided, decided.log_joint
    outcome.seconds = time.perf_counter() - began
    return outcome, memory


def _with_pools(
    decided: Decided, network: Network, images: Images, allowed: BoolArray, options: NetworkOptions
) -> Decided:
    """The same weights, in a network with learned pools if that is more probable."""
    which, weights = options.learned_pools, decided.weights
    learned = with_learned_pools(network, weights, images, allowed, which)
    value = joint_function(options.engine, learned, images, allowed)(weights)
    return Decided(weights, value, learned) if value > decided.log_joint else decided


class _Start:
    """A start of learning, and its outcome so far."""

    def __init__(self, process: NetworkLearning) -> None:
        self.process = process
        now = process.state(), process.measure().objective
        self.outcome: Outcome[Decided] = Outcome(*now, Status.RUNNING, n_iter=0, seconds=0.0)


# A start, the pass up to which it runs, the name of this run, and a start that waits meanwhile.
_Run = tuple[_Start, int, str, _Start | None]


@dataclass(eq=False)
class _Race:
    """Several starts, of which only the best continues once that is clear."""

    new: Callable[[], NetworkLearning]
    n_init: int
    passes: int
    deadline: float | None = None
    # A round from the result of the one before, given its number, where features have variants.
    regrouped: Callable[[Decided, int], NetworkLearning] | None = None
    leader: _Start | None = None
    status: Status = Status.RUNNING  # why a start could not be set up

    def runs(self) -> Iterator[_Run]:
        """The runs to make, one by one; the caller sets the outcome of each.

        Half-way the leader is known, unless it has not improved for a while: it may be stuck beside
        the solution, and the other start still on its way.  Both then go on until three quarters.
        """
        if self.regrouped is not None:
            yield from self._rounds(self.regrouped)
            return
        half = self.passes // 2 if self.n_init > 1 else self.passes
        more = 3 * self.passes // 4
        both: list[_Start] = []
        for k in range(self.n_init):
            start: _Start | None = None
            with bounded(self.deadline) as setting_up:
                start = _Start(self.new())
            if start is None:  # there was no time to set it up
                self.status = setting_up.status or self.status
                if self.leader is not None:
                    self.leader.outcome.status = self.status
                return
            yield start, half, f"Start {k + 1} of {self.n_init}", self.leader
            both = [start] if self.leader is None else [self.leader, start]
            self.leader = _best(both)
            best = self.leader.outcome
            stalled = best.n_iter - best.best_at >= max(self.passes // STALLED, 1)
            if k and stalled and not start.outcome.status.cut_short:
                yield from _unfinished(both[0], more, "First of two starts", both[1])
                yield from _unfinished(both[1], more, "Second of two", both[0])
                self.leader = _best(both)
            for one in both:
                if one.outcome.status.cut_short:
                    self.leader.outcome.status = one.outcome.status
                    return
        if self.leader is not None:
            yield from _unfinished(self.leader, self.passes, "Best start", None)

    def _rounds(self, regrouped: Callable[[Decided, int], NetworkLearning]) -> Iterator[_Run]:
        """All rounds of all starts: before groups are right, nothing says which start is better."""
        for k in range(self.n_init):
            start: _Start | None = None
            rounds = round_passes(self.passes)
            for turn, passes in enumerate(rounds):
                # The messages of the round before are not needed any more.
                before, start = start and start.outcome.best, None
                with bounded(self.deadline) as setting_up:
                    start = _Start(regrouped(before, turn - 1) if before else self.new())
                if start is None:
                    self.status = setting_up.status or self.status
                    if self.leader is not None:
                        self.leader.outcome.status = self.status
                    return
                name = f"Start {k + 1} of {self.n_init}, round {turn + 1} of {len(rounds)}"
                yield start, passes, name, self.leader
                self.leader = start if self.leader is None else _best([self.leader, start])
                if start.outcome.status.cut_short:
                    self.leader.outcome.status = start.outcome.status
                    return


def _best(starts: Sequence[_Start]) -> _Start:
    """The start with the highest joint log-probability, the first of equals."""
    return max(starts, key=lambda start: start.outcome.objective)


def _unfinished(start: _Start, passes: int, name: str, beside: _Start | None) -> Iterator[_Run]:
    """A further run, unless the start has made so many passes, or has converged."""
    if start.outcome.status is Status.ITERATION_LIMIT and start.outcome.n_iter < passes:
        yield start, passes, name, beside


def check_passing_memory(
    network: Network, n_images: int, options: NetworkOptions, n_ink: int | None = None
) -> int:
    """Bytes that a run needs; an error before it starts if that is more than allowed."""
    needed = passing_memory(options.engine, network, n_images, n_ink)
    needed += joint_memory(options.engine, network, n_images)
    if levels_with_variants(network):
        needed *= 3  # the best round so far, the last one, and the one that is set up
    elif options.n_init > 1:  # the best start so far, and the one that is running
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


def with_learned_pools(
    network: Network, weights: Weights, images: Images, allowed: BoolArray, which: Sequence[int]
) -> Network:
    """The network whose pools of some levels have the frequencies of their choices as priors.

    These are the choices of the best explanations.  A channel of R has its own frequencies, which
    lean on those of all channels where it has few choices.
    """
    levels = list(network.levels)
    counts = {k: np.zeros((levels[k].pool.n_channels, levels[k].pool.n_members)) for k in which}
    for batch, rows in in_batches(images, explaining_memory(network)):
        look()
        found = explain(network, weights, batch, allowed[rows])
        for k in which:
            on = found.R[k]
            np.add.at(counts[k], (np.nonzero(on)[1], found.choices[k][on]), 1)
    for k in which:
        own, members = counts[k], counts[k].shape[1]
        shared = (own.sum(axis=0) + 1) / (own.sum() + members)
        p = (own + members * shared) / (own.sum(axis=1, keepdims=True) + members)
        window = p.reshape(-1, *levels[k].window.shape[1:])
        levels[k] = replace(levels[k], window=window)
    return replace(network, levels=tuple(levels))


def reassign_templates(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> list[BoolArray]:
    """The same templates, each assigned to the class of most labelled images that it explains best.

    Templates are exchangeable: swapping the weights of two of them does not change the probability
    of unlabelled images.  Where most images have no label, message passing finds the templates, but
    the few labels may not decide to which class each belongs.
    """
    labelled = ~allowed.all(axis=1)
    # With all labels, every template has learned its class.
    if not labelled.any() or labelled.all():
        return list(weights)
    few = images[labelled]
    best = explain(network, weights, few).S[-1].any(axis=(2, 3)).argmax(axis=1)
    categories = np.array(network.classes.categories)
    votes = np.zeros((network.classes.n_templates, network.classes.n_classes))
    np.add.at(votes, (best, categories[allowed[labelled].argmax(axis=1)]), 1)
    support = votes[:, categories] + INERTIA * np.eye(len(categories))
    template, slot = linear_sum_assignment(-support)
    order = np.empty(len(categories), np.int64)
    order[slot] = template
    return [*weights[:-1], weights[-1][order]]
