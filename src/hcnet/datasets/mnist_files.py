"""Files of MNIST: IDX arrays, packed or not, fetched from the network and kept in a folder."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import sys
import urllib.request
import zlib
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hcnet.atomic_files import write_atomically

# Seconds without a byte after which a mirror counts as silent.
_PATIENCE = 30
# The header: two zeros, the type of the numbers, the number of axes; then four bytes for each axis.
_UNSIGNED_BYTES = 8
_TYPE_AND_AXES, _AXIS = 4, 4


def cache_folder(name: str) -> Path:
    """The folder of this system for files that programs can fetch again."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "hcnet" / name


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path, most: int) -> Path:
    """A file from the first mirror that has the right one, stored in the folder.

    The checksum is that of the unpacked content, since mirrors pack it differently.  A file is in
    the folder completely or not at all.

    Args:
        name: of the file, at the mirrors and in the folder.
        sha256: of what it holds.
        mirrors: addresses that end in a slash.
        folder: is made where there is none.
        most: bytes that a packed file may have; a longer one is another file.

    Raises:
        OSError: if no mirror has it, with what each of them did instead.

    """
    reasons = []
    for mirror in mirrors:
        try:
            with urllib.request.urlopen(mirror + name, timeout=_PATIENCE) as answer:
                content = answer.read(most + 1)
            if len(content) > most or hashlib.sha256(_unpack(content, name)).hexdigest() != sha256:
                raise ValueError("sent something else than the file")
        except (OSError, HTTPException, ValueError) as error:
            reasons.append(f"{mirror}: {error}")
        else:
            break
    else:
        raise OSError("; ".join(reasons))
    folder.mkdir(parents=True, exist_ok=True)
    return write_atomically(folder / name, lambda file: file.write(content), overwrite=True)


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """The array of a file, as a writable copy; gzip is undone where the name ends in .gz.

    Raises:
        ValueError: if the file is damaged, or holds something else.

    """
    content = _unpack(path.read_bytes(), str(path))
    magic = content[:_TYPE_AND_AXES]
    expected = bytes([0, 0, _UNSIGNED_BYTES, n_axes])
    if magic != expected:
        raise ValueError(
            f"{path} must begin with the bytes {expected.hex(' ')}, which stand for an IDX file of "
            f"bytes with {n_axes} axes, but it begins with {magic.hex(' ') or 'nothing'}; check "
            f"that images and labels are not mixed up."
        )
    begin = _TYPE_AND_AXES + _AXIS * n_axes
    header = content[_TYPE_AND_AXES:begin]
    shape = tuple(
        int.from_bytes(header[k : k + _AXIS], "big") for k in range(0, _AXIS * n_axes, _AXIS)
    )
    if len(content) != begin + math.prod(shape):
        raise ValueError(
            f"{path} says that it holds {' × '.join(map(str, shape))} bytes, but "
            f"{max(len(content) - begin, 0)} follow its header; it is damaged or was not copied to "
            f"its end: fetch it again."
        )
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape).copy()


def _unpack(content: bytes, name: str) -> bytes:
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
