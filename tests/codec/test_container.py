"""The file around the pages: what it keeps, what it refuses, and what it says."""

import io
import tracemalloc
import zlib

import numpy as np
import pytest
from drawn_pages import text

from hcnet.codec import PageInfo, Reader, Resolution, Writer, compress, decompress, reading, writing
from hcnet.codec.container import CHECKSUM, HEADER, MAGIC, index_and_end, varint
from hcnet.codec.page_parts import search_pages

INFOS = [
    PageInfo("book.tif", "cover", False, True, Resolution((300, 1), (600, 7), "centimetre")),
    PageInfo("book.tif", "ii", True, False, Resolution((0, 0), (2**32 - 1, 3), "none")),
    PageInfo("Überschrift.png", "", False, False, None),
    PageInfo(),
    PageInfo("x" * 1000, "y" * 1000),
]


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return [text(rng, 40 + k, 30) for k in range(len(INFOS))]


@pytest.fixture(scope="module")
def data(images):
    target = io.BytesIO()
    with Writer(target, group=2) as writer:
        for image, info in zip(images, INFOS, strict=True):
            writer.add(image, info)
    return target.getvalue()


def refused(call, *words, kind=ValueError):
    """What an error says: one sentence with these words."""
    with pytest.raises(kind) as caught:
        call()
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 500
    for word in words:
        assert word in sentence, sentence
    return sentence


def test_facts_about_pages_are_kept(data, images):
    reader = Reader(io.BytesIO(data))
    assert len(reader) == len(images)
    assert [reader.info(k) for k in range(len(reader))] == INFOS
    assert [reader.shape(k) for k in range(len(reader))] == [image.shape for image in images]
    for page, image in zip(reader, images, strict=True):
        np.testing.assert_array_equal(page, image)
    assert reader.damage is None


def test_a_page_needs_only_the_pages_of_its_group_before_it(data, images, monkeypatch):
    shapes = []
    decode = reading.decode_page
    monkeypatch.setattr(
        reading, "decode_page", lambda *given: shapes.append(given[1]) or decode(*given)
    )
    np.testing.assert_array_equal(Reader(io.BytesIO(data))[3], images[3])
    assert shapes == [images[2].shape, images[3].shape]
    shapes.clear()
    list(Reader(io.BytesIO(data)))
    assert shapes == [image.shape for image in images]  # each once


def test_pages_that_are_not_there_are_refused(data):
    reader = Reader(io.BytesIO(data))
    refused(lambda: reader[5], "has 5 pages, counted from 0", kind=IndexError)
    refused(lambda: reader[-6], kind=IndexError)
    refused(lambda: reader["1"], "whole number", kind=TypeError)
    refused(lambda: reader[1:2], "whole number", kind=TypeError)


def test_no_pages_are_a_file_of_no_pages():
    assert decompress(compress([])) == []


def test_a_file_that_was_cut_off_gives_its_complete_pages(data, images):
    starts = Reader(io.BytesIO(data))._starts
    for length in range(0, len(data), 7):
        cut = io.BytesIO(data[:length])
        if length < HEADER.size:
            refused(lambda: Reader(cut, salvage=True))  # noqa: B023
            continue
        refused(lambda: Reader(cut), "cut off or damaged", "salvage=True")  # noqa: B023
        reader = Reader(cut, salvage=True)
        assert len(reader) == sum(start <= length for start in starts[1:])
        assert f"after {len(reader)} complete page" in reader.damage
    for page, image in zip(reader, images, strict=True):  # only the end was missing
        np.testing.assert_array_equal(page, image)


@pytest.mark.parametrize(("extra", "told"), [(b"\n", "1 byte after"), (b"HCZ." * 9, "36 bytes")])
def test_bytes_after_the_end_are_named_and_all_pages_can_be_salvaged(data, images, extra, told):
    longer = io.BytesIO(data + extra)
    refused(lambda: Reader(longer), told, "its end", "salvage=True")
    reader = Reader(longer, salvage=True)
    assert told in reader.damage
    assert len(reader) == len(images)
    for page, image in zip(reader, images, strict=True):
        np.testing.assert_array_equal(page, image)


def test_damage_of_a_page_leaves_the_others(data, images):
    starts = Reader(io.BytesIO(data))._starts
    broken = bytearray(data)
    broken[starts[3] - 1] ^= 1  # the last byte of the third page, on which the fourth depends
    reader = Reader(io.BytesIO(broken))
    for number in (0, 1, 4):
        np.testing.assert_array_equal(reader[number], images[number])
    for number in (2, 3):
        refused(lambda: reader[number], "Page 2 of", "checksum", "other pages")  # noqa: B023
    np.testing.assert_array_equal(reader[1], images[1])
    broken[starts[3] + 5] ^= 1
    refused(lambda: Reader(io.BytesIO(broken)).info(3), "Page 3 of", "head")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"hello world, this is a text", "is not a file of compressed pages"),
        (MAGIC[:5], "is cut off"),
        (MAGIC, "is cut off"),
        (MAGIC.replace(b"\r\n", b"\n") + b"\1\0", "is not a file of compressed pages"),
        (MAGIC + b"\4\0" + index_and_end([]), "file version 4"),
        (MAGIC + b"\0\0" + index_and_end([]), "file version 0"),
        (MAGIC + b"\1\4" + index_and_end([]), "flags 0x4"),
        (MAGIC + b"\1\0" + index_and_end([25]), "damaged (a number is 1"),
        (MAGIC + b"\1\0" + index_and_end([]) + b"more", "4 bytes after its end"),
    ],
)
def test_other_files_are_refused_by_a_sentence(content, words):
    sentence = refused(lambda: decompress(content), words)
    assert ("damaged" in sentence) == ("damaged" in words)


def forged(head, payload=b""):
    """A file of one page whose checksums fit."""
    record = b"P" + varint(len(head)) + head + CHECKSUM.pack(zlib.crc32(head)) + payload
    return MAGIC + b"\1\0" + record + index_and_end([len(record)])


def head_of(width=3, height=3, bits=0, distance=0, payload=b"", names=b"\0\0"):
    numbers = varint(width) + varint(height) + bytes([bits]) + varint(distance)
    checksum = CHECKSUM.pack(zlib.crc32(payload))
    return numbers + varint(len(payload)) + checksum + bytes(8) + names


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (head_of(width=0), "3 × 0 pixels"),
        (head_of(width=2**40), "at most"),
        (head_of(bits=8), "bits"),
        (head_of(bits=4, names=b"\7" + b"\1" * 4 + b"\0\0"), "unit"),
        (head_of(distance=1), "depends on a page"),
        (head_of(distance=65), "at most 64"),
        (head_of(names=b"\1\xff\0"), "decode"),
        (head_of(names=b"\0\0\0"), "more bytes"),
        (head_of(names=b"\5ab"), "ends too early"),
        (head_of(names=varint(2000) + b"x" * 2000), "at most 1024"),
        (b"\xff" * 20, "too many bytes"),
        (b"x" * 5000, "at most 4096"),
        (head_of(), "though its bytes are as they were written"),
    ],
)
def test_forged_heads_are_refused_by_a_sentence(head, words):
    refused(lambda: decompress(forged(head)), "Page 0 of The data is damaged", words)


def test_huge_pages_are_refused_before_memory_is_taken():
    huge = forged(head_of(width=2**20, height=2**20))
    tracemalloc.start()
    try:
        sentence = refused(lambda: decompress(huge), "max_pixels", "1,048,576 × 1,048,576 pixels")
        assert "damaged" not in sentence
        refused(lambda: decompress(huge, max_pixels=2**60), "this machine has", kind=MemoryError)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_pages_that_are_huge_together_are_refused_before_memory_is_taken():
    head = head_of(width=2**14, height=2**14)
    record = b"P" + varint(len(head)) + head + CHECKSUM.pack(zlib.crc32(head))
    file = MAGIC + b"\1\0" + record * 20_000 + index_and_end([len(record)] * 20_000)
    tracemalloc.start()
    try:
        refused(lambda: decompress(file), "All pages", "this machine has", kind=MemoryError)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**23


def test_pages_in_a_ring_or_a_long_row_are_refused():
    records = []
    for k in range(70):
        head = head_of(distance=int(k > 0))
        records.append(b"P" + varint(len(head)) + head + CHECKSUM.pack(zlib.crc32(head)))
    file = MAGIC + b"\1\0" + b"".join(records) + index_and_end([len(one) for one in records])
    refused(lambda: Reader(io.BytesIO(file))[69], "too many pages in a row")


def test_what_is_decoded_wrongly_is_not_written(tmp_path, monkeypatch):
    page = np.eye(9, dtype=bool)
    monkeypatch.setattr(writing, "decode_page", lambda *given: ~page)
    with pytest.raises(RuntimeError, match="not the same after it was decoded"):
        compress(page)
    path = tmp_path / "pages.hcz"
    with pytest.raises(RuntimeError), Writer(path) as writer:
        writer.add(page)
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(decompress(compress(page, verify=False)), [page])


def test_a_file_appears_when_it_is_complete_and_replaces_no_other(tmp_path):
    path = tmp_path / "pages.hcz"
    with pytest.raises(ValueError, match="only 0 and 1"), Writer(path) as writer:
        writer.add(2 * np.eye(3))
    assert list(tmp_path.iterdir()) == []
    with Writer(path) as writer:
        writer.add(np.eye(3))
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    refused(lambda: Writer(path), "exists already", kind=FileExistsError)
    with Writer(path, overwrite=True) as writer:
        writer.add(np.eye(4))
    with Reader(path) as reader:
        np.testing.assert_array_equal(reader[0], np.eye(4))
    refused(lambda: Reader(tmp_path), "is not a file")


@pytest.mark.parametrize("options", [{}, {"fast": True}, {"verify": False}])
def test_the_writer_tells_how_far_it_is(options):
    done = []
    compress([np.eye(9)] * 5, group=2, progress=done.append, **options)
    assert done == sorted(done)
    assert done[-1] == pytest.approx(5)


@pytest.mark.parametrize("fast", [False, True])
def test_the_share_of_the_search_that_is_done_grows_to_one(fast):
    """A share that is too small at first makes the time that is left far too long."""
    page, told = text(np.random.default_rng(0), 400, 600), []
    search_pages([page], fast, told.append)
    assert len(told) > 4
    assert told == sorted(told)
    assert told[-1] == 1


def test_added_pages_may_change_afterwards():
    target, page = io.BytesIO(), np.eye(5, dtype=bool)
    with Writer(target) as writer:
        writer.add(page)
        page[:] = True
    np.testing.assert_array_equal(decompress(target.getvalue())[0], np.eye(5))


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ("page.tif", "hcnet compress"),
        (None, "got None"),
        (3, "got 3"),
        ([[0, 2], [1, 0]], "only 0 and 1"),
        ([np.full((2, 2), np.nan)], "NaN"),
        ([np.zeros((2, 2, 3))], "(height, width)"),
        ([np.zeros((0, 3))], "no pixel"),
        ([["a.tif"]], "path"),
        (np.zeros(4), "dimensions"),
        ([np.zeros((2, 2), complex)], "Complex"),
    ],
)
def test_what_is_no_page_is_refused(images, words):
    refused(lambda: compress(images), words, kind=(ValueError, TypeError))


@pytest.mark.parametrize(
    "info",
    [
        "name",
        PageInfo("x" * 2000),
        PageInfo("\ud800"),
        PageInfo(resolution=300),
        PageInfo(resolution=Resolution((300, 1), (300, 1), "mile")),
        PageInfo(resolution=Resolution((-1, 1), (300, 1))),
        PageInfo(resolution=Resolution((2**32, 1), (300, 1))),
        PageInfo(same_file="yes"),
    ],
)
def test_facts_that_no_file_can_keep_are_refused(info):
    writer = Writer(io.BytesIO())
    refused(lambda: writer.add(np.eye(3), info), kind=(ValueError, TypeError))


def test_files_are_files(data):
    refused(lambda: Reader(data), "hcnet.codec.decompress", kind=TypeError)
    refused(lambda: Writer(data), "binary file", kind=TypeError)
    refused(lambda: decompress("pages.hcz"), "hcnet.codec.Reader", kind=TypeError)
    refused(lambda: compress([], group=65), "at most 64")
    refused(lambda: compress([], fast=None), "True or False")
