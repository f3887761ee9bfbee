"""Images made of parts, with the truth about which part is where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["PartsData", "assemble", "flip_noise"]

BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]

# A part at a corner: image, part, row, column.
Placement: TypeAlias = tuple[int, int, int, int]


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
        return _render(self.features, self.placements, self.images.shape)


def assemble(
    parts: Sequence[BoolArray],
    names: Sequence[str],
    placements: Iterable[Placement],
    *,
    n_images: int,
    size: tuple[int, int],
    noise: float,
    rng: np.random.Generator,
) -> PartsData:
    """Turn parts (each bool (h, w), cropped to its ink) and their corners into a data set."""
    corners = np.array(list(placements), dtype=np.int64).reshape(-1, 4)
    used, renumbered = np.unique(corners[:, 1], return_inverse=True)
    kept = [parts[index] for index in used]
    height = max(part.shape[0] for part in kept)
    width = max(part.shape[1] for part in kept)
    offsets = np.array([((height - h) // 2, (width - w) // 2) for h, w in (p.shape for p in kept)])
    features = np.zeros((len(kept), 1, height, width), dtype=bool)
    for feature, part, (row, column) in zip(features, kept, offsets, strict=True):
        feature[0, row : row + part.shape[0], column : column + part.shape[1]] = part
    corners[:, 1] = renumbered
    corners[:, 2:] -= offsets[renumbered]
    clean = _render(features, corners, (n_images, 1, *size))
    return PartsData(
        images=flip_noise(clean, noise, rng),
        clean=clean,
        features=features,
        placements=corners,
        names=tuple(names[index] for index in used),
    )


def flip_noise(clean: BoolArray, noise: float, rng: np.random.Generator) -> BoolArray:
    """A copy in which each bit is flipped with probability `noise`."""
    if noise == 0.0:
        return clean.copy()
    return clean ^ (rng.random(clean.shape) < noise)


def _render(features: BoolArray, placements: IntArray, shape: tuple[int, ...]) -> BoolArray:
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
