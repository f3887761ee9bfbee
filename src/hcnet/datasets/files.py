"""Image files as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

_SUFFIXES = {".bmp", ".gif", ".jpg", ".jpeg", ".pbm", ".pgm", ".png", ".tif", ".tiff", ".webp"}


def image_files(
    folder: str | os.PathLike[str], *, dark: bool = False
) -> Iterator[NDArray[np.bool_]]:
    """The images of a folder, one after the other in the order of their names.

    Files are opened when their turn comes, so that a folder may hold more than fits into memory.

    Args:
        folder: where the files are; files that are no images are passed over.
        dark: whether the dark pixels are on (ink on paper) instead of the bright ones.

    Yields:
        One image (height, width) per file, or per page of a file that has several.

    Raises:
        FileNotFoundError: if there is no such folder, or no image in it.
        ValueError: if a file is damaged or holds more than two shades.

    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; pass one that holds image files.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in _SUFFIXES)
    if not files:
        raise FileNotFoundError(
            f"{folder} holds no image files; known endings are {', '.join(sorted(_SUFFIXES))}."
        )
    return (page for path in files for page in _pages(path, dark))


def _pages(path: Path, dark: bool) -> Iterator[NDArray[np.bool_]]:
    damage = (UnidentifiedImageError, Image.DecompressionBombError, OSError, EOFError, SyntaxError)
    try:
        with Image.open(path) as file:
            for number in range(getattr(file, "n_frames", 1)):
                file.seek(number)
                yield _bright(path, _shades(path, file)) ^ dark
    except damage as error:
        raise ValueError(
            f"{path} cannot be read as an image ({error}); repair it or take it out of the folder."
        ) from error


def _shades(path: Path, file: Image.Image) -> NDArray[Any]:
    if file.mode in ("I", "F") or file.mode.startswith("I;16"):
        return np.asarray(file)  # as it is: to 8 bits Pillow would cut it off
    if file.has_transparency_data:
        raise ValueError(
            f"{path} is transparent in places, so that it is not clear which pixels are bright; "
            f"lay it on a background first."
        )
    return np.asarray(file.convert("L"))


def _bright(path: Path, shades: NDArray[Any]) -> NDArray[np.bool_]:
    found = np.unique(shades)
    if len(found) > 2:
        raise ValueError(
            f"{path} holds {len(found)} shades of grey, but images must have two; binarise it "
            f"first, for example np.asarray(image) > {(float(found[0]) + float(found[-1])) / 2:g}."
        )
    # Without another shade beside it, white is bright and all else is not.
    return np.asarray(shades > found[0]) if len(found) == 2 else np.asarray(shades >= 255)
