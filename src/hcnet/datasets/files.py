"""Image files as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

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
    try:
        with Image.open(path) as file:
            for number in range(getattr(file, "n_frames", 1)):
                file.seek(number)
                shades = np.asarray(file.convert("L"))
                yield _binary(path, shades) ^ dark
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError(
            f"{path} cannot be read as an image ({error}); repair it or take it out of the folder."
        ) from error


def _binary(path: Path, shades: NDArray[np.uint8]) -> NDArray[np.bool_]:
    found = np.unique(shades)
    if len(found) > 2:
        middle = (int(found[0]) + int(found[-1])) // 2
        raise ValueError(
            f"{path} holds {len(found)} shades of grey, but images must have two; binarise it "
            f"first, for example np.asarray(image) > {middle}."
        )
    # Without another shade beside it, bright is what is brighter than the middle.
    return np.asarray(shades > (found[0] if len(found) == 2 else 127))
