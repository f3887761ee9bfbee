"""A binary arithmetic coder in whole numbers.

A bit is coded with the probability p / 65536 that it is 1, for 1 <= p <= 65535.  A coder is an
array of whole numbers: the lower end of the interval (of a decoder: the number read, less that
end), the length of the interval, and the position in the bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import entry, inlined

LOW, LENGTH, AT = 0, 1, 2
WHOLE = 1 << 32
# An interval that is shorter is made longer by a byte.
SHORT = 1 << 24
# Most bytes that a bit can take, and those of the end.
PER_BIT, END = 2, 8

Coder = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def encoder() -> Coder:
    """A coder that has written nothing."""
    return np.array([0, WHOLE - 1, 0])


def decoder(data: Bytes) -> Coder:
    """A coder that has read nothing; after the last byte it reads zeros."""
    first = bytes(data[:4]).ljust(4, b"\0")
    return np.array([int.from_bytes(first, "big"), WHOLE - 1, 4])


@inlined
def put(coder, data, bit, p):
    """Write a bit."""
    low, length, at = coder[LOW], coder[LENGTH], coder[AT]
    bound = (length * p) >> 16
    if bit:
        length = bound
    else:
        low += bound
        length -= bound
        if low >= WHOLE:
            low -= WHOLE
            j = at - 1
            while data[j] == 255:
                data[j] = 0
                j -= 1
            data[j] += np.uint8(1)
    while length < SHORT:
        data[at] = low >> 24
        at += 1
        low = (low & (SHORT - 1)) << 8
        length <<= 8
    coder[LOW], coder[LENGTH], coder[AT] = low, length, at


@inlined
def get(coder, data, p):
    """Read a bit."""
    code, length = coder[LOW], coder[LENGTH]
    bound = (length * p) >> 16
    if code < bound:
        length = bound
        bit = 1
    else:
        code -= bound
        length -= bound
        bit = 0
    while length < SHORT:
        at = coder[AT]
        code <<= 8
        if at < data.size:
            code += np.int64(data[at])
        coder[AT] = at + 1
        length <<= 8
    coder[LOW], coder[LENGTH] = code, length
    return bit


@inlined
def code(coder, data, decode, bit, p):
    """Read a bit, or write this one; returns it."""
    if decode:
        return get(coder, data, p)
    put(coder, data, bit, p)
    return bit


@entry
def code_bit(coder, data, decode, bit, p):
    """The same, called from Python."""
    return code(coder, data, decode, bit, p)


def finish(coder: Coder, data: Bytes) -> bytes:
    """The bytes that were written: as few as tell the interval apart from others."""
    low, length, at = (int(v) for v in coder)
    written = int.from_bytes(data[:at].tobytes(), "big")
    for n in range(5):
        step = 1 << (32 - 8 * n)
        value = -(-low // step)
        if value * step < low + length:
            whole = (written << (8 * n)) + value
            return whole.to_bytes(at + n, "big").rstrip(b"\0")
    raise AssertionError("an interval holds a number of four bytes")
