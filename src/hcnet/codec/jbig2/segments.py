"""Segments of a JBIG2 file (T.88, clause 7): headers, and the fields before coded data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hcnet.codec.jbig2.regions import ADAPTIVE

FILE_ID = b"\x97JB2\r\n\x1a\n"
SEQUENTIAL = 1
GLOBAL = 0  # the page of segments that all pages use


class Kind(IntEnum):
    """Types of segments."""

    SYMBOLS = 0
    TEXT = 7  # immediate, lossless
    GENERIC = 39  # immediate, lossless
    PAGE = 48
    END_OF_PAGE = 49
    END_OF_FILE = 51


class Operator(IntEnum):
    """How a region is combined with the page."""

    OR = 0
    XOR = 2


@dataclass(frozen=True)
class Segment:
    """A segment: its number is unique in the file, and it may refer to earlier ones."""

    number: int
    kind: Kind
    page: int
    data: bytes
    refers_to: tuple[int, ...] = ()

    def write(self) -> bytes:
        """Header and data; at most four segments are referred to."""
        long_page = self.page > 255
        width = 1 if self.number <= 256 else 2 if self.number <= 65536 else 4
        # Symbols are kept for later pages; nothing else is referred to.
        kept = int(self.kind == Kind.SYMBOLS) | (2 << len(self.refers_to)) - 2
        return b"".join(
            [
                _number(self.number, 4),
                _number(self.kind | long_page << 6, 1),
                _number(len(self.refers_to) << 5 | kept, 1),
                *(_number(other, width) for other in self.refers_to),
                _number(self.page, 4 if long_page else 1),
                _number(len(self.data), 4),
                self.data,
            ]
        )


def file_header(n_pages: int) -> bytes:
    """The beginning of a file whose segments follow one after the other."""
    return FILE_ID + _number(SEQUENTIAL, 1) + _number(n_pages, 4)


def page_information(size: tuple[int, int], per_metre: tuple[int, int], inverted: bool) -> bytes:
    """The data of a page's first segment: height and width, resolution, and what is behind.

    An inverted page begins black, and its regions change black to white.
    """
    lossless, black, changes = 1, inverted << 2, (Operator.XOR if inverted else Operator.OR) << 3
    height, width = size
    vertical, horizontal = per_metre
    numbers = width, height, horizontal, vertical
    return b"".join(_number(n, 4) for n in numbers) + bytes([lossless | black | changes, 0, 0])


def region_information(size: tuple[int, int], operator: Operator) -> bytes:
    """The first fields of a region that is as large as the page."""
    height, width = size
    return b"".join(_number(n, 4) for n in (width, height, 0, 0)) + bytes([operator])


def generic_fields(template: int, typical: bool) -> bytes:
    """The fields of a generic region between region information and coded data."""
    return bytes([template << 1 | typical << 3]) + ADAPTIVE[template]


def _number(value: int, n_bytes: int) -> bytes:
    return int(value).to_bytes(n_bytes, "big")
