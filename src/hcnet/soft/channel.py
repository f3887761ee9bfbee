"""The noisy channel of soft parts, as tables of bits per pixel in its context.

A pixel of a copy is coded given its part: the level of the part there (how many of its copies are
on, in five steps), the majority of the eight part pixels around, and four earlier pixels of the
copy.  A pixel without a part is coded given 16 earlier pixels of the page, as in JBIG.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.soft import coding

Table = NDArray[np.float32]  # bits of an off and of an on pixel, for every context

# No pixel is surer than this: tables come from one page.
LEAST = 2e-4
# Pseudo-counts: of a context alone, and of smaller contexts for larger ones.
ALONE, FEWER = 0.4, 3.0
# The channel before any copy was seen: how probable a pixel is on by its level, and the renderings,
# as rows and columns of a shift and darkness.  A shift makes a pixel that has the part on one
# side only more or less probable, by so much in the logarithm of the odds.
START, SHIFTED = (0.01, 0.15, 0.5, 0.85, 0.99), 1.5
AS_SEEN = [(y, x, 0) for y in (-1, 0, 1) for x in (-1, 0, 1)] + [(0, 0, -1), (0, 0, 1)]


def template_cost(pages: Iterable[BoolArray], counts: NDArray[np.float64] | None = None) -> Table:
    """Bits of pixels without a part, as these pages have them; adds them to `counts`, if given."""
    counts = np.zeros((1 << len(coding.TEMPLATE), 2)) if counts is None else counts
    for page in pages:
        coding.template_counts(page.view(np.uint8), counts)
    p = (counts[:, 1] + ALONE) / (counts.sum(axis=1) + 2 * ALONE)
    return bits_of(p)


def start_cost() -> Table:
    """Bits of pixels before any copy was seen: by level, and where the part is on beside them."""
    context = np.arange(coding.CONTEXTS)
    around = context // 16
    west, north, south, east = (around >> bit & 1 for bit in (6, 4, 3, 1))
    odds = np.log(START) - np.log1p(-np.array(START))
    down, right, dark = np.array(AS_SEEN).T
    shift = down * (north - south)[:, None] + right * (west - east)[:, None]
    p = 1 / (1 + np.exp(-odds[context // 4096, None] - SHIFTED * shift - dark))
    return bits_of(np.concatenate([p, np.full((1, len(AS_SEEN)), 1 / len(AS_SEEN))]))


def part_cost(counts: NDArray[np.float64]) -> Table:
    """Bits of pixels given their part and rendering, and of renderings, from counts by context.

    A context that was seen rarely in a rendering takes over from the same in all renderings, that
    from the one with four part pixels around instead of eight, and that from the one with none.
    """
    shares = counts[-1, 1] + ALONE
    c = counts[:-1].sum(axis=2).reshape(coding.LEVELS, *[2] * 8, 16, 2)
    diagonal = (1, 3, 6, 8)  # the order is NW, W, SW, N, S, NE, E, SE
    none = c.sum(axis=tuple(range(1, 9)), keepdims=True)
    p = (none[..., 1] + ALONE) / (none.sum(axis=-1) + 2 * ALONE)
    for some in (c.sum(axis=diagonal, keepdims=True), c):
        p = (some[..., 1] + FEWER * p) / (some.sum(axis=-1) + FEWER)
    one = counts[:-1]
    p = (one[:, 1] + FEWER * p.reshape(-1, 1)) / (one.sum(axis=1) + FEWER)
    return bits_of(np.concatenate([p, shares[None] / shares.sum()]))


def bits_of(p: NDArray[np.floating]) -> Table:
    """Bits of an off and of an on pixel that is on with probability p."""
    p = np.clip(p, LEAST, 1 - LEAST)
    return -np.log2(np.stack([1 - p, p], axis=1)).astype(np.float32)


def chances(cost: Table) -> NDArray[np.float32]:
    """Probabilities of an on pixel: the inverse of `bits_of`, in float32."""
    return np.exp2(-cost[:, 1])
