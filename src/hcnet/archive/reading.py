"""Reading a file that may come from anybody: every size is known before memory is taken.

Nothing is compressed and nothing lies outside the file, so that arrays cannot be larger than it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hcnet.archive import kinds, layout
from hcnet.archive.nodes import Node, Shape, fits, shape_text, shown
from hcnet.atomic_files import file_path
from hcnet.images import BoolArray

# Type and shape of an array.
ArrayType = tuple[str, tuple[int, ...]]


class FileArrays:
    """The arrays of an open file (`archive.nodes.ArraySource`)."""

    def __init__(self, archive: zipfile.ZipFile, types: dict[str, ArrayType]) -> None:
        self._archive, self._types = archive, types

    def read(self, name: str, dtype: DTypeLike, shape: Shape, finite: bool) -> NDArray[Any]:
        """An array of this type and shape."""
        stored = np.dtype(dtype).newbyteorder("<")
        values = np.empty(self._check(name, stored.str, shape), stored)
        self._read_into(name, values)
        if finite and stored.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"its {name} holds values that are not numbers")
        return values.astype(np.dtype(dtype), copy=False)

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array, of which a file has eight elements in a byte."""
        n = math.prod(shape)
        packed = self.read(name, np.uint8, (-(-n // 8),), finite=False)
        return np.unpackbits(packed, count=n).view(np.bool_).reshape(shape)

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers, infinities included, into the array that there is."""
        if into.flags.c_contiguous and into.dtype == into.dtype.newbyteorder("<"):
            self._check(name, into.dtype.str, into.shape)
            self._read_into(name, into)
        else:
            into[...] = self.read(name, into.dtype, into.shape, finite=False)

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
        with self._archive.open(layout.member(name)) as file:
            file.read(len(layout.array_header(*self._types[name])))
            flat = values.reshape(-1).view(np.uint8)
            for start in range(0, flat.size, layout.CHUNK):
                chunk = np.frombuffer(file.read(layout.CHUNK), np.uint8)
                flat[start : start + layout.CHUNK] = chunk


class Reader:
    """Reads a file; whatever is wrong with it becomes one sentence.

    ::

        with Reader(path) as file:
            border = kinds.choice("full", "valid").read(file["border"])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wanted: str = "model file",
        remedy: str = "pass a file that save() wrote",
    ) -> None:
        self._path, self._wanted, self._remedy = file_path(path), wanted, remedy
        self.kind = self.library = ""
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
                raise ValueError(str(error)) from None
            if isinstance(error, Exception):
                raise self.damaged(error) from error
            raise

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        assert self._file is not None
        self._file.close()
        if isinstance(error, Exception):
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> ValueError:
        """The sentence for an error while the contents were read."""
        why = " ".join(str(error).split()) or type(error).__name__
        why = why if len(why) <= 300 else why[:300] + "…"
        return ValueError(
            f"{self._path} is not a {self._wanted} of hcnet, or is damaged ({why}); {self._remedy}."
        )

    def _open(self, file: BinaryIO) -> Node:
        archive = zipfile.ZipFile(file)
        members = archive.infolist()
        names = [info.filename for info in members]
        if layout.HEADER not in names:
            raise ValueError("it has no header")
        header = Node(
            "", _read_header(archive, names.index(layout.HEADER)), FileArrays(archive, {})
        )
        self._check_version(header)
        self.kind, self.library = (kinds.text().read(header[key]) for key in ("kind", "library"))
        if {*header.names()} != {"format", "version", "kind", "library", "arrays", "contents"}:
            raise ValueError("its header says too much")
        types = {name: _array_type(header["arrays"][name]) for name in header["arrays"].names()}
        if names != [layout.HEADER, *map(layout.member, types), layout.SUMS]:
            raise ValueError("its members are not those that its header lists")
        _check_sizes(members, types, self._path.stat().st_size)
        _check_sums(archive, types)
        contents = Node("", header["contents"].value, FileArrays(archive, types))
        contents.names()
        return contents

    def _check_version(self, header: Node) -> None:
        form = header.value.get("format")
        if form in ("hcnet-parts", "hcnet-network") and header.value.get("version") == 1:
            raise _OtherVersionError(
                f"{self._path} was written before hcnet 0.1.0, in a format that is no longer read "
                f"(file version 1); learn the model again and save it."
            )
        kinds.choice(layout.FORMAT).read(header["format"])
        version = kinds.whole_number(2).read(header["version"])
        if version > layout.VERSION:
            raise _OtherVersionError(
                f"{self._path} was written by a newer hcnet (file version {version}, this hcnet "
                f"reads up to {layout.VERSION}); update hcnet."
            )


class _OtherVersionError(Exception):
    """A sound file, but not for this hcnet."""


def _read_header(archive: zipfile.ZipFile, which: int) -> dict[str, Any]:
    with archive.open(archive.infolist()[which]) as file:
        text = file.read(layout.HEADER_BYTES + 1)
    if len(text) > layout.HEADER_BYTES:
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
    return kinds.choice(*layout.DTYPES).read(dtype), tuple(shape)


def _check_sizes(
    members: list[zipfile.ZipInfo], types: dict[str, ArrayType], file_size: int
) -> None:
    """Members are stored as they are, have the sizes of the header, and all fit into the file."""
    for info in members:
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.flag_bits & ~0x800:  # which only says that names are UTF-8
            raise ValueError(f"its {shown(info.filename)} is packed or encrypted")
    for info, (dtype, shape) in zip(members[1:-1], types.values(), strict=True):
        wanted = len(layout.array_header(dtype, shape)) + layout.array_bytes(dtype, shape)
        if info.file_size != wanted:
            raise ValueError(f"its {shown(info.filename)} has {info.file_size} bytes, not {wanted}")
    if sum(info.file_size for info in members) > file_size:
        raise ValueError("its members overlap")


def _check_sums(archive: zipfile.ZipFile, types: dict[str, ArrayType]) -> None:
    """The checksums are right, and every array begins with the header of its type."""
    beginnings = [b"", *(layout.array_header(*about) for about in types.values())]
    *members, last = archive.infolist()
    lines = []
    for info, beginning in zip(members, beginnings, strict=True):
        with archive.open(info) as file:
            first = file.read(len(beginning))
            if first != beginning:
                raise ValueError(f"its {shown(info.filename)} is not the array of the header")
            digest = hashlib.sha256(first)
            while chunk := file.read(layout.CHUNK):
                digest.update(chunk)
        lines.append(f"{digest.hexdigest()}  {info.filename}\n")
    text = "".join(lines).encode()
    with archive.open(last) as file:
        if file.read(len(text) + 1) != text:
            raise ValueError("its checksums are wrong")
