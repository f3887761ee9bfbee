"""A plain decoder of `.hcz` files, written from docs/codec-format.md alone.

`decode(data)` takes the bytes of a file and returns its pages as boolean arrays, true for ink.
All checksums and digests are verified; anything wrong raises `FormatError`.

The names follow the description of the format: `Kept` is the state that goes on along a chain of
pages, `PageDecoder` is the state of one page.
"""

import hashlib
import math
import struct
import zlib

import numpy as np

SIGNATURE = bytes.fromhex("8948435A0D0A1A0A")
MARGIN = 16  # pixels of paper on each side of the page
MAX_CHAIN = 64  # pages that may depend on each other in a row, and the largest distance
N_SETS, N_INPUTS, N_CONFIDENCES = 7, 27, 12


class FormatError(ValueError):
    """The bytes are not a file that follows the format."""


def require(condition, message):
    """Raise `FormatError` with this message unless the condition holds."""
    if not condition:
        raise FormatError(message)


# ---------------------------------------------------------------------------------- the file


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
    """Return all page records of a file, with their heads and payloads checked.

    Without an end, whole records are taken one after the other for as long as there are any.
    """
    require(data[:8] == SIGNATURE, "not an hcz file")
    require(len(data) >= 10 and data[8] == 1 and data[9] == 0, "unknown version or flags")
    pages, at = [], 10
    if data[-4:] == b"HCZ.":
        begin, sizes = read_index(data)
        for size in sizes:
            page, after = read_record(data, at, begin)
            require(after == at + size, "a record has another length than the index says")
            pages.append(page)
            at = after
        require(at == begin, "there is a gap before the index")
        return pages
    while at < len(data) and data[at : at + 1] == b"P":
        try:
            page, at = read_record(data, at, len(data))
        except FormatError:
            break
        pages.append(page)
    return pages


def digest_of(pixels):
    """Return the digest of a page: BLAKE2b of 8 bytes over its size and its packed rows."""
    height, width = pixels.shape
    packed = np.packbits(pixels, axis=1).tobytes()
    return hashlib.blake2b(struct.pack("<II", height, width) + packed, digest_size=8).digest()


def decode(data, report=None):
    """Decode a whole file and return its pages as boolean arrays, true for ink.

    `report`, if given, is called with the number of each page, its record and its pixels.
    """
    records = read_file(bytes(data))
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
            kept = Kept()
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


# -------------------------------------------------------------------------- tables and helpers


def clip(a, low, high):
    """Return the number nearest to a that is not below low and not above high."""
    return low if a < low else high if a > high else a


EVIDENCE = [
    clip(round(256 * math.log((2 * i + 1) / (8191 - 2 * i))), -2047, 2047) for i in range(4096)
]
PROBABILITY = [  # index 0 is that of -2800
    clip(round(65536 / (1 + math.exp(-x / 256))), 1, 65535) for x in range(-2800, 2801)
]
SHARE = [655360 // (10 * n + 14) for n in range(251)]
CONFIDENCE = [0] + [n.bit_length() + 1 for n in range(1, 256)]
RATE = [max(262, 1966000 // math.isqrt(1000000 + 20000 * n)) for n in range(3000)]
WEIGHT = [round(65536 * math.exp(-d / 32)) for d in range(320)]


def check_tables():
    """Compare sum and weighted sum of each table with the values of the description."""
    known = [
        (EVIDENCE, 0, 2146020313),
        (PROBABILITY, 183533568, 764007315730),
        (SHARE, 366251, 16287328),
        (CONFIDENCE, 2048, 285013),
        (RATE, 1339805, 1493634113),
        (WEIGHT, 2129993, 69199858),
    ]
    for table, total, weighted in known:
        assert sum(table) == total
        assert sum(value * i for i, value in enumerate(table, 1)) == weighted


check_tables()


def join(*fields):
    """Put pairs (value, bits) together to one number; the first field takes the lowest bits."""
    value, at = 0, 0
    for one, n in fields:
        value += one << at
        at += n
    return value


def hashed(c):
    """Return the slot, of 21 bits, of a hashed context."""
    return ((c * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF) >> 43


def level_of(p):
    """Return the level, 1 to 7, of a probability of ink in 65536ths."""
    return 1 + sum(p >= bound for bound in (1966, 7864, 22938, 42598, 57672, 63570))


# ---------------------------------------------------------------- what is kept along a chain


class Model:
    """Counts of symbols in several contexts, the longest first."""

    def __init__(self, weights, share):
        """Begin without counts."""
        self.weights, self.share = weights, share
        self.counts = [{} for _ in weights]

    def copy(self):
        """Return an independent copy."""
        other = Model(self.weights, self.share)
        other.counts = [{c: dict(d) for c, d in level.items()} for level in self.counts]
        return other


class Copy:
    """One place of a part on a page, with its pixels as far as they are known."""

    def __init__(self, part, rank, top, left, size):
        """Begin with no row known; top and left are those of the canvas."""
        self.part, self.rank, self.top, self.left = part, rank, top, left
        self.rows = 0
        self.pixels = np.zeros(size, np.int64)
        self.missed = [0] * 144
        self.dark = 0


class Kept:
    """All that goes from a page to the pages that depend on it."""

    MODELS = ("names", "steps", "drops", "sides", "starts")
    ARRAYS = ("weights", "uses", "final", "maps")
    LISTS = ("quiet", "quiet_n", "row", "row_n", "calm", "calm_n")

    def __init__(self):
        """Begin a chain."""
        self.names = Model((16, 16, 32, 96), 44)
        self.steps = Model((96, 192, 96, 64), 8)
        self.drops = Model((192, 64), 5)
        self.sides = Model((64, 64), 16)
        self.starts = Model((64,), 16)
        self.sizes = []
        self.first_pixel = [0]  # the number of the first pixel of each part, and of the next one
        self.offset, self.before, self.after = {}, {}, {}
        self.n_lines = 0
        self.copies = []
        self.ranks = []  # for each part the indices of its copies
        self.on, self.seen = [], []
        # For each context: slot -> 256 * p + n. A slot that is not there has p = 2**21, n = 0.
        self.slots = [{} for _ in range(24)]
        self.weights = np.full((N_SETS, 1024, N_INPUTS * N_CONFIDENCES), 85439, np.int64)
        self.uses = np.zeros((N_SETS, 1024), np.int64)
        self.final = np.full((1024, N_SETS), 149796, np.int64)
        bins = [PROBABILITY[clip(128 * b - 2048, -2047, 2047) + 2800] << 6 for b in range(33)]
        self.maps = np.tile(np.array(bins, np.int64), (2, 32768, 1))
        self.quiet, self.quiet_n = [549755813] * 256, [0] * 256
        self.row, self.row_n = [2**39] * 2, [0] * 2
        self.calm, self.calm_n = [549755813] * 8192, [0] * 8192

    def copy(self):
        """Return an independent copy, for a parent of several pages."""
        other = Kept.__new__(Kept)
        for name in self.MODELS + self.ARRAYS:
            setattr(other, name, getattr(self, name).copy())
        for name in (*self.LISTS, "sizes", "first_pixel", "offset", "before", "after"):
            setattr(other, name, getattr(self, name).copy())
        other.n_lines = self.n_lines
        # Copies of pages that are finished never change, except that `rows` becomes the height.
        other.copies = list(self.copies)
        other.ranks = [list(one) for one in self.ranks]
        other.on = [one.copy() for one in self.on]
        other.seen = [one.copy() for one in self.seen]
        other.slots = [dict(one) for one in self.slots]
        return other


# ------------------------------------------------------------------------ arithmetic decoder


class Bits:
    """The arithmetic decoder of a payload."""

    def __init__(self, payload):
        """Begin with the first four bytes; zeros follow the payload."""
        self.data = payload
        self.code = int.from_bytes((payload + bytes(4))[:4], "big")
        self.length = 2**32 - 1
        self.at = 4

    def get(self, p):
        """Return the next bit, which is 1 with probability p / 65536."""
        bound = (self.length * p) >> 16
        if self.code < bound:
            self.length = bound
            bit = 1
        else:
            self.code -= bound
            self.length -= bound
            bit = 0
        while self.length < 2**24:
            self.code *= 256
            if self.at < len(self.data):
                self.code += self.data[self.at]
            self.length *= 256
            self.at += 1
        return bit

    def number(self, n):
        """Return a number of n bits, the highest first."""
        value = 0
        for _ in range(n):
            value = 2 * value + self.get(32768)
        return value

    def rare(self, prob, n, a):
        """Return a bit with the probability prob[a], in units of 2**-40, and learn it."""
        bit = self.get(clip(prob[a] >> 24, 1, 65535))
        n[a] = min(n[a] + 1, 50000)
        p = prob[a] + (bit * 2**40 - prob[a]) // (n[a] + 300)
        prob[a] = clip(p, 2**20, 2**39)
        return bit


# ------------------------------------------------------------------------------------ a page


class ExpectedRow:
    """The seven expectations of each pixel of one row of the canvas."""

    def __init__(self, width):
        """Begin without expectations."""
        self.level, self.prob, self.mean = [0] * width, [0] * width, [0] * width
        self.sure, self.nearest = [0] * width, [0] * width
        self.dark, self.owner = [3] * width, [-1] * width


class PageDecoder:
    """Decodes one page; changes the kept state as it goes."""

    BITS = Bits

    def __init__(self, kept, payload, height, width):
        """Begin a page of this size with the state that its parent left."""
        self.kept, self.bits, self.H, self.W = kept, self.BITS(payload), height, width
        self.wide = width + 2 * MARGIN
        for c in kept.copies:
            c.rows = kept.sizes[c.part][0]
        self.copies = []
        self.symbol_work, self.area, self.heights = 0, 0, 0  # sums that have limits
        self.rows = {}  # row of the canvas -> its expectations

    def decode(self):
        """Decode everything and return the pixels of the page as a boolean array."""
        self.fast = self.bits.number(1)
        top = 0
        for _ in range(self.bits.number(20)):
            begin = len(self.copies)
            self.decode_line(top)
            if len(self.copies) > begin:
                top = self.copies[begin][1]
            self.kept.n_lines += 1
        self.begin_pixels()
        for y in range(MARGIN, MARGIN + self.H):
            self.decode_row(y)
        canvas = np.array([np.frombuffer(row, np.uint8) for row in self.ink])
        return canvas[MARGIN:-MARGIN, MARGIN:-MARGIN].astype(bool)

    # ---- symbols

    def symbol(self, model, n, contexts):
        """Return a symbol below n; contexts are pairs (context, shift), the longest first."""
        self.symbol_work += n + 1000
        require(self.symbol_work <= 64 * self.H * self.W + 4194304, "too many symbols")
        p = [2**30 // n] * n
        for level in reversed(range(len(contexts))):
            context, shift = contexts[level]
            counts = model.counts[level].get(context, {})
            seen = [(k + shift, times) for k, times in counts.items() if 0 <= k + shift < n]
            if not seen:
                continue
            weight = model.weights[level] + model.share * len(seen)
            total = 16 * sum(times for _, times in seen) + weight
            p = [one * weight for one in p]
            for s, times in seen:
                p[s] += times * 2**34
            p = [one // total for one in p]
        to = [0]
        for one in p:
            to.append(to[-1] + one + 1)
        low, high = 0, n
        while high - low > 1:
            middle = (low + high) // 2
            right = ((to[high] - to[middle]) * 65536) // (to[high] - to[low])
            if self.bits.get(clip(right, 1, 65535)):
                low = middle
            else:
                high = middle
        for level, (context, shift) in enumerate(contexts):
            counts = model.counts[level].setdefault(context, {})
            counts[low - shift] = counts.get(low - shift, 0) + 1
        return low

    def far(self, model, low, high, contexts):
        """Return a number; those from low to high - 1 have symbols, others 25 bits."""
        found = self.symbol(model, high - low + 1, contexts)
        if found < high - low:
            return found + low
        return self.bits.number(25) - 2**24

    # ---- places of parts

    def decode_line(self, top):
        """Decode the copies of a line; top is that of the first copy of the last line."""
        kept = self.kept
        earlier, last, height, right, spaced = (-1, -1, -1), -1, None, 0, 0
        while True:
            contexts = [(earlier, 0), (earlier[1:], 0), (earlier[2:], 0), ((), 0)]
            name = self.symbol(kept.names, len(kept.sizes) + 3, contexts) - 3
            earlier = (earlier[1], earlier[2], name)
            if name == -3:
                return
            if name == -1:
                spaced = 1
                continue
            if name == -2:
                name = len(kept.sizes)
                self.new_part()
            h, w = kept.sizes[name]
            if height is None:
                y = top + self.far(kept.starts, 0, 150, [((), 0)])
                x = self.bits.number((self.W + 8191).bit_length()) - 4096
                height = 256 * (y + h) - kept.offset.get(name, 0)
            else:
                x = right + self.step(last, name, spaced)
                height, bottom = self.drop(height, name)
                y = bottom - h
            right, last, spaced = x + w, name, 0
            self.place(name, y, x)

    def new_part(self):
        """Decode the size of a new part and add the part."""
        kept = self.kept
        h = self.far(kept.sides, 0, 200, [((0,), 0), ((), 0)])
        w = self.far(kept.sides, 0, 200, [((1, h >> 3), 0), ((), 0)])
        require(1 <= h <= 4096 and 1 <= w <= 4096, "bad size of a part")
        kept.sizes.append((h, w))
        kept.first_pixel.append(kept.first_pixel[-1] + h * w)
        require(kept.first_pixel[-1] < 2**31, "the parts have too many pixels")
        kept.on.append(np.zeros((h, w), np.int64))
        kept.seen.append(np.zeros((h, w), np.int64))
        kept.ranks.append([])

    def place(self, name, y, x):
        """Add a copy to those of the page, if the limits allow it."""
        require(-4096 <= y <= self.H + 4095 and -4096 <= x <= self.W + 4095, "bad place")
        self.copies.append((name, y, x))
        h, w = self.kept.sizes[name]
        self.area += h * w
        self.heights += h
        require(self.area <= 2 * self.H * self.W + 65536, "the copies are too large")
        require(8 * (self.heights - 8192) <= self.H * self.W, "the copies are too high")

    def step(self, last, name, spaced):
        """Decode how far a copy is to the right of the copy before it."""
        kept = self.kept
        room = kept.after.get(last, 0) + kept.before.get(name, 0)
        shift = (room + 128) >> 8
        contexts = [
            ((last, name, spaced), 0),
            ((name, spaced), 0),
            ((kept.n_lines, spaced), shift),
            ((spaced,), shift),
        ]
        value = self.far(kept.steps, -200, 200, contexts)
        if not spaced and -200 < value < 200:
            more = clip(256 * value - room, -2048, 2048) * 32 // 256
            kept.after[last] = kept.after.get(last, 0) + more
            kept.before[name] = kept.before.get(name, 0) + more
        return value

    def drop(self, height, name):
        """Decode where a copy stands; return the height of the line and the bottom row."""
        kept = self.kept
        known = name in kept.offset
        expected = (height + kept.offset.get(name, 0) + 128) >> 8
        contexts = [((name if known else -1,), 0), ((int(known),), 0)]
        bottom = expected + self.far(kept.drops, -150, 150, contexts)
        if not known:
            kept.offset[name] = 256 * bottom - height
        more = 256 * bottom - height - kept.offset[name]
        if -1024 < more < 1024:
            kept.offset[name] += more * 13 // 256
            return height + more * 179 // 256, bottom
        return height + more, bottom

    # ---- copies and events

    def begin_pixels(self):
        """Prepare everything that belongs to the pixels of the page."""
        kept = self.kept
        self.base = len(kept.copies)
        for part, top, left in self.copies:
            rank = len(kept.ranks[part])
            kept.ranks[part].append(len(kept.copies))
            copy = Copy(part, rank, top + MARGIN, left + MARGIN, kept.sizes[part])
            kept.copies.append(copy)
        self.events = self.find_events()
        self.parts = len(self.events) > 0
        self.event = 0
        self.without, self.after_empty = 7, 1
        self.last_row = [0] * self.wide
        self.down, self.right = [255] * self.wide, [0] * self.wide
        self.ink = [bytearray(self.wide) for _ in range(self.H + 2 * MARGIN)]
        # The same rows as numbers: the last pixel of the canvas is the lowest bit.
        self.numbers = [0] * (self.H + 2 * MARGIN)

    def find_events(self):
        """Return all events (row, column, kind, copy) of the page in their order."""
        kept, found = self.kept, []
        for i in range(self.base, len(kept.copies)):
            c = kept.copies[i]
            h, w = kept.sizes[c.part]
            for y in range(c.top - 2, c.top + h):
                found.append((y, max(c.left - 3, 0), 0, i))
            for y in range(c.top, c.top + h):
                found.append((y, c.left + w, 1, i))
        return sorted(e for e in found if MARGIN <= e[0] < MARGIN + self.H)

    def happen(self, event):
        """Let an event take place: expect rows of a copy, or remember one."""
        y, _, kind, i = event
        if kind == 1:
            self.remember(i, y)
            return
        if y > self.kept.copies[i].top and y > MARGIN:
            self.compare(i, y)
        self.expect(i, y)

    def remember(self, i, y):
        """Take row y of the canvas into the pixels of copy i and the counts of its part."""
        kept, c = self.kept, self.kept.copies[i]
        v, row = y - c.top, self.ink[y]
        for u in range(kept.sizes[c.part][1]):
            x = c.left + u
            bit = row[x] if 0 <= x < self.wide else 0
            c.pixels[v, u] = bit
            kept.on[c.part][v, u] += bit
            kept.seen[c.part][v, u] += 1
        c.rows = v + 1

    def others(self, i, v):
        """Return pairs (j, copy): the copies near copy i by rank that know their row v."""
        copies, c = self.kept.copies, self.kept.copies[i]
        same = self.kept.ranks[c.part]
        ranks = range(max(c.rank - 128, 0), min(c.rank + 16, len(same)))
        return [
            (r - c.rank + 128, copies[same[r]])
            for r in ranks
            if r != c.rank and copies[same[r]].rows > v
        ]

    def compare(self, i, y):
        """Compare row y - 1 of copy i with its expectation and with other copies."""
        c = self.kept.copies[i]
        v, w = y - 1 - c.top, self.kept.sizes[c.part][1]
        expected, more = self.rows[y - 1], 0
        own = c.pixels[v]
        for u in range(w):
            x = c.left + u
            if 0 <= x < self.wide and expected.level[x] > 0:
                more += int(own[u]) * 65536 - expected.prob[x]
        c.dark = ((c.dark * 205) >> 8) + more
        for j, other in self.others(i, v):
            d = int(np.count_nonzero(own != other.pixels[v]))
            c.missed[j] = ((c.missed[j] * 243) >> 8) + 16 * d

    def expect(self, i, y):
        """Set the expectations of the rows y to y + 2 where copy i knows better."""
        kept, c = self.kept, self.kept.copies[i]
        k = c.part
        h, w = kept.sizes[k]
        now = y - c.top
        bounds = (-262144, -131072, -45875, 45876, 131072, 262144)
        darkness = sum(c.dark >= bound for bound in bounds)
        for v in range(max(now, 0), min(now + 3, h)):
            others = self.others(i, v)
            best, least = None, None
            for j, other in others:
                if least is None or c.missed[j] <= least:
                    best, least = other, c.missed[j]
            sums, weights = np.zeros(w, np.int64), 0
            for j, other in others:
                d = c.missed[j] - least
                if d < 320:
                    weights += WEIGHT[d]
                    sums += WEIGHT[d] * other.pixels[v]
            self.expect_row(c, v, v == now, darkness, len(others), best, sums, weights)

    def expect_row(self, c, v, present, darkness, n, best, sums, weights):
        """Set the expectations of row v of a copy, from what `expect` found."""
        kept, k = self.kept, c.part
        w = kept.sizes[k][1]
        row = self.rows[c.top + v]
        on, seen, sums = kept.on[k][v].tolist(), kept.seen[k][v].tolist(), sums.tolist()
        near = None if best is None else best.pixels[v].tolist()
        for u in range(w):
            x = c.left + u
            if not 0 <= x < self.wide:
                continue
            f = kept.first_pixel[k] + v * w + u
            m = seen[u]
            if n == 0 and m == 0:
                if row.level[x] == 0:
                    row.owner[x] = f
                continue
            average = ((100 * on[u] + 12) * 65536) // (100 * m + 40)
            p = (sums[u] * 65536 + average * 32768) // (weights + 32768)
            if row.level[x] == 0 or row.owner[x] == f or p > row.prob[x]:
                row.level[x] = level_of(p)
                row.prob[x] = p
                row.mean[x] = average
                row.sure[x] = CONFIDENCE[min(max(n, m), 255)]
                row.nearest[x] = int(average > 32768) if near is None else near[u]
                row.owner[x] = f
                if present:
                    row.dark[x] = darkness

    # ---- rows

    def events_until(self, y, x):
        """Let the events of row y with a column up to x take place; all if x is None."""
        while self.event < len(self.events) and self.events[self.event][0] == y:
            if x is not None and self.events[self.event][1] > x:
                return
            self.happen(self.events[self.event])
            self.event += 1

    def decode_row(self, y):
        """Decode the pixels of row y of the canvas."""
        kept = self.kept
        here = self.event < len(self.events) and self.events[self.event][0] == y
        if self.without >= 7 and not here:
            bit = self.bits.rare(kept.row, kept.row_n, self.after_empty)
            self.after_empty = 1 - bit
            if not bit:
                self.without += 1
                return
        self.after_empty = 0
        for old in [one for one in self.rows if one < y - 2]:
            del self.rows[old]
        for one in range(y - 2, y + 3):
            if one not in self.rows:
                self.rows[one] = ExpectedRow(self.wide)
        self.count_runs(y)
        row, last, run, any_ink = self.ink[y], -100, 16, 0
        self.left = 0  # the pixels of the row so far; the last one is the lowest bit
        for x in range(MARGIN, MARGIN + self.W):
            self.events_until(y, x)
            bit = self.decode_pixel(y, x, last, run)
            row[x] = bit
            self.left = 2 * self.left + bit
            if bit:
                last, any_ink = x, 1
                self.last_row[x] = y
            run = run + 1 if row[x - 1] == bit else 1
        self.numbers[y] = self.left << MARGIN
        self.events_until(y, None)
        self.without = 0 if any_ink else self.without + 1

    def decode_pixel(self, y, x, last, run):
        """Decode one pixel as quiet, calm or mixed; last is the last column with ink."""
        kept = self.kept
        if self.is_quiet(y, x, last):
            a = min((x - last).bit_length(), 15)
            seen = max(self.last_row[x - 3], self.last_row[x], self.last_row[x + 3])
            b = min((y - seen).bit_length(), 15)
            return self.bits.rare(kept.quiet, kept.quiet_n, 16 * a + b)
        if self.is_calm(y, x):
            level = self.rows[y].level
            beside = max(level[x + 1], self.rows[y + 1].level[x])
            a = join(
                (min(self.right[x], 15), 4),
                (min(run.bit_length(), 7), 3),
                (min(self.down[x], 15), 4),
                (level[x], 1),
                (beside, 1),
            )
            return self.bits.rare(kept.calm, kept.calm_n, a)
        return self.mixed(y, x, run)

    def is_quiet(self, y, x, last):
        """Tell whether there is neither ink nor an expectation around."""
        if x - last <= 7:
            return False
        level = self.rows[y].level
        if self.parts and (level[x] or level[x + 1] or self.rows[y + 1].level[x]):
            return False
        return not any(self.row_of(y, x, d, -7, 7)[0] for d in range(1, 8))

    def is_calm(self, y, x):
        """Tell whether there is no ink around and paper is expected."""
        if not self.fast and self.rows[y].level[x] == 0:
            return False
        if self.left & 7 or self.row_of(y, x, 1, -3, 3)[0] or self.row_of(y, x, 2, -3, 3)[0]:
            return False
        if self.row_of(y, x, 3, -2, 2)[0]:
            return False
        return all(max(self.rows[y + v].level[x - 1 : x + 2]) <= 1 for v in (-1, 0, 1))

    def count_runs(self, y):
        """Count the runs to the right in the row above, and down to the row above."""
        above, over = self.ink[y - 1], self.ink[y - 2]
        right, down = self.right, self.down
        right[self.wide - 1] = 255
        for x in reversed(range(self.wide - 1)):
            right[x] = min(right[x + 1] + 1, 255) if above[x] == above[x + 1] else 1
        for x in range(self.wide):
            if self.without >= 7:
                down[x] = max(down[x], self.without)
            down[x] = min(down[x] + 1, 255) if above[x] == over[x] else 1

    # ---- contexts

    def left_of(self, n):
        """Return n pixels to the left, the nearest as the lowest bit, and n."""
        return self.left & ((1 << n) - 1), n

    def row_of(self, y, x, d, a, b):
        """Return the pixels x + a to x + b, d rows above, the last as the lowest bit."""
        n = b - a + 1
        return (self.numbers[y - d] >> (self.wide - 1 - x - b)) & ((1 << n) - 1), n

    def inputs(self, y, x, run):
        """Return slots, selections, evidences and confidences for a mixed pixel."""
        windows = [0] + [self.row_of(y, x, d, -7, 12)[0] for d in range(1, 8)]
        left = self.left_of

        def row(d, a, b):
            return (windows[d] >> (12 - b)) & ((1 << (b - a + 1)) - 1), b - a + 1

        a = min(self.right[x], 15)
        b = min(self.right[x + a], 15) if a < 15 else 0
        w, ww = self.left & 1, self.left >> 1 & 1
        n, nn, nw, ne = row(1, 0, 0)[0], row(2, 0, 0)[0], row(1, -1, -1)[0], row(1, 1, 1)[0]
        up = [min(self.down[x + u], 31) for u in (-1, 0, 1, 2)]
        up15 = min(up[1], 15)

        column = [row(d, 0, 0) for d in range(2, 8)]
        narrow = [row(d, -1, 1) for d in range(1, 8)]
        rays = [row(d, u, u) for d in range(3, 8) for u in (-d, d)]
        wide = [row(1, -6, 6), row(2, -6, 6), row(3, -5, 5), row(4, -4, 4), row(5, -3, 3)]
        c = [
            join(left(2), row(1, -2, 2), row(2, -1, 1)),
            join(left(3), row(1, -3, 3), row(2, -2, 2), row(3, 0, 0)),
            join(left(3), row(1, -3, 3), row(2, -3, 3), row(3, -2, 2)),
            join(left(4), row(1, -4, 4), row(2, -4, 4), row(3, -3, 3), row(4, -1, 1)),
            join(left(5), row(1, -5, 5), row(2, -5, 5), row(3, -4, 4), row(4, -3, 3),
                 row(5, -1, 1)),
            join(left(2), row(1, -1, 1), *column),
            join(left(7), row(1, -3, 5)),
            join((a, 4), (b, 4), (min(run, 31), 5), (w, 1), row(1, -1, 1), (up15, 4)),
            join((up[1], 5), (up[2], 5), (up[0], 5), (min(up[3], 15), 4), left(2),
                 row(1, -2, 2)),
            join(left(15), row(1, -7, 12)) + (1 << 50),
            join(left(7), *wide) ^ (row(6, -2, 2)[0] * 0x1D872B41D872B41),
            join(left(2), *narrow) + (3 << 50),
            join(left(4), row(1, -2, 2), row(2, 0, 0), row(2, -2, -2), row(2, 2, 2), *rays)
            + (5 << 50),
            join(left(2), row(1, -2, 9), row(2, -1, 10), row(3, 2, 9)) + (7 << 50),
        ]  # fmt: skip
        selection = [
            0,
            join(left(2), row(1, -1, 1), row(2, 0, 0)) * 8,
            c[0],
            c[5] % 512,
            c[0],
            c[6] % 1024,
            (a * 16 + up15) * 4 + w * 2 + (run >= 4),
            c[0] * 8,
            (c[1] >> 4) * 8,
        ]
        if self.parts:
            self.add_expected(y, x, (w, ww, n, nn, nw, ne), c, selection)
        slot = [hashed(one) if k in HASHED else one for k, one in enumerate(c)]
        e, s = [77, 0, 0], [0, 0, 0]
        expected = self.rows[y]
        if expected.level[x] > 0:
            e[1] = EVIDENCE[clip(expected.prob[x], 131, 65405) >> 4]
            e[2] = EVIDENCE[clip(expected.mean[x], 131, 65405) >> 4]
            s[1] = s[2] = expected.sure[x]
        for k, one in enumerate(slot):
            both = self.kept.slots[k].get(one, NEW_SLOT)
            e.append(EVIDENCE[both >> 18])
            s.append(CONFIDENCE[both & 255])
        return slot, selection, e, s

    def add_expected(self, y, x, pixels, c, selection):
        """Add the ten contexts from the expectations to c and change the selections."""
        w, ww, n, nn, nw, ne = pixels
        rows = [self.rows[y + v] for v in range(-2, 3)]
        present = rows[2]
        lnw, ln, lne = rows[1].level[x - 1 : x + 2]
        lw, own, le = present.level[x - 1 : x + 2]
        lsw, ls, lse = rows[3].level[x - 1 : x + 2]
        have = int(own > 0)
        before = join((w, 1), (n, 1), (nw, 1), (ne, 1))
        nine = join(*[(one >= 4, 1) for one in (lse, ls, lsw, le, own, lw, lne, ln, lnw)])
        cross = 0
        for v in range(-2, 3):
            for u in range(-2, 3):
                if abs(u) + abs(v) < 4:
                    cross = 2 * cross + (rows[v + 2].level[x + u] >= 4)
        ew, en = 1 + w - (lw >= 4), 1 + n - (ln >= 4)
        enw, ene = 1 + nw - (lnw >= 4), 1 + ne - (lne >= 4)
        seen = min(present.sure[x], 7)
        fine = present.prob[x] >> 11
        dk = present.dark[x]
        mn = level_of(present.mean[x]) if have else 0
        near = 0
        for v in (-1, 0, 1):
            for u in (-1, 0, 1):
                near = 2 * near + rows[v + 2].nearest[x + u]

        def half(one):
            return min((one + 1) >> 1, 3), 2

        if have and present.owner[x] >= 0:
            pixel = 8 * present.owner[x] + 4 * w + 2 * n + ne
        else:
            pixel = -1 - before
        halves = [half(one) for one in (lw, ln, le, ls, lne, lse, lsw, lnw)]
        c += [
            join((have, 1), (nine, 9), (before, 4)),
            join((own, 3), (lw, 3), (ln, 3), (le, 3), (ls, 3), (before, 4)),
            join((have, 1), (seen, 3), (ew, 2), (en, 2), (enw, 2), (ene, 2), (fine, 5)),
            join((cross, 21), (have, 1), (before, 4)),
            join((c[0], 10), (own, 3), (le, 3), (ls, 3)),
            pixel,
            join((before, 4), (ww, 1), (nn, 1), (own, 3), *halves),
            join((own, 3), (mn, 3), (dk, 3), (ew, 2), (en, 2), (le, 3), (ls, 3), (ne, 1)),
            join((own, 3), (before, 4), (near, 9)),
            join((fine, 5), (dk, 3), (before, 4), (ww, 1), (nn, 1), (le, 3), (lsw, 3),
                 (have, 1)),
        ]  # fmt: skip
        selection[0] = (own * 8 + seen) * 2 + (present.owner[x] >= 0)
        selection[1] = join((before, 4), (ww, 1), (nn, 1)) * 8 + own
        selection[2] = (((ew * 3 + en) * 3 + enw) * 3 + ene) * 8 + own
        selection[3] = (dk * 8 + ls) * 8 + le
        selection[5] = near * 2 + have
        selection[7] = c[0] * 8 + own
        selection[8] = (c[1] >> 4) * 8 + own

    # ---- mixing

    def mixed(self, y, x, run):
        """Decode a pixel by mixing all inputs, and learn from it."""
        kept = self.kept
        slot, selection, e, s = self.inputs(y, x, run)
        s1 = selection[1]
        evidence = np.array(e, np.int64)
        places = np.arange(len(e)) * N_CONFIDENCES + np.array(s)
        chosen = np.array(selection[:N_SETS])
        at = (SETS[:, None], chosen[:, None], places[None, :])
        weights = kept.weights[at]
        total = np.clip((weights @ evidence) >> 20, -2800, 2800)
        guess = PROBABILITY_ARRAY[total + 2800]
        final = kept.final[s1]
        t = clip(int(final @ total) >> 20, -2800, 2800)
        whole = PROBABILITY[t + 2800]
        middle = clip(t, -2047, 2047) + 2048
        low, part = middle >> 7, middle & 127
        p = 2 * whole
        for q in range(2):
            m = kept.maps[q, selection[7 + q]]
            p += (int(m[low]) * (128 - part) + int(m[low + 1]) * part) >> 13
        bit = self.bits.get(clip(p >> 2, 1, 65535))

        uses = kept.uses[SETS, chosen]
        kept.uses[SETS, chosen] = np.minimum(uses + 1, 2999)
        change = (bit * 65536 - guess) * RATE_ARRAY[uses]
        learns = np.abs(change) >= 8192
        change = np.where(learns, change, 0)  # then `more` is 0, too: 524288 >> 20 is 0
        more = (change[:, None] * evidence + 524288) >> 20
        kept.weights[at] = np.clip(weights + more, -(2**26), 2**26)
        more = ((bit * 65536 - whole) * total * 16 + 524288) >> 20
        kept.final[s1] = np.clip(final + np.where(learns, more, 0), -(2**26), 2**26)
        for k, one in enumerate(slot):
            both = kept.slots[k].get(one, NEW_SLOT)
            old, n = both >> 8, both & 255
            old += ((4194303 * bit - old) * SHARE[n]) >> 16
            kept.slots[k][one] = old << 8 | min(n + 1, 250)
        near = (middle + 64) >> 7
        for q in range(2):
            m = kept.maps[q, selection[7 + q]]
            m[near] += ((4194304 * bit - int(m[near])) * 3) >> 8
        return bit


HASHED = {3, 4, 7, 8, 9, 10, 11, 12, 13, 17, 19, 20}
NEW_SLOT = 2**21 << 8
SETS = np.arange(N_SETS)
PROBABILITY_ARRAY = np.array(PROBABILITY, np.int64)
RATE_ARRAY = np.array(RATE, np.int64)
