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


def template_cost(pages: Iterable[BoolArray], counts: NDArray[np.float64] | None = None) -> Table:
    """Bits of pixels without a part, as these pages have them; adds them to `counts`, if given."""
    counts = np.zeros((1 << len(coding.TEMPLATE), 2)) if counts is None else counts
    for page in pages:
        coding.template_counts(page.view(np.uint8), counts)
    p = (counts[:, 1] + ALONE) / (counts.sum(axis=1) + 2 * ALONE)
    return bits_of(p)


def part_cost(counts: NDArray[np.float64]) -> Table:
    """Bits of pixels given their part, from counts by context.

    A context that was seen rarely takes over from the same with four part pixels around instead of
    eight, and that from the one with none.
    """
    c = counts.reshape(coding.LEVELS, *[2] * 8, 16, 2)
    diagonal = (1, 3, 6, 8)  # the order is NW, W, SW, N, S, NE, E, SE
    none = c.sum(axis=tuple(range(1, 9)), keepdims=True)
    p = (none[..., 1] + ALONE) / (none.sum(axis=-1) + 2 * ALONE)
    for some in (c.sum(axis=diagonal, keepdims=True), c):
        p = (some[..., 1] + FEWER * p) / (some.sum(axis=-1) + FEWER)
    return bits_of(p.ravel())


def bits_of(p: NDArray[np.floating]) -> Table:
    """Bits of an off and of an on pixel that is on with probability p."""
    p = np.clip(p, LEAST, 1 - LEAST)
    return -np.log2(np.stack([1 - p, p], axis=1)).astype(np.float32)


def chances(cost: Table) -> NDArray[np.float32]:
    """Probabilities of an on pixel: the inverse of `bits_of`, in float32."""
    return np.exp2(-cost[:, 1])
