"""The bytes of a file of compressed pages: header, page records, index, end.

All whole numbers of more than a byte are little-endian; `varint` has seven bits of a number in each
byte, the lowest first, and the highest bit of a byte says that another follows.  The format is
described for others in docs/codec-format.md.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hcnet.images import BoolArray, PageInfo, Resolution

# The first byte is no text, and line ends tell a file that was sent as text, as in PNG.
MAGIC = b"\x89HCZ\r\n\x1a\n"
# The version that is written; all up to it are read.
VERSION = 3
HEADER = struct.Struct("<8sBB")  # magic, version, flags
PAGE, INDEX = b"P", b"I"
END = struct.Struct("<I4s")  # bytes of the index, mark
END_MARK = b"HCZ."
CHECKSUM = struct.Struct("<I")
DIGEST_BYTES = 8
# Bits of a page record.
MIN_IS_BLACK, SAME_FILE, HAS_RESOLUTION = 1, 2, 4
UNITS = {1: "none", 2: "inch", 3: "centimetre"}  # the numbers of TIFF
# Most bytes of a name, and of a whole head with both names.
MOST_NAME, MOST_HEAD = 1024, 4096
# Pages that may depend on each other in a row, so that any of them is found in bounded time.
MOST_CHAIN = 64
# Most rows and columns: places on a page have 24 bits, with room for parts at its border.
MOST_SIDE = 2**24 - 2**13
# Kind, length, a head of nothing but numbers, checksum: no page takes fewer bytes.
LEAST_RECORD = 25


@dataclass(frozen=True, slots=True)
class Head:
    """What a record says about its page."""

    shape: tuple[int, int]  # height, width
    info: PageInfo
    distance: int  # to the page whose state the decoder goes on from; 0: it begins anew
    size: int  # bytes of the payload
    checksum: int  # of the payload
    digest: bytes  # of the pixels


def header() -> bytes:
    """The first bytes of a file."""
    return HEADER.pack(MAGIC, VERSION, 0)


def pixel_digest(page: BoolArray) -> bytes:
    """A checksum of the pixels of a page and of its shape."""
    digest = hashlib.blake2b(struct.pack("<II", *page.shape), digest_size=DIGEST_BYTES)
    rows = max(1, 2**20 // page.shape[1])
    for top in range(0, len(page), rows):
        digest.update(np.packbits(page[top : top + rows], axis=1).tobytes())
    return digest.digest()


def page_record(page: BoolArray, info: PageInfo, distance: int, payload: bytes) -> bytes:
    """The record of a page."""
    height, width = page.shape
    resolution = info.resolution
    bits = MIN_IS_BLACK * (not info.min_is_white) | SAME_FILE * info.same_file
    head = bytearray(varint(width) + varint(height))
    head.append(bits | HAS_RESOLUTION * (resolution is not None))
    head += varint(distance) + varint(len(payload))
    head += CHECKSUM.pack(zlib.crc32(payload)) + pixel_digest(page)
    if resolution is not None:
        head.append(next(number for number, unit in UNITS.items() if unit == resolution.unit))
        for number in (*resolution.x, *resolution.y):
            head += varint(number)
    for name in (info.file, info.name):
        text = name.encode()
        head += varint(len(text)) + text
    return PAGE + varint(len(head)) + head + CHECKSUM.pack(zlib.crc32(head)) + payload


def index_and_end(sizes: Sequence[int]) -> bytes:
    """The last bytes of a file whose records have these sizes."""
    body = varint(len(sizes)) + b"".join(map(varint, sizes))
    index = INDEX + varint(len(body)) + body + CHECKSUM.pack(zlib.crc32(body))
    return index + END.pack(len(index), END_MARK)


def varint(number: int) -> bytes:
    """A number in as many bytes as it needs."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


class Cursor:
    """Reads bytes from the first to the last, and never beyond."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        if n > len(self.data) - self.at:
            raise ValueError("it ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def varint(self, most: int = 2**63 - 1) -> int:
        """A number of at most `most`."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            number |= (byte & 127) << shift
            if byte < 128:
                break
        else:
            raise ValueError("a number has too many bytes")
        if number > most:
            raise ValueError(f"a number is {number}, and may be at most {most}")
        return number

    def checksum(self) -> int:
        """A checksum."""
        return int(CHECKSUM.unpack(self.take(CHECKSUM.size))[0])

    def text(self) -> str:
        """A name."""
        return self.take(self.varint(MOST_NAME)).decode()

    def close(self) -> None:
        """Nothing may be left."""
        if self.at != len(self.data):
            raise ValueError("it has more bytes than it should")


def parse_head(data: bytes) -> Head:
    """The head of a page record; a ValueError says what is wrong with it."""
    cursor = Cursor(data)
    width, height = cursor.varint(MOST_SIDE), cursor.varint(MOST_SIDE)
    if not width or not height:
        raise ValueError(f"its page has {height} × {width} pixels")
    bits = cursor.take(1)[0]
    if bits > MIN_IS_BLACK | SAME_FILE | HAS_RESOLUTION:
        raise ValueError(f"its bits are {bits:#x}")
    distance, size = cursor.varint(MOST_CHAIN), cursor.varint()
    checksum, digest = cursor.checksum(), cursor.take(DIGEST_BYTES)
    resolution = None
    if bits & HAS_RESOLUTION:
        unit = cursor.take(1)[0]
        if unit not in UNITS:
            raise ValueError(f"its unit of length is {unit}")
        a, b, c, d = (cursor.varint(2**32 - 1) for _ in range(4))
        resolution = Resolution((a, b), (c, d), UNITS[unit])
    file, name = cursor.text(), cursor.text()
    cursor.close()
    info = PageInfo(file, name, bool(bits & SAME_FILE), not bits & MIN_IS_BLACK, resolution)
    return Head((height, width), info, distance, size, checksum, digest)


def parse_index(data: bytes, room: int) -> list[int]:
    """The sizes of all records, which fill so many bytes; `data` lies between them and the end."""
    cursor = Cursor(data)
    if cursor.take(1) != INDEX:
        raise ValueError("it has no index")
    body = cursor.take(cursor.varint())
    if cursor.checksum() != zlib.crc32(body):
        raise ValueError("the checksum of its index is wrong")
    cursor.close()
    inside = Cursor(body)
    sizes = [inside.varint(room) for _ in range(inside.varint(room // LEAST_RECORD))]
    inside.close()
    if sum(sizes) != room or min(sizes, default=LEAST_RECORD) < LEAST_RECORD:
        raise ValueError("its index does not fit its pages")
    return sizes
