"""Images in batches that fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from hcnet.hierarchy.network import Network
from hcnet.images import Images
from hcnet.memory import check_memory

# Images that are worked on at once, and the bytes that they may take.
BATCH = 500
BATCH_BYTES = 256 * 2**20
# Bytes per element of S and R that an explanation takes at its peak: 6 to 20 were measured.
ELEMENT_BYTES = 20

Part = TypeVar("Part")


def explaining_memory(network: Network) -> int:
    """Bytes that explaining one image takes, or matching it with all templates."""
    elements = 0
    for level in network.levels:
        pool, layer = level.pool, level.features
        elements += pool.n_channels * (math.prod(pool.below_size) + math.prod(pool.size))
        elements += layer.n_features * math.prod(layer.placement_size)
    return ELEMENT_BYTES * elements


def check_image_fits(network: Network) -> None:
    """An error if the machine has no room for a single image of this size."""
    height, width = network.image_size
    what = f"One image of {height}×{width} pixels"
    check_memory(what, explaining_memory(network), None, "lower image_size")


def batch_size(each: int) -> int:
    """Images of a batch, if one takes so many bytes."""
    return int(np.clip(BATCH_BYTES // each, 1, BATCH))


def in_batches(images: Images, each: int, work: Callable[[Images, slice], Part]) -> list[Part]:
    """What `work` makes of every batch, which gets the images and says which they are."""
    size = batch_size(each)
    rows = [slice(start, start + size) for start in range(0, images.n_images, size)]
    return [work(Images(images.pixels[some], images.observed[some]), some) for some in rows]
