"""Every check on what users pass; nothing below this module checks again.

A message says what was expected, what came, and what to do.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.images import BoolArray, Images
from hcnet.learning.options import ALGORITHMS
from hcnet.learning.passing import ENGINES
from hcnet.objective import Priors


@dataclass(frozen=True, slots=True)
class ImageInput:
    """Checked images, and how to give results back in the shape that came in."""

    images: Images
    shape: tuple[int, ...]

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """(images, channels, height, width) back to the shape that came in."""
        return values.reshape(self.shape)


def check_images(X: ArrayLike, mask: ArrayLike | None = None) -> ImageInput:
    """Images as (height, width), (n, height, width) or (n, channels, height, width)."""
    if sparse.issparse(X):
        raise TypeError(
            "Sparse input is not supported, because images are arrays of pixels; pass a dense "
            "array, for example X.toarray() reshaped to (images, height, width)."
        )
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError(
            "X must be one array, but its parts differ in size; pad or cut all images to the same "
            "size, and mark what was padded in the mask."
        ) from None
    if array.dtype == object or array.dtype.kind in "USmM":
        raise TypeError(
            f"X must be an array of numbers or booleans, got dtype {array.dtype}; convert it, for "
            f"example with X.astype(bool)."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold only 0 and 1.")
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            f"X must have shape (height, width), (images, height, width) or (images, channels, "
            f"height, width), got {array.ndim} dimensions {array.shape}; Reshape your data, for "
            f"one image for example to (1, height, width)."
        )
    if array.size == 0:
        raise ValueError(
            f"X holds no pixel: 0 sample(s) or 0 feature(s) (shape={array.shape}) while a minimum "
            f"of 1 is required; pass at least one image of at least one pixel."
        )
    missing = _check_values(array, mask)
    pixels = np.zeros(array.shape, bool)
    np.greater(array, 0.5, out=pixels, where=~missing)
    four = {2: (1, 1), 3: (len(array), 1), 4: array.shape[:2]}[array.ndim]
    shape = (*four, *array.shape[-2:])
    return ImageInput(Images(pixels.reshape(shape), ~missing.reshape(shape)), array.shape)


def _check_values(array: NDArray[Any], mask: ArrayLike | None) -> BoolArray:
    """Which entries are missing; an error unless all the others are 0 or 1."""
    missing = np.zeros(array.shape, bool) if mask is None else check_mask(mask, array.shape)
    if array.dtype.kind == "f":
        nan = np.isnan(array)
        if mask is None and nan.any():
            warnings.warn(
                f"X holds {int(nan.sum())} NaN and no mask was given, so NaN is taken as missing; "
                f"pass mask=np.isnan(X) to say so.",
                UserWarning,
                stacklevel=4,
            )
        missing = missing | nan
    known = array[~missing]
    binary = (known == 0) | (known == 1)
    if not binary.all():
        odd = known[~binary]
        finite = known[np.isfinite(known)].astype(float)
        middle = (finite.min() + finite.max()) / 2 if finite.size else 0.5
        raise ValueError(
            f"X must hold only 0 and 1, got values such as {odd[0]:g} ({odd.size} of {known.size} "
            f"entries are neither; inf and NaN count as such); binarise first, for example X > "
            f"{middle:g}."
        )
    if known.size == 0:
        raise ValueError(
            "Every entry of X is missing, so there is nothing to learn from; the mask must be "
            "False where an entry is observed."
        )
    return missing


def check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """A boolean mask (True: missing) of the shape of the data."""
    array = np.asarray(mask)
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"mask must hold booleans (True: missing), got dtype {array.dtype} with other values "
            f"than 0 and 1; pass for example np.isnan(X)."
        )
    try:
        return np.broadcast_to(array.astype(bool), shape).copy()
    except ValueError:
        raise ValueError(
            f"mask must have the shape of X, {shape}, got {array.shape}; give one value per pixel."
        ) from None


def check_table(
    X: ArrayLike | sparse.sparray, mask: ArrayLike | None = None
) -> tuple[BoolArray, BoolArray]:
    """A 0/1 table, dense or sparse: its values and where they are observed."""
    array = X.toarray() if sparse.issparse(X) else np.asarray(X)  # type: ignore[union-attr]
    hidden = mask.toarray() if sparse.issparse(mask) else mask  # type: ignore[union-attr]
    if array.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (rows, columns), got {array.ndim} dimensions "
            f"{array.shape}; Reshape your data, for one row for example to (1, columns)."
        )
    images = check_images(array, hidden).images
    return images.pixels[0, 0], images.observed[0, 0]


def check_priors(estimator: Any) -> Priors:
    """The four probabilities of an estimator, each given or open."""
    names = ("p_S", "p_W", "p01", "p10")
    given = {name: check_probability(name, getattr(estimator, name)) for name in names}
    if (given["p01"] is None) != (given["p10"] is None):
        raise ValueError(
            f"p01 and p10 must be given together or not at all, got p01={estimator.p01!r} and "
            f"p10={estimator.p10!r}; for symmetric noise pass the same number twice."
        )
    return Priors(**given)


def check_feature_size(
    feature_size: int | Sequence[int], image_size: tuple[int, int], border: str
) -> tuple[int, int]:
    """Height and width of the features, not larger than the image."""
    pair: Any = feature_size
    if isinstance(feature_size, numbers.Integral):
        pair = (feature_size, feature_size)
    if (
        not isinstance(pair, Sequence | np.ndarray)
        or len(pair) != 2
        or not all(isinstance(k, numbers.Integral) and int(k) >= 1 for k in pair)
    ):
        raise ValueError(
            f"feature_size must be one positive whole number or two (height, width), got "
            f"{feature_size!r}."
        )
    h, w = int(pair[0]), int(pair[1])
    if h > image_size[0] or w > image_size[1]:
        raise ValueError(
            f"feature_size {h}×{w} is larger than the images, {image_size[0]}×{image_size[1]}; "
            f"choose a window at most as large as the image, about the size of one part."
        )
    if border not in ("full", "valid"):
        raise ValueError(
            f"border must be 'full' (parts may reach over the border) or 'valid', got {border!r}."
        )
    return h, w


def check_probability(name: str, value: float | None) -> float | None:
    """A probability strictly between 0 and 0.5, or None."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real) or not 0 < value < 0.5:
        hint = "noise of one half would carry no information"
        if name in ("p_S", "p_W"):
            hint = "placements and weights are rarer than not"
        raise ValueError(
            f"{name} must lie strictly between 0 and 0.5 ({hint}), got {value!r}; leave it None "
            f"to have it estimated."
        )
    return float(value)


def check_count(name: str, value: int | None, least: int, or_else: str) -> int | None:
    """A whole number of at least `least`, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(
            f"{name} must be a whole number of at least {least}, or {or_else}, got {value!r}."
        )
    return int(value)


def check_positive(name: str, value: float | None) -> float | None:
    """A positive number, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value > 0:
        raise ValueError(f"{name} must be a positive number, or None for no limit, got {value!r}.")
    return float(value)


def check_damping(value: float) -> float:
    """The share of a new message that is taken: 0 < damping <= 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value <= 1:
        raise ValueError(
            f"damping must be larger than 0 and at most 1 (1: messages are replaced), got "
            f"{value!r}."
        )
    return float(value)


def check_random_state(value: Any) -> np.random.Generator:
    """A random generator from a seed, a generator, or nothing."""
    if isinstance(value, np.random.RandomState):
        value = np.random.Generator(value._bit_generator)
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number of at least 0 or a "
            f"numpy.random.Generator, got {value!r}."
        ) from None


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """One of a few words."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")
    return value


def check_algorithm(value: str) -> str:
    """A learning algorithm."""
    return check_choice("algorithm", value, ALGORITHMS)


def check_schedule(value: str) -> str:
    """A schedule."""
    return check_choice("schedule", value, SCHEDULE_NAMES)


def check_engine(value: str) -> str:
    """An engine."""
    return check_choice("engine", value, tuple(ENGINES))
