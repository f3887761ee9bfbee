"""Symbols as bits, with probabilities that are counted on the way.

A symbol is looked up in the longest context first, as far as that was seen, then in shorter ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hcnet.codec.arithmetic import END, PER_BIT, Bytes, Coder, code, code_bit
from hcnet.engine.cpu_compilation import entry

# Probabilities during blending have 30 bits, counts of symbols are in 16ths.
WHOLE, SIXTEEN = 1 << 30, 16
# What the copies of parts on a page may have together, for each of its pixels and in addition:
# pixels, rows, and the work of coding them, in symbols that are looked at.  A file may come from
# anybody; these bound time and memory, and real pages need less than a tenth.
MOST_INK, MOST_ROWS, MOST_WORK = (2, 1 << 16), (1 / 8, 1 << 13), (64, 1 << 22)
# Work of a symbol beside those that are looked at.
PER_SYMBOL = 1000


class Stream:
    """Bits written to, or read from, a growing array of bytes."""

    def __init__(self, coder: Coder, data: Bytes, decode: bool, n_pixels: int) -> None:
        self.coder, self.data, self.decode = coder, data, decode
        self.n_pixels, self.left = n_pixels, limits(n_pixels)

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


@entry
def blend(p, which, times, shift, weight, share):
    """Blend probabilities with symbols that were seen so many times, less a shift."""
    inside = total = 0
    for j in range(which.size):
        if 0 <= which[j] + shift < p.size:
            inside += 1
            total += times[j]
    weight += share * inside
    for symbol in range(p.size):
        p[symbol] *= weight
    for j in range(which.size):
        if 0 <= which[j] + shift < p.size:
            p[which[j] + shift] += times[j] * (SIXTEEN * WHOLE)
    for symbol in range(p.size):
        p[symbol] //= SIXTEEN * total + weight


@entry
def code_symbol(coder, data, decode, symbol, p):
    """Read a symbol, or write this one, by halving those that are left."""
    to = np.zeros(p.size + 1, np.int64)
    for j in range(p.size):
        to[j + 1] = to[j] + p[j] + 1
    low, high = 0, p.size
    while high - low > 1:
        middle = (low + high) // 2
        right = ((to[high] - to[middle]) << 16) // (to[high] - to[low])
        if code(coder, data, decode, np.int64(symbol >= middle), min(max(right, 1), 65535)):
            low = middle
        else:
            high = middle
    return low


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
            if seen:
                which = np.fromiter(seen, np.int64, len(seen))
                times = np.fromiter(seen.values(), np.int64, len(seen))
                blend(p, which, times, shift, weight, self.share)
        stream.room(32)
        low = int(code_symbol(stream.coder, stream.data, stream.decode, symbol, p))
        for (context, shift), counts in zip(contexts, self.counts, strict=True):
            seen = counts.setdefault(context, {})
            seen[low - shift] = seen.get(low - shift, 0) + 1
        return low
