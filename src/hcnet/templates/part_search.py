"""The search for parts: explain all images by the parts, fit the parts, and repeat.

Both steps lower the same cost: 1 for every pixel that is left unexplained, `LACKING` for every
element of a part that finds no pixel to explain, `PLACEMENT` for every placement and `WEIGHT` for
every element of a part.  Each element moves within its pool by itself, so that several may explain
the same pixel.  These hard assignments suit drawings and handwriting, in which no part ever repeats
exactly; message passing needs parts that do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement
from hcnet.hierarchy.convolution import elements
from hcnet.hierarchy.network import Level
from hcnet.images import BoolArray, Images
from hcnet.templates.template_kernels import explain_all, fit_all

IntArray = NDArray[np.int64]

# Costs, in unexplained elements; chosen on digits: benchmarks/NOTES.md.
LACKING = 1.5
PLACEMENT = 1.0
WEIGHT = 2.0
# The name of the objective: minus these costs, summed.
FIGURE = "minus the matching cost"
# A part that is placed less often starts anew from a window of an image.
LEAST_USE = 3
# Most placements in one image.
MOST_PARTS = 64


@dataclass(frozen=True, eq=False)
class Placements:
    """The placements that explain the images."""

    places: list[IntArray]  # per image (placements, 3): part, row and column
    left: IntArray  # per image, the number of unexplained pixels


class PartImages:
    """Images as the search needs them: pixels to explain, and elements of R that find none."""

    def __init__(self, level: Level, images: Images) -> None:
        self.level = level
        self.on = np.ascontiguousarray(images.pixels & images.observed)
        # An unobserved pixel may be on, so that nothing is lacking there.
        self.lacks = ~_pooled(level, images.pixels | ~images.observed)

    def explain(self, W: BoolArray) -> Placements:
        """The placements of parts that explain each image."""
        pool, size = self.level.pool, self.level.features.placement_size
        found = np.zeros((len(self.on), MOST_PARTS, 3), np.int64)
        n, left = np.zeros((2, len(self.on)), np.int64)
        parts = _elements(W), _reach(W, pool.window), size, pool.offset
        costs = np.float32(LACKING), np.float32(PLACEMENT)
        explain_all(len(self.on), self.on, self.lacks, *parts, costs, found, n, left)
        return Placements([places[:k] for places, k in zip(found, n, strict=True)], left)

    def fit(self, W: BoolArray, found: Placements) -> BoolArray:
        """Parts that fit better where they are placed; parts that are hardly used become empty."""
        maps = np.repeat(np.arange(len(self.on)), [len(places) for places in found.places])
        part, r, c = np.concatenate(found.places).T
        use = np.bincount(part, minlength=len(W))
        order = np.argsort(part, kind="stable")
        places = np.stack([maps, r, c], axis=1)[order]
        start = np.concatenate([[0], np.cumsum(use)])
        new, pool = W.copy(), self.level.pool
        costs = np.float32(LACKING), np.float32(WEIGHT)
        fit_all(len(new), self.on, self.lacks, start, places, pool.window, pool.offset, costs, new)
        new[use < LEAST_USE] = False
        return new

    def piece(self, left: IntArray, rng: np.random.Generator) -> BoolArray:
        """A window of an image to start a part from, drawn by the number of unexplained pixels."""
        level = self.level
        p = (left + 1e-9) * self.on.any(axis=(1, 2, 3))
        n = rng.choice(len(p), p=p / p.sum())
        _, y, x = rng.permutation(np.argwhere(self.on[n]))[0]
        h, w = level.features.feature_size
        top, left_edge = centre(level)
        rows, columns = level.features.placement_size
        r = int(np.clip(y - top - h // 2, 0, rows - 1))
        c = int(np.clip(x - left_edge - w // 2, 0, columns - 1))
        piece = self.on[n, :, r + top : r + top + h, c + left_edge : c + left_edge + w]
        return np.asarray(piece)

    def cost(self, W: BoolArray, found: Placements) -> float:
        """The cost of all images with these parts."""
        total = WEIGHT * int(W.sum()) + int(found.left.sum())
        start, a, i, j = _elements(W)
        for n, places in enumerate(found.places):
            total += PLACEMENT * len(places)
            for f, r, c in places:
                own = slice(start[f], start[f + 1])
                total += LACKING * int(self.lacks[n, a[own], r + i[own], c + j[own]].sum())
        return float(total)


class PartSearch(Stateful):
    """A process for the driver: one round of explaining and fitting per step.

    Parts that are given stay as they are; they are only placed.
    """

    def __init__(
        self, level: Level, images: Images, rng: np.random.Generator, given: BoolArray | None = None
    ) -> None:
        self._images, self._rng, self._fixed = PartImages(level, images), rng, given is not None
        everything = self._images.on.sum(axis=(1, 2, 3))
        shape = level.weight_shape
        self.W = np.zeros(shape, bool) if given is None else given
        if given is None and everything.any():
            self.W = np.array([self._images.piece(everything, rng) for _ in range(shape[0])])
        # No part is placed yet: to explain the images takes time, and belongs to the first step.
        nowhere = [np.zeros((0, 3), np.int64) for _ in everything]
        self.found, self._placed = Placements(nowhere, everything), False
        self._cost = self._images.cost(self.W, self.found)
        self._changed = 0

    def step(self) -> bool:
        """Fit the parts to their placements, and explain the images by them."""
        if not self._placed:
            self.found, self._placed = self._images.explain(self.W), True
        if self._fixed:
            self._cost = self._images.cost(self.W, self.found)
            return False
        new = self._images.fit(self.W, self.found)
        if self.found.left.any():
            for f in np.flatnonzero(~new.any(axis=(1, 2, 3))):
                new[f] = self._images.piece(self.found.left, self._rng)
        self._changed = int((new != self.W).sum())
        self.W, self.found = new, self._images.explain(new)
        self._cost = self._images.cost(self.W, self.found)
        return self._changed > 0

    def measure(self) -> Measurement:
        """Minus the cost: the higher, the better."""
        left = self.found.left.sum() / max(int(self._images.on.sum()), 1)
        note = f"{left:.1%} unexplained"
        return Measurement(-self._cost, self._changed, note=note, figure=FIGURE)

    def state(self) -> tuple[BoolArray, Placements]:
        """The parts and their placements."""
        return self.W, self.found

    def saved_fields(self, finished: bool) -> Fields:
        """The parts: placements and cost follow from them."""
        return {
            "_rng": kinds.generator(),
            "_changed": kinds.whole_number(),
            "W": kinds.constant(self.W) if finished else kinds.binary_array(self.W.shape),
        }

    @property
    def saved_best(self) -> Kind:
        """The parts and their placements."""
        parts = kinds.binary_array(self.W.shape)
        return kinds.converted(parts, lambda best: best[0], lambda W: (W, self._images.explain(W)))

    def after_restore(self, finished: bool) -> None:
        """Work out placements and cost."""
        if not finished:
            self.found, self._placed = self._images.explain(self.W), True
            self._cost = self._images.cost(self.W, self.found)


def centre(level: Level) -> tuple[int, int]:
    """Offset from R[r, c] to the element below it in the middle of its window."""
    (h, w), (top, left) = level.pool.window, level.pool.offset
    return (h - 1) // 2 - top, (w - 1) // 2 - left


def _pooled(level: Level, on: BoolArray) -> BoolArray:
    """Whether an element of R has a pixel that is on in its window."""
    (h, w), (top, left) = level.pool.window, level.pool.offset
    rows, columns = level.pool.size
    # The filter centres windows its own way: shift them so that they begin where ours do.
    origin = (0, 0, -(h // 2), -(w // 2))
    padded = np.pad(on, ((0, 0), (0, 0), (top, h), (left, w)))
    ours = maximum_filter(padded, size=(1, 1, h, w), origin=origin, mode="constant")
    return np.ascontiguousarray(ours[:, :, :rows, :columns])


def _elements(W: BoolArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The weights that are on as lists: pointers per part, channels, rows, columns."""
    f, a, i, j = elements(W)
    return np.searchsorted(f, np.arange(len(W) + 1)), a, i, j


def _reach(
    W: BoolArray, window: tuple[int, int]
) -> tuple[IntArray, IntArray, IntArray, IntArray, BoolArray]:
    """Pixels that the parts can explain, as lists and as an array.

    The lists are pointers per channel, parts, rows and columns.
    """
    F, channels, h, w = W.shape
    wide = np.zeros((F, channels, h + window[0] - 1, w + window[1] - 1), bool)
    for i, j in np.ndindex(*window):
        wide[:, :, i : i + h, j : j + w] |= W
    a, f, i, j = elements(wide.transpose(1, 0, 2, 3))
    return np.searchsorted(a, np.arange(channels + 1)), f, i, j, wide
