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

from hcnet.images import BoolArray
from hcnet.soft.pieces import flip_rates

# Bounds of the levels of a part, and of the number of on pixels in the ring of 16 around.
LEVELS = (0.0, 0.05, 0.3, 0.7, 0.95)
RING = (1, 3, 6, 11)
# Contexts that were seen less often leave the pixel as it is.
RARE = 8


def without_flips(page: BoolArray, level: NDArray[np.float32]) -> BoolArray:
    """The page before its flips; `level` is how probable its part makes each pixel, or -1."""
    on_among_off, off_among_on = flip_rates(page)
    context = _contexts(page, level)
    n = int(context.max(initial=0)) + 1
    total = np.bincount(context.ravel(), minlength=n)
    on = np.bincount(context[page], minlength=n)
    seen_on = on / np.maximum(total, 1)
    before = (seen_on - on_among_off) / (1 - on_among_off - off_among_on)
    before = np.clip(before, 0, 1)
    wrong_on = before * (1 - off_among_on) < 0.5 * seen_on
    wrong_off = before * off_among_on > 0.5 * (1 - seen_on)
    often = total >= RARE
    change = np.where(page, (wrong_on & often)[context], (wrong_off & often)[context])
    return page ^ change


def _contexts(page: BoolArray, level: NDArray[np.float32]) -> NDArray[np.int32]:
    """The 8 pixels around, how many are on in the ring of 16 around these, and the level."""
    pixels = np.pad(page.astype(np.int32), 1)
    H, W = page.shape
    context = np.zeros((H, W), np.int32)
    inner = np.zeros((H, W), np.int32)
    for y in range(3):
        for x in range(3):
            part = pixels[y : y + H, x : x + W]
            inner += part
            if (y, x) != (1, 1):
                context = 2 * context + part
    outer = ndimage.uniform_filter(page.astype(np.float32), 5, mode="constant") * 25
    ring = np.rint(outer).astype(np.int32) - inner
    context = context * (len(RING) + 1) + np.digitize(ring, RING).astype(np.int32)
    steps = np.digitize(level, LEVELS).astype(np.int32)
    return np.asarray(context * (len(LEVELS) + 1) + steps)
