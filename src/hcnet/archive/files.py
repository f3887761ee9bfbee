"""Files: a zip archive of a JSON header and NumPy arrays; how it is written, checked and read.

A file may come from anybody: every size is known before memory is taken.  Nothing is compressed and
nothing lies outside the file, so that arrays cannot be larger than it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import struct
import zipfile
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import ArraySource, Contents, Node, Shape, fits, shape_text, shown
from hcnet.atomic_files import Claim, file_path, open_atomically
from hcnet.checks import in_short
from hcnet.images import BoolArray
from hcnet.memory import NotEnoughMemoryError
from hcnet.version import VERSION
from hcnet.zip_files import open_zip

FORMAT = "hcnet"
# 1 was the format before the first release.
FILE_VERSION = 2
# Members of the archive: the header first, arrays in the order in which it lists them, and the
# checksums of all of them last, as `sha256sum` writes and checks them.
HEADER, SUMS = "header.json", "SHA256SUMS"
# The largest header; a hostile one of this size takes 25 MB to parse.
HEADER_BYTES = 2**20
# Types of arrays: numbers, in the byte order of nearly every machine.
DTYPES = ("|u1", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8")
# Bytes that are read and written at a time.
CHUNK = 2**20
# The time of every member, so that the same contents make the same file.
_LONG_AGO = (1980, 1, 1, 0, 0, 0)

# Type and shape of an array.
ArrayType = tuple[str, tuple[int, ...]]


def array_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The bytes before the numbers in a .npy file.

    Made here, so that the header of a file need only be compared with it: nothing in it is
    evaluated, and it does not depend on the version of NumPy.
    """
    about = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(about) + 11) % 64  # magic and length are 10 bytes, the line ends with one
    text = about.encode("ascii") + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _member(key: str) -> str:
    """The member of the archive that holds an array."""
    return f"{key}.npy"


def write(
    path: str | os.PathLike[str],
    kind: str,
    contents: Contents,
    overwrite: bool = False,
    claim: Claim | None = None,
) -> Path:
    """Write a file of a kind, whole or not at all."""
    with open_atomically(path, overwrite, claim) as target:
        _write_members(target, kind, contents)
    return file_path(path)


def _write_members(target: IO[bytes], kind: str, contents: Contents) -> None:
    arrays = {key: plain_array(array) for key, array in contents.arrays.items()}
    header = {
        "format": FORMAT,
        "version": FILE_VERSION,
        "kind": kind,
        "library": VERSION,
        "arrays": {key: [array.dtype.str, list(array.shape)] for key, array in arrays.items()},
        "contents": contents.header,
    }
    text = json.dumps(header, indent=1, allow_nan=False).encode()
    if len(text) > HEADER_BYTES:
        raise ValueError(
            f"The header of a file may have {HEADER_BYTES:,} bytes, and this one has "
            f"{len(text):,}; shorten the names of the classes."
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        sums = _write_member(archive, HEADER, text)
        for key, array in arrays.items():
            beginning = array_header(array.dtype.str, array.shape)
            numbers = array.reshape(-1).view("u1").data if array.size else b""
            sums += _write_member(archive, _member(key), beginning, numbers)
        _write_member(archive, SUMS, sums.encode())


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in one run of memory, in the byte order of files; booleans packed."""
    if array.dtype == bool:
        return np.packbits(array)
    array = np.ascontiguousarray(array).reshape(array.shape)  # of no dimensions, it makes one
    if array.dtype.str.startswith(">"):
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype.str not in DTYPES:
        raise TypeError(f"Arrays of {array.dtype} have no place in a file; convert them.")
    return array


def _write_member(archive: zipfile.ZipFile, name: str, *parts: Any) -> str:
    """Write a member; its line in the list of checksums."""
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.file_size = sum(len(part) for part in parts)  # decides whether sizes take 64 bits
    digest = hashlib.sha256()
    with archive.open(info, "w") as file:
        for part in parts:
            for start in range(0, len(part), CHUNK):
                chunk = memoryview(part)[start : start + CHUNK]
                digest.update(chunk)
                file.write(chunk)
    return f"{digest.hexdigest()}  {name}\n"


class FileArrays(ArraySource):
    """The arrays of an open file."""

    def __init__(self, archive: zipfile.ZipFile, types: dict[str, ArrayType]) -> None:
        self._archive, self._types = archive, types

    def read(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of this type and shape."""
        stored = np.dtype(dtype).newbyteorder("<")
        values = np.empty(self._check(name, stored.str, shape), stored)
        self._read_into(name, values)
        return values.astype(np.dtype(dtype), copy=False)

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array, of which a file has eight elements in a byte."""
        n = math.prod(shape)
        packed = self.read(name, np.uint8, (-(-n // 8),))
        return np.unpackbits(packed, count=n).view(np.bool_).reshape(shape)

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers into an existing array."""
        if into.flags.c_contiguous and into.dtype == into.dtype.newbyteorder("<"):
            self._check(name, into.dtype.str, into.shape)
            self._read_into(name, into)
        else:
            super().fill(name, into)

    def _check(self, name: str, dtype: str, shape: Shape) -> tuple[int, ...]:
        """The sides of an array, which must be of this type and shape."""
        if name not in self._types:
            raise ValueError(f"its {name} is missing")
        came, sides = self._types[name]
        if came != dtype or not fits(sides, shape):
            wanted = f"{dtype} of {shape_text(shape)}"
            raise ValueError(f"its {name} is {came} of shape {shown(sides)} instead of {wanted}")
        return sides

    def _read_into(self, name: str, values: NDArray[Any]) -> None:
        with self._archive.open(_member(name)) as file:
            file.read(len(array_header(*self._types[name])))
            flat = values.reshape(-1).view(np.uint8)
            for start in range(0, flat.size, CHUNK):
                flat[start : start + CHUNK] = np.frombuffer(file.read(CHUNK), np.uint8)


class Reader:
    """Reads a file; whatever is wrong with it becomes one sentence.

    ::

        with Reader(path) as file:
            border = kinds.choice("full", "valid").read(file["border"])
    """

    kind = library = ""  # the header names the kind of file and the version that wrote it

    def __init__(
        self,
        path: str | os.PathLike[str],
        wanted: str = "model file",
        remedy: str = "pass a file that save() wrote",
    ) -> None:
        self._path, self._wanted, self._remedy = file_path(path), wanted, remedy
        self._file: BinaryIO | None = None

    def __enter__(self) -> Node:
        # A pipe or a device would be waited for, or read, for ever.
        if not stat.S_ISREG(self._path.stat().st_mode):
            raise ValueError(f"{self._path} is not a file; {self._remedy}.")
        self._file = self._path.open("rb")
        try:
            return self._open(self._file)
        except BaseException as error:
            self._file.close()
            if isinstance(error, _OtherVersionError):
                raise ValueError(f"{self._path} was written {error}") from None
            if isinstance(error, Exception):
                raise self.explained(error) from error
            raise

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        assert self._file is not None
        self._file.close()
        if isinstance(error, Exception):
            raise self.explained(error) from error

    def explained(self, error: Exception) -> Exception:
        """The sentence for an error while the contents were read: by the machine, or by damage."""
        if isinstance(error, NotEnoughMemoryError):
            return error
        number = error.errno if isinstance(error, OSError) else None
        if isinstance(error, MemoryError) or number == errno.ENOMEM:
            return NotEnoughMemoryError(
                f"There is not enough memory to read {self._path}, which may be sound; end other "
                f"programs, or read it on a larger machine."
            )
        if number not in (None, errno.EINVAL):  # which comes of a wrong offset in the file
            return OSError(number, os.strerror(number), str(self._path))
        why = in_short(error, 300)
        return ValueError(
            f"{self._path} is not a {self._wanted} of hcnet, or is damaged ({why}); {self._remedy}."
        )

    def _open(self, file: BinaryIO) -> Node:
        archive = open_zip(file)
        members = archive.infolist()
        names = [info.filename for info in members]
        if HEADER not in names:
            raise ValueError("it has no header")
        header = Node("", _read_header(archive, names.index(HEADER)), FileArrays(archive, {}))
        _check_version(header)
        self.kind, self.library = (kinds.text().read(header[key]) for key in ("kind", "library"))
        if {*header.names()} != {"format", "version", "kind", "library", "arrays", "contents"}:
            raise ValueError("its header says too much")
        types = {name: _array_type(header["arrays"][name]) for name in header["arrays"].names()}
        if names != [HEADER, *map(_member, types), SUMS]:
            raise ValueError("its members are not those that its header lists")
        _check_sizes(members, types, self._path.stat().st_size)
        _check_sums(archive, types)
        contents = Node("", header["contents"].value, FileArrays(archive, types))
        contents.names()
        return contents


class _OtherVersionError(Exception):
    """A sound file, but not for this hcnet."""


def _check_version(header: Node) -> None:
    form = header.value.get("format")
    if form in ("hcnet-parts", "hcnet-network") and header.value.get("version") == 1:
        raise _OtherVersionError(
            "before hcnet 0.1.0, in a format that is no longer read (file version 1); learn the "
            "model again and save it."
        )
    kinds.choice(FORMAT).read(header["format"])
    version = kinds.whole_number(2).read(header["version"])
    if version > FILE_VERSION:
        raise _OtherVersionError(
            f"by a newer hcnet (file version {version}, this hcnet reads up to {FILE_VERSION}); "
            f"update hcnet."
        )


def _read_header(archive: zipfile.ZipFile, which: int) -> dict[str, Any]:
    with archive.open(archive.infolist()[which]) as file:
        text = file.read(HEADER_BYTES + 1)
    if len(text) > HEADER_BYTES:
        raise ValueError("its header is too long")
    header = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(header, dict):
        raise ValueError(f"its header is {shown(header)}")
    return header


def _refuse_constant(word: str) -> float:
    raise ValueError(f"it says {word} where a number should be")


def _array_type(node: Node) -> ArrayType:
    dtype, sides = node
    shape = kinds.list_of(kinds.whole_number(), most=8).read(sides)
    return kinds.choice(*DTYPES).read(dtype), tuple(shape)


def _check_sizes(
    members: list[zipfile.ZipInfo], types: dict[str, ArrayType], file_size: int
) -> None:
    """Members are stored as they are, have the sizes of the header, and all fit into the file."""
    for info in members:
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.flag_bits & ~0x800:  # which only says that names are UTF-8
            raise ValueError(f"its {shown(info.filename)} is packed or encrypted")
    for info, (dtype, shape) in zip(members[1:-1], types.values(), strict=True):
        wanted = len(array_header(dtype, shape)) + math.prod(shape) * int(dtype[2:])
        if info.file_size != wanted:
            raise ValueError(f"its {shown(info.filename)} has {info.file_size} bytes, not {wanted}")
    if sum(info.file_size for info in members) > file_size:
        raise ValueError("its members overlap")


def _check_sums(archive: zipfile.ZipFile, types: dict[str, ArrayType]) -> None:
    """The checksums are right, and every array begins with the header of its type."""
    beginnings = [b"", *(array_header(*about) for about in types.values())]
    *members, last = archive.infolist()
    lines = []
    for info, beginning in zip(members, beginnings, strict=True):
        with archive.open(info) as file:
            first = file.read(len(beginning))
            if first != beginning:
                raise ValueError(f"its {shown(info.filename)} is not the array of the header")
            digest = hashlib.sha256(first)
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        lines.append(f"{digest.hexdigest()}  {info.filename}\n")
    text = "".join(lines).encode()
    with archive.open(last) as file:
        if file.read(len(text) + 1) != text:
            raise ValueError("its checksums are wrong")
