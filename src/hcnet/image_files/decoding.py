"""Image files decoded as grey pages: one (channels, height, width) array per image."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

IMAGE_SUFFIXES = frozenset(
    {".bmp", ".gif", ".jpg", ".jpeg", ".pbm", ".pgm", ".png", ".tif", ".tiff", ".webp"}
)
ARRAY_SUFFIXES = frozenset({".npy", ".npz"})
# Names of the images in an archive of arrays.
IMAGE_KEYS = ("X", "images")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_DAMAGE = (UnidentifiedImageError, OSError, EOFError, SyntaxError, zipfile.BadZipFile)


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
        _check_size(path, array.shape[-1], array.shape[-2])
        white = 255.0 if array.dtype == np.uint8 else None
        for number, shades in enumerate(array):
            yield Page(path, number, shades.reshape(-1, *shades.shape[-2:]), white)
        return
    with _opened(path) as file:
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            _check_size(path, *file.size)
            shades, white = _shades(path, file)
            yield Page(path, number, shades[None], white)


def count_pages(path: Path) -> int:
    """The number of images in a file, without decoding any."""
    if path.suffix.lower() in ARRAY_SUFFIXES:
        return len(_images_array(path))
    with _opened(path) as file:
        return int(getattr(file, "n_frames", 1))


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
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


def _check_size(path: Path, width: int, height: int) -> None:
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
