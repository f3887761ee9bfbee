"""A discrete solution: features, where they stand in padded images, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer
from hcnet.objective import Counts, entropy_bits
from hcnet.solutions import kernels

IntArray = NDArray[np.int64]
NOWHERE: IntArray = np.empty((0, 4), np.int64)
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
        sign = np.where(self.images.pixels, np.int8(1), np.int8(-1)) * self.images.observed
        return np.pad(sign, ((0, 0), (0, 0), (oh, oh), (ow, ow)))

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

    def tiles(self, pixels: IntArray) -> IntArray:
        """Tiles, one window large each, of flat padded pixels; the last one beyond all of S."""
        image, width, hs, ws, h, w, _ = self.geometry
        r = np.minimum(pixels // width % self.size[0], hs - 1)
        c = np.minimum(pixels % width, ws - 1)
        return np.asarray((pixels // image * -(-hs // h) + r // h) * -(-ws // w) + c // w)

    def inside(self, placements: IntArray) -> BoolArray:
        """Which placements (rows: image, feature, r, c) are at positions of S."""
        at = placements[:, 2:]
        return np.asarray(((at >= 0) & (at < self.layer.placement_size)).all(axis=1))

    def offsets(self, weights: BoolArray) -> IntArray:
        """Flat padded pixels that a feature (channels, h, w) covers, from its position on."""
        a, i, j = np.nonzero(weights)
        height, width = self.size
        return np.asarray((a * height + i) * width + j, dtype=np.int64)

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


class Candidates(NamedTuple):
    """Positions where a feature has more on pixels than off pixels below it.

    They come tile by tile, each one window large; in a tile those that fit best come first.
    """

    positions: IntArray
    fits: NDArray[np.float64]  # on pixels, less off pixels × the ratio of their evidence
    begin: IntArray  # where each tile begins; one more than there are tiles
    best: NDArray[np.float64]  # how well the first of each tile fits


@dataclass(frozen=True, eq=False)
class Feature:
    """One feature with what is worth remembering about it."""

    canvas: Canvas
    weights: BoolArray  # (channels, height, width)
    ratio: float  # evidence of an off pixel, in units of that of an on pixel

    @cached_property
    def offsets(self) -> IntArray:
        """Flat padded pixels that it covers, from its position on."""
        return self.canvas.offsets(self.weights)

    @cached_property
    def box(self) -> tuple[int, int, int, int]:
        """First and last row and column that it covers; of nothing, those of its window."""
        covered: BoolArray = np.any(self.weights, axis=0)
        rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
        if not len(rows):
            return 0, covered.shape[0] - 1, 0, covered.shape[1] - 1
        return int(rows[0]), int(rows[-1]), int(columns[0]), int(columns[-1])

    @cached_property
    def candidates(self) -> Candidates:
        """The positions where it fits the image at all."""
        sign, geometry = self.canvas.sign.reshape(-1), self.canvas.geometry
        _, _, hs, ws, h, w, n_images = geometry
        size = n_images * hs * ws
        found = np.empty(size, np.int64), np.empty(size)
        n = kernels.find_candidates(sign, self.offsets, geometry, self.ratio, found)
        positions, fits = np.empty(n, np.int64), np.empty(n)
        begin = np.empty(n_images * -(-hs // h) * -(-ws // w) + 1, np.int64)
        unordered = found[0][:n], found[1][:n]
        kernels.tile_candidates(*unordered, geometry, (positions, fits), begin)
        filled = begin[1:] > begin[:-1]
        best = np.zeros(len(filled))
        best[filled] = fits[begin[:-1][filled]]
        return Candidates(positions, fits, begin, best)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Features, their placements (rows: image, feature, r, c), and what that costs."""

    features: tuple[Feature, ...]
    placements: IntArray
    cover: NDArray[np.int16]  # flat padded pixels
    counts: Counts
    bits: float

    @cached_property
    def usage(self) -> IntArray:
        """Placements per feature."""
        return np.bincount(self.placements[:, 1], minlength=len(self.features))

    @property
    def feature_bits(self) -> float:
        """Bits that the weights of a feature cost on average; infinite if there is none."""
        if not self.features:
            return math.inf
        return entropy_bits(self.counts.weights_on, self.counts.weights) / len(self.features)

    @property
    def by_use(self) -> list[int]:
        """The features, the most used first; which of two comes first depends on them alone."""
        named = [(-n, f.weights.tobytes()) for n, f in zip(self.usage, self.features, strict=True)]
        return sorted(range(len(named)), key=named.__getitem__)

    def weights(self) -> BoolArray:
        """W: (features, channels, height, width)."""
        return np.stack([feature.weights for feature in self.features])


def concatenate_offsets(features: Sequence[Feature]) -> tuple[IntArray, IntArray]:
    """All offsets in one array, and where each feature's begin."""
    starts = np.cumsum([0] + [feature.offsets.size for feature in features])
    none = np.empty(0, np.int64)  # there may be no feature
    return np.concatenate([none, *(feature.offsets for feature in features)]), starts


def concatenate_candidates(
    features: Sequence[Feature],
) -> tuple[IntArray, NDArray[np.float64], IntArray, IntArray, NDArray[np.float64]]:
    """All candidates in one: positions, fits, and where those of each feature begin.

    Then, where those of feature f in a tile begin, ``begin[f, tile]``, and how well the best of
    them fits, ``best[tile, f]``.
    """
    found = [feature.candidates for feature in features]
    owned = np.cumsum([0] + [len(candidates.fits) for candidates in found])
    return (
        np.concatenate([candidates.positions for candidates in found]),
        np.concatenate([candidates.fits for candidates in found]),
        owned,
        np.stack([candidates.begin for candidates in found]) + owned[:-1, None],
        np.stack([candidates.best for candidates in found], axis=-1),
    )
