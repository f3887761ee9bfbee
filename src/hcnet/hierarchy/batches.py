"""Images in batches that fit into memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from hcnet.hierarchy.network import Network
from hcnet.images import Images
from hcnet.memory import check_memory

# Images of a batch, and the bytes that it may take.
BATCH = 500
BATCH_BYTES = 256 * 2**20
# Bytes per element of S and R that an explanation takes at its peak: 6 to 20 were measured.
ELEMENT_BYTES = 20


def explaining_memory(network: Network) -> int:
    """Bytes that explaining one image takes, or matching it with all templates."""
    elements = 0
    for level in network.levels:
        pool, layer = level.pool, level.features
        elements += pool.n_channels * (math.prod(pool.below_size) + math.prod(pool.size))
        elements += layer.n_features * math.prod(layer.placement_size)
    return ELEMENT_BYTES * elements


def check_image_fits(network: Network) -> None:
    """Raise an error if a single image of this size would not fit into memory."""
    height, width = network.image_size
    what = f"One image of {height}×{width} pixels"
    check_memory(what, explaining_memory(network), None, "lower image_size")


def batch_size(bytes_per_image: int) -> int:
    """Images of a batch."""
    return int(np.clip(BATCH_BYTES // bytes_per_image, 1, BATCH))


def in_batches(images: Images, bytes_per_image: int) -> Iterator[tuple[Images, slice]]:
    """Batches of the images, each with the rows that it holds."""
    size = batch_size(bytes_per_image)
    for start in range(0, images.n_images, size):
        rows = slice(start, start + size)
        yield Images(images.pixels[rows], images.observed[rows]), rows
