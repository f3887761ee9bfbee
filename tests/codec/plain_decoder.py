"""A plain decoder of `.hcz` files, written from docs/codec-format.md alone.

`decode(data)` takes the bytes of a file and returns its pages as boolean arrays, true for ink.
All checksums and digests are verified; anything wrong raises `FormatError`.  This is the container;
`plain_places` and `plain_pixels` read the payload of a page.
"""

import hashlib
import struct
import zlib

import numpy as np
from plain_pixels import PageDecoder
from plain_places import MAX_CHAIN, FormatError, Kept, require

SIGNATURE = bytes.fromhex("8948435A0D0A1A0A")


class Reader:
    """Reads bytes and numbers one after the other from a part of the file."""

    def __init__(self, data, at=0, end=None):
        """Begin at byte `at` and never go beyond byte `end`."""
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, n):
        """Return the next n bytes."""
        require(self.at + n <= self.end, "the data ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def byte(self):
        """Return the next byte as a number."""
        return self.take(1)[0]

    def varint(self):
        """Return the next number in groups of seven bits, the lowest group first."""
        value = 0
        for k in range(10):
            one = self.byte()
            value |= (one & 127) << (7 * k)
            if one < 128:
                return value
        raise FormatError("a varint has more than ten bytes")

    def u32(self):
        """Return the next four bytes as a number, the lowest byte first."""
        return struct.unpack("<I", self.take(4))[0]


def read_head(head):
    """Return the fields of the head of a page as a dictionary."""
    r = Reader(head)
    page = {"width": r.varint(), "height": r.varint(), "bits": r.byte()}
    for side in ("width", "height"):
        require(1 <= page[side] <= 16_769_024, f"bad {side} of a page")
    page["distance"] = r.varint()
    require(page["distance"] <= MAX_CHAIN, "the parent is too far away")
    page["size"], page["checksum"], page["digest"] = r.varint(), r.u32(), r.take(8)
    page["resolution"] = None
    if page["bits"] & 4:
        page["resolution"] = (r.byte(), *(r.varint() for _ in range(4)))
        require(page["resolution"][0] in (1, 2, 3), "unknown unit of the resolution")
    for field in ("file", "name"):
        length = r.varint()
        require(length <= 1024, "a name is too long")
        page[field] = r.take(length).decode("utf-8")
    require(r.at == len(head), "the head has bytes that do not belong to it")
    return page


def read_record(data, at, end):
    """Return the page record that begins at byte `at`, and the place after it."""
    r = Reader(data, at, end)
    require(r.take(1) == b"P", "a page record does not begin with P")
    length = r.varint()
    require(length <= 4096, "the head of a page is too long")
    head = r.take(length)
    require(r.u32() == zlib.crc32(head), "wrong checksum of a head")
    page = read_head(head)
    page["payload"] = r.take(page["size"])
    require(zlib.crc32(page["payload"]) == page["checksum"], "wrong checksum of a payload")
    return page, r.at


def read_index(data):
    """Return where the index begins and the length of each page record."""
    length = struct.unpack("<I", data[-8:-4])[0]
    begin = len(data) - 8 - length
    require(begin >= 10, "the index is longer than the file")
    r = Reader(data, begin, len(data) - 8)
    require(r.take(1) == b"I", "the index does not begin with I")
    body = r.take(r.varint())
    require(r.u32() == zlib.crc32(body), "wrong checksum of the index")
    require(r.at == r.end, "the index has another length than the end of the file says")
    r = Reader(body)
    count = r.varint()
    require(count <= len(body), "the index has fewer lengths than pages")
    sizes = [r.varint() for _ in range(count)]
    require(r.at == len(body), "the index has bytes that do not belong to it")
    return begin, sizes


def read_file(data):
    """Return the version and all page records of a file, with heads and payloads checked.

    Without an end, whole records are taken one after the other for as long as there are any.
    """
    require(data[:8] == SIGNATURE, "not an hcz file")
    require(len(data) >= 10 and data[8] in (1, 2, 3) and data[9] == 0, "unknown version or flags")
    pages, at = [], 10
    if data[-4:] == b"HCZ.":
        begin, sizes = read_index(data)
        for size in sizes:
            page, after = read_record(data, at, begin)
            require(after == at + size, "a record has another length than the index says")
            pages.append(page)
            at = after
        require(at == begin, "there is a gap before the index")
        return data[8], pages
    while at < len(data) and data[at : at + 1] == b"P":
        try:
            page, at = read_record(data, at, len(data))
        except FormatError:
            break
        pages.append(page)
    return data[8], pages


def digest_of(pixels):
    """Return the digest of a page: BLAKE2b of 8 bytes over its size and its packed rows."""
    height, width = pixels.shape
    packed = np.packbits(pixels, axis=1).tobytes()
    return hashlib.blake2b(struct.pack("<II", height, width) + packed, digest_size=8).digest()


def decode(data, report=None):
    """Decode a whole file and return its pages as boolean arrays, true for ink.

    `report`, if given, is called with the number of each page, its record and its pixels.
    """
    version, records = read_file(bytes(data))
    parents, chain, children = [], [], [0] * len(records)
    for i, record in enumerate(records):
        parent = i - record["distance"] if record["distance"] else None
        require(parent is None or parent >= 0, "a parent lies before the first page")
        parents.append(parent)
        chain.append(1 if parent is None else chain[parent] + 1)
        require(chain[i] <= MAX_CHAIN, "too many pages depend on each other")
        if parent is not None:
            children[parent] += 1
    states, pages = {}, []
    for i, record in enumerate(records):
        parent = parents[i]
        if parent is None:
            kept = Kept(version)
        else:
            children[parent] -= 1
            kept = states[parent].copy() if children[parent] else states.pop(parent)
        page = PageDecoder(kept, record["payload"], record["height"], record["width"])
        pixels = page.decode()
        require(digest_of(pixels) == record["digest"], f"wrong digest of page {i}")
        if children[i]:
            states[i] = kept
        if report is not None:
            report(i, record, pixels)
        pages.append(pixels)
    return pages
