"""Learning a network of two levels without messages: parts by search, examples as templates.

The placements of the parts in an image make a template.  A class keeps the templates of those
images by which the others are matched best (medoids, chosen greedily).  Averages would not do: the
average of two ways to draw a digit is not a digit.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import Limits, Outcome, Status, bounded, interruptible, run
from hcnet.hierarchy.explaining import all_allowed
from hcnet.hierarchy.network import Level, Network, batch_size, explaining_memory
from hcnet.images import BoolArray, Images
from hcnet.layers import equal_classes
from hcnet.memory import check_memory
from hcnet.progress import Progress
from hcnet.templates.matching import match, shifted_windows
from hcnet.templates.part_search import MOST_PARTS, PartSearch, Placements, centre

IntArray = NDArray[np.int64]

# Rounds of explaining and fitting.  After ten hardly anything changes.
ROUNDS = 10
# Most images that are compared with each other; of more, some are drawn.
MOST_EXAMPLES = 2000


def learn_templates(
    network: Network,
    images: Images,
    allowed: BoolArray,
    limits: Limits,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Checkpoint | None = None,
    given: BoolArray | None = None,
) -> tuple[Network, list[BoolArray], Outcome[Any]]:
    """Search for the parts, unless they are given, then choose the images that become templates.

    Returns the network with the learned pools, its weights, and the outcome of the search.
    `allowed` (images, templates) leaves out the templates that contradict a label.
    """
    progress = progress or Progress()
    parts = network.levels[0]
    rounds = ROUNDS if limits.max_iter is None else limits.max_iter
    seconds = limits.max_seconds
    deadline = None if seconds is None else time.perf_counter() + seconds
    with closing(progress), interruptible():
        progress.stage("Search for parts", rounds)
        search = PartSearch(parts, images, rng, given)
        outcome = run(
            search,
            replace(limits, max_iter=rounds),
            lambda k, measurement, seconds: progress.step(measurement, lambda: search.W),
            keeper,
        )
        with bounded(deadline) as finishing:
            learned, weights = _with_examples(network, images, allowed, outcome.best, rng)
        if finishing.status is not None:
            outcome.status = finishing.status
            chosen = _any_examples(allowed, rng)
            templates = _templates(network, outcome.best, chosen)
            learned, weights = network, [outcome.best[0], templates]
    if outcome.status is Status.ITERATION_LIMIT and limits.max_iter is None:
        outcome.status = Status.PASSES_DONE  # more rounds would hardly change anything
    return learned, weights, outcome


def _with_examples(
    network: Network,
    images: Images,
    allowed: BoolArray,
    best: tuple[BoolArray, Placements],
    rng: np.random.Generator,
) -> tuple[Network, list[BoolArray]]:
    """Choose examples that others match best as templates, and measure how these shift."""
    parts, top = network.levels
    some = np.arange(images.n_images)
    if len(some) > MOST_EXAMPLES:
        some = np.sort(rng.choice(len(some), MOST_EXAMPLES, replace=False))
    templates = _templates(network, best, some)
    examples = images[some]
    # The match of each example with the template of each: a network with all these templates.
    wide = replace(top, features=top.features.with_features(len(templates)))
    every = Network((parts, wide), equal_classes(len(templates), 1), network.noise)
    similarity = match(every, [best[0], templates], examples, all_allowed(every, len(some)))
    chosen = choose(similarity, allowed[some], network, rng)
    weights = [best[0], templates[chosen]]
    return with_windows(network, weights, examples, allowed[some], chosen), weights


def _templates(network: Network, best: tuple[BoolArray, Placements], which: IntArray) -> BoolArray:
    """These images as templates."""
    parts, top = network.levels
    W, found = best
    maps = np.zeros((len(which), len(W), *parts.features.placement_size), bool)
    for S, n in zip(maps, which, strict=True):
        S[tuple(found.places[n].T)] = True
    return as_templates(top, maps)


def _any_examples(allowed: BoolArray, rng: np.random.Generator) -> IntArray:
    """An image for each template that no label contradicts, with a label if there is one."""
    chosen = np.zeros(allowed.shape[1], np.int64)
    open_ = allowed.sum(axis=1)
    for k, possible in enumerate(allowed.T):
        members = np.flatnonzero(possible) if possible.any() else np.arange(len(allowed))
        chosen[k] = rng.choice(members[open_[members] == open_[members].min()])
    return chosen


def check_template_memory(network: Network, n_images: int, max_memory: int | None) -> int:
    """Bytes that learning needs; an error before it starts if that is more than allowed."""
    needed = 0
    for level in network.levels:
        below = level.pool.n_channels * int(np.prod(level.pool.below_size))
        R = level.pool.n_channels * int(np.prod(level.pool.size))
        needed += n_images * (2 * below + 2 * R + 24 * MOST_PARTS)
    examples = min(n_images, MOST_EXAMPLES)
    top = network.levels[-1].features.feature_pixels
    needed += examples * (top + 32 * examples)
    per_image = explaining_memory(network)
    needed += min(n_images, batch_size(per_image)) * per_image
    remedy = f"lower the images per fit (now {n_images})"
    return check_memory("Learning", needed, max_memory, remedy)


def as_templates(level: Level, maps: BoolArray) -> BoolArray:
    """Maps of placements as weights of the top level: (maps, channels, height, width)."""
    _, channels, height, width = level.weight_shape
    W = np.zeros((len(maps), channels, height, width), bool)
    top, left = centre(level)
    n, a, y, x = np.nonzero(maps)
    # At the border, the nearest element has the placement in its window.
    W[n, a, np.clip(y - top, 0, height - 1), np.clip(x - left, 0, width - 1)] = True
    return W


def choose(
    similarity: NDArray[np.float64], allowed: BoolArray, network: Network, rng: np.random.Generator
) -> IntArray:
    """Choose for each template of the network the image that it is made of.

    `allowed` (images, templates) leaves out the templates that contradict a label.
    """
    categories = np.array(network.classes.categories)
    n_classes = network.classes.n_classes
    own = _categories(similarity, allowed, categories, n_classes)
    chosen = np.zeros(len(categories), np.int64)
    for k in range(n_classes):
        slots = np.flatnonzero(categories == k)
        members = np.flatnonzero(own == k)
        if not len(members):  # no image of this class: any image is as good
            members = rng.permutation(len(own))[:1]
        some = members[medoids(similarity[np.ix_(members, members)], len(slots))]
        chosen[slots] = np.resize(some, len(slots))  # too few images: some are used twice
    return chosen


def _categories(
    similarity: NDArray[np.float64], allowed: BoolArray, categories: IntArray, n_classes: int
) -> IntArray:
    """The class of every image: its label, that of its best labelled match, or a cluster."""
    possible = np.stack([allowed[:, categories == k].any(axis=1) for k in range(n_classes)], axis=1)
    own: IntArray = np.asarray(possible.argmax(axis=1))
    open_ = possible.sum(axis=1) > 1
    if not open_.any():
        return own
    if open_.all():
        centres = medoids(similarity, n_classes)
        return np.asarray(similarity[:, centres].argmax(axis=1))
    known = np.flatnonzero(~open_)
    nearest = known[similarity[np.ix_(open_, known)].argmax(axis=1)]
    own[open_] = own[nearest]
    return own


def with_windows(
    network: Network, weights: list[BoolArray], images: Images, allowed: BoolArray, chosen: IntArray
) -> Network:
    """The network with pools that prefer the shifts that occur between images and templates.

    `chosen` is the image of each template; an image is not compared with its own template.
    """
    others = allowed & (chosen != np.arange(images.n_images)[:, None])
    some = others.any(axis=1)
    if not some.any():
        return network
    few = images[some]
    nearest = match(network, weights, few, others[some]).argmax(axis=1)
    windows = shifted_windows(network, weights, few, nearest)
    levels = [replace(level, window=w) for level, w in zip(network.levels, windows, strict=True)]
    return replace(network, levels=tuple(levels))


def medoids(similarity: NDArray[np.float64], n: int) -> IntArray:
    """Up to n examples that the others match best, chosen greedily."""
    covered = np.full(len(similarity), -np.inf)
    chosen: list[int] = []
    for _ in range(min(n, len(similarity))):
        gain = np.maximum(similarity, covered[:, None]).sum(axis=0)
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        covered = np.maximum(covered, similarity[:, chosen[-1]])
    return np.array(chosen)
