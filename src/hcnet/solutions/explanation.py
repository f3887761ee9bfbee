"""A discrete solution: features, where they stand, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.objective import Counts
from hcnet.solutions import kernels
from hcnet.solutions.canvas import Canvas

IntArray = NDArray[np.int64]
NOWHERE: IntArray = np.empty((0, 4), np.int64)


class Candidates(NamedTuple):
    """Positions where a feature has more on pixels than off pixels below it."""

    positions: IntArray
    fits: NDArray[np.float64]  # on pixels, less off pixels × the ratio of their evidence


class Tiles(NamedTuple):
    """Candidates tile by tile, each one window large; in a tile those that fit best come first."""

    candidates: Candidates
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
    def candidates(self) -> Candidates:
        """Where it fits the image at all, from the first image's first row on."""
        canvas = self.canvas
        positions, on, off = kernels.find_candidates(
            canvas.sign.reshape(-1), self.offsets, canvas.geometry, self.ratio
        )
        return Candidates(positions, on - self.ratio * off)

    @cached_property
    def tiles(self) -> Tiles:
        """The candidates by where they are."""
        positions, fits = self.candidates.positions, self.candidates.fits
        rank = np.argsort(-fits, kind="stable")
        order, begin = kernels.tile_candidates(positions[rank], self.canvas.geometry)
        ordered = Candidates(positions[rank][order], fits[rank][order])
        filled = begin[1:] > begin[:-1]
        best = np.zeros(len(filled))
        best[filled] = ordered.fits[begin[:-1][filled]]
        return Tiles(ordered, begin, best)


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
    if not features:
        return np.empty(0, np.int64), starts
    return np.concatenate([feature.offsets for feature in features]), starts
