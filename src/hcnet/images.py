"""Binary images with missing pixels, the evidence that they give, and facts about pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.grid import FLOAT, on_grid

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Noise:
    """The noisy channel between R and X: p01 = P(X=0 | R=1), p10 = P(X=1 | R=0)."""

    p01: float
    p10: float

    @property
    def k1(self) -> float:
        """Log-odds of R given that the pixel is on."""
        return float(np.log1p(-self.p01) - np.log(self.p10))

    @property
    def k0(self) -> float:
        """Log-odds of R given that the pixel is off (negative)."""
        return float(np.log(self.p01) - np.log1p(-self.p10))


@dataclass(frozen=True, slots=True)
class Resolution:
    """Pixels per unit of length, as a TIFF file has them: fractions of whole numbers."""

    x: tuple[int, int]  # numerator and denominator
    y: tuple[int, int]
    unit: str = "inch"  # "none", "inch" or "centimetre"


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What a file says about a page beside its pixels."""

    file: str = ""  # name of the file that the page comes from, without its folder
    name: str = ""  # of the page, as TIFF files have it
    same_file: bool = False  # whether the page before this one comes from the same file
    min_is_white: bool = True  # whether the file has 0 for white, or for black
    resolution: Resolution | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """A batch of binary images; both arrays have shape (images, channels, height, width)."""

    pixels: BoolArray
    observed: BoolArray

    def __getitem__(self, rows: Any) -> Images:
        """Some of the images."""
        return Images(self.pixels[rows], self.observed[rows])

    def arrays(self) -> tuple[BoolArray, ...]:
        """All that there is to it."""
        return self.pixels, self.observed

    @property
    def n_images(self) -> int:
        """Number of images."""
        return int(self.pixels.shape[0])

    @property
    def n_channels(self) -> int:
        """Number of channels, the paper's F_X."""
        return int(self.pixels.shape[1])

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.pixels.shape[2]), int(self.pixels.shape[3])

    @property
    def n_observed(self) -> int:
        """Number of observed pixels."""
        return int(self.observed.sum())

    def evidence(self, noise: Noise) -> FloatArray:
        """Log-odds per pixel that R is on; exactly 0 where the pixel is not observed."""
        return self._evidence(FLOAT(noise.k1), FLOAT(noise.k0))

    def evidence_on_grid(self, noise: Noise) -> FloatArray:
        """The same for message passing: multiples of a step, so that sums are exact."""
        return self._evidence(*on_grid([noise.k1, noise.k0]))

    def _evidence(self, on: np.float32, off: np.float32) -> FloatArray:
        return np.where(self.observed, np.where(self.pixels, on, off), FLOAT(0))


def part_boxes(parts: BoolArray) -> NDArray[np.int64]:
    """Box of the on pixels of each part (parts, channels, height, width) in its window.

    Rows of top, left, bottom and right, the last two exclusive; all 0 for a part without pixels.
    """
    edges = []
    for axis in (3, 2):  # rows, then columns
        on = np.asarray(parts.any(axis=(1, axis)))
        first, beyond = on.argmax(axis=1), on.shape[1] - on[:, ::-1].argmax(axis=1)
        edges.append(np.where(on.any(axis=1), [first, beyond], 0))
    (top, bottom), (left, right) = edges
    return np.stack([top, left, bottom, right], axis=1).astype(np.int64)
