"""Image files as a set, or as a stream, of binary images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hcnet.image_files.binarising import (
    OTSU,
    Binarised,
    check_threshold,
    ink_is_dark,
    split_shades,
)
from hcnet.image_files.decoding import Page, count_pages, find_files, pages
from hcnet.images import BoolArray

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Binary images from files; smaller ones are padded with missing pixels."""

    X: BoolArray  # (images, channels, height, width)
    mask: BoolArray | None  # True where missing; None: nothing is
    files: list[Path]  # of every image
    pages: list[int]  # of every image, from 0 within its file
    sizes: list[tuple[int, int]]  # of every image: height and width before padding
    dark: bool  # whether dark pixels are on
    thresholds: list[float | None]  # of every image; None: it needed none

    def __len__(self) -> int:
        return len(self.X)

    @property
    def names(self) -> list[str]:
        """A name per image: its file, and the page where the file has several."""
        several = {file for file, page in zip(self.files, self.pages, strict=True) if page}
        return [
            f"{file.name}[{page}]" if file in several else file.name
            for file, page in zip(self.files, self.pages, strict=True)
        ]

    def own_size(self, images: BoolArray) -> list[BoolArray]:
        """Results of the shape of `X` cut back to the size of each image."""
        return [one[..., :h, :w] for one, (h, w) in zip(images, self.sizes, strict=True)]

    def with_mask(self, path: str | os.PathLike[str], of_more: bool = False) -> ImageSet:
        """A copy in which pixels that are bright, or 1, in a file are missing.

        The file holds one mask for all images, or one for each, of their size.  With `of_more`,
        this set is the beginning of a stream, and there may be more masks.
        """
        found = read_images(path, ink="bright", first=len(self) if of_more else None).X
        (height, width), (h, w) = self.X.shape[-2:], found.shape[-2:]
        if len(found) not in (1, len(self)) or (h, w) != (height, width):
            raise ValueError(
                f"{path} holds {len(found)} masks of {h}×{w} for {len(self)} images of {height}×"
                f"{width}; give one mask for all or one per image, of the same size."
            )
        missing = np.broadcast_to(found, self.X.shape).copy()
        return replace(self, mask=missing if self.mask is None else missing | self.mask)

    def summary(self) -> str:
        """Number and size of the images, threshold and ink, in a sentence or two."""
        n, files = len(self), len(set(self.files))
        low, high = min(self.sizes), max(self.sizes)
        size = f"{high[0]}×{high[1]}"
        if len(set(self.sizes)) > 1:
            size = f"{low[0]}×{low[1]} to {size}, padded"
        text = f"{n} image{'s' * (n != 1)} of {size} pixels from {files} file{'s' * (files != 1)}."
        cuts = [cut for cut in self.thresholds if cut is not None]
        if cuts:
            between = f"{cuts[0]:g}" if len(set(cuts)) == 1 else f"{min(cuts):g} to {max(cuts):g}"
            text += f" Pixels are bright above {between}."
        if self.dark:
            text += " Dark pixels are the ink (inverted)."
        return text


def read_images(
    paths: Paths,
    *,
    threshold: float | str = OTSU,
    ink: str = "auto",
    first: int | None = None,
) -> ImageSet:
    """Read image files, folders of them, ``.npy`` and ``.npz`` arrays as binary images.

    Args:
        paths: one or several; every page of a file is an image.
        threshold: "otsu", or the shade above which a pixel is bright.
        ink: whether "bright" or "dark" pixels are on; "auto": whichever are rarer, in all images
            together.
        first: the number of images to read; None reads all.

    Raises:
        FileNotFoundError: if a file is not there, or a folder holds no images.
        ValueError: if a file is damaged or enormous, or images differ in their channels.

    """
    at = check_threshold(threshold)
    found: list[Page] = []
    cut: list[Binarised] = []
    for page in islice(_all_pages(paths), first):
        cut.append(split_shades(page.shades, at, page.white))
        # Of the shades, one byte per pixel is enough from here on: most of a set may be scans.
        found.append(Page(page.path, page.number, np.empty(0), page.white))
    dark = ink_is_dark(cut, ink)
    planes = [_planes(one, dark) for one in cut]
    sizes = [(int(on.shape[1]), int(on.shape[2])) for on, _ in planes]
    channels = {len(on) for on, _ in planes}
    if len(channels) > 1:
        raise ValueError(
            f"The images have {' and '.join(map(str, sorted(channels)))} channels; pass images "
            f"that have the same number."
        )
    shape = len(planes), *channels, max(h for h, _ in sizes), max(w for _, w in sizes)
    X, missing = np.zeros(shape, bool), np.ones(shape, bool)
    for k, ((on, hidden), (h, w)) in enumerate(zip(planes, sizes, strict=True)):
        X[k, :, :h, :w], missing[k, :, :h, :w] = on, hidden
    return ImageSet(
        X=X,
        mask=missing if missing.any() else None,
        files=[page.path for page in found],
        pages=[page.number for page in found],
        sizes=sizes,
        dark=dark,
        thresholds=[one.threshold for one in cut],
    )


def stream_images(
    paths: Paths,
    *,
    threshold: float | str = OTSU,
    ink: str = "auto",
    mask: str | os.PathLike[str] | None = None,
) -> Iterator[NDArray[np.generic]]:
    """The same images one after the other, for more images than fit into memory.

    The first image decides which side is the ink.  Pixels are missing where the file `mask` is
    bright (one mask for all images, or one for each).  An image with missing pixels is an array of
    floats with NaN.
    """
    at, dark = check_threshold(threshold), None
    masks = None if mask is None else _stream_masks(mask, paths)
    for page in _all_pages(paths):
        one = split_shades(page.shades, at, page.white)
        if dark is None:
            dark = ink_is_dark([one], ink)
        on, hidden = _planes(one, dark)
        if masks is not None:
            hidden = hidden | _fitting_mask(next(masks), on, mask)
        yield np.where(hidden, np.nan, on)[None] if hidden.any() else on[None]


def files_of_images(paths: Paths) -> list[Path]:
    """The file of every image in reading order, without decoding the images."""
    return [file for file in _all_files(paths) for _ in range(count_pages(file))]


def _stream_masks(path: str | os.PathLike[str], images: Paths) -> Iterator[BoolArray]:
    """The mask of each image; a single mask is repeated."""
    n = len(files_of_images(path))
    masks = (np.asarray(mask[0], bool) for mask in stream_images(path, ink="bright"))
    if n == 1:
        return repeat(next(masks))
    wanted = len(files_of_images(images))
    if n != wanted:
        raise ValueError(
            f"{path} holds {n} masks for {wanted} images; give one mask for all or one per image."
        )
    return masks


def _fitting_mask(missing: BoolArray, on: BoolArray, path: object) -> BoolArray:
    (h, w), (height, width) = missing.shape[-2:], on.shape[-2:]
    if (h, w) != (height, width) or len(missing) not in (1, len(on)):
        raise ValueError(
            f"{path} holds a mask of {h}×{w} for an image of {height}×{width}; give one of the "
            f"same size."
        )
    return missing


def _all_files(paths: Paths) -> list[Path]:
    files = find_files([paths] if isinstance(paths, str | os.PathLike) else paths)
    if not files:
        raise FileNotFoundError("No image was passed; pass at least a file or a folder.")
    return files


def _all_pages(paths: Paths) -> Iterator[Page]:
    return (page for file in _all_files(paths) for page in pages(file))


def _planes(one: Binarised, dark: bool) -> tuple[BoolArray, BoolArray]:
    """The on and the missing pixels, each (channels, height, width)."""
    shape = (-1, *one.bright.shape[-2:])
    return ((one.bright ^ dark) & ~one.missing).reshape(shape), one.missing.reshape(shape)
