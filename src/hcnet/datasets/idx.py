"""Files in the IDX format: arrays of bytes behind a header of their sizes, packed or not."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# The header: two zeros, the kind of numbers, how many axes; then four bytes for each of them.
_UNSIGNED_BYTES = 8
_KIND_AND_AXES, _AXIS = 4, 4


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """The array of a file; gzip is undone where the name ends in .gz.

    Raises:
        ValueError: if the file is damaged, or holds something else.

    """
    return parse_idx(unpack(path.read_bytes(), str(path)), n_axes, str(path))


def unpack(content: bytes, name: str) -> bytes:
    """The content of a file by its name: that of a .gz is unpacked."""
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{name} cannot be unpacked ({error}); it is damaged or was not copied to its end: "
            f"fetch it again."
        ) from None


def parse_idx(content: bytes, n_axes: int, name: str) -> NDArray[np.uint8]:
    """The array (of a writable copy) in the content of a file that is called `name`."""
    magic = content[:_KIND_AND_AXES]
    expected = bytes([0, 0, _UNSIGNED_BYTES, n_axes])
    if magic != expected:
        raise ValueError(
            f"{name} must begin with the bytes {expected.hex(' ')}, which stand for an IDX file of "
            f"bytes with {n_axes} axes, but it begins with {magic.hex(' ') or 'nothing'}; check "
            f"that images and labels are not mixed up."
        )
    begin = _KIND_AND_AXES + _AXIS * n_axes
    header = content[_KIND_AND_AXES:begin]
    shape = tuple(
        int.from_bytes(header[k : k + _AXIS], "big") for k in range(0, _AXIS * n_axes, _AXIS)
    )
    if len(content) != begin + math.prod(shape):
        raise ValueError(
            f"{name} says that it holds {' × '.join(map(str, shape))} bytes, but "
            f"{max(len(content) - begin, 0)} follow its header; it is damaged or was not copied to "
            f"its end: fetch it again."
        )
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape).copy()
