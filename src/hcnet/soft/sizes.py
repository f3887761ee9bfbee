"""How large the parts of images are, from the pieces of ink that repeat."""

from __future__ import annotations

import numpy as np

from hcnet.engine.driver import look
from hcnet.images import BoolArray, Images
from hcnet.soft.denoising import without_noise
from hcnet.soft.pieces import find_pieces, joined, smallest_box
from hcnet.soft.soft_search import SoftSearch

# Larger images are not searched for this alone.
PIXELS = 2**19


def largest_of(parts: list[BoolArray]) -> tuple[int, int]:
    """Height and width that hold the ink of each part."""
    boxes = np.array([smallest_box(part) for part in parts]).reshape(-1, 4)
    height, width = (boxes[:, 1::2] - boxes[:, ::2]).max(axis=0).tolist()
    return height, width


def size_of_parts(images: Images) -> tuple[int, int] | None:
    """Height and width of the largest piece of ink that repeats; None if less than half does.

    Channels lie above each other.
    """
    if images.n_observed > PIXELS:
        return None
    if images.n_channels == 1:
        pages = without_noise(images)[0]
    else:
        seen = images.pixels & images.observed
        pages = [page.any(axis=0) for page in seen]
    pieces = joined([find_pieces(page, number) for number, page in enumerate(pages)])
    search = SoftSearch(pages, pieces, 0)
    while search.step():
        look()
    area, shared, parts = search.pieces.area, search.shared, search.parts
    if not shared.any() or 2 * area[shared].sum() < sum(int(page.sum()) for page in pages):
        return None
    return largest_of(
        [2 * parts.counts(k) >= parts.n[k] for k in np.flatnonzero(parts.n > 1).tolist()]
    )
