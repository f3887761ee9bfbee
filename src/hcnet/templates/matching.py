"""Matching from both sides: the score of every template for an image.

The forward pass scores how much of a template the image shows, so that a template of few elements
does well on every image.  Matching also subtracts the pixels of the image that the template does
not explain.  Each part takes the position where it lacks least, or counts as hidden, and a pixel
counts as explained if any element can move to it.  This is a bound of the score that `explain`
finds pixel by pixel, cheap enough for hundreds of templates.

What a lacking pixel costs beside an unexplained one follows from the network's noise: the more
probable it is that an on pixel is seen off (p01), the less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu import max_pool
from hcnet.factors import HUGE
from hcnet.hierarchy.convolution import correlate, elements
from hcnet.hierarchy.network import Level, Network, Weights, explaining_memory, in_batches
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.layers import PoolLayer
from hcnet.messages import class_log_prior, features_below
from hcnet.templates.template_kernels import count_shifts, match_all

# Chosen on digits that neither train nor test: benchmarks/NOTES.md.
# Nats per lacking pixel if p01 = p10: little, because a wrong stroke makes many pixels wrong at
# once.
PIXEL = 0.1
# Cost of an unexplained pixel, in units of that, in an image with this share of pixels on.
UNEXPLAINED, SPARSE = 2.0, 0.0136
# A part that lacks more than this share of its elements counts as hidden, and costs as much.
HIDDEN = 0.7
# Least probability that an element finds no pixel, however full its channel is.
LEAST_CHANCE = 0.05


def match(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> NDArray[np.float64]:
    """Log-score of every template at every position: (images, templates × positions).

    `allowed` (images, templates) leaves out templates.
    """
    size = network.top_size
    possible = np.repeat(allowed, size[0] * size[1], axis=1)
    score = np.zeros(possible.shape)
    for batch, rows in in_batches(images, explaining_memory(network)):
        seen = batch.pixels & batch.observed
        _, costs = channel_costs(network, batch)
        where = np.array(size), possible[rows]
        match_all(len(seen), seen, _tables(network, weights, batch), *where, costs, score[rows])
    return PIXEL * score + class_log_prior(network.classes, (*allowed.shape, *size), allowed)


def shifted_windows(
    network: Network, weights: Weights, images: Images, templates: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Relative frequency of each position of the pools, per level, for images of known templates.

    The most frequent position is 1.  Pools of pixels keep their windows, because matching does not
    decide which element explains a pixel.
    """
    most = max(level.pool.n_members for level in network.levels)
    # Counts begin at one, so that no position is impossible.
    counts = np.ones((len(network.levels), most), np.int64)
    for batch, rows in in_batches(images, explaining_memory(network)):
        tables = _tables(network, weights, batch)
        count_shifts(batch.pixels, tables, templates[rows], counts)
    windows = [network.levels[0].window]
    for level, count in zip(network.levels[1:], counts[1:], strict=True):
        own = count[: level.pool.n_members].reshape(level.window.shape)
        windows.append(own / own.max())
    return windows


def _tables(network: Network, weights: Weights, images: Images) -> tuple[object, ...]:
    """All levels, and the elements that each placement lacks in some images, for the kernels."""
    lacking, _ = channel_costs(network, images)
    n, levels = images.n_images, network.levels
    log_priors = [_relative(level) for level in levels]
    # An unobserved pixel may be on.
    maybe = images.pixels | ~images.observed
    message = np.where(maybe, 0.0, -lacking[:, :, None, None]).astype(np.float32)
    # Messages up, negative: to R¹, and to all S but the templates.
    message = lowest = max_pool(levels[0].pool, log_priors[0], message)
    up: list[FloatArray] = []
    floors: list[FloatArray] = []  # (images, features): the cost of a hidden part
    everything = _easiest(levels[0].pool, -lacking)
    for k in range(1, len(levels)):
        up.append(correlate(message, weights[k - 1]))
        everything = everything @ weights[k - 1].sum(axis=(2, 3)).T
        everything = _easiest(levels[k].pool, everything)
        floor = (HIDDEN * everything).astype(np.float32)
        if k < len(levels) - 1:  # the kernels pool what the templates need
            message = max_pool(levels[k].pool, log_priors[k], up[-1])
            message = np.maximum(message, floor[:, :, None, None])
        floors.append(np.pad(floor, ((0, 0), (0, levels[k].pool.n_below - floor.shape[1]))))
    flat = [message.reshape(n, message[0].size) for message in up]
    flat = flat or [np.zeros((n, 0), np.float32)]  # for a network of one level
    counts = [W.sum(axis=(1, 2, 3)) for W in weights]
    features = (
        np.cumsum([0, *(len(W) for W in weights[:-1])]),
        np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
        np.concatenate([elements(W)[1:] for W in weights], axis=1).T.copy(),
    )
    pools = (
        np.array([level.pool.reach for level in levels]),
        np.array([(level.pool.n_below, *level.pool.below_size) for level in levels]),
        np.array([prior.shape[:3] for prior in log_priors]),
        np.cumsum([0, *(prior.size for prior in log_priors[:-1])]),
        np.concatenate([prior.ravel() for prior in log_priors]),
    )
    return (
        lowest,
        np.concatenate(flat, axis=1),
        np.cumsum([0, *(message.shape[1] for message in flat)]),
        np.concatenate([*floors, np.zeros((n, 1), np.float32)], axis=1),
        features,
        pools,
        1 + int(sum(count.max(initial=0) for count in counts)),
    )


def _easiest(pool: PoolLayer, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest value of the features that each channel of R can choose: (images, channels)."""
    found = np.full((len(values), pool.n_channels), -np.inf)
    for d in range(pool.depth):
        below, inside = features_below(pool, d)
        found[:, inside] = np.maximum(found[:, inside], values[:, below[inside]])
    return found


def channel_costs(
    network: Network, images: Images
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cost of a lacking and of an unexplained pixel, per image and channel, in units of `PIXEL`.

    The fuller a channel is, the less either of them means.
    """
    noise = network.noise
    seen = np.maximum(images.observed.sum(axis=(2, 3)), 1)
    share = ((images.pixels & images.observed).sum(axis=(2, 3)) + 1) / (seen + 2)
    nothing = (1 - share) ** network.levels[0].pool.n_members
    lacking = -noise.k0 / noise.k1 * np.sqrt(np.maximum(nothing, LEAST_CHANCE))
    return lacking, UNEXPLAINED * (np.log(share) / np.log(SPARSE)) ** 2


def _relative(level: Level) -> FloatArray:
    """Log-probabilities of the members of a pool against that of the most probable.

    The number of positions in a pool must not count in a match.
    """
    relative = level.log_prior - level.log_prior.max(axis=3, keepdims=True)
    return np.asarray(np.maximum(relative, -HUGE))
