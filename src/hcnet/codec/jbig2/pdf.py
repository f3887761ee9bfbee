"""A PDF whose pages are images in JBIG2."""

from __future__ import annotations

from collections.abc import Sequence

from hcnet.codec.jbig2.documents import Document, Resolution, encode
from hcnet.images import BoolArray

# Units of PDF per inch.
UNITS = 72
# So much is a page smaller: programs that round the number of pixels up would add one.
LESS = 0.001


def write_pdf(
    pages: Sequence[BoolArray], resolutions: Sequence[Resolution], parts: bool = True
) -> bytes:
    """A PDF of pages, which are arrays with True for ink; every pixel stays as it is.

    `resolutions` are dots per inch, down and across; they make the size of a page.  For `parts` see
    `write_file`.
    """
    document = encode(pages, parts)
    objects: list[bytes] = []

    def add(content: bytes) -> int:
        objects.append(content)
        return len(objects)

    catalog, tree = add(b""), add(b"")
    shared = b"".join(segment.write() for segment in document.globals())
    symbols = add(_stream(b"", shared)) if shared else 0
    kids = []
    for number, (page, resolution) in enumerate(zip(document.pages, resolutions, strict=True)):
        image = add(_image(document, number, resolution, symbols))
        height, width = (
            f"{side * UNITS / dpi - LESS:.5f}".rstrip("0").rstrip(".").encode()
            for side, dpi in zip(page.size, resolution, strict=True)
        )
        drawing = add(_stream(b"", b"%s 0 0 %s 0 0 cm /I Do" % (width, height)))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 %s %s] /Contents %d 0 R "
                b"/Resources << /XObject << /I %d 0 R >> >> >>"
                % (tree, width, height, drawing, image)
            )
        )
    objects[catalog - 1] = b"<< /Type /Catalog /Pages %d 0 R >>" % tree
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[tree - 1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), listed)
    return _file(objects, catalog)


def _image(document: Document, number: int, resolution: Resolution, symbols: int) -> bytes:
    """An image: the segments of a page as page 1, and where its symbols are."""
    page = document.pages[number]
    segments = document.page(number, len(document.symbols), 1, resolution)
    height, width = page.size
    known = b"/DecodeParms << /JBIG2Globals %d 0 R >> " % symbols
    fields = (
        b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray "
        b"/BitsPerComponent 1 /Filter /JBIG2Decode %s" % (width, height, known if symbols else b"")
    )
    return _stream(fields, b"".join(segment.write() for segment in segments))


def _stream(fields: bytes, data: bytes) -> bytes:
    return b"<< %s/Length %d >>\nstream\n%s\nendstream" % (fields, len(data), data)


def _file(objects: Sequence[bytes], catalog: int) -> bytes:
    """Numbered objects, and the table of where each begins."""
    out = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")
    starts = []
    for number, content in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % start for start in starts)
    out += b"trailer\n<< /Size %d /Root %d 0 R >>\n" % (len(objects) + 1, catalog)
    out += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(out)
