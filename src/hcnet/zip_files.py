"""Zip archives from anybody, opened in a time that does not grow faster than they do."""

from __future__ import annotations

import os
import struct
import zipfile
from typing import IO

# Bytes of extra fields of a member: those of time stamps and large files have fewer.  Python takes
# a time that grows with their square.
MOST_EXTRA = 256
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s4B4HL2L5H2L")
_ENTRY_MARK, _END_MARK, _END_64_MARK, _LOCATOR_MARK = b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7"


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """The archive in a file, whose directory has been looked at before Python reads it."""
    start, size = _directory(file)
    file.seek(start)
    directory, at = file.read(size), 0
    while at < size:
        if size - at < _ENTRY.size or directory[at : at + 4] != _ENTRY_MARK:
            raise zipfile.BadZipFile("its directory is damaged")
        *_, name, extra, comment, _, _, _, _ = _ENTRY.unpack_from(directory, at)
        if extra > MOST_EXTRA:
            raise zipfile.BadZipFile(f"a member has {extra:,} bytes of extra fields")
        at += _ENTRY.size + name + extra + comment
    return zipfile.ZipFile(file)


def _directory(file: IO[bytes]) -> tuple[int, int]:
    """Where the directory of an archive begins, and its bytes."""
    end = file.seek(0, os.SEEK_END) - _END.size
    if end < 0:
        raise zipfile.BadZipFile("it is too short for an archive")
    file.seek(end)
    mark, *_, size, _, comment = _END.unpack(file.read(_END.size))
    if mark != _END_MARK or comment:
        raise zipfile.BadZipFile("it does not end as an archive")
    # A large archive has a second end, before the first.
    before = end - _LOCATOR.size
    if before >= _END_64.size:
        file.seek(before)
        if file.read(4) == _LOCATOR_MARK:
            end = before - _END_64.size
            file.seek(end)
            mark, *_, size, _ = _END_64.unpack(file.read(_END_64.size))
            if mark != _END_64_MARK:
                raise zipfile.BadZipFile("it does not end as an archive")
    if size > end:
        raise zipfile.BadZipFile("its directory is longer than the file")
    return end - size, size
