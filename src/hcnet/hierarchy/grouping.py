"""Which features are variants of each other: those that take each other's place.

Message passing finds the features before the templates, and puts them into groups by chance.  From
wrong groups it does not come back.  So learning goes on in rounds.  After each, all features are
found in the images by themselves, images with like features at like places are clustered, and
features that alternate at a place within a cluster become a group.  The next round starts from
these features, a little in doubt, in their new groups; the levels above start anew.  A feature that
is hardly found gives way to what images show where the others explain them worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter
from threadpoolctl import threadpool_limits

from hcnet.engine.driver import look
from hcnet.grid import FLOAT
from hcnet.hierarchy.explaining import explain
from hcnet.hierarchy.network import Level, Network, Weights, explaining_memory, in_batches
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.layers import ClassLayer
from hcnet.learning.message_passing import weight_prior

# Constants are of letters in two fonts, on seeds that no figure is of: benchmarks/NOTES.md.
# Rounds of a start, each with its share of the passes.
ROUNDS = 6
# Log-odds with which a round starts from the weights of the one before.
CONFIDENCE = 1.5
# A feature that is found in fewer images than this share of the mean gives way to another.
RARE = 0.25
# Probability of a feature at a place, when images are explained by features alone.
P_ON = 1e-3
# Clusterings that are tried, and the most steps of each.
CLUSTERINGS, STEPS = 10, 60
# Presence of features in fewer images than this share says nothing about clusters.
SELDOM = 0.01
# Groupings that are tried.
GROUPINGS = 30


def levels_with_variants(network: Network) -> list[int]:
    """Levels whose features come in groups."""
    return [k for k, level in enumerate(network.levels[1:]) if level.pool.variants > 1]


def next_priors(
    network: Network,
    weights: Weights,
    images: Images,
    allowed: BoolArray,
    level: int,
    rng: np.random.Generator,
) -> list[FloatArray]:
    """Log-odds of all weights for another round, after which features of a level change groups."""
    weights = list(weights)
    seen, wrong = present(network, weights[: level + 1], images)
    use = seen.any(axis=(2, 3)).sum(axis=0)
    rare = np.flatnonzero((use == 0) | (use < RARE * use.mean()))
    if level == 0 and len(rare):
        weights[0] = reborn(network.levels[0], weights[0], rare, images, seen, wrong)
        seen, _ = present(network, weights[:1], images)
        use = seen.any(axis=(2, 3)).sum(axis=0)
        rare = np.flatnonzero(use == 0)
    pool = network.levels[level + 1].pool
    wide = maximum_filter(seen, size=(1, 1, *pool.window)).reshape(*seen.shape[:2], -1)
    clusters = clustered(wide.reshape(len(wide), -1), allowed, rng)
    groups = grouped(exchanges(wide, clusters), pool.depth, rng)
    order = np.argsort(groups, kind="stable")
    found = []
    for k, (own, W) in enumerate(zip(network.levels, weights, strict=True)):
        prior = weight_prior(own.p_W, own.weight_shape, rng)
        if k <= level:
            same = aligned(W, groups, per_cluster(seen, clusters), use) if k == level else W
            known = np.where(same, CONFIDENCE, -CONFIDENCE).astype(FLOAT)
            if k == level:
                known[rare] = prior[rare]
                known = known[order]
            prior = known
        found.append(prior)
    return found


def present(network: Network, weights: Weights, images: Images) -> tuple[BoolArray, BoolArray]:
    """Where the features of the highest level given are, whatever group they are in.

    And the observed pixels that they explain wrongly, in the shape of the images.
    """
    levels = network.levels[: len(weights)]
    flat = ClassLayer(tuple(range(levels[-1].features.n_features)), P_ON)
    alone = Network(levels, flat, network.noise)
    seen, wrong = [], []
    for batch, _ in in_batches(images, explaining_memory(alone)):
        look()
        found = explain(alone, weights, batch, candidates=4)
        seen.append(found.S[-1])
        wrong.append((found.S[0] != batch.pixels) & batch.observed)
    return np.concatenate(seen), np.concatenate(wrong)


def reborn(
    level: Level,
    W: BoolArray,
    rare: NDArray[np.int64],
    images: Images,
    seen: BoolArray,
    wrong: BoolArray,
) -> BoolArray:
    """Features of which some are replaced by what images show where others explain them worst."""
    h, w = level.features.feature_size
    top, left = (
        (size - 1) // 2 - offset
        for size, offset in zip(level.pool.window, level.pool.offset, strict=True)
    )
    # Wrong pixels below every placement, whose elements are in the middle of their pools.
    rows, columns = level.features.placement_size
    count = np.zeros((len(seen), rows, columns))
    for i, j in np.ndindex(h, w):
        count += wrong[:, :, i + top : i + top + rows, j + left : j + left + columns].sum(axis=1)
    count *= seen.any(axis=1)
    new = W.copy()
    for f in rare:
        n, r, c = np.unravel_index(int(count.argmax()), count.shape)
        if level.pool.apart and level.pool.depth == 1 and count[n, r, c]:
            new[f] = images.pixels[n, :, r + top : r + top + h, c + left : c + left + w]
        count[n] = 0
    return new


def clustered(seen: BoolArray, allowed: BoolArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """A cluster per image, at most as many as templates, which a label may rule out.

    Images are rows of what is present.  A cluster has a probability for each of these, and the most
    probable of several clusterings counts.
    """
    x = seen[:, seen.mean(axis=0) > SELDOM].astype(float)
    n, K = allowed.shape
    possible = np.where(allowed, 0.0, -np.inf)
    best, labels = -np.inf, np.zeros(n, np.int64)
    with threadpool_limits(1, "blas"):  # with more, sums are rounded differently
        for _ in range(CLUSTERINGS):
            look()
            # A random image for each cluster, of those that may be in it.
            start = [rng.choice(np.flatnonzero(own)) if own.any() else 0 for own in allowed.T]
            p, share, before = 0.2 + 0.6 * x[start], np.full(K, 1 / K), -np.inf
            for _ in range(STEPS):
                value = x @ np.log(p / (1 - p)).T + np.log1p(-p).sum(axis=1) + np.log(share)
                value += possible
                top = value.max(axis=1, keepdims=True)
                weight = np.exp(value - top)
                total = weight.sum(axis=1, keepdims=True)
                now = float((top + np.log(total)).sum())
                weight /= total
                size = weight.sum(axis=0)
                p = np.clip((weight.T @ x + 0.1) / (size[:, None] + 0.2), 0.01, 0.99)
                share = (size + 1e-9) / (size + 1e-9).sum()
                if now - before < 1e-6 * abs(now):
                    break
                before = now
            if now > best:
                best, labels = now, weight.argmax(axis=1)
    return labels


def exchanges(wide: BoolArray, clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often two features are at the same place of two images of a cluster, never of one image.

    `wide` (images, features, places) says where features are.
    """
    features = wide.shape[1]
    found = np.zeros((features, features))
    for cluster in np.unique(clusters):
        own = wide[clusters == cluster].astype(float)
        counts = own.sum(axis=0)
        together = np.tensordot(own, own, axes=([0, 2], [0, 2]))
        found += (counts @ counts.T - together) / len(own) - together / 2
    np.fill_diagonal(found, 0)
    return found


def grouped(
    exchange: NDArray[np.float64], variants: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Groups of so many features with the most exchanges: the group of every feature.

    Two features change groups as long as that gains; the best of several starts counts.
    """
    features = np.arange(len(exchange))
    best, found = -np.inf, features // variants
    starts = np.arange(0, len(features), variants)
    for _ in range(GROUPINGS):
        look()
        groups = rng.permutation(features) // variants
        while True:
            # Sums in a fixed order, of the features of each group.
            order = np.argsort(groups, kind="stable")
            own = np.add.reduceat(exchange[:, order], starts, axis=1)
            to = own[:, groups] - own[features, groups][:, None]
            gain = to + to.T - 2 * exchange
            gain[groups[:, None] == groups] = 0
            i, j = np.unravel_index(int(gain.argmax()), gain.shape)
            if gain[i, j] <= 1e-9 * max(abs(exchange).max(), 1):
                break
            groups[[i, j]] = groups[[j, i]]
        value = float(own[features, groups].sum())
        if value > best:
            best, found = value, groups
    return found


def per_cluster(seen: BoolArray, clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """In how many images of each cluster a feature is at each place."""
    return np.stack([seen[clusters == one].sum(axis=0) for one in np.unique(clusters)]).astype(
        float
    )


def aligned(
    W: BoolArray, groups: NDArray[np.int64], counts: NDArray[np.float64], use: NDArray[np.int64]
) -> BoolArray:
    """The features, shifted in their windows so that those of a group are at the same places.

    `counts` are those of `per_cluster`.  All of a group follow the one that is used most, or some
    other of them, so that all have room; otherwise they stay as they are.
    """
    found = W.copy()
    for group in np.unique(groups):
        own = sorted(np.flatnonzero(groups == group), key=lambda f: -use[f])
        shifts = [_shift(counts[:, own[0]], counts[:, f], W.shape[2:]) for f in own]
        for y, x in shifts:
            moved = [_moved(W[f], (i - y, j - x)) for f, (i, j) in zip(own, shifts, strict=True)]
            if all(one.sum() == W[f].sum() for f, one in zip(own, moved, strict=True)):
                found[own] = moved
                break
    return found


def _shift(
    a: NDArray[np.float64], b: NDArray[np.float64], window: tuple[int, ...]
) -> tuple[int, int]:
    """By how much b lies further down and right than a, at most half a window."""
    rows, columns = (min(w // 2, n - 1) for w, n in zip(window, a.shape[1:], strict=True))
    best, found = -1.0, (0, 0)
    shifts = [(i - rows, j - columns) for i, j in np.ndindex(2 * rows + 1, 2 * columns + 1)]
    for y, x in sorted(shifts, key=lambda by: abs(by[0]) + abs(by[1])):  # of equals the nearest
        value = float((_cut(a, -y, -x) * _cut(b, y, x)).sum())
        if value > best:
            best, found = value, (y, x)
    return found


def _cut(grid: NDArray[Any], y: int, x: int) -> NDArray[Any]:
    """What is left of a grid when so many rows and columns at its beginning, or end, are cut."""
    height, width = grid.shape[-2:]
    return grid[..., max(y, 0) : height + min(y, 0), max(x, 0) : width + min(x, 0)]


def _moved(W: BoolArray, by: tuple[int, int]) -> BoolArray:
    """The pixels of a window further down and right; what leaves the window is lost."""
    y, x = by
    moved = np.zeros_like(W)
    _cut(moved, y, x)[...] = _cut(W, -y, -x)
    return moved


def round_passes(passes: int) -> Sequence[int]:
    """The passes of each round of a start; fewer rounds if there are not enough."""
    rounds = min(ROUNDS, passes)
    return [passes // rounds + (k < passes % rounds) for k in range(rounds)]
