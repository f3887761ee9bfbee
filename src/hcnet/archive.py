"""Model files: a zip archive of NumPy arrays and a JSON header, no pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray
from hcnet.whole_files import write_whole

# What reading a file that is none of ours, or was cut off, can raise.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,  # of an array that says it is larger than any memory
    NotImplementedError,  # zipfile's word for a compression that it does not know
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)

# What writes files of each format, and reads them again.
_WRITERS = {"hcnet-parts": "FeatureLearner", "hcnet-network": "HCN"}


@dataclass(frozen=True, eq=False)
class Contents:
    """What goes into a file, or into a part of one."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def with_part(self, name: str, part: Contents) -> Contents:
        """The same, and a part of this name."""
        arrays = {f"{name}-{key}": array for key, array in part.arrays.items()}
        return Contents(self.header | {name: part.header}, self.arrays | arrays)


def write(path: str | os.PathLike[str], contents: Contents, overwrite: bool) -> Path:
    """Write a model file."""

    def fill(target: IO[bytes]) -> None:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(contents.header, indent=1))
            for key, array in contents.arrays.items():
                with archive.open(f"{key}.npy", "w") as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    return write_whole(Path(path), fill, overwrite)


class Source(Protocol):
    """Where a model is read from: a file, or what `to_dict` made of it."""

    @property
    def header(self) -> dict[str, Any]:
        """What is not an array."""
        ...

    def array(self, key: str) -> NDArray[Any]:
        """One of the arrays."""
        ...

    def bits(self, key: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        ...


@dataclass(frozen=True, eq=False)
class Section:
    """What was read of a file, or of a part of one."""

    header: dict[str, Any]
    _archive: zipfile.ZipFile
    _prefix: str = ""

    def array(self, key: str) -> NDArray[Any]:
        """One of the arrays."""
        with self._archive.open(f"{self._prefix}{key}.npy") as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

    def bits(self, key: str, shape: tuple[int, ...]) -> BoolArray:
        """An array of packed bits."""
        packed, n = self.array(key), int(np.prod(shape))
        if len(packed) != -(-n // 8):
            raise ValueError(f"its {key} are incomplete")
        return np.unpackbits(packed, count=n).reshape(shape).astype(bool)

    def part(self, name: str) -> Section:
        """A part of the file."""
        return Section(self.header[name], self._archive, f"{self._prefix}{name}-")


class Reader:
    """Reads a file of a format; whatever is wrong with it becomes one sentence.

    ::

        with Reader(path, "hcnet-parts", version=1) as file:
            file.header["border"], file.array("features")
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int) -> None:
        self._path, self._kind, self._version = path, kind, version

    def __enter__(self) -> Section:
        try:
            self._archive = zipfile.ZipFile(self._path)
            header = json.loads(self._archive.read("header.json"))
            writer = _WRITERS.get(header["format"])
            if writer is None:
                raise ValueError(f"its format is {header['format']!r}")
            newer = header["version"] > self._version
        except _DAMAGE as error:
            raise self._damaged(error) from error
        if header["format"] != self._kind:
            raise ValueError(
                f"{self._path} is a file of {writer}, not of {_WRITERS[self._kind]}; read it with "
                f"{writer}.load."
            )
        if newer:
            raise ValueError(
                f"{self._path} was written by a newer hcnet (file version "
                f"{header['version']}, this hcnet reads up to {self._version}); update hcnet."
            )
        return Section(header, self._archive)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._archive.close()
        if isinstance(error, _DAMAGE):
            raise self._damaged(error) from error

    def _damaged(self, error: BaseException) -> ValueError:
        return ValueError(
            f"{self._path} is not a model file of hcnet, or is damaged ({error}); pass a file that "
            f"save() wrote."
        )
