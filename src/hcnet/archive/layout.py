"""The format of a file, byte for byte: names, limits and headers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

FORMAT = "hcnet"
# 1 was the format before the first release.
VERSION = 2

# Members of the archive: the header first, arrays in the order in which it lists them, and the
# checksums of all of them last, as `sha256sum` writes and checks them.
HEADER, SUMS = "header.json", "SHA256SUMS"
# The largest header; a hostile one of this size takes 25 MB to parse.
HEADER_BYTES = 2**20
# Types of arrays: numbers, in the byte order of nearly every machine.
DTYPES = ("|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8")
# Bytes that are read and written at a time.
CHUNK = 2**20


def member(key: str) -> str:
    """The member of the archive that holds an array."""
    return f"{key}.npy"


def array_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of an array, without its header."""
    return math.prod(shape) * int(dtype[2:])


def array_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The bytes before the numbers in a .npy file.

    Made here, so that the header of a file need only be compared with it: nothing in it is
    evaluated, and it does not depend on the version of NumPy.
    """
    about = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(about) + 11) % 64  # magic and length are 10 bytes, the line ends with one
    text = about.encode("ascii") + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def plain(array: np.typing.NDArray[Any]) -> np.typing.NDArray[Any]:
    """The same numbers in one run of memory, in the byte order of files; booleans packed."""
    if array.dtype == bool:
        return np.packbits(array)
    array = np.ascontiguousarray(array).reshape(array.shape)  # of no dimensions, it makes one
    if array.dtype.str.startswith(">"):
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.str not in DTYPES:
        raise TypeError(f"Arrays of {array.dtype} have no place in a file; convert them.")
    return array
