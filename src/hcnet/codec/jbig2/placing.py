"""Instances of symbols on a page, and the ink that is left without them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2.bitmaps import Bitmaps, together
from hcnet.codec.jbig2.choosing import Chosen
from hcnet.codec.jbig2.copies import Copies
from hcnet.images import BoolArray
from hcnet.soft.pieces import IntArray


def placed(
    chosen: Chosen, copies: Copies, number: int, page: BoolArray
) -> tuple[IntArray, Bitmaps, BoolArray]:
    """Rows of instances (see `symbols`), their bitmaps, and the page without their ink.

    The bitmap of an instance is as large as its symbol, unless the copy reaches over it, or the
    symbol over the page.
    """
    rows: list[tuple[int, ...]] = []
    bitmaps: list[NDArray[np.uint8]] = []
    rest = page.copy()
    height, width = page.shape
    for i in np.flatnonzero((copies.page == number) & (chosen.owner >= 0)).tolist():
        symbol = chosen.symbols[chosen.owner[i]]
        own, (h, w) = copies.bitmaps[i], symbol.bitmap.shape
        v, u = copies.corner[i].tolist()
        y, x = (copies.corner[i] - copies.place[i] + symbol.origin).tolist()
        top, left = max(min(y, v), 0), max(min(x, u), 0)
        bottom = min(max(y + h, v + own.shape[0]), height)
        right = min(max(x + w, u + own.shape[1]), width)
        bitmap = np.zeros((bottom - top, right - left), np.uint8)
        bitmap[v - top :, u - left :][: own.shape[0], : own.shape[1]] = own
        rest[top:bottom, left:right] &= bitmap == 0
        equal = np.array_equal(bitmap, symbol.bitmap)
        which = -1 if equal else len(bitmaps)
        rows.append((bottom - 1, left, chosen.owner[i], which, y - top, x - left))
        if not equal:
            bitmaps.append(bitmap)
    return np.array(rows, np.int64).reshape(-1, 6), together(bitmaps), rest
