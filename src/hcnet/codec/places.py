"""Where parts lie on a page: names and positions, in lines from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.symbols import PER_SYMBOL, Context, Stream, Symbols, limits

IntArray = NDArray[np.int64]
Size = tuple[int, int]
# Steps between copies and lines that have a symbol of their own; others are written out.
STEP, DROP = 200, 150
# Names that are no parts: a space, a new part, the end of a line.
GAP, NEW, LAST = -1, -2, -3
# A space is wider than this share of the height of parts.
SPACE = 0.18
# The largest side of a part, and of a page.
LARGEST, PAGE = 1 << 12, 1 << 24
# Most lines of a page, most symbols of a copy and its line, and work beside them.
MOST_LINES, SYMBOLS, FIXED = 1 << 20, 9, 2000
# Columns that have a symbol for the beginning of a line: those of the page, so many before it and
# after it, and not more than so many.
BESIDE, MOST_COLUMNS = 32, 1 << 13
# How lines and parts learn, in 256ths of an error: the height of a line, the height of a part over
# it, the room around a part.  Larger errors, in 256ths of a pixel, are of something else.
LINE_RATE, PART_RATE, ROOM_RATE = 179, 13, 32
USUAL, WIDEST = 1024, 2048


def fitting(
    placements: IntArray, sizes: IntArray, shape: tuple[int, int], n_parts: int
) -> IntArray:
    """The placements that can be coded after `n_parts` parts; none if they are too many."""
    top_left, size = placements[:, 1:], sizes[placements[:, 0]]
    inside = (top_left >= -LARGEST) & (top_left < np.array(shape) + LARGEST) & (size <= LARGEST)
    kept = inside.all(axis=1)
    placements, (height, width) = placements[kept], size[kept].T
    each = SYMBOLS * PER_SYMBOL + FIXED + 3 * (n_parts + len(sizes)) + columns(shape[1])
    spent = [int((height * width).sum()), int(height.sum()), each * len(placements)]
    fits = all(one <= most for one, most in zip(spent, limits(shape[0] * shape[1]), strict=True))
    return placements if fits else placements[:0]


def columns(width: int) -> int:
    """How many symbols there are for the beginning of a line; the last is for all other columns."""
    return min(width + 2 * BESIDE, MOST_COLUMNS)


@dataclass
class Line:
    """A line as far as it is coded."""

    earlier: tuple[int, ...] = (-1, -1, -1)  # the last names, with spaces
    last: int = -1  # the last part
    height: int | None = None  # where parts stand, in 256ths of a pixel
    right: int = 0  # the end of the last part
    spaced: bool = False  # whether a space came after it


class Places:
    """Codes the places of parts; learns from page to page.

    The first version of the format writes out where lines begin, and has fewer contexts for where
    parts stand.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.names = Symbols((16, 16, 32, 96), 44)
        self.steps = Symbols((96, 192, 96, 64), 8)
        self.drops = Symbols((192, 64) if version == 1 else (192, 192, 64, 64), 5)
        self.sides = Symbols((64, 64), 16)
        self.starts = Symbols((64,), 16)
        self.begins = Symbols((64,), 16)
        self.sizes: list[Size] = []  # of the parts so far
        self.offset: dict[int, int] = {}  # of a part from its line, in 256ths of a pixel
        self.before: dict[int, int] = {}  # room that a part leaves before it, in 256ths
        self.after: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # of parts, by those of the encoder
        self.n_lines = 0

    def code(
        self, stream: Stream, shape: Size, lines: Sequence[IntArray], sizes: IntArray
    ) -> IntArray:
        """Write lines of rows of part, top and left, or read them; returns rows of all lines.

        The parts of the result are numbered in the order of their first use.
        """
        n_lines = stream.number(len(lines), MOST_LINES)
        rows: list[tuple[int, int, int]] = []
        space = 0
        if lines:
            height = np.median(sizes[np.concatenate(lines)[:, 0], 0])
            space = max(int(SPACE * height), 2)
        top = 0
        for j in range(n_lines):
            given = None if stream.decode else lines[j].tolist()
            first = len(rows)
            rows += self._line(stream, shape, given, sizes, top, space)
            top = rows[first][1] if len(rows) > first else top
            self.n_lines += 1
        return np.array(rows, np.int64).reshape(-1, 3)

    def _line(
        self,
        stream: Stream,
        shape: Size,
        given: list[list[int]] | None,
        sizes: IntArray,
        top: int,
        space: int,
    ) -> list[tuple[int, int, int]]:
        """Code one line; `top` is that of the line before it."""
        line = Line()
        rows: list[tuple[int, int, int]] = []
        while True:
            part, y, x = given[len(rows)] if given and len(rows) < len(given) else (-1, 0, 0)
            name = self._name(stream, line, self._wanted(line, part, x, space))
            if name == LAST:
                return rows
            if name == GAP:
                line.spaced = True
                continue
            if name == NEW:
                name = self.numbers[part] = len(self.sizes)
                self.sizes.append(self._size(stream, (0, 0) if part < 0 else tuple(sizes[part])))
            h, w = self.sizes[name]
            if line.height is None:
                y = top + self._far(stream, self.starts, y - top, 0, DROP, [((), 0)])
                x = self._begin(stream, shape[1], x)
                line.height = 256 * (y + h) - self.offset.get(name, 0)
            else:
                x = self._step(stream, line, name, x)
                y = self._drop(stream, line, line.height, name, y + h) - h
            if not (-LARGEST <= x < shape[1] + LARGEST and -LARGEST <= y < shape[0] + LARGEST):
                raise ValueError("it places a part outside of the page")
            stream.spend(h * w, h, 0)
            line.right, line.last, line.spaced = x + w, name, False
            rows.append((name, y, x))

    def _wanted(self, line: Line, part: int, x: int, space: int) -> int:
        """The name that comes next when a line is written."""
        if part < 0:
            return LAST
        if not line.spaced and line.last >= 0 and x - line.right > space:
            return GAP
        return self.numbers.get(part, NEW)

    def _name(self, stream: Stream, line: Line, name: int) -> int:
        """Code the number of a part, a space, a new part or the end of a line."""
        n = len(self.sizes) - LAST
        contexts: list[Context] = [(line.earlier[k:], 0) for k in range(4)]
        name = self.names.code(stream, name - LAST, n, contexts) + LAST
        line.earlier = (*line.earlier[1:], name)
        return name

    def _size(self, stream: Stream, size: tuple[int, ...]) -> Size:
        """Code the height and the width of a part."""
        h = self._far(stream, self.sides, int(size[0]), 0, STEP, [((0,), 0), ((), 0)])
        w = self._far(stream, self.sides, int(size[1]), 0, STEP, [((1, h >> 3), 0), ((), 0)])
        if not (0 < h <= LARGEST and 0 < w <= LARGEST):
            raise ValueError(f"it has a part of {h} × {w} pixels")
        return h, w

    def _begin(self, stream: Stream, width: int, x: int) -> int:
        """Code where the first part of a line begins."""
        if self.version > 1:
            n = columns(width)
            inside = 0 <= x + BESIDE < n - 1
            found = self.begins.code(stream, x + BESIDE if inside else n - 1, n, [((), 0)])
            if found < n - 1:
                return found - BESIDE
        return stream.number(x + LARGEST, width + 2 * LARGEST) - LARGEST

    def _step(self, stream: Stream, line: Line, name: int, x: int) -> int:
        """Code where a part begins, after the one before it."""
        last, spaced = line.last, line.spaced
        room = self.after.get(last, 0) + self.before.get(name, 0)
        shift = (room + 128) >> 8
        contexts = [
            ((last, name, spaced), 0),
            ((name, spaced), 0),
            ((self.n_lines, spaced), shift),
            ((spaced,), shift),
        ]
        step = self._far(stream, self.steps, x - line.right, -STEP, STEP, contexts)
        if not spaced and abs(step) < STEP:
            more = min(max(256 * step - room, -WIDEST), WIDEST) * ROOM_RATE // 256
            self.after[last] = self.after.get(last, 0) + more
            self.before[name] = self.before.get(name, 0) + more
        return line.right + step

    def _drop(self, stream: Stream, line: Line, height: int, name: int, bottom: int) -> int:
        """Code where a part ends below, from the height of its line."""
        known = name in self.offset
        exact = height + self.offset.get(name, 0) + 128
        expected, part = exact >> 8, name if known else -1
        contexts: list[Context] = [((part,), 0), ((known,), 0)]
        if self.version > 1:
            quarter = (exact & 255) >> 6
            contexts = [((part, quarter), 0), contexts[0], ((known, quarter), 0), contexts[1]]
        bottom = expected + self._far(stream, self.drops, bottom - expected, -DROP, DROP, contexts)
        if not known:
            self.offset[name] = 256 * bottom - height
        more = 256 * bottom - height - self.offset[name]
        usual = abs(more) < USUAL
        line.height = height + (more * LINE_RATE // 256 if usual else more)
        if usual:
            self.offset[name] += more * PART_RATE // 256
        return bottom

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
