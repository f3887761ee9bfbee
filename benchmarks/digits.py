"""Digits as the paper's MNIST experiment has them: oriented edges, and a network for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.datasets import load_digits

from hcnet.hierarchy.network import Level, Network
from hcnet.images import BoolArray, Noise
from hcnet.layers import FeatureLayer, PoolLayer, equal_classes

DIRECTIONS = 16
SIZE = 28
# An edge is where the gradient is at least so strong, as a share of the strongest.
THRESHOLD = 0.25


def digit_edges(n: int) -> tuple[BoolArray, NDArray[np.int64]]:
    """The first digits of scikit-learn, enlarged to 28×28, as 16-channel edge maps; labels."""
    data = load_digits()
    images = np.stack([ndimage.zoom(image / 16, SIZE / 8, order=1) for image in data.images[:n]])
    across, down = (
        np.stack([ndimage.gaussian_filter(image, 1, order=order) for image in images])
        for order in ((0, 1), (1, 0))
    )
    strength = np.hypot(across, down)
    strength /= strength.max()
    direction = np.rint(np.arctan2(down, across) / (2 * np.pi / DIRECTIONS)).astype(int)
    direction %= DIRECTIONS
    angle = direction * (2 * np.pi / DIRECTIONS)
    dy, dx = np.rint(np.sin(angle)).astype(int), np.rint(np.cos(angle)).astype(int)
    k, r, c = np.indices(strength.shape)
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    ahead, behind = padded[k, r + 1 + dy, c + 1 + dx], padded[k, r + 1 - dy, c + 1 - dx]
    on = (strength > THRESHOLD) & (strength >= ahead) & (strength > behind)
    edges = np.zeros((len(images), DIRECTIONS, SIZE, SIZE), bool)
    k, r, c = np.nonzero(on)
    edges[k, direction[k, r, c], r, c] = True
    return edges, data.target[:n]


def digit_network() -> Network:
    """The paper's: 64 features that fill the image but for the pools, 32 templates per class."""
    rng = np.random.default_rng(0)
    first_pool = PoolLayer(DIRECTIONS, (3, 3), (SIZE, SIZE))
    size = first_pool.size
    first = FeatureLayer(64, DIRECTIONS, (size[0] - 2, size[1] - 2), size, "valid")
    second_pool = PoolLayer(64, (3, 3), first.placement_size)
    second = FeatureLayer(320, 64, second_pool.size, second_pool.size, "valid")
    windows = [1 + 0.1 * rng.random((3, 3)) for _ in range(2)]
    levels = (
        Level(first_pool, first, windows[0], 0.001),
        Level(second_pool, second, windows[1], 0.05),
    )
    certainty = 1 / (1 + np.exp(100.0))  # evidence of 100 per pixel
    return Network(levels, equal_classes(10, 32), Noise(certainty, certainty))
