"""Writing a file."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from hcnet.archive import layout
from hcnet.archive.contents import Contents
from hcnet.version import VERSION
from hcnet.whole_files import write_whole

# The same contents make the same file, whenever they are written.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write(
    path: str | os.PathLike[str], kind: str, contents: Contents, overwrite: bool = False
) -> Path:
    """Write a file of a kind, whole or not at all."""
    return write_whole(path, lambda target: _write_members(target, kind, contents), overwrite)


def _write_members(target: IO[bytes], kind: str, contents: Contents) -> None:
    arrays = {key: layout.plain(array) for key, array in contents.arrays.items()}
    header = {
        "format": layout.FORMAT,
        "version": layout.VERSION,
        "kind": kind,
        "library": VERSION,
        "arrays": {key: [array.dtype.str, list(array.shape)] for key, array in arrays.items()},
        "contents": contents.header,
    }
    text = json.dumps(header, indent=1, allow_nan=False).encode()
    if len(text) > layout.HEADER_BYTES:
        raise ValueError(
            f"The header of a file may have {layout.HEADER_BYTES:,} bytes, and this one has "
            f"{len(text):,}; shorten the names of the classes."
        )
    sums = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        sums.append(_write_member(archive, layout.HEADER, [text]))
        for key, array in arrays.items():
            sums.append(_write_member(archive, layout.member(key), _array_parts(array)))
        _write_member(archive, layout.SUMS, ["".join(sums).encode()])


def _array_parts(array: NDArray[Any]) -> list[Any]:
    header = layout.array_header(array.dtype.str, array.shape)
    return [header] if array.size == 0 else [header, array.reshape(-1).view("u1").data]


def _write_member(archive: zipfile.ZipFile, name: str, parts: list[Any]) -> str:
    """Write a member; its line in the list of checksums."""
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.file_size = sum(len(part) for part in parts)  # tells whether it needs 64-bit sizes
    digest = hashlib.sha256()
    with archive.open(info, "w") as file:
        for part in parts:
            for chunk in _chunks(part):
                digest.update(chunk)
                file.write(chunk)
    return f"{digest.hexdigest()}  {name}\n"


def _chunks(part: Any) -> Iterator[Any]:
    view = memoryview(part)
    for start in range(0, len(view), layout.CHUNK):
        yield view[start : start + layout.CHUNK]
