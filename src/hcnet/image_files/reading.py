"""Image files as a set, or as a stream, of binary images."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from hcnet.checks import check_count
from hcnet.image_files.binarising import (
    OTSU,
    Binarised,
    check_shades,
    check_threshold,
    ink_is_dark,
    split_shades,
)
from hcnet.image_files.opening import (
    ARRAY_PIXELS_PER_BYTE,
    ARRAY_SUFFIXES,
    Declared,
    RefusedFileError,
    array_shape,
    check_declared,
    decoding,
    opened,
    read_array,
    seek_page,
)
from hcnet.images import BoolArray
from hcnet.memory import check_memory

IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpg", ".jpeg", ".pbm", ".pgm", ".png", ".tif", ".tiff", ".webp"}
)
# Names of the images in an archive of arrays.
IMAGE_KEYS = ("X", "images")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

# Bytes of a set for each pixel of padded images, for each before that, and for each image.
_PADDED_BYTES, _OWN_BYTES, _IMAGE_BYTES = 2, 4, 1024

# A larger share of pixels that are on is rather the paper.  A larger share of grey pixels is a
# photograph: if all shades were equally frequent, it were 0.25, and a page at 72 dpi has fewer.
MOST_INK, MOST_GREY = 0.6, 0.2


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
    grey: float = (
        0.0  # the largest share of grey pixels of an image, on both sides of its threshold
    )

    def __len__(self) -> int:
        return len(self.X)

    @property
    def names(self) -> list[str]:
        """A name per image: its file, and the page where the file has several."""
        origins = list(zip(self.files, self.pages, strict=True))
        several = {file for file, page in origins if page}
        return [f"{file.name}[{page}]" if file in several else file.name for file, page in origins]

    def own_size(self, images: BoolArray) -> list[BoolArray]:
        """Results of the shape of `X` cut back to the size of each image."""
        return [one[..., :h, :w] for one, (h, w) in zip(images, self.sizes, strict=True)]

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

    def doubts(self) -> str | None:
        """Why these may not be images of parts, in a sentence."""
        observed = self.X.size if self.mask is None else int((~self.mask).sum())
        on = int(np.count_nonzero(self.X if self.mask is None else self.X & ~self.mask))
        if not on:
            return "No pixel is on: the images are blank."
        if on > MOST_INK * observed:
            return f"{on / observed:.0%} of the pixels are on: is that paper? Choose the other ink."
        if self.grey > MOST_GREY:
            return (
                f"{self.grey:.0%} of the pixels of an image are neither dark nor bright, as in a "
                f"photograph: parts of its outlines may be found, if at all."
            )
        return None


def read_images(
    paths: Paths,
    *,
    threshold: float | str = OTSU,
    ink: str = "auto",
    mask: str | os.PathLike[str] | None = None,
    first: int | None = None,
) -> ImageSet:
    """Read image files, folders of them, ``.npy`` and ``.npz`` arrays as binary images.

    Args:
        paths: one or several; every page of a file is an image.
        threshold: "otsu", or the shade above which a pixel is bright.
        ink: whether "bright" or "dark" pixels are on; "auto": whichever are rarer, in all images
            together.
        mask: a file whose bright pixels, or ones, are missing in the images.  It holds one mask
            for all images, or one for each, of their size.
        first: the number of images to read; None reads all.

    Raises:
        FileNotFoundError: if a file is not there, or a folder holds no images.
        ValueError: if a file is damaged or enormous, images differ in their channels, or a mask
            does not fit.
        MemoryError: if the images, padded to one size, would not fit into memory.

    """
    if first is not None:
        first = check_count("first", first)
    files = find_files(paths)
    _check_memory(files, first)
    found = list(islice(_binarised(files, threshold, mask), first))
    cut = [one for _, _, one, _ in found]
    dark = ink_is_dark(cut, ink)
    sizes = [(one.bright.shape[1], one.bright.shape[2]) for one in cut]
    channels = {len(one.bright) for one in cut}
    if len(channels) > 1:
        raise ValueError(
            f"The images have {' and '.join(map(str, sorted(channels)))} channels; pass images "
            f"that have the same number."
        )
    shape = len(cut), *channels, max(h for h, _ in sizes), max(w for _, w in sizes)
    X, missing = np.zeros(shape, bool), np.ones(shape, bool)
    for k, ((_, _, one, hidden), (h, w)) in enumerate(zip(found, sizes, strict=True)):
        X[k, :, :h, :w], missing[k, :, :h, :w] = one.on(dark), hidden
    return ImageSet(
        X=X,
        mask=missing if missing.any() else None,
        files=[path for path, _, _, _ in found],
        pages=[number for _, number, _, _ in found],
        sizes=sizes,
        dark=dark,
        thresholds=[one.threshold for one in cut],
        grey=max(one.grey for one in cut),
    )


def _check_memory(files: list[Path], first: int | None) -> None:
    """Raise an error if the first images of these files, side by side, do not fit into memory."""
    n = pixels = height = width = channels = 0
    for each, size in chain.from_iterable(map(declared_images, files)):
        each = each if first is None else min(each, first - n)
        n, pixels = n + each, pixels + each * math.prod(size)
        channels, height, width = map(max, (channels, height, width), size)
        if n == first:
            break
    needed = n * _IMAGE_BYTES + _OWN_BYTES * pixels
    needed += _PADDED_BYTES * n * channels * height * width
    what = f"{n} image{'s' * (n != 1)} of up to {height:,}×{width:,} pixels"
    check_memory(what, needed, None, "take fewer or smaller ones, or read them as a stream")


def stream_images(
    paths: Paths,
    *,
    threshold: float | str = OTSU,
    ink: str = "auto",
    mask: str | os.PathLike[str] | None = None,
) -> Iterator[NDArray[np.generic]]:
    """The same images one after the other, for more images than fit into memory.

    The first image decides which side is the ink.  An image with missing pixels is an array of
    floats with NaN.
    """
    dark = None
    for _, _, one, hidden in _binarised(find_files(paths), threshold, mask):
        if dark is None:
            dark = ink_is_dark([one], ink)
        on = one.on(dark)
        yield np.where(hidden, np.nan, on)[None] if hidden.any() else on[None]


def files_of_images(paths: Paths) -> list[Path]:
    """The file of every image in reading order, without decoding the images."""
    return [file for file in find_files(paths) for _ in range(count_pages(file))]


def _binarised(
    files: list[Path], threshold: float | str, mask: str | os.PathLike[str] | None
) -> Iterator[tuple[Path, int, Binarised, BoolArray]]:
    """Every image: its file, its page, its bright pixels, and the pixels that are missing."""
    at = check_threshold(threshold)
    masks: Iterator[BoolArray | None] = repeat(None) if mask is None else _masks(mask, files)
    for page, hidden in zip(chain.from_iterable(map(pages, files)), masks, strict=False):
        one = split_shades(page.shades, at, page.white)
        if hidden is None:
            yield page.path, page.number, one, one.missing
            continue
        (h, w), (height, width) = hidden.shape[-2:], one.bright.shape[-2:]
        if (h, w) != (height, width) or len(hidden) not in (1, len(one.bright)):
            raise ValueError(
                f"{mask} holds a mask of {h}×{w} for an image of {height}×{width}; give one of the "
                f"same size."
            )
        yield page.path, page.number, one, one.missing | hidden


def _masks(path: str | os.PathLike[str], files: list[Path]) -> Iterator[BoolArray]:
    """The mask of each image; a single mask is repeated."""
    n = len(files_of_images(path))
    masks = (np.asarray(mask[0], bool) for mask in stream_images(path, ink="bright"))
    if n == 1:
        return repeat(next(masks))
    wanted = len(files_of_images(files))
    if n != wanted:
        raise ValueError(
            f"{path} holds {n} masks for {wanted} images; give one mask for all or one per image."
        )
    return masks


@dataclass(frozen=True, eq=False)
class Page:
    """One image of a file."""

    path: Path
    number: int  # from 0 within its file
    shades: NDArray[Any]  # (channels, height, width)
    white: float | None  # the brightest possible shade; None: unknown


def find_files(paths: Paths) -> list[Path]:
    """The files of a list of files and folders, those of a folder in the order of their names.

    Folders are searched with their subfolders; files that are no images are skipped.
    """
    files: list[Path] = []
    for path in map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths):
        if path.is_file():
            files.append(path)
            continue
        if not path.is_dir():
            raise FileNotFoundError(f"{path} is not there; pass an image file or a folder of them.")
        found = [p for p in path.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file()]
        if not found:
            raise FileNotFoundError(
                f"{path} holds no image files; known endings are "
                f"{', '.join(sorted(IMAGE_SUFFIXES))}."
            )
        files += sorted(found)
    if not files:
        raise FileNotFoundError("No image was passed; pass at least a file or a folder.")
    return files


def pages(path: Path) -> Iterator[Page]:
    """The images of a file, each decoded when it is asked for."""
    if path.suffix.lower() in ARRAY_SUFFIXES:
        array = read_array(path, IMAGE_KEYS, partial(_check_array, path))
        white = 255.0 if array.dtype == np.uint8 else None
        for number, image in enumerate(array[None] if array.ndim == 2 else array):
            with decoding(path, "images"):
                shades = check_shades(image)
            yield Page(path, number, shades.reshape(-1, *shades.shape[-2:]), white)
        return
    with opened(path) as (file, declared):
        for number in range(len(declared)):
            with decoding(path):
                seek_page(path, file, number, declared)
                shades, white = _shades(path, file)
                page = Page(path, number, check_shades(shades)[None], white)
            yield page


def declared_images(path: Path) -> list[Declared]:
    """Number and sizes of the images in a file, without decoding any."""
    if path.suffix.lower() in ARRAY_SUFFIXES:
        accept = partial(_check_array, path)
        return [_declared(array_shape(path, IMAGE_KEYS, accept))]
    with opened(path) as (_, declared):
        return declared


def count_pages(path: Path) -> int:
    """The number of images in a file, without decoding any."""
    return sum(n for n, _ in declared_images(path))


def _declared(shape: tuple[int, ...]) -> Declared:
    """Number and size of the images in an array."""
    n = shape[0] if len(shape) > 2 else 1
    channels = shape[1] if len(shape) == 4 else 1
    return n, (channels, shape[-2], shape[-1])


def _check_array(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error if an array holds no images, or enormous ones."""
    if dtype.kind not in "biuf":
        raise RefusedFileError(
            f"{path} holds an array of {dtype}; images must be numbers or booleans."
        )
    if len(shape) not in (2, 3, 4) or 0 in shape:
        raise RefusedFileError(
            f"{path} holds an array of shape {shape}; images must be (height, width), "
            f"(images, height, width) or (images, channels, height, width), none of them 0."
        )
    check_declared(path, [_declared(shape)], ARRAY_PIXELS_PER_BYTE)


def _shades(path: Path, file: Image.Image) -> tuple[NDArray[Any], float | None]:
    if file.mode == "F":
        return np.asarray(file), None
    if file.mode == "I" or file.mode.startswith("I;16"):
        return np.asarray(file), 65535.0  # as it is: to 8 bits Pillow would cut it off
    if file.has_transparency_data:
        raise RefusedFileError(
            f"{path} is transparent in places, so that it is not clear which pixels are bright; "
            f"lay it on a background first."
        )
    upright = ImageOps.exif_transpose(file) or file  # as a camera or a scanner meant it
    return np.asarray(upright.convert("L")), 255.0
