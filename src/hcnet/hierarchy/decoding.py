"""The forward pass, and the decoding of all levels from the top down with their probability.

Thresholding beliefs one by one gives variables that contradict each other.  Decoding decides each
level given the one above: templates first, then the position of every active element of R.  The
result is always a possible configuration with a finite joint log-probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu import max_pool
from hcnet.engine.cpu_compilation import compiled, inlined, parallel
from hcnet.engine.driver import look
from hcnet.engine.planes import OFF, UNDECIDED, position
from hcnet.hierarchy.convolution import bconv, correlate
from hcnet.hierarchy.network import Level, Network, Weights, moved
from hcnet.images import BoolArray, FloatArray, Images, Noise
from hcnet.messages import template_log_prior

# `engine.planes` has the decisions for a block of channels of one image.
_count, _position, _gain = compiled.count, compiled.position, compiled.gain
_settle_block, _cost = compiled.settle_block, compiled.choices_log_prior
_feature_below, _priors_of = compiled.feature_below, compiled.priors_of


@dataclass(frozen=True, eq=False)
class Configuration:
    """All elements that are on, for some images."""

    S: list[BoolArray]  # S⁰ … Sᴸ, each (images, features, height, width)
    R: list[BoolArray]  # R¹ … Rᴸ
    choices: list[NDArray[np.int16]]  # for every element of R, the position in its pool
    log_joint: NDArray[np.float64]  # (images,): log p(X, H | W)
    # (images,): the same with the positions of pixels left open.  Explanations are compared by it,
    # because a decision costs a dense template more than a sparse one, above all where nothing is
    # observed.
    log_evidence: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scene:
    """Images, known weights, and the forward pass over them."""

    network: Network
    weights: Weights
    images: Images
    up: Sequence[FloatArray]  # messages up to S¹ … Sᴸ

    def single(self, entries: NDArray[np.int64]) -> BoolArray:
        """The top S with one entry per image: a template at a position."""
        top = np.zeros((len(entries), self.up[-1][0].size), bool)
        top[np.arange(len(entries)), entries] = True
        return top.reshape(self.up[-1].shape)

    def of(self, rows: NDArray[np.int64]) -> Scene:
        """The same for some of the images, in this order."""
        return replace(self, images=self.images[rows], up=[message[rows] for message in self.up])


def forward(network: Network, weights: Weights, evidence: FloatArray) -> list[FloatArray]:
    """Messages up to S¹ … Sᴸ, each (images, features, height, width): max-pool and correlation.

    With decided weights and no messages from above, the first forward pass of message passing has
    this closed form: ORs and trees pass messages up unchanged, pools take a maximum, and a
    placement adds up the elements that its feature covers.
    """
    up: list[FloatArray] = []
    below = evidence
    for level, W in zip(network.levels, weights, strict=True):
        look()
        below = correlate(max_pool(level.pool, level.log_prior, below), W)
        up.append(below)
    return up


def decode(
    scene: Scene, top: BoolArray, choices: Sequence[NDArray[np.int16]] = (), compare: bool = True
) -> Configuration:
    """Decide all levels given the templates `top` that are on.

    `choices` fixes the positions of the elements of the highest levels, the highest last.  Without
    `compare` the log-evidence is not worked out (NaN).
    """
    network, images = scene.network, scene.images
    evidence = images.evidence(network.noise)
    S: list[BoolArray] = [top]
    R: list[BoolArray] = []
    moves: list[NDArray[np.int16]] = []
    log_joint, freedom = top_log_prior(network, top), np.zeros(len(top))
    known = len(network.levels) - len(choices)
    for k in reversed(range(len(network.levels))):
        look()
        level = network.levels[k]
        R.insert(0, bconv(S[0], scene.weights[k]))
        if k >= known:
            found = given_decision(level, choices[k - known])
        else:
            below = scene.up[k - 1] if k else evidence
            found = decide_pools(level, R[0], below, freedom=k == 0 and compare)
            freedom = found.freedom
        S.insert(0, found.S)
        moves.insert(0, found.choice)
        log_joint += found.log_prior
    log_joint += pixel_log_likelihood(network, images, S[0])
    log_evidence = log_joint + freedom if compare else np.full(len(top), np.nan)
    return Configuration(S, R, moves, log_joint, log_evidence)


@dataclass(frozen=True, eq=False)
class PoolDecision:
    """The positions of all active elements of R."""

    choice: NDArray[np.int16]
    S: BoolArray  # the elements below that are on
    log_prior: NDArray[np.float64]  # (images,): log-probability of all choices
    # (images,): for each element, the log-ratio of the probability of all its positions to that of
    # its own, with all others fixed; summed over the elements.
    freedom: NDArray[np.float64]


def decide_pools(
    level: Level, R: BoolArray, below: FloatArray, freedom: bool = False
) -> PoolDecision:
    """Decide the positions of the active elements of R, given the evidence for the S below.

    The `freedom` is worked out only on request.
    """
    pool = level.pool
    choice = np.where(R, UNDECIDED, OFF).astype(np.int16)
    taken = np.zeros((len(R), pool.n_below, *pool.below_size), np.int16)
    cost, free = np.zeros((2, len(R), pool.n_channels if pool.apart else 1))
    evidence = np.ascontiguousarray(below)
    _decide(free.size, choice, evidence, level.log_prior, pool.reach, taken, cost, free, freedom)
    return PoolDecision(choice, taken > 0, cost.sum(axis=1), free.sum(axis=1))


def given_decision(level: Level, choice: NDArray[np.int16]) -> PoolDecision:
    """The decision with given positions of the elements of R."""
    R, cost = choice != OFF, np.zeros(choice.shape[:2])
    n, a, r, c = np.nonzero(R)
    np.add.at(cost, (n, a), level.log_prior[a % len(level.log_prior), r, c, choice[R]])
    S = moved(level, R, choice[R])
    return PoolDecision(choice, S, cost.sum(axis=1), np.zeros(len(choice)))


@inlined
def _open_gain(below, prior, window, a, r, c, taken):
    """The gain of an element with its choice left open: the log of a sum over all members."""
    best, rest = -np.inf, 0.0
    top, left, m = r - window[2], c - window[3], 0
    for d in range(window[4]):
        b = _feature_below(window, a, d, below.shape[0])
        for y in range(top, top + window[0]):
            for x in range(left, left + window[1]):
                value = _gain(below, prior[m], b, y, x, taken)
                m += 1
                if value > best:
                    rest, best = rest * np.exp(best - value) + 1.0, value
                elif value > -np.inf:
                    rest += np.exp(value - best)
    return best + np.log(rest)


@inlined
def _freedom(choice, below, log_prior, window, taken):
    total = 0.0
    for a in range(choice.shape[0]):
        for r in range(choice.shape[1]):
            for c in range(choice.shape[2]):
                member = choice[a, r, c]
                if member == OFF:
                    continue
                prior = _priors_of(log_prior, a)[r, c]
                _count(window, a, r, c, choice, taken, -1)
                b, y, x = _position(window, below.shape[0], a, r, c, member)
                total += _open_gain(below, prior, window, a, r, c, taken)
                total -= _gain(below, prior[member], b, y, x, taken)
                _count(window, a, r, c, choice, taken, 1)
    return total


@parallel
def _decide(first, last, choice, below, log_prior, window, taken, cost, free, freedom):
    """Decide the blocks from the first to the last."""
    blocks = cost.shape[1]
    wide, deep = choice.shape[1] // blocks, below.shape[1] // blocks
    on = np.empty(wide * choice.shape[2] * choice.shape[3], np.int32)
    good = np.empty(on.size, np.int32)
    for q in range(first, last):
        n, k = q // blocks, q % blocks
        prior = log_prior
        if blocks > 1:
            prior = log_prior[k % log_prior.shape[0] : k % log_prior.shape[0] + 1]
        own, at = choice[n, k * wide : (k + 1) * wide], slice(k * deep, (k + 1) * deep)
        evidence, explained = below[n, at], taken[n, at]
        _settle_block(own, evidence, prior, window, explained, on, good)
        cost[n, k] = _cost(own, prior)
        if freedom:
            free[n, k] = _freedom(own, evidence, prior, window, explained)


def combined(work: Callable[..., Any], *found: Configuration) -> Configuration:
    """Apply a function to the corresponding arrays of some configurations."""
    parts: list[Any] = []
    for part in fields(Configuration):
        values = [getattr(one, part.name) for one in found]
        if isinstance(values[0], list):
            parts.append([work(*level) for level in zip(*values, strict=True)])
        else:
            parts.append(work(*values))
    return Configuration(*parts)


def improved(
    a: Configuration, rows: NDArray[np.int64], b: Configuration, by: str = "log_evidence"
) -> Configuration:
    """As `a`, with these rows replaced where `b`, which has only these, is better."""
    better = getattr(b, by) > getattr(a, by)[rows]
    if not better.any():
        return a

    def put(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        new = x.copy()
        new[rows[better]] = y[better]
        return new

    return combined(put, a, b)


def top_log_prior(network: Network, top: BoolArray) -> NDArray[np.float64]:
    """Log p of the templates that are on, per image."""
    positions = int(np.prod(top.shape[2:]))
    on = top.sum(axis=(2, 3)) @ template_log_prior(network.classes, positions)
    if network.classes.p_on is not None:  # log-odds: everything else is off
        on = on + positions * top.shape[1] * np.log1p(-network.classes.p_on)
    return np.asarray(on)


def pixel_log_likelihood(network: Network, images: Images, S: BoolArray) -> NDArray[np.float64]:
    """Log p(X | S⁰) of the observed pixels, per image."""
    (hit, missed), (false, empty) = pixel_log_probabilities(network.noise)
    value = np.where(images.pixels, np.where(S, hit, missed), np.where(S, false, empty))
    value *= images.observed
    return np.asarray(value.sum(axis=(1, 2, 3)))


def pixel_log_probabilities(noise: Noise) -> NDArray[np.float64]:
    """Log p(X | S⁰); rows: X on, off; columns: S⁰ on, off."""
    p01, p10 = noise.p01, noise.p10
    return np.array([[np.log1p(-p01), np.log(p10)], [np.log(p01), np.log1p(-p10)]])


def weight_log_prior(network: Network, weights: Weights) -> float:
    """Log p(W) of all levels."""
    total = 0.0
    for level, W in zip(network.levels, weights, strict=True):
        total += W.sum() * np.log(level.p_W) + (W.size - W.sum()) * np.log1p(-level.p_W)
    return float(total)


def children(W: BoolArray) -> list[list[tuple[int, int, int]]]:
    """The elements of every feature of a layer (features, channels, height, width).

    An element is (feature of the layer below, row, column), row and column within the window.
    """
    return [[(int(a), int(r), int(c)) for a, r, c in np.argwhere(weights)] for weights in W]


@dataclass(frozen=True, slots=True)
class Node:
    """A feature that is on in an image, and the pixels that it explains."""

    level: int  # from 1 at the bottom
    feature: int
    row: int  # in S of its level
    column: int
    pixels: frozenset[tuple[int, int, int]]  # channel, row, column


def nodes(
    network: Network, weights: Sequence[BoolArray], found: Configuration, n: int
) -> list[Node]:
    """All features that are on in image `n`, from the top down."""
    below: dict[tuple[int, int, int], frozenset[tuple[int, int, int]]] = {
        (int(a), int(r), int(c)): frozenset({(int(a), int(r), int(c))})
        for a, r, c in np.argwhere(found.S[0][n])
    }
    layers: list[list[Node]] = []
    for k, (level, W) in enumerate(zip(network.levels, weights, strict=True)):
        pool, made = level.pool, children(W)
        own: list[Node] = []
        for f, i, j in np.argwhere(found.S[k + 1][n]):
            pixels: set[tuple[int, int, int]] = set()
            for a, r, c in made[f]:
                at = int(a), int(i + r), int(j + c)
                member = int(found.choices[k][n][at])
                pixels |= below.get(position(pool.reach, pool.n_below, *at, member), frozenset())
            own.append(Node(k + 1, int(f), int(i), int(j), frozenset(pixels)))
        below = {(node.feature, node.row, node.column): node.pixels for node in own}
        layers.insert(0, own)
    return [node for layer in layers for node in layer]
