"""Copies of parts in pages: their exact ink, and where they lie on the canvas of their part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.codec.jbig2.bitmaps import Bitmaps, together
from hcnet.soft.pieces import IntArray, smallest_box
from hcnet.soft.soft_search import SoftSearch

# Ink of a piece that several parts explain, farther than this from all of them, is of none.
FARTHEST = 3.0


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of parts; `corner` is their place on the page, `place` on the canvas of the part."""

    bitmaps: Bitmaps
    page: IntArray
    corner: IntArray
    part: IntArray
    place: IntArray
    alone: NDArray[np.float64]  # bits of each by itself


def copies_of(search: SoftSearch) -> Copies:
    """All copies of a search that share a part with others."""
    pieces, parts = search.pieces, search.parts
    whole = np.flatnonzero(search.shared)
    k = search.assigned[whole]
    place = parts.reference[k] + search.shift[whole] - pieces.reference[whole]
    corner = np.stack([pieces.top, pieces.left], axis=1)
    bitmaps = [pieces.bitmap(i) for i in whole.tolist()]
    rows = [np.column_stack([pieces.page[whole], corner[whole], k, place])]
    for i in np.unique(search.covers[:, 0]).tolist():
        for row, bitmap in _divided(search, i):
            bitmaps.append(bitmap)
            rows.append(row[None])
    table = np.concatenate(rows).astype(np.int64)
    found = together(bitmaps)
    alone = found.bits_alone(search.cost_alone)
    return Copies(found, table[:, 0], table[:, 1:3], table[:, 3], table[:, 4:], alone)


def _divided(search: SoftSearch, i: int) -> list[tuple[IntArray, NDArray[np.uint8]]]:
    """A piece that several parts explain, divided: each pixel goes to the nearest part."""
    pieces, parts = search.pieces, search.parts
    ink = pieces.bitmap(i)
    covers = search.covers[search.covers[:, 0] == i]
    distance = []
    for _, k, y, x in covers.tolist():
        most = 2 * parts.counts(k) >= parts.n[k]
        board = np.zeros(ink.shape, bool)
        h, w = most.shape
        y1, x1 = max(y, 0), max(x, 0)
        at = board[y1 : max(y + h, 0), x1 : max(x + w, 0)]
        at[:] = most[y1 - y :, x1 - x :][: at.shape[0], : at.shape[1]]
        far = np.full(ink.shape, np.inf)
        distance.append(ndimage.distance_transform_edt(~board) if board.any() else far)
    owner = np.argmin(distance, axis=0)
    near = (ink > 0) & (np.min(distance, axis=0) <= FARTHEST)
    found = []
    for j, (_, k, y, x) in enumerate(covers.tolist()):
        mine = near & (owner == j)
        if not mine.any():
            continue
        top, bottom, left, right = smallest_box(mine).tolist()
        corner = pieces.top[i] + top, pieces.left[i] + left
        place = top - y + parts.box[k, 0], left - x + parts.box[k, 2]
        bitmap = mine[top:bottom, left:right].astype(np.uint8)
        found.append((np.array([pieces.page[i], *corner, k, *place]), bitmap))
    return found
