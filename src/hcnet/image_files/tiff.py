"""TIFF files of black-and-white pages, with names and resolutions as they were read.

Pillow packs the bits (Group 4).  It would write names in ASCII, round resolutions, and invert pages
pixel by pixel, so that the file around the bits is written here.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from typing import IO

from PIL import Image

from hcnet.images import BoolArray, PageInfo

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_BYTES = 273, 277, 278, 279
X_RESOLUTION, Y_RESOLUTION, PAGE_NAME, RESOLUTION_UNIT = 282, 283, 285, 296
UNITS = {1: "none", 2: "inch", 3: "centimetre"}
GROUP_4 = 4
# Types of values, and their bytes.
ASCII, SHORT, LONG, RATIONAL = 2, 3, 4, 5
SIZES = {ASCII: 1, SHORT: 2, LONG: 4, RATIONAL: 8}
HEADER = struct.Struct("<2sHI")  # byte order, 42, the first directory
MOST_BYTES = 2**32 - 1

# Type, and values as bytes.
Value = tuple[int, bytes]


def write_tiff(file: IO[bytes], pages: Iterable[tuple[BoolArray, PageInfo]]) -> None:
    """Write pages, one after the other."""
    file.write(HEADER.pack(b"II", 42, 0))
    link = HEADER.size - 4  # where the place of the next directory is to be written
    for pixels, info in pages:
        strips, rows = _packed(pixels, info.min_is_white)
        offsets = [_append(file, strip) for strip in strips]
        tags = _tags(pixels, info) | {
            STRIP_OFFSETS: _longs(*offsets),
            ROWS_PER_STRIP: _longs(rows),
            STRIP_BYTES: _longs(*map(len, strips)),
        }
        directory = struct.pack("<H", len(tags))
        for tag, (kind, data) in sorted(tags.items()):
            place = data if len(data) <= 4 else struct.pack("<I", _append(file, data))
            directory += struct.pack("<HHI4s", tag, kind, len(data) // SIZES[kind], place)
        at = _append(file, directory + bytes(4))
        file.seek(link)
        file.write(struct.pack("<I", at))
        link = at + len(directory)


def _append(file: IO[bytes], data: bytes) -> int:
    """Write at the end of the file, at an even place; returns the place."""
    at = file.seek(0, io.SEEK_END)
    if at % 2:
        at += file.write(b"\0")
    if at + len(data) > MOST_BYTES:
        raise ValueError(
            "The pages take more than 4 GiB, which no TIFF file can hold; take fewer pages."
        )
    file.write(data)
    return at


def _tags(pixels: BoolArray, info: PageInfo) -> dict[int, Value]:
    height, width = pixels.shape
    tags = {
        WIDTH: _longs(width),
        HEIGHT: _longs(height),
        BITS: _short(1),
        COMPRESSION: _short(GROUP_4),
        PHOTOMETRIC: _short(0 if info.min_is_white else 1),
        SAMPLES: _short(1),
    }
    if info.name:
        try:
            text = info.name.encode("latin-1")  # as Pillow reads them
        except UnicodeEncodeError:
            text = info.name.encode()
        tags[PAGE_NAME] = ASCII, text + b"\0"
    one = info.resolution
    if one is not None:
        tags[X_RESOLUTION] = RATIONAL, struct.pack("<II", *one.x)
        tags[Y_RESOLUTION] = RATIONAL, struct.pack("<II", *one.y)
        tags[RESOLUTION_UNIT] = _short({unit: n for n, unit in UNITS.items()}[one.unit])
    return tags


def _short(value: int) -> Value:
    return SHORT, struct.pack("<H", value)


def _longs(*values: int) -> Value:
    return LONG, struct.pack(f"<{len(values)}I", *values)


def _packed(pixels: BoolArray, min_is_white: bool) -> tuple[list[bytes], int]:
    """Strips of a page by Group 4, and their rows."""
    buffer = io.BytesIO()
    bits = Image.fromarray(pixels if min_is_white else ~pixels)
    bits.save(buffer, format="TIFF", compression="group4")
    with Image.open(buffer) as file:
        tags = file.tag_v2  # type: ignore[attr-defined]
        places = zip(tags[STRIP_OFFSETS], tags[STRIP_BYTES], strict=True)
        rows = int(tags.get(ROWS_PER_STRIP, pixels.shape[0]))
    data = buffer.getvalue()
    return [data[at : at + n] for at, n in places], rows
