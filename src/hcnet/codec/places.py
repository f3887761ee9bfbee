"""Where parts lie on a page: names and positions, in lines from left to right.

A symbol is coded with probabilities that are counted on the way: in the longest context first, as
far as that was seen, then in shorter ones.
"""

from __future__ import annotations

import copy
from collections import defaultdict
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
# The largest side of a part, and of a page.
LARGEST, PAGE = 1 << 12, 1 << 24
# Most copies on a page, and most pixels that all copies together may have for each of the page.
MOST_COPIES, MOST_INK = 1 << 20, 4
ROOM = 1 << 16


class Stream:
    """Bits written to, or read from, a growing array of bytes."""

    def __init__(self, coder: Coder, data: Bytes, decode: bool) -> None:
        self.coder, self.data, self.decode = coder, data, decode

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


@dataclass
class Symbols:
    """Symbols below a number, with contexts from long to short and the weight of each."""

    weights: Sequence[int]  # of shorter contexts, in 16ths of a symbol
    share: int  # the same, for every symbol that was seen
    counts: list[dict[tuple[int, ...], dict[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = self.counts or [defaultdict(dict) for _ in self.weights]

    def code(self, stream: Stream, symbol: int, n: int, contexts: Sequence[tuple[int, ...]]) -> int:
        """Code a symbol of n."""
        p = np.full(n, WHOLE // n)
        for context, weight, counts in zip(
            reversed(contexts), reversed(self.weights), reversed(self.counts), strict=True
        ):
            seen = counts[context]
            if seen:
                weight += self.share * len(seen)
                p *= weight
                p[list(seen)] += np.array(list(seen.values())) * (SIXTEEN * WHOLE)
                p //= SIXTEEN * sum(seen.values()) + weight
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
        for context, counts in zip(contexts, self.counts, strict=True):
            counts[context][low] = counts[context].get(low, 0) + 1
        return low


class Places:
    """Codes the places of parts; learns from page to page."""

    def __init__(self) -> None:
        self.names = Symbols((16, 32, 96), 32)
        self.steps = Symbols((128, 320, 64), 5)
        self.drops = Symbols((192, 64), 5)
        self.sides = Symbols((64, 64), 16)
        self.starts = Symbols((64,), 16)
        self.sizes: list[tuple[int, int]] = []  # of the parts so far
        self.offset: dict[int, int] = {}  # of a part from its line, in 256ths of a pixel
        self.numbers: dict[int, int] = {}  # of parts, by those of the encoder

    def copy(self) -> Places:
        """The same, which then learns by itself."""
        return copy.deepcopy(self)

    def code(
        self,
        stream: Stream,
        shape: tuple[int, int],
        lines: Sequence[IntArray],
        sizes: IntArray,
    ) -> IntArray:
        """Write lines of rows of part, top and left, or read them; returns rows of all lines.

        The parts of the result are numbered in the order of their first use.
        """
        n_lines = stream.number(len(lines), MOST_COPIES)
        rows: list[tuple[int, int, int]] = []
        ink, most = 0, MOST_INK * shape[0] * shape[1] + ROOM
        top = 0
        for j in range(n_lines):
            line = lines[j] if not stream.decode else None
            top, ink = self._line(stream, shape, line, sizes, top, rows, ink)
            if ink > most or len(rows) > MOST_COPIES:
                raise ValueError("its copies of parts have more pixels than the page allows")
        return np.array(rows, np.int64).reshape(-1, 3)

    def _line(self, stream, shape, line, sizes, top, rows, ink):  # type: ignore[no-untyped-def]
        decode = stream.decode
        before = last = -1
        base: int | None = None
        right = i = 0
        while True:
            end = not decode and i == len(line)
            part, y, x = (0, 0, 0) if decode or end else (int(v) for v in line[i])
            number = self.numbers.get(part, len(self.sizes)) if not decode else 0
            n = len(self.sizes) + 2  # a new part, the end
            symbol = n - 1 if end else number
            if not decode and not end and part not in self.numbers:
                symbol = n - 2
            # The end and a new part have numbers that do not change as parts come.
            symbol = self._named(stream, symbol, n, before, last)
            if symbol == n - 1:
                return top, ink
            if symbol == n - 2:
                size = self._size(stream, (0, 0) if decode else tuple(sizes[part].tolist()))
                if not decode:
                    self.numbers[part] = len(self.sizes)
                self.sizes.append(size)
                symbol = len(self.sizes) - 1
            h, w = self.sizes[symbol]
            known = symbol in self.offset
            if base is None:
                first = self._far(stream, self.starts, y - top, 0, DROP, [()])
                y = top = top + first
                x = stream.number(x + LARGEST, shape[1] + LARGEST) - LARGEST
                base = 256 * (y + h) - self.offset.get(symbol, 0)
            else:
                step = self._far(
                    stream, self.steps, x - right, -STEP, STEP, [(last, symbol), (symbol,), ()]
                )
                x = right + step
                line_at = (base + self.offset.get(symbol, 0) + 128) >> 8
                contexts = [(symbol if known else -1,), (known,)]
                y = line_at - h + self._far(
                    stream, self.drops, y + h - line_at, -DROP, DROP, contexts
                )
                if not known:
                    self.offset[symbol] = 256 * (y + h) - base
                more = 256 * (y + h) - base - self.offset[symbol]
                base += more * 179 // 256 if abs(more) < 1024 else more
                if abs(more) < 1024:
                    self.offset[symbol] += more * 13 // 256
            if not (-LARGEST <= x < shape[1] + LARGEST and -LARGEST <= y < shape[0] + LARGEST):
                raise ValueError("it places a part outside of the page")
            right = x + w
            ink += h * w
            rows.append((symbol, y, x))
            if ink > MOST_INK * shape[0] * shape[1] + ROOM:
                raise ValueError("its copies of parts have more pixels than the page allows")
            before, last = last, symbol
            i += 1

    def _named(self, stream: Stream, symbol: int, n: int, before: int, last: int) -> int:
        """Code the number of a part; the last two of n are a new part and the end of a line."""
        contexts = [(before, last), (last,), ()]
        # 0 and 1 stand for the two: numbers do not change when parts come.
        found = self.names.code(stream, n - 1 - symbol if symbol >= n - 2 else symbol + 2, n, contexts)
        return n - 1 - found if found < 2 else found - 2

    def _size(self, stream: Stream, size: tuple[int, ...]) -> tuple[int, int]:
        h = self._far(stream, self.sides, size[0], 0, STEP, [(0,), ()])
        w = self._far(stream, self.sides, size[1], 0, STEP, [(1, h >> 3), ()])
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
        contexts: Sequence[tuple[int, ...]],
    ) -> int:
        """Code a number; those from low to high have symbols, others are written out."""
        inside = low <= value < high
        n = high - low + 1
        found = symbols.code(stream, value - low if inside else n - 1, n, contexts)
        if found < n - 1:
            return found + low
        return stream.number(value + PAGE, 2 * PAGE) - PAGE
