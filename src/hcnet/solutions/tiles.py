"""Tiles of images that are too large to be explained at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hcnet.images import BoolArray
from hcnet.solutions.explanation import IntArray


class Tile(NamedTuple):
    """Some of the images, and a rectangle of positions in them."""

    first: int
    last: int
    top: int
    bottom: int
    left: int
    right: int

    def halves(self, height: int, width: int) -> list[Tile]:
        """Two tiles instead of this one; none if it is one image, and no larger than a window."""
        if self.last - self.first > 1:
            low, high, half = "first", "last", (self.first + self.last) // 2
        elif self.bottom - self.top > max(height, self.right - self.left):
            low, high, half = "top", "bottom", (self.top + self.bottom) // 2
        elif self.right - self.left > width:
            low, high, half = "left", "right", (self.left + self.right) // 2
        elif self.bottom - self.top > height:
            low, high, half = "top", "bottom", (self.top + self.bottom) // 2
        else:
            return []
        return [self._replace(**{low: half}), self._replace(**{high: half})]

    @staticmethod
    def pixels(low: int, high: int, window: int, overhang: int) -> tuple[int, int]:
        """The rows or columns of pixels that matter for positions, with a window on both sides."""
        return max(low - overhang - window, 0), high - overhang + 2 * window

    def holds(self, placements: IntArray) -> BoolArray:
        """Which placements are at positions of this tile."""
        rows, columns = placements[:, 2], placements[:, 3]
        inside = (self.top <= rows) & (rows < self.bottom)
        return np.asarray(inside & (self.left <= columns) & (columns < self.right))
