"""Image files as a set, or as a stream, of binary images, and the labels of images."""

from __future__ import annotations

import csv
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from hcnet.image_files.binarising import OTSU, Binarised, check_threshold, ink_is_dark, split_shades
from hcnet.images import BoolArray

FOLDERS = "folders"
UNLABELLED = "-1"
_LABEL_KEYS = ("y", "labels")
IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpg", ".jpeg", ".pbm", ".pgm", ".png", ".tif", ".tiff", ".webp"}
)
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})
# Names of the images in an archive of arrays.
IMAGE_KEYS = ("X", "images")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_DAMAGE = (UnidentifiedImageError, OSError, EOFError, SyntaxError, zipfile.BadZipFile)

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

    """
    found = list(islice(_binarised(find_files(paths), threshold, mask), first))
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


def read_labels(source: str | os.PathLike[str], files: Sequence[Path]) -> NDArray[Any]:
    """One label per image; -1 where there is none.

    Args:
        source: "folders" for the name of the folder that an image is in; a text file with a label
            per line in the order of the images; a ``.csv`` file with the columns ``file`` and
            ``label``; or an ``.npy`` or ``.npz`` file.
        files: the file of every image, as `ImageSet.files`.

    """
    if source == FOLDERS:
        return _typed([file.resolve().parent.name for file in files])
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there; pass a file with a label per image, or the word {FOLDERS!r}."
        )
    arrays = path.suffix.lower() in ARRAY_SUFFIXES
    labels = read_array(path, _LABEL_KEYS) if arrays else _typed(_table(path, files))
    if labels.shape != (len(files),):
        raise ValueError(
            f"{path} holds {len(labels)} labels for {len(files)} images; give one per image, -1 "
            f"for those without."
        )
    return labels


def _table(path: Path, files: Sequence[Path]) -> list[str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a table of labels ({error}); it should be text, a label per line."
        ) from error
    if not rows or len(rows[0]) == 1:
        return [row[0].strip() for row in rows]
    if not {"file", "label"} <= set(rows[0]):
        raise ValueError(
            f"{path} has the columns {', '.join(rows[0])}; it needs the columns file and label, or "
            f"one label per line and nothing else."
        )
    name, label = rows[0].index("file"), rows[0].index("label")
    by_name = {Path(row[name]).name: row[label].strip() for row in rows[1:]}
    return [by_name.get(file.name, UNLABELLED) for file in files]


def _typed(labels: list[str]) -> NDArray[Any]:
    """Whole numbers if all are, otherwise words; the missing label is a number among words."""
    try:
        return np.array([int(label) for label in labels])
    except ValueError:
        if UNLABELLED not in labels:
            return np.array(labels)
        return np.array([-1 if one == UNLABELLED else one for one in labels], object)


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
        array = _images_array(path)
        check_size(path, array.shape[-1], array.shape[-2])
        white = 255.0 if array.dtype == np.uint8 else None
        for number, shades in enumerate(array):
            yield Page(path, number, shades.reshape(-1, *shades.shape[-2:]), white)
        return
    with opened(path) as file:
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            check_size(path, *file.size)
            shades, white = _shades(path, file)
            yield Page(path, number, shades[None], white)


def count_pages(path: Path) -> int:
    """The number of images in a file, without decoding any."""
    if path.suffix.lower() in ARRAY_SUFFIXES:
        return len(_images_array(path))
    with opened(path) as file:
        return int(getattr(file, "n_frames", 1))


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """An image file that is open; damage found meanwhile is reported with its name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            file = Image.open(path)  # reads the size, and decodes nothing
        with file:
            yield file
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path) from None
    except _DAMAGE as error:
        raise ValueError(
            f"{path} cannot be read as an image ({error}); repair it, or leave it out."
        ) from error


def check_size(path: Path, width: int, height: int) -> None:
    """Raise an error if a page is enormous."""
    if width * height > (Image.MAX_IMAGE_PIXELS or np.inf):
        raise _too_large(path)


def _too_large(path: Path) -> ValueError:
    return ValueError(
        f"{path} says that it has more than {Image.MAX_IMAGE_PIXELS:,} pixels, which is often a "
        f"file made to fill the memory; cut it into several images."
    )


def _shades(path: Path, file: Image.Image) -> tuple[NDArray[Any], float | None]:
    if file.mode == "F":
        return np.asarray(file), None
    if file.mode == "I" or file.mode.startswith("I;16"):
        return np.asarray(file), 65535.0  # as it is: to 8 bits Pillow would cut it off
    if file.has_transparency_data:
        raise ValueError(
            f"{path} is transparent in places, so that it is not clear which pixels are bright; "
            f"lay it on a background first."
        )
    upright = ImageOps.exif_transpose(file) or file  # as a camera or a scanner meant it
    return np.asarray(upright.convert("L")), 255.0


def _images_array(path: Path) -> NDArray[Any]:
    """The images of an array file: the first axis counts them."""
    array = read_array(path, IMAGE_KEYS)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} holds an array of {array.dtype}; images must be numbers or booleans."
        )
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise ValueError(
            f"{path} holds an array of shape {array.shape}; images must be (height, width), "
            f"(images, height, width) or (images, channels, height, width), none of them 0."
        )
    return array[None] if array.ndim == 2 else array


def read_array(path: Path, keys: Iterable[str]) -> NDArray[Any]:
    """The array of an ``.npy`` file, or the one of an ``.npz`` file that has one of these names."""
    try:
        if path.suffix.lower() == ".npy":
            # Mapped, so that only the images that are looked at are read.
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        # Opened here: NumPy would leave a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = [key for key in keys if key in archive.files]
            if not names and len(archive.files) != 1:
                raise KeyError(", ".join(archive.files) or "nothing")
            return np.asarray(archive[(names or archive.files)[0]])
    except KeyError as error:
        raise ValueError(
            f"{path} holds the arrays {error.args[0]}; name one of them "
            f"{' or '.join(map(repr, keys))}."
        ) from None
    except (*_DAMAGE, ValueError, MemoryError) as error:
        raise ValueError(
            f"{path} cannot be read as an array ({error}); write it with np.save or np.savez, "
            f"without objects."
        ) from error
