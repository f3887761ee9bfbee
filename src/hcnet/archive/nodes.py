"""Places in a file that is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from hcnet.images import BoolArray


class ArraySource(Protocol):
    """Arrays by their names: those of a file, or of a dictionary that `to_dict` made."""

    def read(
        self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...], finite: bool
    ) -> NDArray[Any]:
        """An array of this type and shape; None stands for any length."""
        ...

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        ...

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers into an array that there is already; infinities may be among them."""
        ...


@dataclass(frozen=True, eq=False)
class Node:
    """A value of the header, and the arrays that belong to it (`archive.contents.Contents`)."""

    name: str  # its path, joined by hyphens
    value: Any
    _arrays: ArraySource

    def __getitem__(self, name: str) -> Node:
        values = self._named_values()
        if name not in values:
            raise ValueError(f"its {self._path(name)} is missing")
        return Node(self._path(name), values[name], self._arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._named_values()

    def names(self) -> Iterator[str]:
        """Names of the values in it."""
        return iter(self._named_values())

    def items(self) -> list[Node]:
        """The items of a list."""
        if not isinstance(self.value, list):
            raise ValueError(f"its {self.name} is {shown(self.value)} instead of a list")
        return [Node(self._path(str(k)), v, self._arrays) for k, v in enumerate(self.value)]

    def read_array(
        self, dtype: DTypeLike, shape: tuple[int | None, ...], finite: bool = True
    ) -> NDArray[Any]:
        """The array of this name, which must be of this type and shape."""
        return self._arrays.read(self.name, dtype, shape, finite)

    def read_bits(self, shape: tuple[int, ...]) -> BoolArray:
        """The binary array of this name."""
        return self._arrays.read_bits(self.name, shape)

    def fill_array(self, into: NDArray[Any]) -> None:
        """Read the array of this name into one that there is."""
        self._arrays.fill(self.name, into)

    def _path(self, name: str) -> str:
        return f"{self.name}-{name}" if self.name else name

    def _named_values(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            where = self.name or "header"
            raise ValueError(f"its {where} is {shown(self.value)} instead of values with names")
        return self.value

    @property
    def header(self) -> dict[str, Any]:
        """The values in it."""
        return self._named_values()

    def array(
        self, key: str, dtype: DTypeLike, shape: tuple[int | None, ...], finite: bool = True
    ) -> NDArray[Any]:
        """One of the arrays, of this type and shape; None stands for any length."""
        return self._arrays.read(self._path(key), dtype, shape, finite)

    def bits(self, key: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        return self._arrays.read_bits(self._path(key), shape)

    def fill(self, into: dict[str, NDArray[Any]]) -> None:
        """Read messages into arrays that are there already; infinities may be among them."""
        for key, own in into.items():
            self._arrays.fill(self._path(key), own)

    def part(self, name: str) -> Node:
        """A part of the file."""
        part = self[name]
        part._named_values()
        return part


def shown(value: Any) -> str:
    """A value for a message; a file may hold very long ones."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        text = "something that cannot be shown"
    return text if len(text) <= 60 else text[:60] + "…"
