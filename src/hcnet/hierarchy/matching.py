"""How well every template matches an image, both ways.

The forward pass asks what a template expects and how much of it the image has; a template that
expects little does well on everything.  Here the other question counts as much: what does the image
have that the template does not explain?  Every part goes where it lacks least, or counts as hidden,
and a pixel counts as explained if any element may move to it: a bound of what `explain` works out
pixel by pixel, cheap enough for hundreds of templates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hcnet.engine.cpu_pools import max_pool
from hcnet.factors import HUGE
from hcnet.hierarchy.batches import explaining_memory, in_batches
from hcnet.hierarchy.convolution import correlate, elements
from hcnet.hierarchy.matching_kernels import count_shifts, match_all
from hcnet.hierarchy.network import Level, Network, Weights
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.pool_messages import class_log_prior

# Chosen on digits that neither train nor test: docs/mnist.md.
# What a wrong pixel counts, in nats: pixels are wrong together, a stroke at a time.
PIXEL = 0.1
# An unexplained pixel costs more than a lacking one in an image as sparse as this.
UNEXPLAINED, SPARSE = 2.0, 0.0136
# A part that lacks more than this share of its elements counts as hidden, for this price.
HIDDEN = 0.7
# However full a channel is, there is this much of a chance that nothing is found in it.
LEAST_CHANCE = 0.05


def match(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> NDArray[np.float64]:
    """Log-score of every template at every position: (images, templates × positions).

    `allowed` (images, templates) leaves out templates.
    """
    sight = _Sight.of(network, weights, images)
    size = network.top_size
    possible = np.repeat(allowed, size[0] * size[1], axis=1)
    score = np.zeros(possible.shape)
    match_all(
        images.n_images,
        images.pixels & images.observed,
        *sight.tables(),
        np.array(size),
        possible,
        sight.unexplained,
        score,
    )
    return PIXEL * score + class_log_prior(network.classes, (*allowed.shape, *size), allowed)


def match_in_batches(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> NDArray[np.float64]:
    """The same of any number of images."""

    def one(batch: Images, rows: slice) -> NDArray[np.float64]:
        return match(network, weights, batch, allowed[rows])

    return np.concatenate(in_batches(images, explaining_memory(network), one))


def class_scores(
    network: Network, score: NDArray[np.float64], categories: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log-score of every class, all its templates together: (images, classes)."""
    of = [logsumexp(score[:, categories == k], axis=1) for k in range(network.classes.n_classes)]
    return np.stack(of, axis=1)


def shifted_windows(
    network: Network, weights: Weights, images: Images, templates: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """How often parts are at each position of their pools in images of known templates, per level.

    Relative to the most frequent position.  Of the pixels nothing is counted: which element a pixel
    comes from is not decided.
    """
    most = max(level.pool.n_members for level in network.levels)
    # One is counted everywhere, so that no position is impossible.
    counts = np.ones((len(network.levels), most), np.int64)

    def one(batch: Images, rows: slice) -> None:
        sight = _Sight.of(network, weights, batch)
        count_shifts(batch.pixels, *sight.tables(), templates[rows], counts)

    in_batches(images, explaining_memory(network), one)
    windows = [network.levels[0].window]
    for level, count in zip(network.levels[1:], counts[1:], strict=True):
        own = count[: level.pool.n_members].reshape(level.pool.window)
        windows.append(own / own.max())
    return windows


@dataclass(frozen=True, eq=False)
class _Sight:
    """What the levels make of some images, seen from what is expected."""

    network: Network
    weights: Weights
    lowest: FloatArray  # to R¹: what an element lacks, at best; negative
    up: list[FloatArray]  # to all S but the templates: what a placement lacks, at best
    floors: list[FloatArray]  # (images, features): what a part costs that is hidden
    unexplained: NDArray[np.float64]  # (images, channels): what an unexplained pixel costs

    @classmethod
    def of(cls, network: Network, weights: Weights, images: Images) -> _Sight:
        lacking, unexplained = channel_costs(network, images)
        # Nothing can be lacking where nothing is seen.
        maybe = images.pixels | ~images.observed
        message = np.where(maybe, 0.0, -lacking[:, :, None, None]).astype(np.float32)
        up: list[FloatArray] = []
        floors: list[FloatArray] = []
        message = lowest = max_pool(network.levels[0].pool, _relative(network.levels[0]), message)
        everything = -lacking
        for level, W in zip(network.levels[1:], weights, strict=False):
            up.append(correlate(message, W))
            everything = everything @ W.sum(axis=(2, 3)).T
            floors.append((HIDDEN * everything).astype(np.float32))
            if len(up) < len(network.levels) - 1:  # the templates choose where they look
                message = max_pool(level.pool, _relative(level), up[-1])
                message = np.maximum(message, floors[-1][:, :, None, None])
        return cls(network, weights, lowest, up, floors, unexplained)

    def tables(self) -> tuple[object, ...]:
        """All levels in flat arrays, as the kernels want them."""
        levels, n = self.network.levels, len(self.unexplained)
        flat = [np.zeros((n, 0), np.float32)]  # a network of one level has none
        flat = [message.reshape(n, message[0].size) for message in self.up] or flat
        log_priors = [_relative(level).ravel() for level in levels]
        counts = [W.sum(axis=(1, 2, 3)) for W in self.weights]
        features = (
            np.cumsum([0, *(len(W) for W in self.weights[:-1])]),
            np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
            np.concatenate([elements(W)[1:] for W in self.weights], axis=1).T.copy(),
        )
        pools = (
            np.array([[*level.pool.window, *level.pool.offset] for level in levels]),
            np.array([level.pool.below_size for level in levels]),
            np.array([level.pool.size[1] for level in levels]),
            np.cumsum([0, *(prior.size for prior in log_priors[:-1])]),
            np.concatenate(log_priors),
        )
        return (
            self.lowest,
            np.concatenate(flat, axis=1),
            np.cumsum([0, *(message.shape[1] for message in flat)]),
            np.concatenate([*self.floors, np.zeros((n, 1), np.float32)], axis=1),
            features,
            pools,
            1 + int(sum(count.max(initial=0) for count in counts)),
        )


def channel_costs(
    network: Network, images: Images
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a lacking and an unexplained pixel cost, per image and channel; 1 is usual.

    The more there is in a channel, the less it means to leave some of it unexplained, and the less
    to find nothing where something was expected.
    """
    seen = np.maximum(images.observed.sum(axis=(2, 3)), 1)
    share = ((images.pixels & images.observed).sum(axis=(2, 3)) + 1) / (seen + 2)
    nothing = (1 - share) ** network.levels[0].pool.n_members
    lacking = np.sqrt(np.maximum(nothing, LEAST_CHANCE))
    return lacking, UNEXPLAINED * (np.log(share) / np.log(SPARSE)) ** 2


def _relative(level: Level) -> FloatArray:
    """Log-probabilities of the members of a pool against that of the most probable.

    How many positions an element can choose from says nothing about how well it matches.
    """
    relative = level.log_prior - level.log_prior.max(axis=2, keepdims=True)
    return np.asarray(np.maximum(relative, -HUGE))
