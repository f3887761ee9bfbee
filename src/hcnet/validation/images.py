"""Checks on images, masks, codes, and streams of images.

A message says what was expected, what came, and what to do.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hcnet.checks import as_array, as_numbers, check_count, check_optional_count, check_share
from hcnet.images import BoolArray, Images
from hcnet.online.stream import Reading


@dataclass(frozen=True, slots=True)
class ImageInput:
    """Checked images, and how to give results back in the shape that came in."""

    images: Images
    shape: tuple[int, ...]

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """(images, channels, height, width) back to the shape that came in."""
        return values.reshape(self.shape)


def check_images(X: ArrayLike, mask: ArrayLike | None = None, warn: bool = True) -> ImageInput:
    """Images as (height, width), (n, height, width) or (n, channels, height, width).

    NaN is missing; without a mask there is a warning about it, unless `warn` is False.
    """
    refuse_paths(X, "hcnet.image_files.read_images(X).X, which also makes it 0 and 1")
    if sparse.issparse(X):
        raise TypeError(
            "Sparse input is not supported, because images are arrays of pixels; pass a dense "
            "array, for example X.toarray() reshaped to (images, height, width)."
        )
    hint = "pad or cut all images to the same size, and mark what was padded in the mask"
    array = as_array("X", X, hint)
    if array.dtype == object or array.dtype.kind in "USmMV":
        raise TypeError(
            f"X must be an array of numbers or booleans, got dtype {array.dtype}; say which values "
            f"are on, for example with X == 'yes'."
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
    missing = _check_values(array, mask, warn)
    pixels = np.zeros(array.shape, bool)
    np.greater(array, 0.5, out=pixels, where=~missing)
    four = {2: (1, 1), 3: (len(array), 1), 4: array.shape[:2]}[array.ndim]
    shape = (*four, *array.shape[-2:])
    return ImageInput(Images(pixels.reshape(shape), ~missing.reshape(shape)), array.shape)


def refuse_paths(X: Any, how: str) -> None:
    """An error if files are named where what is in them is meant; `how` it can be read."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    if isinstance(first, str | os.PathLike):
        what = "paths of files" if first is not X else f"the path {first!r}"
        raise TypeError(
            f"X must be an array, got {what}; read what is in there first, for example with {how}."
        )


def _check_values(array: NDArray[Any], mask: ArrayLike | None, warn: bool) -> BoolArray:
    """The missing entries; an error unless all others are 0 or 1."""
    missing = np.zeros(array.shape, bool) if mask is None else check_mask(mask, array.shape)
    if array.dtype.kind == "f":
        nan = np.isnan(array)
        if warn and mask is None and nan.any():
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
        # Ink is rarer than paper, and in most pictures dark.
        side, other = ("<", ">") if 2 * (finite > middle).sum() > finite.size else (">", "<")
        raise ValueError(
            f"X must hold only 0 and 1, got values such as {odd[0]:g} ({odd.size} of {known.size} "
            f"entries are neither; inf and NaN count as such); binarise first: X {side} {middle:g} "
            f"if what is rarer here is on, else X {other} {middle:g}, or let "
            f"hcnet.image_files.binarise(X) find the threshold{colours_hint(array.shape)}."
        )
    if known.size == 0:
        raise ValueError(
            "Every entry of X is missing, so there is nothing to learn from; the mask must be "
            "False where an entry is observed."
        )
    return missing


def colours_hint(shape: Sequence[int]) -> str:
    """A remedy if the last axis of images seems to hold colours; otherwise nothing."""
    if shape[-1] not in (3, 4):
        return ""
    return (
        f"; if the {shape[-1]} of the last axis are colours, they must come before height and "
        f"width: np.moveaxis(X, -1, -3), and [None] after it for one image"
    )


def check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """A boolean mask (True: missing) of the shape of the data."""
    array = as_array("mask", mask, "give one value per pixel")
    # Other kinds, dates for example, cannot even be compared with numbers.
    if array.dtype.kind not in "biufO" or not np.isin(array, (0, 1)).all():
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


def check_binary(
    name: str, value: ArrayLike, shape: str | tuple[int, ...], least: int = 1
) -> BoolArray:
    """Zeros and ones of a shape, or with axes of these names; `least` is the smallest length."""
    array = as_array(name, value)
    if isinstance(shape, str):
        fits = array.ndim == len(shape.split(", ")) and len(array) >= least
        fits, wanted = fits and 0 not in array.shape[1:], f"({shape})"
    else:
        fits, wanted = array.shape == shape, str(shape)
    if not fits or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"{name} must be zeros and ones of shape {wanted}, got dtype {array.dtype} and shape "
            f"{array.shape}; see features_, weights_ and denoise of a fitted model."
        )
    return np.ascontiguousarray(array, bool)


def check_counts(counts: ArrayLike, n: int) -> NDArray[np.int64]:
    """The number of placements of each of `n` features."""
    array = as_array("counts", counts)
    if array.shape != (n,) or array.dtype.kind not in "iu" or (array < 0).any():
        raise ValueError(
            f"counts must hold a whole number of at least 0 for each of the {n} features, got "
            f"dtype {array.dtype} and shape {array.shape}; leave it None for none."
        )
    return array.astype(np.int64)


def check_placements(placements: ArrayLike) -> NDArray[np.int64]:
    """Rows of image, feature, row and column."""
    rows = as_numbers("placements", placements)
    if rows.size == 0:
        return np.zeros((0, 4), np.int64)
    # No image is so large, and sums of such numbers are still exact.
    whole = bool(((np.abs(rows) <= 2**31) & (rows == np.rint(rows))).all())
    if rows.ndim != 2 or rows.shape[1] != 4 or not whole:
        raise ValueError(
            f"placements must be rows of four whole numbers (image, feature, row, column), got "
            f"shape {rows.shape}; pass the result of FeatureLearner.placements."
        )
    return rows.astype(np.int64)


def check_codes(codes: ArrayLike | sparse.sparray) -> sparse.csr_array:
    """Codes, dense or sparse: zeros and ones, a row per image."""
    array: Any = codes if sparse.issparse(codes) else as_array("codes", codes)
    if array.ndim != 2:
        raise ValueError(
            f"codes must be a table with a row per image, got shape {array.shape}; for one image "
            f"reshape them to (1, {array.size})."
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"codes must hold numbers or booleans, got dtype {array.dtype}; pass what transform "
            f"returns."
        )
    table = sparse.csr_array(array)
    if not np.isin(table.data, (0, 1)).all():
        raise ValueError(
            "codes must hold only 0 and 1, and there are other values; pass what transform "
            "returns, or decide first, for example codes > 0.5."
        )
    return table


def stream_items(source: Any) -> Iterator[Any]:
    """The items of a stream: of an array its images, otherwise what iteration gives."""
    if isinstance(source, str | os.PathLike):
        raise TypeError(
            f"The source of a stream must be an array or yield images, got the path {source!r}; "
            f"pass hcnet.image_files.stream_images(path) for a folder of image files, or "
            f"np.load(path, mmap_mode='r') for a .npy file."
        )
    if isinstance(source, np.ndarray) and source.ndim:
        if source.ndim == 2:
            return iter([source])
        return (source[k : k + 1] for k in range(len(source)))
    if not isinstance(source, Iterable) or isinstance(source, np.ndarray):
        raise TypeError(
            f"The source of a stream must be an array or yield images, got "
            f"{type(source).__name__}; pass for example a list of arrays, or a generator."
        )
    return iter(source)


def check_reading(batch_size: int, epochs: int | None, forgetting: float) -> Reading:
    """How a stream is read."""
    return Reading(
        check_count("batch_size", batch_size),
        check_optional_count("epochs", epochs, 1, "to read the stream once, in its order"),
        check_share("forgetting", forgetting),
    )


def stream_length(source: Any) -> int | None:
    """Images of a stream, where that can be known."""
    if not isinstance(source, np.ndarray) or source.ndim == 0:
        return None
    return 1 if source.ndim == 2 else len(source)


@contextmanager
def in_item(number: int) -> Iterator[None]:
    """Errors within this block say which item of a stream they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Item {number} of the stream: {error}") from None


def check_stream(source: Any, pairs: bool = False) -> Iterator[tuple[Images, ArrayLike | None]]:
    """Images and labels of all items of a stream, checked as they come; images may differ in size.

    An item is one image or several, as in `check_images`, with NaN for missing pixels; with
    `pairs`, also a tuple of such images and their labels.
    """
    channels = None
    for number, item in enumerate(stream_items(source)):
        X, y = item if pairs and isinstance(item, tuple) and len(item) == 2 else (item, None)
        with in_item(number):
            images = check_images(X, warn=False).images
        channels = channels or images.n_channels
        if images.n_channels != channels:
            raise ValueError(
                f"Item {number} of the stream has {images.n_channels} channels, those before it "
                f"have {channels}; pass images with {channels}."
            )
        yield images, y if y is None or np.ndim(y) else [y]
    if channels is None:
        raise ValueError("The stream holds no image; pass at least one.")
