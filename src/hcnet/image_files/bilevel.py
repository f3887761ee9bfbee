"""Image files of black and white, page by page, to the last pixel, and back.

Nothing is thresholded: a file with any other shade is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from hcnet.atomic_files import write_atomically
from hcnet.image_files.opening import ARRAY_SUFFIXES, RefusedFileError, decoding, opened, seek_page
from hcnet.image_files.tiff import (
    PAGE_NAME,
    PHOTOMETRIC,
    RESOLUTION_UNIT,
    UNITS,
    X_RESOLUTION,
    Y_RESOLUTION,
    write_tiff,
)
from hcnet.image_files.writing import write_picture
from hcnet.images import BoolArray, PageInfo, Resolution

# Modes of Pillow in which black and white are exact, and the shade of white.
WHITE = {"L": 255, "P": 255, "RGB": 255, "I": 65535, "I;16": 65535, "I;16B": 65535}
TIFF_SUFFIXES = frozenset({".tif", ".tiff"})
# Other endings that are written; everything else becomes PNG.
SUFFIXES = {".bmp": "BMP", ".pbm": "PPM", ".png": "PNG"}
# Metres of an inch.
INCH = 0.0254


def read_pages(path: str | os.PathLike[str]) -> Iterator[tuple[BoolArray, PageInfo]]:
    """The pages of a black-and-white image file, each read when it is asked for.

    Black is ink (True).  A file with grey, coloured or transparent pixels is refused.
    """
    path = Path(path)
    if path.suffix.lower() in ARRAY_SUFFIXES:
        raise ValueError(
            f"{path} holds arrays, and only image files are compressed here; pass arrays to "
            f"hcnet.codec.compress."
        )
    with opened(path) as (file, declared):
        for number in range(len(declared)):
            with decoding(path):
                seek_page(path, file, number, declared)
                page = _page(path, file, number)
            yield page


def _page(path: Path, file: Image.Image, number: int) -> tuple[BoolArray, PageInfo]:
    """The page that an open file is at."""
    # Read before the pixels: Pillow turns a page upright when it decodes it.
    resolution, size = _resolution(file), file.size
    tags = getattr(file, "tag_v2", {})
    white, name = tags.get(PHOTOMETRIC, 1) == 0, tags.get(PAGE_NAME, "")
    file.load()
    upright = ImageOps.exif_transpose(file) or file
    if resolution is not None and upright.size != size:
        resolution = Resolution(resolution.y, resolution.x, resolution.unit)
    what = str(path) if number == 0 else f"Page {number} of {path}"
    # Bytes of a name that are no text have no place in other files.
    own = os.fsencode(path.name).decode(errors="replace")
    return _ink(what, upright), PageInfo(own, str(name), number > 0, white, resolution)


def _ink(what: str, image: Image.Image) -> BoolArray:
    """Black pixels; there must be none but black and white."""
    if image.mode == "1":
        return ~np.asarray(image, bool)
    clear = not image.has_transparency_data and image.mode in WHITE
    if clear:
        shades = np.asarray(image.convert("RGB") if image.mode == "P" else image)
        ink, paper = shades == 0, shades == WHITE[image.mode]
        if shades.ndim == 3:
            ink, paper = ink.all(axis=2), paper.all(axis=2)
        clear = bool((ink | paper).all())
    if not clear:
        raise RefusedFileError(
            f"{what} has pixels that are neither black nor white, and the codec is for black and "
            f"white without loss; make it so first, for example with hcnet.image_files.binarise."
        )
    return np.asarray(ink, bool)


def _resolution(file: Image.Image) -> Resolution | None:
    """The resolution as the file has it, in fractions."""
    tags = getattr(file, "tag_v2", None)
    if tags is None:
        dpi = file.info.get("dpi")
        if dpi is None:
            return None
        # PNG and BMP files have pixels per metre.
        x, y = (round(float(side) / INCH) for side in dpi)
        return _checked((x, 100), (y, 100), 3)
    sides = [tags.get(X_RESOLUTION), tags.get(Y_RESOLUTION)]
    if not all(hasattr(side, "numerator") for side in sides):
        return None
    across, down = ((int(side.numerator), int(side.denominator)) for side in sides)
    return _checked(across, down, tags.get(RESOLUTION_UNIT, 2))


def _checked(x: tuple[int, int], y: tuple[int, int], unit: int) -> Resolution | None:
    """A resolution that a TIFF file can hold; None of what says nothing."""
    if unit not in UNITS or not all(0 < number < 2**32 for number in (*x, *y)):
        return None
    return Resolution(x, y, UNITS[unit])


def pages_path(name: str, several: bool) -> str:
    """A name with the ending of a format that `write_pages` writes for one page, or several."""
    kind = Path(name).suffix.lower()
    if kind in TIFF_SUFFIXES or (kind in SUFFIXES and not several):
        return name
    return f"{name}.tif" if several else f"{name}.png"


def write_pages(
    path: str | os.PathLike[str],
    pages: Iterable[tuple[BoolArray, PageInfo]],
    *,
    overwrite: bool = False,
) -> Path:
    """Write pages as black and white, in the format that the ending of `path` names.

    ``.tif`` holds any number of pages with their names; ``.png``, ``.bmp`` and ``.pbm`` hold one.
    """
    path = Path(path)
    if path.suffix.lower() in TIFF_SUFFIXES:
        return write_atomically(path, partial(write_tiff, pages=pages), overwrite)
    ((pixels, info),) = pages
    how: dict[str, Any] = {"format": SUFFIXES[path.suffix.lower()]}
    if info.resolution is not None and info.resolution.unit != "none":
        scale = 2.54 if info.resolution.unit == "centimetre" else 1
        sides = info.resolution.x, info.resolution.y
        how["dpi"] = tuple(scale * a / b if b else 0.0 for a, b in sides)
    return write_picture(path, Image.fromarray(~pixels), overwrite, **how)
