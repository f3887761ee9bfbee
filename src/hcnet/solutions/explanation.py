"""A discrete solution: features, where they stand, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.objective import Counts, entropy_bits
from hcnet.solutions import kernels
from hcnet.solutions.canvas import Canvas

IntArray = NDArray[np.int64]
Value = TypeVar("Value")
NOWHERE: IntArray = np.empty((0, 4), np.int64)


class once(Generic[Value]):  # noqa: N801
    """A property that is worked out when it is first asked for.

    `functools.cached_property` does the same, but until Python 3.12 with one lock for all
    instances: of many threads one would work.
    """

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __get__(self, instance: Any, owner: type) -> Value:
        value = self._work_out(instance)
        instance.__dict__[self._work_out.__name__] = value  # is found first from now on
        return value


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

    @once
    def offsets(self) -> IntArray:
        """Flat padded pixels that it covers, from its position on."""
        return self.canvas.offsets(self.weights)

    @once
    def box(self) -> tuple[int, int, int, int]:
        """First and last row and column that it covers; of nothing, those of its window."""
        covered: BoolArray = np.any(self.weights, axis=0)
        rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
        if not len(rows):
            return 0, covered.shape[0] - 1, 0, covered.shape[1] - 1
        return int(rows[0]), int(rows[-1]), int(columns[0]), int(columns[-1])

    @once
    def tiles(self) -> Tiles:
        """The positions where it fits the image at all, by where they are."""
        canvas = self.canvas
        _, _, hs, ws, h, w, n_images = canvas.geometry
        found = Candidates(*_room(n_images * hs * ws))
        n = kernels.find_candidates(
            canvas.sign.reshape(-1), self.offsets, canvas.geometry, self.ratio, found
        )
        ordered = Candidates(*_room(n))
        begin = np.empty(n_images * -(-hs // h) * -(-ws // w) + 1, np.int64)
        positions, fits = found.positions[:n], found.fits[:n]
        kernels.tile_candidates(positions, fits, canvas.geometry, ordered, begin)
        filled = begin[1:] > begin[:-1]
        best = np.zeros(len(filled))
        best[filled] = ordered.fits[begin[:-1][filled]]
        return Tiles(ordered, begin, best)

    @property
    def candidates(self) -> Candidates:
        """The same without the tiles."""
        return self.tiles.candidates


def _room(n: int) -> tuple[IntArray, NDArray[np.float64]]:
    return np.empty(n, np.int64), np.empty(n)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Features, their placements (rows: image, feature, r, c), and what that costs."""

    features: tuple[Feature, ...]
    placements: IntArray
    cover: NDArray[np.int16]  # flat padded pixels
    counts: Counts
    bits: float

    @once
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
    if not features:
        return np.empty(0, np.int64), starts
    return np.concatenate([feature.offsets for feature in features]), starts
