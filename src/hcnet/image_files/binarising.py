"""From shades of grey to on and off: where to cut, and which side is the ink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray

Ink = Literal["auto", "bright", "dark"]
INKS: tuple[str, ...] = get_args(Ink)
OTSU = "otsu"

# Steps of the histogram that the threshold is looked for in: the shades of an 8-bit image.
BINS = 256
# A page whose dark and bright half differ by less than this share of the whole range is blank:
# cutting it would only split the grain of the paper.
LEAST_CONTRAST = 0.1


@dataclass(frozen=True, eq=False)
class Halves:
    """An image cut in two at a threshold."""

    bright: BoolArray  # in the shape of the image
    missing: BoolArray  # NaN
    threshold: float | None  # None: it had two values at most, and needed none
    binary: bool  # whether it held 0 and 1, so that bright pixels are those that are on


def otsu_threshold(shades: NDArray[Any]) -> float:
    """Otsu's threshold: the two sides of it differ most, measured by the variance between them.

    Pixels above it are bright.  Where several are as good, the middle of them.
    """
    low, high = float(shades.min()), float(shades.max())
    if low == high:
        return low
    counts, edges = np.histogram(shades, BINS, (low, high))
    middles = (edges[:-1] + edges[1:]) / 2
    below = counts.cumsum()[:-1].astype(float)
    above = counts.sum() - below
    sums = (counts * middles).cumsum()
    between = np.zeros(BINS - 1)
    both = (below > 0) & (above > 0)
    means = sums[:-1][both] / below[both], (sums[-1] - sums[:-1][both]) / above[both]
    between[both] = below[both] * above[both] * (means[0] - means[1]) ** 2
    best = np.flatnonzero(between >= between.max() * (1 - 1e-12))
    return float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)


def halves(
    shades: NDArray[Any], threshold: float | str = OTSU, white: float | None = None
) -> Halves:
    """Cut an image into bright and dark, at Otsu's threshold or at a given one.

    `white` is the brightest shade that there can be: it tells what is bright where all pixels are
    alike, and how little contrast means that a page is blank.
    """
    missing = np.isnan(shades) if shades.dtype.kind == "f" else np.zeros(shades.shape, bool)
    known = shades[~missing]
    if not known.size:
        return Halves(np.zeros(shades.shape, bool), missing, None, True)
    low, high = float(known.min()), float(known.max())
    if {low, high} <= {0.0, 1.0} and ((known == low) | (known == high)).all():
        return Halves(shades == 1, missing, None, True)
    if not isinstance(threshold, str):
        return Halves(shades > threshold, missing, float(threshold), False)
    cut = otsu_threshold(known)
    if low == high or (white is not None and _contrast(known, cut) < LEAST_CONTRAST * white):
        middle = low if white is None else white / 2
        return Halves(np.full(shades.shape, bool(known.mean() > middle)), missing, None, False)
    two = bool(((known == low) | (known == high)).all())
    return Halves(shades > cut, missing, None if two else cut, False)


def _contrast(known: NDArray[Any], threshold: float) -> float:
    bright = known > threshold
    return float(known[bright].mean() - known[~bright].mean()) if 0 < bright.mean() < 1 else 0.0


def ink_is_dark(cut: list[Halves], ink: str = "auto") -> bool:
    """Whether dark pixels are on; "auto": the rarer side of all images together is the ink.

    Arrays of 0 and 1 mean what they say.
    """
    if ink not in INKS:
        raise ValueError(f"ink must be one of {', '.join(map(repr, INKS))}, got {ink!r}.")
    if ink != "auto":
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
    array = np.asarray(shades)
    cut = halves(array, check_threshold(threshold))
    return (cut.bright ^ ink_is_dark([cut], ink)) & ~cut.missing


def check_threshold(threshold: float | str) -> float | str:
    """The word "otsu", or a number."""
    if threshold == OTSU:
        return OTSU
    try:
        return float(threshold)
    except (TypeError, ValueError):
        raise ValueError(
            f"threshold must be 'otsu' or a number (the shade above which pixels are bright), got "
            f"{threshold!r}."
        ) from None
