"""Checks on streams of images, item by item."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hcnet.checks import check_count, check_optional_count
from hcnet.images import BoolArray, Images
from hcnet.online.minibatches import Reading
from hcnet.validation.images import check_images
from hcnet.validation.parameters import check_share


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


def _missing(item: Any) -> BoolArray | None:
    try:
        array = np.asarray(item)
    except ValueError:  # which `check_images` explains
        return None
    return np.isnan(array) if array.dtype.kind == "f" else None


def check_item(item: ArrayLike, number: int, channels: int | None) -> Images:
    """The images of one item of a stream: one (height, width) or several, as `check_images`.

    NaN is missing.  `channels` are those of the items before.
    """
    with in_item(number):
        images = check_images(item, _missing(item)).images
    if channels is not None and images.n_channels != channels:
        raise ValueError(
            f"Item {number} of the stream has {images.n_channels} channels, those before it have "
            f"{channels}; pass images with {channels}."
        )
    return images


def check_stream(source: Any) -> Iterator[Images]:
    """All items of a stream, checked as they come; images may differ in size."""
    channels = None
    for number, item in enumerate(stream_items(source)):
        images = check_item(item, number, channels)
        channels = images.n_channels
        yield images
