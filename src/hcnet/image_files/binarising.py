"""Grey images as on and off pixels: the threshold, and which side of it is the ink."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.checks import check_choice
from hcnet.images import BoolArray
from hcnet.names import INKS

OTSU = "otsu"
# Bins of the histogram in which the threshold is searched: the shades of an 8-bit image.
BINS = 256
# A page whose dark and bright pixels differ by less than this share of the whole range is blank:
# a threshold would only split the grain of the paper.
LEAST_CONTRAST = 0.1
# Larger numbers are no shades, and sums of them overflow.
MOST_SHADE = 1e30


@dataclass(frozen=True, eq=False)
class Binarised:
    """The bright and the missing pixels of an image."""

    bright: BoolArray  # in the shape of the image
    missing: BoolArray  # NaN
    threshold: float | None  # None: the image has at most two values
    binary: bool  # the image holds 0 and 1 only, and bright pixels are on
    grey: float = 0.0  # share of pixels that are neither dark nor bright

    def on(self, dark: bool) -> BoolArray:
        """The pixels of ink, which is dark or bright."""
        return (self.bright ^ dark) & ~self.missing


def otsu_threshold(shades: NDArray[Any]) -> float:
    """Otsu's threshold, which maximises the variance between dark and bright pixels.

    Pixels above it are bright.  Of several equally good thresholds it is the middle.
    """
    shades = check_shades(shades)
    low, high = float(shades.min()), float(shades.max())
    if low == high:
        return low
    start, span = 0.0, 1.0
    if shades.dtype.kind == "f":  # which may be too close to each other for bins between them
        start, span = low, high - low
        shades, low, high = (np.asarray(shades, float) - start) / span, 0.0, 1.0
    counts, edges = np.histogram(shades, BINS, (low, high))
    middles = (edges[:-1] + edges[1:]) / 2
    # Neither is 0, because the darkest shade is in the first bin and the brightest in the last.
    below = counts.cumsum()[:-1].astype(float)
    above = counts.sum() - below
    sums = (counts * middles).cumsum()
    between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    best = np.flatnonzero(between >= between.max() * (1 - 1e-12))
    cut = (edges[best[0] + 1] + edges[best[-1] + 1]) / 2
    # The brightest shade is above it, also if rounding says otherwise.
    return float(min(start + cut * span, np.nextafter(start + high * span, -np.inf)))


def check_shades(shades: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers of which sums can be taken; NaN is a missing pixel."""
    shades = np.asarray(shades)
    if shades.dtype.kind not in "biuf" or not shades.ndim or not shades.size:
        raise ValueError(
            f"shades must be an array of numbers or booleans, got dtype {shades.dtype} of shape "
            f"{shades.shape}; pass the pixels of an image."
        )
    if shades.dtype.kind != "f":
        return shades
    if shades.dtype.itemsize not in (4, 8):  # half precision has no room for sums
        shades = shades.astype(float)
    if (np.abs(shades) > MOST_SHADE).any():  # infinity, too
        raise ValueError(
            f"shades must lie from {-MOST_SHADE:g} to {MOST_SHADE:g}, or be NaN where a pixel is "
            f"missing, got others; replace them."
        )
    return shades


def split_shades(
    shades: NDArray[Any], threshold: float | str = OTSU, white: float | None = None
) -> Binarised:
    """The bright pixels of an image, above Otsu's threshold or a given one.

    `white` is the brightest possible shade.  It decides whether a page of one shade is bright, and
    whether a page of little contrast is blank.
    """
    missing = np.isnan(shades) if shades.dtype.kind == "f" else np.zeros(shades.shape, bool)
    known = shades[~missing]
    if not known.size:
        return Binarised(np.zeros(shades.shape, bool), missing, None, True)
    low, high = float(known.min()), float(known.max())
    two_shades = bool(((known == low) | (known == high)).all())
    if two_shades and {low, high} <= {0.0, 1.0}:
        return Binarised(shades == 1, missing, None, True)
    if not isinstance(threshold, str):
        return Binarised(shades > threshold, missing, float(threshold), False)
    cut = otsu_threshold(known)
    if low == high or (white is not None and _contrast(known, cut) < LEAST_CONTRAST * white):
        middle = low if white is None else white / 2
        return Binarised(
            np.full(shades.shape, bool(known.mean(dtype=float) > middle)), missing, None, False
        )
    return Binarised(shades > cut, missing, None if two_shades else cut, False, _grey(known, cut))


def _grey(known: NDArray[Any], threshold: float) -> float:
    """Share of pixels in the middle half between the mean of the dark and that of the bright."""
    bright = known > threshold
    low, high = (float(known[side].mean(dtype=float)) for side in (~bright, bright))
    quarter = (high - low) / 4
    return float(((known > low + quarter) & (known < high - quarter)).mean())


def _contrast(known: NDArray[Any], threshold: float) -> float:
    bright = known > threshold
    if bright.all() or not bright.any():
        return 0.0
    return float(known[bright].mean(dtype=float) - known[~bright].mean(dtype=float))


def ink_is_dark(cut: list[Binarised], ink: str = "auto") -> bool:
    """Whether dark pixels are on; "auto": the rarer side of all images together is the ink.

    In arrays of 0 and 1 the ones are on.
    """
    if check_choice("ink", ink, INKS) != "auto":
        return ink == "dark"
    if all(one.binary for one in cut):
        return False
    bright = sum(int((one.bright & ~one.missing).sum()) for one in cut)
    return 2 * bright > sum(int((~one.missing).sum()) for one in cut)


def binarise(shades: NDArray[Any], threshold: float | str = OTSU, ink: str = "auto") -> BoolArray:
    """One grey image as on and off pixels.

    Args:
        shades: an array of numbers, of any range.
        threshold: "otsu", or the shade above which a pixel is bright.
        ink: whether "bright" or "dark" pixels are on; "auto": whichever are rarer.

    """
    cut = split_shades(check_shades(shades), check_threshold(threshold))
    return cut.on(ink_is_dark([cut], ink))


def check_threshold(threshold: float | str) -> float | str:
    """The word "otsu", or a number."""
    if isinstance(threshold, str) and threshold == OTSU:
        return OTSU
    try:
        found = float(threshold)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if math.isnan(found):
        raise ValueError(
            f"threshold must be 'otsu' or a number (the shade above which pixels are bright), got "
            f"{threshold!r}."
        )
    return found
