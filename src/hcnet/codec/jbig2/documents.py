"""Pages of a document as JBIG2: symbols that all pages share, and the segments of each page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hcnet.codec.jbig2 import regions, segments
from hcnet.codec.jbig2.bitmaps import text_region
from hcnet.codec.jbig2.choosing import Chosen, choose
from hcnet.codec.jbig2.copies import Copies, copies_of
from hcnet.codec.jbig2.placing import placed
from hcnet.codec.jbig2.segments import GLOBAL, Kind, Operator, Segment
from hcnet.codec.page_parts import search_pages
from hcnet.images import BoolArray

Resolution = tuple[float, float]  # dots per inch, down and across
INCHES_PER_METRE = 39.37007874
# Bytes of a segment besides its data, at most: header and region information.
HEADER = 40


@dataclass(frozen=True)
class Page:
    """A coded page: data of its regions, without headers."""

    size: tuple[int, int]
    inverted: bool
    text: bytes | None
    generic: bytes | None

    def __len__(self) -> int:
        """Bytes of its regions, with headers."""
        return sum(HEADER + len(data) for data in (self.text, self.generic) if data is not None)

    def segments(
        self, first: int, number: int, symbols: Sequence[int], resolution: Resolution | None
    ) -> Iterator[Segment]:
        """Its segments, without the end of the page; `symbols` are the segments of dictionaries."""
        dots = tuple(round(dpi * INCHES_PER_METRE) for dpi in resolution or (0, 0))
        data = segments.page_information(self.size, (dots[0], dots[1]), self.inverted)
        yield Segment(first, Kind.PAGE, number, data)
        region = segments.region_information(
            self.size, Operator.XOR if self.inverted else Operator.OR
        )
        if self.text is not None:
            first += 1
            yield Segment(first, Kind.TEXT, number, region + self.text, tuple(symbols))
        if self.generic is not None:
            yield Segment(first + 1, Kind.GENERIC, number, region + self.generic)


@dataclass(frozen=True)
class Document:
    """Coded pages, and the data of the dictionaries that they share."""

    symbols: list[bytes]
    pages: list[Page]

    def globals(self) -> Iterator[Segment]:
        """The segments of the dictionaries; the second refers to the first."""
        for number, data in enumerate(self.symbols):
            yield Segment(number, Kind.SYMBOLS, GLOBAL, data, tuple(range(number)))

    def page(
        self, number: int, first: int, named: int, resolution: Resolution | None
    ) -> list[Segment]:
        """The segments of a page, numbered from `first` on, as page `named`."""
        known = range(len(self.symbols))
        return list(self.pages[number].segments(first, named, known, resolution))


def encode(pages: Sequence[BoolArray], parts: bool = True) -> Document:
    """Code pages, with parts that repeat as symbols if this makes them shorter."""
    pages = [np.ascontiguousarray(page, bool) for page in pages]
    # Where most is ink, the letters are what is not.
    inverted = [2 * int(page.sum()) > page.size for page in pages]
    pages = [~page if over else page for page, over in zip(pages, inverted, strict=True)]
    plain = [
        Page(page.shape, over, None, _generic(page))
        for page, over in zip(pages, inverted, strict=True)
    ]
    found = _symbols(pages) if parts else None
    if found is None:
        return Document([], plain)
    chosen, copies = found
    dictionary = chosen.dictionary
    coded = []
    for number, page in enumerate(pages):
        rows, bitmaps, rest = placed(chosen, copies, number, page)
        text = text_region(dictionary, rows, bitmaps) if len(rows) else None
        shared = Page(page.shape, inverted[number], text, _generic(rest))
        coded.append(min(shared, plain[number], key=len))
    symbols = dictionary.write()
    total = sum(HEADER + len(data) for data in symbols) + sum(len(page) for page in coded)
    if total >= sum(len(page) for page in plain):
        return Document([], plain)
    return Document(symbols, coded)


def write_file(
    pages: Sequence[BoolArray],
    resolutions: Sequence[Resolution | None] | None = None,
    parts: bool = True,
) -> bytes:
    """A JBIG2 file of pages, which are arrays with True for ink; lossless.

    `resolutions` are dots per inch, down and across.  Without `parts`, each page is one generic
    region: larger on pages of text, but quick.
    """
    document = encode(pages, parts)
    found = list(document.globals())
    for number in range(len(pages)):
        resolution = None if resolutions is None else resolutions[number]
        found += document.page(number, len(found), number + 1, resolution)
        found.append(Segment(len(found), Kind.END_OF_PAGE, number + 1, b""))
    found.append(Segment(len(found), Kind.END_OF_FILE, GLOBAL, b""))
    return segments.file_header(len(pages)) + b"".join(s.write() for s in found)


def _generic(page: BoolArray) -> bytes | None:
    """The data of a generic region after its region information; none for a page without ink."""
    if not page.any():
        return None

    def coded(template: int, typical: bool) -> bytes:
        fields = segments.generic_fields(template, typical)
        return fields + regions.generic_region(page, template, typical)

    choices = product(range(len(regions.GENERIC)), (False, True))
    return min((coded(*choice) for choice in choices), key=len)


def _symbols(pages: Sequence[BoolArray]) -> tuple[Chosen, Copies] | None:
    """The symbols of all pages, and the copies; None where nothing pays."""
    if not pages:
        return None
    search = search_pages(pages)
    if not search.shared.any():
        return None
    copies = copies_of(search)
    chosen = choose(copies, search.cost_alone)
    return (chosen, copies) if chosen.symbols else None
