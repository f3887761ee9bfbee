"""A lossless codec for bilevel pages, which stands on soft parts."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hcnet.codec.reading import MAX_PIXELS, Reader
from hcnet.codec.writing import GROUP, Progress, Writer
from hcnet.images import BoolArray, PageInfo, Resolution
from hcnet.memory import check_memory

__all__ = ["PageInfo", "Reader", "Resolution", "Writer", "compress", "decompress"]


def compress(
    images: ArrayLike | Iterable[ArrayLike],
    *,
    fast: bool = False,
    verify: bool = True,
    group: int = GROUP,
    progress: Progress | None = None,
) -> bytes:
    """Compress pages without loss.

    Parameters
    ----------
    images : array or iterable of arrays
        One page of shape (height, width), or several, which may differ in size: zeros and ones, of
        which ones are ink.
    fast, verify, group, progress
        As in `Writer`.

    Returns
    -------
    bytes
        What `decompress` and `Reader` read; written to a file, what ``hcnet decompress`` reads.

    """
    target = io.BytesIO()
    with Writer(target, fast=fast, verify=verify, group=group, progress=progress) as writer:
        for page in _pages(images):
            writer.add(page)
    return target.getvalue()


def _pages(images: Any) -> Iterable[ArrayLike]:
    """One page, as an array or as rows of numbers, or several pages."""
    several = isinstance(images, np.ndarray | Iterable)
    if not several or isinstance(images, str | bytes | os.PathLike):
        raise TypeError(
            f"images must be an array or several, got {images!r}; read files with the command "
            f"hcnet compress, or with hcnet.image_files."
        )
    if isinstance(images, np.ndarray):
        return [images] if images.ndim == 2 else iter(images)
    inside = images
    for _ in range(2):  # numbers in rows are one page
        inside = inside[0] if isinstance(inside, list | tuple) and inside else None
    return [images] if isinstance(inside, int | float | np.generic) else iter(images)


def decompress(data: bytes, *, max_pixels: int = MAX_PIXELS) -> list[BoolArray]:
    """The pages that `compress` got, as boolean arrays.

    Parameters
    ----------
    data : bytes
        What `compress` returned, or the content of a file.
    max_pixels : int
        The largest page that is decoded.  All pages together must fit into memory.

    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(
            f"data must be bytes, got {type(data).__name__}; for a file use hcnet.codec.Reader."
        )
    reader = Reader(io.BytesIO(data), max_pixels=max_pixels)
    pixels = sum(map(reader.pixels, range(len(reader))))
    check_memory("All pages of the data", pixels, None, "read them one by one with a Reader")
    return list(reader)
