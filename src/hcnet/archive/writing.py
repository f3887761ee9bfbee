"""Writing a file."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from hcnet.archive import layout
from hcnet.archive.contents import Contents
from hcnet.atomic_files import write_atomically
from hcnet.version import VERSION

# The time of every member, so that the same contents make the same file.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write(
    path: str | os.PathLike[str], kind: str, contents: Contents, overwrite: bool = False
) -> Path:
    """Write a file of a kind, whole or not at all."""
    return write_atomically(path, lambda target: _write_members(target, kind, contents), overwrite)


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
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        sums = _write_member(archive, layout.HEADER, text)
        for key, array in arrays.items():
            beginning = layout.array_header(array.dtype.str, array.shape)
            numbers = array.reshape(-1).view("u1").data if array.size else b""
            sums += _write_member(archive, layout.member(key), beginning, numbers)
        _write_member(archive, layout.SUMS, sums.encode())


def _write_member(archive: zipfile.ZipFile, name: str, *parts: Any) -> str:
    """Write a member; its line in the list of checksums."""
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.file_size = sum(len(part) for part in parts)  # decides whether sizes take 64 bits
    digest = hashlib.sha256()
    with archive.open(info, "w") as file:
        for part in parts:
            for start in range(0, len(part), layout.CHUNK):
                chunk = memoryview(part)[start : start + layout.CHUNK]
                digest.update(chunk)
                file.write(chunk)
    return f"{digest.hexdigest()}  {name}\n"
