"""Where parts lie on a page: names and positions, in lines from left to right.

A symbol is coded with probabilities that are counted on the way: in the longest context first, as
far as that was seen, then in shorter ones.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.arithmetic import END, PER_BIT, Bytes, Coder, code_bit

IntArray = NDArray[np.int64]
# Probabilities during blending have 30 bits, counts of symbols are in 16ths.
WHOLE, SIXTEEN = 1 << 30, 16
# Steps between copies and lines that have a symbol of their own; others are written out.
STEP, DROP = 200, 150
# Names that are no parts: a space, a new part, the end of a line.
GAP, NEW, LAST = -1, -2, -3
# A space is wider than this share of the height of parts.
SPACE = 0.18
# The largest side of a part, and of a page.
LARGEST, PAGE = 1 << 12, 1 << 24
# Most lines of a page.  What its copies may have together, for each of its pixels and in addition:
# pixels, rows, and the work of coding them, in symbols that are looked at.  A file may come from
# anybody; these bound time and memory, and real pages need less than a tenth.
MOST_LINES = 1 << 20
MOST_INK, MOST_ROWS, MOST_WORK = (2, 1 << 16), (1 / 8, 1 << 13), (64, 1 << 22)
# Work of a symbol beside those that are looked at, and the most symbols of a copy and its line.
PER_SYMBOL, SYMBOLS, FIXED = 1000, 9, 2000


class Stream:
    """Bits written to, or read from, a growing array of bytes."""

    def __init__(self, coder: Coder, data: Bytes, decode: bool, n_pixels: int) -> None:
        self.coder, self.data, self.decode = coder, data, decode
        self.left = limits(n_pixels)

    def spend(self, *amounts: float) -> None:
        """Count pixels and rows of copies, and work, before there are too many."""
        self.left = [left - amount for left, amount in zip(self.left, amounts, strict=True)]
        if min(self.left) < 0:
            raise ValueError("its copies of parts are too many for its page")

    def room(self, n_bits: int) -> None:
        """See that there is room for so many bits more."""
        if self.decode:
            return
        need = int(self.coder[2]) + PER_BIT * n_bits + END
        if need > len(self.data):
            self.data = np.concatenate([self.data, np.zeros(max(need, len(self.data)), np.uint8)])

    def bit(self, bit: int, p: int) -> int:
        """Code a bit that is 1 with probability p / 65536."""
        return int(code_bit(self.coder, self.data, self.decode, bit, min(max(p, 1), 65535)))

    def number(self, value: int, below: int) -> int:
        """Code a number, all of them alike."""
        self.room(64)
        found = 0
        for k in reversed(range((below - 1).bit_length())):
            found |= self.bit((value >> k) & 1, 32768) << k
        return found


def limits(n_pixels: int) -> list[float]:
    """Pixels, rows and work that the copies on a page may have."""
    return [each * n_pixels + more for each, more in (MOST_INK, MOST_ROWS, MOST_WORK)]


def fitting(
    placements: IntArray, sizes: IntArray, shape: tuple[int, int], n_parts: int
) -> IntArray:
    """The placements that can be coded after `n_parts` parts; none if they are too many."""
    top_left, size = placements[:, 1:], sizes[placements[:, 0]]
    inside = (top_left >= -LARGEST) & (top_left < np.array(shape) + LARGEST) & (size <= LARGEST)
    kept = inside.all(axis=1)
    placements, (height, width) = placements[kept], size[kept].T
    each = SYMBOLS * PER_SYMBOL + FIXED + 3 * (n_parts + len(sizes))
    spent = [int((height * width).sum()), int(height.sum()), each * len(placements)]
    fits = all(one <= most for one, most in zip(spent, limits(shape[0] * shape[1]), strict=True))
    return placements if fits else placements[:0]


# What symbols are counted for, and a number that is subtracted from them.
Context = tuple[tuple[int, ...], int]


@dataclass
class Symbols:
    """Symbols below a number, with contexts from long to short and the weight of each."""

    weights: Sequence[int]  # of shorter contexts, in 16ths of a symbol
    share: int  # the same, for every symbol that was seen
    counts: list[dict[tuple[int, ...], dict[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = self.counts or [{} for _ in self.weights]

    def code(self, stream: Stream, symbol: int, n: int, contexts: Sequence[Context]) -> int:
        """Code a symbol of n."""
        stream.spend(0, 0, n + PER_SYMBOL)
        p = np.full(n, WHOLE // n)
        for (context, shift), weight, counts in zip(
            reversed(contexts), reversed(self.weights), reversed(self.counts), strict=True
        ):
            seen = counts.get(context)
            if not seen:
                continue
            at = np.fromiter(seen, np.int64, len(seen)) + shift
            times = np.fromiter(seen.values(), np.int64, len(seen))
            inside = (at >= 0) & (at < n)
            at, times = at[inside], times[inside]
            weight += self.share * len(at)
            p *= weight
            p[at] += times * (SIXTEEN * WHOLE)
            p //= SIXTEEN * int(times.sum()) + weight
        to = np.concatenate([[0], np.cumsum(p + 1)]).tolist()
        stream.room(32)
        low, high = 0, n
        while high - low > 1:
            middle = (low + high) // 2
            right = ((to[high] - to[middle]) << 16) // (to[high] - to[low])
            if stream.bit(int(symbol >= middle), right):
                low = middle
            else:
                high = middle
        for (context, shift), counts in zip(contexts, self.counts, strict=True):
            seen = counts.setdefault(context, {})
            seen[low - shift] = seen.get(low - shift, 0) + 1
        return low


class Places:
    """Codes the places of parts; learns from page to page."""

    def __init__(self) -> None:
        self.names = Symbols((16, 16, 32, 96), 44)
        self.steps = Symbols((96, 192, 96, 64), 8)
        self.drops = Symbols((192, 64), 5)
        self.sides = Symbols((64, 64), 16)
        self.starts = Symbols((64,), 16)
        self.sizes: list[tuple[int, int]] = []  # of the parts so far
        self.offset: dict[int, int] = {}  # of a part from its line, in 256ths of a pixel
        self.before: dict[int, int] = {}  # room that a part leaves before it, in 256ths
        self.after: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # of parts, by those of the encoder
        self.n_lines = 0

    def copy(self) -> Places:
        """The same, which then learns by itself."""
        return copy.deepcopy(self)

    def code(
        self, stream: Stream, shape: tuple[int, int], lines: Sequence[IntArray], sizes: IntArray
    ) -> IntArray:
        """Write lines of rows of part, top and left, or read them; returns rows of all lines.

        The parts of the result are numbered in the order of their first use.
        """
        n_lines = stream.number(len(lines), MOST_LINES)
        rows: list[tuple[int, int, int]] = []
        space = 0
        if not stream.decode and lines:
            height = np.median(sizes[np.concatenate(lines)[:, 0], 0])
            space = max(int(SPACE * height), 2)
        top = 0
        for j in range(n_lines):
            line = None if stream.decode else lines[j]
            top = self._line(stream, shape, line, sizes, top, rows, space)  # type: ignore[no-untyped-call]
            self.n_lines += 1
        return np.array(rows, np.int64).reshape(-1, 3)

    def _line(self, stream, shape, line, sizes, top, rows, space):  # type: ignore[no-untyped-def]
        decode = stream.decode
        earlier = (-1, -1, -1)  # the last names, with spaces
        last = -1
        base: int | None = None
        right = i = 0
        spaced = False
        while True:
            end = not decode and i == len(line)
            part, y, x = (0, 0, 0) if decode or end else (int(v) for v in line[i])
            if decode:
                name = 0
            elif end:
                name = LAST
            elif not spaced and last >= 0 and x - right > space:
                name = GAP
            else:
                name = self.numbers.get(part, NEW)
            name = self._name(stream, name, earlier)
            earlier = (*earlier[1:], name)
            if name == LAST:
                return top
            if name == GAP:
                spaced = True
                continue
            if name == NEW:
                name = len(self.sizes)
                if not decode:
                    self.numbers[part] = name
                self.sizes.append(
                    self._size(stream, (0, 0) if decode else tuple(sizes[part].tolist()))
                )
            h, w = self.sizes[name]
            known = name in self.offset
            if base is None:
                y = top = top + self._far(stream, self.starts, y - top, 0, DROP, [((), 0)])
                x = stream.number(x + LARGEST, shape[1] + 2 * LARGEST) - LARGEST
                base = 256 * (y + h) - self.offset.get(name, 0)
            else:
                room = (self.after.get(last, 0) + self.before.get(name, 0) + 128) >> 8
                contexts = [
                    ((last, name, spaced), 0),
                    ((name, spaced), 0),
                    ((self.n_lines, spaced), room),
                    ((spaced,), room),
                ]
                x = right + self._far(stream, self.steps, x - right, -STEP, STEP, contexts)
                if not spaced and abs(x - right) < STEP:
                    more = (256 * (x - right)) - self.after.get(last, 0) - self.before.get(name, 0)
                    more = min(max(more, -2048), 2048)
                    self.after[last] = self.after.get(last, 0) + more // 8
                    self.before[name] = self.before.get(name, 0) + more // 8
                line_at = (base + self.offset.get(name, 0) + 128) >> 8
                contexts = [((name if known else -1,), 0), ((known,), 0)]
                drop = self._far(stream, self.drops, y + h - line_at, -DROP, DROP, contexts)
                y = line_at - h + drop
                if not known:
                    self.offset[name] = 256 * (y + h) - base
                more = 256 * (y + h) - base - self.offset[name]
                base += more * 179 // 256 if abs(more) < 1024 else more
                if abs(more) < 1024:
                    self.offset[name] += more * 13 // 256
            if not (-LARGEST <= x < shape[1] + LARGEST and -LARGEST <= y < shape[0] + LARGEST):
                raise ValueError("it places a part outside of the page")
            right, last, spaced = x + w, name, False
            rows.append((name, y, x))
            stream.spend(h * w, h, 0)
            i += 1

    def _name(self, stream: Stream, name: int, earlier: tuple[int, ...]) -> int:
        """Code the number of a part, a space, a new part or the end of a line."""
        n = len(self.sizes) - LAST
        contexts = [(earlier[k:], 0) for k in range(4)]
        return self.names.code(stream, name - LAST, n, contexts) + LAST

    def _size(self, stream: Stream, size: tuple[int, ...]) -> tuple[int, int]:
        h = self._far(stream, self.sides, size[0], 0, STEP, [((0,), 0), ((), 0)])
        w = self._far(stream, self.sides, size[1], 0, STEP, [((1, h >> 3), 0), ((), 0)])
        if not (0 < h <= LARGEST and 0 < w <= LARGEST):
            raise ValueError(f"it has a part of {h} × {w} pixels")
        return h, w

    def _far(
        self,
        stream: Stream,
        symbols: Symbols,
        value: int,
        low: int,
        high: int,
        contexts: Sequence[Context],
    ) -> int:
        """Code a number; those from low to high have symbols, others are written out."""
        inside = low <= value < high
        n = high - low + 1
        found = symbols.code(stream, value - low if inside else n - 1, n, contexts)
        if found < n - 1:
            return found + low
        return stream.number(value + PAGE, 2 * PAGE) - PAGE
