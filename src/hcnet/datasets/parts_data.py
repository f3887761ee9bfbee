"""Images made of parts at random places, with the truth about which part is where."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray

IntArray: TypeAlias = NDArray[np.int64]

# A part at a corner: image, part, row, column.
Placement: TypeAlias = tuple[int, int, int, int]

# While there are many free corners, a random corner is soon one of them; after this many misses it
# is cheaper to list all free corners and draw one. Both draw uniformly from the free corners.
_RANDOM_TRIES = 30


@dataclass(frozen=True, slots=True, eq=False)
class PartsData:
    """Binary images and the parts that they are made of.

    Attributes:
        images: bool (N, C, H, W), what is observed.
        clean: bool (N, C, H, W), the same without noise: the OR of all placed parts.
        features: bool (F, C, h, w), the true parts, each centred in a common window (at row
            offset (h - part height) // 2, and likewise for columns). Parts that occur in no image
            are left out.
        placements: int64 (K, 4), columns image, feature, row, column. Row and column are those of
            the top-left corner of the part's *window*, which may be negative or let the window
            reach over the border; the ink itself is always inside the image. Rows are distinct.
        names: one name per feature, for example "A".

    """

    images: BoolArray
    clean: BoolArray
    features: BoolArray
    placements: IntArray
    names: tuple[str, ...]

    @property
    def feature_size(self) -> tuple[int, int]:
        """Height and width of the common window."""
        return int(self.features.shape[2]), int(self.features.shape[3])

    def render(self) -> BoolArray:
        """Rebuild `clean` from the features and their placements."""
        return render(self.features, self.placements, self.images.shape)


def assemble(
    parts: Mapping[str, BoolArray],
    placements: Sequence[Placement],
    shape: tuple[int, int, int],
    noise: float,
    rng: np.random.Generator,
) -> PartsData:
    """A data set from parts by name, each bool (h, w) cropped to its ink, and their corners.

    The shape is the number of images, their height and their width.
    """
    corners = np.array(placements, dtype=np.int64).reshape(-1, 4)
    used, renumbered = np.unique(corners[:, 1], return_inverse=True)
    names = tuple(list(parts)[index] for index in used)
    kept = [parts[name] for name in names]
    height = max(part.shape[0] for part in kept)
    width = max(part.shape[1] for part in kept)
    offsets = np.array([((height - h) // 2, (width - w) // 2) for h, w in (p.shape for p in kept)])
    features = np.zeros((len(kept), 1, height, width), dtype=bool)
    for feature, part, (row, column) in zip(features, kept, offsets, strict=True):
        feature[0, row : row + part.shape[0], column : column + part.shape[1]] = part
    corners[:, 1] = renumbered
    corners[:, 2:] -= offsets[renumbered]
    clean = render(features, corners, (shape[0], 1, *shape[1:]))
    return PartsData(flip_noise(clean, noise, rng), clean, features, corners, names)


def flip_noise(clean: BoolArray, noise: float, rng: np.random.Generator) -> BoolArray:
    """A copy in which each bit is flipped with probability `noise`."""
    return clean ^ (rng.random(clean.shape) < noise) if noise else clean.copy()


def render(features: BoolArray, placements: IntArray, shape: tuple[int, ...]) -> BoolArray:
    """The OR of all placed features; what reaches over the border is cut off."""
    canvas = np.zeros(shape, dtype=bool)
    for index, feature in enumerate(features):
        channel, row, column = np.nonzero(feature)
        placed = placements[placements[:, 1] == index]
        image, rows, columns, channels = np.broadcast_arrays(
            placed[:, :1], placed[:, 2:3] + row, placed[:, 3:4] + column, channel
        )
        inside = (rows >= 0) & (rows < shape[2]) & (columns >= 0) & (columns < shape[3])
        canvas[image[inside], channels[inside], rows[inside], columns[inside]] = True
    return canvas


def scatter(
    parts: Mapping[str, BoolArray],
    size: tuple[int, int],
    n_placements: int,
    rng: np.random.Generator,
    *,
    overlap: bool,
    balanced: bool = False,
) -> list[tuple[int, int, int]]:
    """Place parts, each bool (h, w), at random inside an image; fewer if no more fit.

    Parts are drawn at random, or taken in turn if `balanced`. Unless they may `overlap`, one blank
    pixel stays between their bounding boxes. The same part never lies twice at the same place.
    Returns (part, row, column) of the top-left corner of each placed part.
    """
    shapes = [(part.shape[0], part.shape[1]) for part in parts.values()]
    # Where the top-left corner of each part may still be.
    free = [np.ones((max(size[0] - h + 1, 0), max(size[1] - w + 1, 0)), bool) for h, w in shapes]
    # A part that once found no place never will again, because the image only fills up.
    fitting = [part for part, corners in enumerate(free) if corners.size]
    if not fitting:
        smallest = min(shapes, key=math.prod)
        raise ValueError(
            f"No part fits into an image of {size[0]} x {size[1]} pixels, since the smallest "
            f"measures {smallest[0]} x {smallest[1]}: pass a larger size or smaller parts."
        )
    placed: list[tuple[int, int, int]] = []
    while len(placed) < n_placements and fitting:
        turn = len(placed) if balanced else int(rng.integers(len(fitting)))
        part = fitting[turn % len(fitting)]
        corner = _draw_corner(free[part], rng)
        if corner is None:
            fitting.remove(part)
            continue
        row, column = corner
        placed.append((part, row, column))
        free[part][row, column] = False
        if not overlap:
            height, width = shapes[part]
            for (h, w), corners in zip(shapes, free, strict=True):
                rows = slice(max(row - h, 0), row + height + 1)
                corners[rows, max(column - w, 0) : column + width + 1] = False
    return placed


def _draw_corner(free: BoolArray, rng: np.random.Generator) -> tuple[int, int] | None:
    """A corner drawn uniformly from those that are free, or None."""
    for _ in range(_RANDOM_TRIES):
        row, column = int(rng.integers(free.shape[0])), int(rng.integers(free.shape[1]))
        if free[row, column]:
            return row, column
    corners = np.argwhere(free)
    if not len(corners):
        return None
    row, column = corners[int(rng.integers(len(corners)))].tolist()
    return row, column
