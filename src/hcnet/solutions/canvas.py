"""The data as the refinement sees it: padded, so that no placement leaves the array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Canvas:
    """Images padded by the overhang of the layer, with unobserved pixels all around.

    A placement at position (r, c) of S covers the padded pixels (r + i, c + j).
    """

    layer: FeatureLayer
    images: Images

    @cached_property
    def sign(self) -> NDArray[np.int8]:
        """+1 on, -1 off, 0 not observed; (images, channels, padded height, padded width)."""
        oh, ow = self.layer.overhang
        sign = np.where(self.images.pixels, 1, -1) * self.images.observed
        return np.pad(sign, ((0, 0), (0, 0), (oh, oh), (ow, ow))).astype(np.int8)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the padded images."""
        return int(self.sign.shape[2]), int(self.sign.shape[3])

    @property
    def n_images(self) -> int:
        """Number of images."""
        return self.images.n_images

    @cached_property
    def geometry(self) -> tuple[int, int, int, int, int, int, int]:
        """Plain numbers for compiled code.

        Pixels per padded image, padded width, heights and widths of S and of the window,
        images.
        """
        hs, ws = self.layer.placement_size
        h, w = self.layer.feature_size
        height, width = self.size
        return self.layer.n_channels * height * width, width, hs, ws, h, w, self.n_images

    def tiles(self, pixels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tiles, one window large each, of flat padded pixels; the last one beyond all of S."""
        image, width, hs, ws, h, w, _ = self.geometry
        r = np.minimum(pixels // width % self.size[0], hs - 1)
        c = np.minimum(pixels % width, ws - 1)
        return np.asarray((pixels // image * -(-hs // h) + r // h) * -(-ws // w) + c // w)

    def inside(self, placements: NDArray[np.int64]) -> BoolArray:
        """Which placements (rows: image, feature, r, c) are at positions of S."""
        at = placements[:, 2:]
        return np.asarray(((at >= 0) & (at < self.layer.placement_size)).all(axis=1))

    def offsets(self, weights: BoolArray) -> NDArray[np.int64]:
        """Flat padded pixels that a feature (channels, h, w) covers, from its position on."""
        a, i, j = np.nonzero(weights)
        height, width = self.size
        return np.asarray((a * height + i) * width + j, dtype=np.int64)

    def windows(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sum of a padded per-pixel quantity over every window: (images, HS, WS)."""
        h, w = self.layer.feature_size
        total = np.zeros((self.n_images, self.size[0] + 1, self.size[1] + 1), np.float64)
        total[:, 1:, 1:] = values.sum(axis=1).cumsum(axis=1).cumsum(axis=2)
        box = total[:, h:, w:] - total[:, :-h, w:] - total[:, h:, :-w] + total[:, :-h, :-w]
        return box.astype(np.float32)

    def crop(self, values: NDArray[Number], n: int, r: int, c: int) -> NDArray[Number]:
        """The window at position (r, c) of S, which may lie partly outside: (channels, h, w)."""
        h, w = self.layer.feature_size
        height, width = self.size
        out = np.zeros((self.layer.n_channels, h, w), values.dtype)
        top, left = max(0, -r), max(0, -c)
        bottom, right = min(h, height - r), min(w, width - c)
        if bottom > top and right > left:
            inside = values[n, :, r + top : r + bottom, c + left : c + right]
            out[:, top:bottom, left:right] = inside
        return out
