"""Where an object may be: images as if it were where the examples have theirs.

The examples themselves, without their variants, are tried at all shifts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.images import FloatArray, Images
from hcnet.templates.deformations import Elements
from hcnet.templates.variant_kernels import place_all

# Shifts are tried in such steps first, then all those around the best one.
STEP = 2
# Share of an example's elements that a shift must save to be looked at.
LEAST_GAIN = 0.1


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
    shifts = np.zeros((images.n_images, 2), np.int64)
    seen = np.ascontiguousarray(images.pixels & images.observed)
    # An unobserved pixel may be on.
    maybe = np.ascontiguousarray(images.pixels | ~images.observed)
    # Further away, nothing of the image is left.
    reach = min(reach, max(images.size))
    search = reach, STEP, np.float32(LEAST_GAIN * unit)
    place_all(len(seen), seen, maybe, weights, *tables, how, *search, shifts)
    return shifted(images, shifts)


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
