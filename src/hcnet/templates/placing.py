"""Where an object is: images as if it were where the examples have theirs.

The examples themselves, without their variants, are tried at all shifts.  An image is moved if that
explains it better by more than a change of place is worth.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from hcnet.images import FloatArray, Images
from hcnet.templates.deformations import Elements
from hcnet.templates.variant_kernels import place_all

# Shifts are tried in such steps first, then all those around the best one.
STEP = 2
# Share of an example's elements that a shift must save: with less, objects in clutter move away.
LEAST_GAIN = 0.15


def place(
    images: Images,
    weights: FloatArray,
    tables: tuple[Elements, NDArray[np.uint8]],
    how: tuple[FloatArray, np.float32, np.float32],
    reach: int,
    unit: float,
) -> Images:
    """The images with each object where it fits the examples best, at most `reach` pixels away.

    `tables` are those of the examples; `unit` is the number of elements that an example has.
    """
    steps = range(-(reach // STEP) * STEP, reach + 1, STEP)
    tried = np.array(list(product(steps, steps)))
    costs = _costs(images, weights, tables, how, tried)
    best, least = tried[costs.argmin(axis=1)], costs.min(axis=1)
    stays = costs[:, len(tried) // 2]  # without a shift
    for shift in np.unique(best, axis=0):
        rows = np.flatnonzero((best == shift).all(axis=1))
        around = np.array(list(product((-1, 0, 1), (-1, 0, 1)))) + shift
        around = around[(np.abs(around) <= reach).all(axis=1)]
        costs = _costs(images[rows], weights[rows], tables, how, around)
        best[rows], least[rows] = around[costs.argmin(axis=1)], costs.min(axis=1)
    best[least > stays - LEAST_GAIN * unit] = 0
    return shifted(images, best)


def _costs(
    images: Images,
    weights: FloatArray,
    tables: tuple[Elements, NDArray[np.uint8]],
    how: tuple[FloatArray, np.float32, np.float32],
    tried: NDArray[np.int64],
) -> FloatArray:
    costs = np.empty((images.n_images, len(tried)), np.float32)
    seen = np.ascontiguousarray(images.pixels & images.observed)
    maybe = np.ascontiguousarray(images.pixels | ~images.observed)
    place_all(len(seen), seen, maybe, weights, *tables, how, tried, costs)
    return costs


def shifted(images: Images, where: NDArray[np.int64]) -> Images:
    """Every image shifted by whole pixels; what comes in from outside is off."""
    if not where.any():
        return images
    height, width = images.size
    pixels, observed = np.zeros_like(images.pixels), np.ones_like(images.observed)
    for n, (down, right) in enumerate(where):
        into = _overlap(down, height), _overlap(right, width)
        source = _overlap(-down, height), _overlap(-right, width)
        pixels[n][:, *into] = images.pixels[n][:, *source]
        observed[n][:, *into] = images.observed[n][:, *source]
    return Images(pixels, observed)


def _overlap(by: int, length: int) -> slice:
    return slice(max(by, 0), max(length + min(by, 0), 0))
