"""Image files as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hcnet.image_files.decoding import IMAGE_SUFFIXES, Page, is_image, pages


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
    files = sorted(path for path in folder.iterdir() if is_image(path))
    if not files:
        raise FileNotFoundError(
            f"{folder} holds no image files; known endings are {', '.join(sorted(IMAGE_SUFFIXES))}."
        )
    return (_bright(page) ^ dark for path in files for page in pages(path))


def _bright(page: Page) -> NDArray[np.bool_]:
    found = np.unique(page.shades)
    if len(found) > 2:
        raise ValueError(
            f"{page.path} holds {len(found)} shades of grey, but images must have two; binarise it "
            f"first, for example with hcnet.image_files.binarise."
        )
    # Without another shade beside it, white is bright and all else is not.
    return page.shades > found[0] if len(found) == 2 else np.asarray(page.shades >= 255)
