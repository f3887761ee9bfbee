"""Flips taken back: pixels that their part and the pixels around them contradict.

The rule is the discrete universal denoiser of Weissman et al. (2005), with the parts as side
information.  How often a pixel is on in a context, and how often pixels are flipped, tell how often
it was on before the flips, and so which of the two it more probably was.  A page without flips
comes back as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.images import BoolArray, Images
from hcnet.objective import entropy_bits

# Bounds of the levels of a part, and of the number of on pixels in the ring of 16 around.
LEVELS = (0.0, 0.05, 0.3, 0.7, 0.95)
RING = (1, 3, 6, 11)
FINER = (len(RING) + 1) * (len(LEVELS) + 1)
# The 8 pixels around count as so many pixels that were seen in the whole context.
PRIOR = 3.0
# Pages with a lower rate of flips are taken as they are.
NOISY = 0.002
# A higher rate is not one of flips.
MOST = 0.25

Rates = tuple[float, float]


def flip_rates(page: BoolArray) -> Rates:
    """How often flips turn a pixel on, and how often they turn it off.

    No context has fewer pixels on than flips turn on.  So the rate is that of the context with the
    fewest: all 8 pixels around off, and at most so many of the 16 around these on.
    """
    inner, ring = _around(page)
    rates = []
    for near, far, flipped in ((inner == 0, ring, page), (inner == 8, 16 - ring, ~page)):
        n = np.cumsum(np.bincount(far[near], minlength=17))
        k = np.cumsum(np.bincount(far[near & flipped], minlength=17))
        best = np.argmin((k + 1 + 5 * np.sqrt(k + 1)) / np.maximum(n, 1))
        # A few specks on a clean page are no flips, and neither is a pattern of dots.
        rate = float(max(k[best] - np.sqrt(k[best]), 0) / max(n[best], 1))
        rates.append(rate if rate < MOST else 0.0)
    return rates[0], rates[1]


def without_noise(images: Images) -> tuple[list[BoolArray], float]:
    """Pages without the flips of those that have many, and the bits of these flips."""
    pages, bits = [], 0.0
    for page in images.pixels[:, 0] & images.observed[:, 0]:
        rates = flip_rates(page)
        clean = without_flips(page, rates) if max(rates) > NOISY else page
        bits += entropy_bits(int((clean ^ page).sum()), page.size)
        pages.append(clean)
    return pages, bits


def without_flips(
    page: BoolArray, rates: Rates, level: NDArray[np.float32] | None = None
) -> BoolArray:
    """The page before its flips; `level` is how probable its part makes each pixel, or -1."""
    turned_on, turned_off = rates
    context = _contexts(page, level)
    total = np.bincount(context.ravel(), minlength=256 * FINER)
    on = np.bincount(context[page], minlength=256 * FINER)
    whole, ink = total.reshape(256, FINER).sum(axis=1), on.reshape(256, FINER).sum(axis=1)
    coarse = np.repeat(ink / np.maximum(whole, 1), FINER)
    wrong = []
    for value in (0, 1):
        # How often the other pixels in the context of one with this value are on.
        others = np.maximum(total - 1, 0)
        chance = (np.maximum(on - value, 0) + PRIOR * coarse) / (others + PRIOR)
        before = np.clip((chance - turned_on) / (1 - turned_on - turned_off), 0, 1)
        if value:
            wrong.append(before * (1 - turned_off) < 0.5 * chance)
        else:
            wrong.append(before * turned_off > 0.5 * (1 - chance))
    return page ^ np.where(page, wrong[1][context], wrong[0][context])


def _around(page: BoolArray) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """How many of the 8 pixels around each pixel are on, and of the 16 around these."""
    pixels = page.astype(np.float32)
    near, wide = (
        np.rint(ndimage.uniform_filter(pixels, side, mode="constant") * side**2).astype(np.int32)
        for side in (3, 5)
    )
    return near - page, wide - near


def _contexts(page: BoolArray, level: NDArray[np.float32] | None) -> NDArray[np.int32]:
    """The 8 pixels around, how many are on in the ring of 16 around these, and the level."""
    pixels = np.pad(page, 1)
    H, W = page.shape
    context = np.zeros((H, W), np.int32)
    for y, x in np.ndindex(3, 3):
        if (y, x) != (1, 1):
            context = 2 * context + pixels[y : y + H, x : x + W]
    context = context * (len(RING) + 1) + np.digitize(_around(page)[1], RING).astype(np.int32)
    context *= len(LEVELS) + 1
    if level is not None:
        context += np.digitize(level, LEVELS).astype(np.int32)
    return context
