"""Bitmaps of different sizes one after the other, and the segments that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2 import arithmetic, regions, symbols
from hcnet.soft import coding
from hcnet.soft.channel import Table
from hcnet.soft.pieces import IntArray, Pieces

Arrays = tuple[NDArray[np.uint8], IntArray, IntArray, IntArray]
# Sizes of strips that a text region may have.
STRIPS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class Bitmaps:
    """Bitmaps as compiled loops take them."""

    ink: NDArray[np.uint8]
    start: IntArray
    height: IntArray
    width: IntArray

    def __len__(self) -> int:
        """Number of bitmaps."""
        return len(self.start)

    def __getitem__(self, k: int) -> NDArray[np.uint8]:
        """The pixels of one."""
        h, w = self.height[k], self.width[k]
        return self.ink[self.start[k] : self.start[k] + h * w].reshape(h, w)

    @property
    def arrays(self) -> Arrays:
        """As compiled loops take them."""
        return self.ink, self.start, self.height, self.width

    def bits_alone(self, cost: Table) -> NDArray[np.float64]:
        """Bits of each by itself, on an empty page."""
        zeros = np.zeros(len(self), np.int64)
        pieces = Pieces(zeros, zeros, zeros, self.height, self.width, self.start, self.ink)
        return np.asarray(coding.template_bits(pieces.arrays(), cost))

    @property
    def room(self) -> int:
        """Pixels of a board for any of them."""
        most = int(self.height.max(initial=0)), int(self.width.max(initial=0))
        return symbols.room(*most)


def together(bitmaps: Iterable[NDArray[np.uint8]]) -> Bitmaps:
    """Bitmaps one after the other."""
    some = list(bitmaps)
    sides = np.array([b.shape for b in some], np.int64).reshape(-1, 2)
    size = sides.prod(axis=1)
    ink = np.concatenate([np.zeros(0, np.uint8), *(b.ravel() for b in some)])
    return Bitmaps(ink, np.cumsum(size) - size, sides[:, 0].copy(), sides[:, 1].copy())


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Symbols: the first are coded by themselves, the others given an earlier one.

    Rows of `given` are the number of that earlier one, and where its corner lies.
    """

    symbols: Bitmaps
    given: IntArray

    @property
    def n_direct(self) -> int:
        """Number of symbols that are coded by themselves."""
        return len(self.symbols) - len(self.given)

    @property
    def name_bits(self) -> int:
        """Bits of the number of a symbol."""
        return max(len(self.symbols) - 1, 0).bit_length()

    def write(self) -> list[bytes]:
        """The data of its one or two segments."""
        if not len(self.symbols):
            return []
        parts = [min((self._direct(t) for t in range(4)), key=len)]
        if len(self.given):
            parts.append(min((self._variants(t) for t in range(2)), key=len))
        return parts

    def _direct(self, template: int) -> bytes:
        some = together(self.symbols[k] for k in range(self.n_direct))
        coder = arithmetic.new_coder(some.ink.size + _decisions(2 * len(some) + 4, 0))
        contexts = regions.generic_contexts(template)
        pixels, board = regions.as_array(regions.GENERIC[template]), np.zeros(some.room, np.uint8)
        symbols.code_symbols(coder, some.arrays, _numbers(), contexts, pixels, board)
        flags = (template << 10).to_bytes(2, "big")
        n = len(some).to_bytes(4, "big")
        return flags + regions.ADAPTIVE[template] + n + n + arithmetic.finished(coder)

    def _variants(self, template: int) -> bytes:
        n, bits = len(self.given), self.name_bits
        coder = arithmetic.new_coder(self.symbols.ink.size + _decisions(5 * n + 4, n * bits))
        symbols.code_variants(
            coder,
            self.symbols.arrays,
            self.given,
            self.n_direct,
            _numbers(),
            np.zeros(1 << bits, np.uint8),
            bits,
            *_refinement(template),
            np.zeros((2, self.symbols.room), np.uint8),
        )
        flags = (2 | template << 12).to_bytes(2, "big")
        adaptive = regions.ADAPTIVE[0] + regions.REFINED_ADAPTIVE[template]
        count = n.to_bytes(4, "big")
        return flags + adaptive + count + count + arithmetic.finished(coder)


def text_region(dictionary: Dictionary, rows: IntArray, copies: Bitmaps) -> bytes:
    """The data of a text region after its region information, as short as strips allow.

    The columns of rows are those of `symbols`: where an instance lies, and which bitmap it is.
    """
    best = min(range(len(STRIPS)), key=lambda s: len(_text(dictionary, rows, copies, s, 0)))
    return min((_text(dictionary, rows, copies, best, t) for t in range(2)), key=len)


def _text(
    dictionary: Dictionary, rows: IntArray, copies: Bitmaps, log_strip: int, template: int
) -> bytes:
    strip = STRIPS[log_strip]
    rows = rows[np.lexsort((rows[:, symbols.LEFT], rows[:, symbols.BOTTOM] // strip))]
    bits = dictionary.name_bits
    names = len(rows) * bits
    coder = arithmetic.new_coder(copies.ink.size + _decisions(9 * len(rows) + 4, names))
    most = max(copies.room, dictionary.symbols.room)
    symbols.code_text(
        coder,
        rows,
        dictionary.symbols.arrays,
        copies.arrays,
        strip,
        _numbers(),
        np.zeros(1 << bits, np.uint8),
        bits,
        *_refinement(template),
        np.zeros((2, most), np.uint8),
    )
    refine = 2
    flags = (refine | log_strip << 2 | template << 15).to_bytes(2, "big")
    fields = flags + regions.REFINED_ADAPTIVE[template] + len(rows).to_bytes(4, "big")
    return fields + arithmetic.finished(coder)


def _numbers() -> NDArray[np.uint8]:
    return np.zeros((symbols.SORTS, arithmetic.NUMBER_CONTEXTS), np.uint8)


def _refinement(template: int) -> tuple[NDArray[np.uint8], IntArray, IntArray]:
    """New contexts of a refinement, and the pixels of a context."""
    own, others = regions.OWN[template], regions.REFERENCE[template]
    return regions.refinement_contexts(template), regions.as_array(own), regions.as_array(others)


def _decisions(numbers: int, names: int) -> int:
    return numbers * arithmetic.MOST_DECISIONS + names
