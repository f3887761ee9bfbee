"""The arrays that message passing through a pooling layer carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from hcnet.factors import HUGE
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import ClassLayer, PoolLayer


@dataclass(frozen=True)
class ActivePools:
    """Pools that may be on, and the elements below that they reach.

    The messages of all others are the same in every pass.
    """

    pools: NDArray[np.int64]  # numbers of elements (image, channel, row, column) of R
    below: NDArray[np.int64]


@dataclass
class PoolMessages:
    """State of one pooling layer: messages along the edges of its intermediate variables U.

    An element (r, c) of a plane of R has a pool with a member per position of the window.
    """

    layer: PoolLayer
    log_prior: FloatArray  # (height, width, members) of R, the same for all channels
    to_U: FloatArray  # (images, channels, height, width, members): from the ORs below
    from_pool: FloatArray  # the same shape: from the pools above
    to_R: FloatArray  # (images, channels, height, width)
    active: ActivePools | None = None  # None: all

    @property
    def window(self) -> tuple[int, int, int, int]:
        """Height, width and offset of the window, as `engine.planes` wants it."""
        return *self.layer.window, *self.layer.offset


def start_pools(
    layer: PoolLayer,
    n_images: int,
    log_prior: FloatArray,
    hold: Callable[[FloatArray], FloatArray] = np.asarray,
) -> PoolMessages:
    """Messages up are 0, messages down are minus infinity: nothing is expected.

    `hold` brings arrays to where the engine works.
    """
    shape = (n_images, layer.n_channels, *layer.size)
    return PoolMessages(
        layer=layer,
        log_prior=hold(log_prior),
        to_U=hold(np.zeros((*shape, layer.n_members), np.float32)),
        from_pool=hold(np.full((*shape, layer.n_members), -HUGE, np.float32)),
        to_R=hold(np.zeros(shape, np.float32)),
    )


def set_active_pools(pools: PoolMessages, some: BoolArray) -> None:
    """Update some pools only from now on, (images, channels, height, width).

    The messages to the others must have been computed, with nothing expected of any.
    """
    (H, W), (h, w) = pools.layer.size, pools.layer.window
    (top, left), (below_h, below_w) = pools.layer.offset, pools.layer.below_size
    reached = np.zeros((*some.shape[:2], H + h - 1, W + w - 1), bool)
    for i in range(h):
        for j in range(w):
            reached[:, :, i : i + H, j : j + W] |= some
    reached = reached[:, :, top : top + below_h, left : left + below_w]
    pools.active = ActivePools(np.flatnonzero(some), np.flatnonzero(reached))


def pool_memory(layer: PoolLayer, n_images: int) -> int:
    """Bytes of the messages of a pooling layer, and of those between it and its neighbours."""
    elements = n_images * layer.n_channels * int(np.prod(layer.size))
    below = n_images * layer.n_channels * int(np.prod(layer.below_size))
    return 4 * (elements * (2 * layer.n_members + 3) + 2 * below)


def pool_log_prior(layer: PoolLayer, window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probability of every member of every pool.

    `window` holds the relative probabilities of the positions of a window.  Members beyond the
    border of the grid below are impossible, and the others share their probability.
    """
    (H, W), (h, w) = layer.size, layer.window
    (top, left), (below_h, below_w) = layer.offset, layer.below_size
    y = np.arange(H)[:, None] + np.arange(h) - top
    x = np.arange(W)[:, None] + np.arange(w) - left
    rows, columns = (y >= 0) & (y < below_h), (x >= 0) & (x < below_w)
    inside = rows[:, None, :, None] & columns[None, :, None, :]
    p = np.where(inside, window, 0.0).reshape(H, W, h * w)
    p /= p.sum(axis=2, keepdims=True)
    return np.where(p > 0, np.log(np.maximum(p, 1e-300)), -HUGE)


def template_log_prior(layer: ClassLayer, positions: int) -> NDArray[np.float64]:
    """Prior of every template at each of some positions.

    Where exactly one is on: the log-probability that it is this one.  Where each is on by itself:
    the log-odds of that.
    """
    if layer.p_on is not None:
        return np.full(layer.n_templates, float(logit(layer.p_on)))
    sizes = np.bincount(layer.categories)
    return -np.log(layer.n_classes * positions * sizes[list(layer.categories)])


def class_log_prior(
    layer: ClassLayer, shape: tuple[int, ...], allowed: BoolArray
) -> NDArray[np.float64]:
    """`template_log_prior` for templates S of shape (images, templates, height, width).

    A row per image; impossible where `allowed` (images, templates) is False.
    """
    positions = shape[2] * shape[3]
    prior = np.where(allowed, template_log_prior(layer, positions), -HUGE)
    return np.repeat(prior, positions, axis=1)
