"""Thousands of mutated files: a sentence, or pages of the declared size; no crash, no hang.

As a program: ``python test_mutated_pages.py COUNT SEED FOLDER`` mutates the files of a folder so
often, decodes what comes out within limits of memory and time, and prints what happened as JSON.
"""

import io
import json
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from drawn_pages import KINDS, text

from hcnet.codec import PageInfo, Reader, Resolution, Writer
from hcnet.codec.container import CHECKSUM, HEADER, VERSION, Cursor, index_and_end, varint
from hcnet.codec.reading import PIXEL_BYTES, STATE_BYTES
from hcnet.memory import NotEnoughMemoryError
from tests.mutations import hunt, pick, run_hunt

# Pages are small here; larger ones are refused, so that thousands can be decoded.
MOST_PIXELS = 20_000
INTS = (0, 1, 2, 63, 64, 65, 127, 128, 2**14, 2**21, 2**28, 2**31 - 1, 2**31, 2**32, 2**63, 2**64)


def bytes_of(rng, data):
    """Mutate bytes, knowing nothing about them."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(data) + 1)), int(rng.geometric(0.1))
        old = data[at] if at < len(data) else 0
        removed, new = pick(
            rng,
            [
                (1, bytes([old ^ 1 << int(rng.integers(8))])),
                (1, bytes([old ^ 1 << int(rng.integers(8))])),
                (length, rng.bytes(length)),
                (length, b""),
                (0, rng.bytes(length)),
                (len(data), b""),
                (0, data[at : at + length * 10]),
                (length, bytes(length)),
                (length, b"\xff" * length),
                (1, varint(pick(rng, INTS))),
            ],
        )
        data[at : at + removed] = new
    return bytes(data)


def records(data):
    """The records of a sound file: head and payload of each."""
    reader = Reader(io.BytesIO(data))
    found = []
    for begin, end in zip(reader._starts, reader._starts[1:], strict=False):
        cursor = Cursor(data[begin:end])
        cursor.take(1)
        head = cursor.take(cursor.varint())
        cursor.checksum()
        found.append((head, data[begin + cursor.at : end]))
    return found


def forge(parts, version, count=None):
    """A file of these heads and payloads, with checksums that fit."""
    all_records = []
    for head, payload in parts:
        checksum = CHECKSUM.pack(zlib.crc32(head))
        all_records.append(b"P" + varint(len(head)) + head + checksum + payload)
    sizes = [len(record) for record in all_records]
    header = HEADER.pack(b"\x89HCZ\r\n\x1a\n", version, 0)
    return header + b"".join(all_records) + index_and_end(sizes if count is None else count)


def fields(head):
    """A head as a list of numbers up to the distance, what is after the length, and the length."""
    cursor = Cursor(head)
    first = [cursor.varint(), cursor.varint(), cursor.take(1)[0], cursor.varint()]
    length = cursor.varint()
    return first, length, head[cursor.at :]


def with_fields(first, payload, rest, fix=True):
    """A head that fits a payload."""
    rest = CHECKSUM.pack(zlib.crc32(payload)) + rest[CHECKSUM.size :] if fix else rest
    numbers = varint(first[0]) + varint(first[1]) + bytes([first[2] & 255]) + varint(first[3])
    return numbers + varint(len(payload)) + rest


def mutant(rng, data, others):
    """Mutated data, and how they were made."""
    kind = pick(rng, ["bytes"] * 5 + ["head", "head", "numbers", "payload", "payload", "records"])
    if kind == "bytes":
        return bytes_of(rng, data), kind
    found = records(data)
    version = pick(rng, [1, 2, VERSION, VERSION])
    k = int(rng.integers(len(found)))
    head, payload = found[k]
    first, _, rest = fields(head)
    if kind == "head":
        found[k] = bytes_of(rng, head), payload
    elif kind == "numbers":
        which = int(rng.integers(4))
        old = first[which]
        first[which] = pick(rng, [*INTS, old + 1, max(old - 1, 0), 2 * old, old // 2])
        found[k] = with_fields(first, payload, rest), payload
    elif kind == "payload":
        new = pick(rng, [bytes_of(rng, payload), rng.bytes(len(payload)), b"", payload + payload])
        found[k] = with_fields(first, new, rest), new
    else:
        other = pick(rng, records(pick(rng, others)))
        new = list(found)
        pick(rng, [new.reverse, new.clear, lambda: new.insert(k, other), lambda: new.pop(k)])()
        count = pick(rng, [None, None, [25] * len(new), [2**40], []])
        return forge(new, version, count), kind
    data = forge(found, version)
    return (bytes_of(rng, data), f"{kind}, then bytes") if rng.random() < 0.1 else (data, kind)


def check(path):
    """Decode the first, a middle and the last page: a word for what happened."""
    told = "decoded"
    try:
        data, salvage = io.BytesIO(path.read_bytes()), path.stem == "salvage"
        reader = Reader(data, salvage=salvage, max_pixels=MOST_PIXELS)
    except ValueError as error:
        return "refused" if is_sentence(error) else f"SENTENCE {error!r}"
    last = len(reader) - 1
    for number in sorted({0, last // 2, last} if last >= 0 else ()):
        try:
            page, shape = reader[number], reader.shape(number)
            reader.info(number)
        except (ValueError, NotEnoughMemoryError) as error:
            told = "a page refused"
            if not is_sentence(error):
                return f"SENTENCE {error!r}"
            continue
        if page.shape != shape or page.size > MOST_PIXELS or page.dtype != bool:
            return f"SHAPE {page.shape}"
    return told


def is_sentence(error):
    message = str(error)
    return message.endswith(".") and "\n" not in message and 20 < len(message) < 500


def fuzz(folder, count, seed):
    """Mutate files so many times; what happened."""
    paths = sorted(folder.glob("*.hcz"))
    sources = [path.read_bytes() for path in paths]
    for path in paths:
        assert check(path) == "decoded"  # everything is compiled before memory is limited
    mutants = folder / "mutants"
    mutants.mkdir(exist_ok=True)

    def make(rng):
        data, way = mutant(rng, pick(rng, sources), sources)
        path = mutants / pick(rng, ["mutant.hcz", "salvage.hcz"])
        path.write_bytes(data)
        return way, path

    def promised(path):
        return STATE_BYTES + PIXEL_BYTES * MOST_PIXELS + 20 * path.stat().st_size

    return hunt(count, seed, make, check, promised)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small files of several pages."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    resolution = Resolution((300, 1), (300, 1))
    with Writer(folder / "text.hcz", group=2) as writer:
        for k in range(3):
            info = PageInfo("book.tif", f"page {k}", k > 0, True, resolution)
            writer.add(text(rng, 30, 40), info)
    with Writer(folder / "kinds.hcz", group=4) as writer:
        for kind in KINDS:
            writer.add(kind(rng, 12, 18))
    with Writer(folder / "one.hcz") as writer:
        writer.add(np.ones((1, 1), bool))
    return folder


def run(folder, count, seed):
    return run_hunt(__file__, count, seed, folder)


def test_mutated_files_end_in_a_sentence_or_in_pages_of_the_declared_size(folder):
    told = run(folder, 1000, 0)
    assert told["refused"] > 100
    assert told["a page refused"] > 100
    assert told["decoded"] > 20  # otherwise only the checksums were tested


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_100_000_mutated_files_end_in_a_sentence_or_in_pages(folder):
    told = sum((run(folder, 10_000, seed) for seed in range(1, 11)), Counter())
    print(dict(told))
    assert sum(told.values()) == 100_000


if __name__ == "__main__":
    count, seed, folder = sys.argv[1:]
    print(json.dumps(fuzz(Path(folder), int(count), int(seed))))
