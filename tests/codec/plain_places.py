"""The places of parts on a page, read from the payload of an `.hcz` file.

Written from docs/codec-format.md alone, as `plain_decoder`.  `Kept` is the state that goes on along
a chain of pages.
"""

import math

import numpy as np

MARGIN = 16  # pixels of paper on each side of the page
MAX_CHAIN = 64  # pages that may depend on each other in a row, and the largest distance
N_CONFIDENCES = 12
N_CONTEXTS, N_SETS, N_FINALS = {1: 24, 2: 32}, {1: 7, 2: 10}, {1: 1, 2: 4}  # by pixel model


class FormatError(ValueError):
    """The bytes are not a file that follows the format."""


def require(condition, message):
    """Raise `FormatError` with this message unless the condition holds."""
    if not condition:
        raise FormatError(message)


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

    def __init__(self, part, rank, top, left, size, n_compared):
        """Begin with no row known; top and left are those of the canvas."""
        self.part, self.rank, self.top, self.left = part, rank, top, left
        self.rows = 0
        self.pixels = np.zeros(size, np.int64)
        self.missed = [0] * n_compared
        self.dark = 0


class Kept:
    """All that goes from a page to the pages that depend on it."""

    MODELS = ("names", "steps", "drops", "sides", "starts", "begins")
    ARRAYS = ("weights", "uses", "final", "maps")
    LISTS = ("quiet", "quiet_n", "row", "row_n", "calm", "calm_n")

    def __init__(self, version):
        """Begin a chain of a file of this version."""
        self.version = version
        self.names = Model((16, 16, 32, 96), 44)
        self.steps = Model((96, 192, 96, 64), 8)
        self.drops = Model((192, 64) if version == 1 else (192, 192, 64, 64), 5)
        self.sides = Model((64, 64), 16)
        self.starts = Model((64,), 16)
        self.begins = Model((64,), 16)
        self.sizes = []
        self.first_pixel = [0]  # the number of the first pixel of each part, and of the next one
        self.offset, self.before, self.after = {}, {}, {}
        self.n_lines = 0
        self.copies = []
        self.ranks = []  # for each part the indices of its copies
        self.on, self.seen = [], []
        model = min(version, 2)  # of pixels
        # For each context: slot -> 256 * p + n. A slot that is not there has p = 2**21, n = 0.
        self.slots = [{} for _ in range(N_CONTEXTS[model])]
        n_sets, n_inputs = N_SETS[model], 3 + N_CONTEXTS[model]
        shape = n_sets, 1024, n_inputs * N_CONFIDENCES
        self.weights = np.full(shape, {1: 85439, 2: 65910}[model], np.int64)
        self.uses = np.zeros((n_sets, 1024), np.int64)
        shape = N_FINALS[model], 1024, n_sets
        self.final = np.full(shape, {1: 149796, 2: 104857}[model], np.int64)
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
        other.version, other.n_lines = self.version, self.n_lines
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


class PlaceDecoder:
    """Decodes the places of parts on a page; changes the kept state as it goes."""

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
                x = self.begin_of_line()
                height = 256 * (y + h) - kept.offset.get(name, 0)
            else:
                x = right + self.step(last, name, spaced)
                height, bottom = self.drop(height, name)
                y = bottom - h
            right, last, spaced = x + w, name, 0
            self.place(name, y, x)

    def begin_of_line(self):
        """Decode the column of the first copy of a line."""
        if self.kept.version > 1:
            n = min(self.W + 64, 8192)
            found = self.symbol(self.kept.begins, n, [((), 0)])
            if found < n - 1:
                return found - 32
        return self.bits.number((self.W + 8191).bit_length()) - 4096

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
        exact = height + kept.offset.get(name, 0) + 128
        expected, part = exact >> 8, name if known else -1
        contexts = [((part,), 0), ((int(known),), 0)]
        if kept.version > 1:
            quarter = (exact & 255) >> 6
            contexts.insert(1, ((int(known), quarter), 0))
            contexts.insert(0, ((part, quarter), 0))
        bottom = expected + self.far(kept.drops, -150, 150, contexts)
        if not known:
            kept.offset[name] = 256 * bottom - height
        more = 256 * bottom - height - kept.offset[name]
        if -1024 < more < 1024:
            kept.offset[name] += more * 13 // 256
            return height + more * 179 // 256, bottom
        return height + more, bottom
