"""A table and its factors as bits, 64 to a word, for the kernels that count errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcnet.images import BoolArray

Words = NDArray[np.uint64]
# The largest weight of an entry, as a whole number.  Smaller ones are rounded to these steps.
MOST_WEIGHT = 4095
# Entries that are unpacked at a time.
CHUNK = 2**22


class Entries(Protocol):
    """What a table has: where it is on and off, and the weights of its entries."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def rows(self, first: int, last: int) -> tuple[BoolArray, BoolArray, NDArray[Any] | None]:
        """On, off and weights of some rows, dense."""
        ...


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A fully observed sparse table; only some of its rows are dense at a time."""

    ones: sparse.csr_array
    weights = None

    @cached_property
    def packed(self) -> Packed:
        """Its bits."""
        return Packed.of(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.ones.shape[0]), int(self.ones.shape[1])

    def some(self, rows: NDArray[np.intp]) -> SparseTable:
        """A table of some of the rows."""
        return SparseTable(self.ones[rows])

    def rows(self, first: int, last: int) -> tuple[BoolArray, BoolArray, None]:
        """On and off of some rows."""
        on = self.ones[first:last].toarray() != 0
        return on, ~on, None


def whole_weights(weights: NDArray[Any]) -> tuple[NDArray[np.int64], float]:
    """Weights as whole numbers up to `MOST_WEIGHT`, and the weight of one step.

    Whole numbers stay what they are as far as they are not larger.
    """
    largest = float(weights.max(initial=0))
    if largest <= MOST_WEIGHT and np.array_equal(weights, np.rint(weights)):
        return weights.astype(np.int64), 1.0
    step = largest / MOST_WEIGHT
    # An entry of the smallest weight still counts.
    steps = np.maximum(np.rint(weights / step), weights > 0)
    return steps.astype(np.int64), step


@dataclass(frozen=True, eq=False)
class Packed:
    """Bits of a table by rows and by columns, a plane for each binary digit of the weights.

    `on` and `off` have the shape (rows, planes, words), `on_T` and `off_T` likewise for columns.
    """

    shape: tuple[int, int]
    on: Words
    off: Words
    on_T: Words
    off_T: Words
    step: float = 1.0  # the weight of an entry whose digits make 1

    @classmethod
    def of(cls, table: Entries, largest: float | None = None) -> Packed:
        """Bits of a table; `largest` is its largest weight, None if it has none."""
        n, m = table.shape
        chunk = max(64, CHUNK // max(m, 1) // 64 * 64)
        whole, step = True, 1.0
        if largest is not None:
            parts = [table.rows(a, min(a + chunk, n))[2] for a in range(0, n, chunk)]
            steps, step = whole_weights(np.concatenate([p for p in parts if p is not None]))
            whole, planes = False, max(int(steps.max(initial=1)).bit_length(), 1)
        else:
            planes = 1
        n_words, m_words = -(-n // 64), -(-m // 64)
        by_rows = [np.zeros((n, planes, m_words), np.uint64) for _ in range(2)]
        by_columns = [np.zeros((m, planes, n_words), np.uint64) for _ in range(2)]
        for first in range(0, n, chunk):
            last = min(first + chunk, n)
            on, off, _ = table.rows(first, last)
            words = slice(first // 64, -(-last // 64))
            for side, rows, columns in zip((on, off), by_rows, by_columns, strict=True):
                for plane in range(planes):
                    bits = side if whole else side & (steps[first:last] >> plane & 1 != 0)
                    rows[first:last, plane] = packed_bits(bits)
                    columns[:, plane, words] = packed_bits(np.ascontiguousarray(bits.T))
        return cls((n, m), by_rows[0], by_rows[1], by_columns[0], by_columns[1], step)

    @cached_property
    def n_ones(self) -> int:
        """Weight of all entries that are on, in steps."""
        return weight_of(self.on)

    @cached_property
    def n_zeros(self) -> int:
        """Weight of all entries that are off, in steps."""
        return weight_of(self.off)

    @cached_property
    def typical(self) -> float:
        """Mean weight of an observed entry, in steps."""
        total = self.n_ones + self.n_zeros
        entries = np.bitwise_or.reduce(self.on | self.off, axis=1)
        return total / max(int(np.bitwise_count(entries).sum()), 1)


def weight_of(words: Words) -> int:
    """Sum of the weights of all bits, (anything, planes, words)."""
    counts = np.bitwise_count(words).sum(axis=(0, 2), dtype=np.int64)
    return int((counts << np.arange(len(counts))).sum())


def packed_bits(bits: NDArray[Any]) -> Words:
    """Rows of zeros and ones as words; column 0 is the lowest bit of the first."""
    n, m = bits.shape
    padded = np.zeros((n, -(-m // 64) * 8), np.uint8)
    packed = np.packbits(bits.astype(bool, copy=False), axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpacked(words: Words, n: int) -> NDArray[np.int64]:
    """Weights (rows, n) of the entries of words (rows, planes, words)."""
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=2, count=n, bitorder="little").astype(np.int64)
    planes = np.arange(words.shape[1]).reshape(-1, 1)
    return np.asarray((bits << planes).sum(axis=1))
