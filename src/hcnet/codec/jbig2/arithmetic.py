"""The arithmetic coder of JBIG2 (ITU-T T.88, annexes A and E), compiled.

A `coder` is (registers, out): the registers are the interval A, the code C, the shifts left until
the next byte, and where the last byte is in `out`.  A context is one byte, twice its place in the
table of states plus the more probable bit, and begins with 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import called, entry

Coder = tuple[NDArray[np.int64], NDArray[np.uint8]]

# The states of table E.1: the probability of the less probable bit, the next state after the more
# and after the less probable bit, and whether the two then change places.
_STATES = """
5601 1 1 1, 3401 2 6 0, 1801 3 9 0, 0AC1 4 12 0, 0521 5 29 0, 0221 38 33 0, 5601 7 6 1,
5401 8 14 0, 4801 9 14 0, 3801 10 14 0, 3001 11 17 0, 2401 12 18 0, 1C01 13 20 0, 1601 29 21 0,
5601 15 14 1, 5401 16 14 0, 5101 17 15 0, 4801 18 16 0, 3801 19 17 0, 3401 20 18 0, 3001 21 19 0,
2801 22 19 0, 2401 23 20 0, 2201 24 21 0, 1C01 25 22 0, 1801 26 23 0, 1601 27 24 0, 1401 28 25 0,
1201 29 26 0, 1101 30 27 0, 0AC1 31 28 0, 09C1 32 29 0, 08A1 33 30 0, 0521 34 31 0, 0441 35 32 0,
02A1 36 33 0, 0221 37 34 0, 0141 38 35 0, 0111 39 36 0, 0085 40 37 0, 0049 41 38 0, 0025 42 39 0,
0015 43 40 0, 0009 44 41 0, 0005 45 42 0, 0001 45 43 0, 5601 46 46 0
"""
_ROWS = [row.split() for row in _STATES.split(",")]
_QE = np.array([int(row[0], 16) for row in _ROWS], np.int64)
_AFTER_MORE = np.array([int(row[1]) for row in _ROWS], np.uint8)
_AFTER_LESS = np.array([int(row[2]) for row in _ROWS], np.uint8)
_SWITCH = np.array([int(row[3]) for row in _ROWS], np.uint8)

# Whole numbers have a sign, one of six prefixes, and bits: the first number of each range, and its
# number of bits.  "Out of band", which ends a list, is minus zero.
_FIRST = np.array([0, 4, 20, 84, 340, 4436, 1 << 40], np.int64)
_BITS = np.array([2, 4, 6, 8, 12, 32], np.int64)
OUT_OF_BAND = 1 << 40
NUMBER_CONTEXTS = 512
# A decision shifts by at most 15 bits, and a byte after FF has only seven: bytes that surely do.
MOST_BYTES = 3
# Decisions of one number: sign, prefix and bits.
MOST_DECISIONS = 38


def new_coder(decisions: int) -> Coder:
    """A coder with room for so many decisions; memory is only used as it is written."""
    registers = np.array([0x8000, 0, 12, 0], np.int64)
    return registers, np.zeros(MOST_BYTES * decisions + 16, np.uint8)


def finished(coder: Coder) -> bytes:
    """The bytes of a coder, which ends here."""
    _flush(coder)
    registers, out = coder
    return out[1 : int(registers[3]) + 1].tobytes()


@called
def _byte_out(coder):
    """Move a byte from C to the output, with its carry; after FF there is room for one."""
    r, out = coder
    if out[r[3]] != 0xFF and r[1] >= 0x8000000:
        out[r[3]] += 1
        r[1] &= 0x7FFFFFF
    full = out[r[3]] == 0xFF
    r[3] += 1
    if full:
        out[r[3]] = r[1] >> 20
        r[1] &= 0xFFFFF
        r[2] = 7
    else:
        out[r[3]] = r[1] >> 19
        r[1] &= 0x7FFFF
        r[2] = 8


@called
def code(coder, contexts, at, bit):
    """Code one bit in a context (E.2)."""
    r = coder[0]
    state, likely = contexts[at] >> 1, contexts[at] & 1
    q = _QE[state]
    r[0] -= q
    if bit == likely:
        if r[0] & 0x8000:
            r[1] += q
            return
        if r[0] < q:
            r[0] = q
        else:
            r[1] += q
        contexts[at] = 2 * _AFTER_MORE[state] + likely
    else:
        if r[0] < q:
            r[1] += q
        else:
            r[0] = q
        contexts[at] = 2 * _AFTER_LESS[state] + (likely ^ _SWITCH[state])
    while True:
        r[0] <<= 1
        r[1] <<= 1
        r[2] -= 1
        if r[2] == 0:
            _byte_out(coder)
        if r[0] & 0x8000:
            return


@entry
def _flush(coder):
    """Write what is left in C, and the marker FF AC (E.2.9)."""
    r, out = coder
    top = r[0] + r[1]
    r[1] |= 0xFFFF
    if r[1] >= top:
        r[1] -= 0x8000
    for _ in range(2):
        r[1] <<= r[2]
        _byte_out(coder)
    if out[r[3]] != 0xFF:
        r[3] += 1
        out[r[3]] = 0xFF
    r[3] += 1
    out[r[3]] = 0xAC


@called
def _number_bit(coder, contexts, before, bit):
    """Code a bit of a number; the context is the last eight bits, or all of them if fewer."""
    code(coder, contexts, before, bit)
    if before < 256:
        return 2 * before + bit
    return ((2 * before + bit) & 511) | 256


@called
def code_number(coder, contexts, number):
    """Code a whole number, or OUT_OF_BAND (A.2)."""
    size = 0 if number == OUT_OF_BAND else abs(number)
    negative = number < 0 or number == OUT_OF_BAND
    before = _number_bit(coder, contexts, 1, np.int64(negative))
    j = 0
    while size >= _FIRST[j + 1]:
        before = _number_bit(coder, contexts, before, 1)
        j += 1
    if j < 5:
        before = _number_bit(coder, contexts, before, 0)
    rest = size - _FIRST[j]
    for b in range(_BITS[j] - 1, -1, -1):
        before = _number_bit(coder, contexts, before, (rest >> b) & 1)


@called
def code_name(coder, contexts, name, n_bits):
    """Code the number of a symbol in so many bits (A.3)."""
    before = 1
    for b in range(n_bits - 1, -1, -1):
        bit = (name >> b) & 1
        code(coder, contexts, before, bit)
        before = 2 * before + bit
