"""Places in a file that is read."""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from hcnet.images import BoolArray

# None stands for any length.
Shape = tuple[int | None, ...]


class ArraySource(Protocol):
    """Arrays by their names: those of a file, or of a dictionary that `to_dict` made."""

    def read(self, name: str, dtype: DTypeLike, shape: Shape, finite: bool) -> NDArray[Any]:
        """An array of this type and shape."""
        ...

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        ...

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers, infinities included, into the array that there is."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A value of the header, and the arrays that belong to it (`archive.contents.Contents`).

    Values with names are found by ``node[name]``; a list is iterated over.
    """

    name: str  # its path, joined by hyphens
    value: Any
    _arrays: ArraySource

    def __getitem__(self, name: str) -> Node:
        if name not in self:
            raise ValueError(f"its {self._path(name)} is missing")
        return Node(self._path(name), self.value[name], self._arrays)

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def names(self) -> KeysView[str]:
        """Names of the values in it."""
        if not isinstance(self.value, dict):
            where = self.name or "header"
            raise ValueError(f"its {where} is {shown(self.value)} instead of values with names")
        return self.value.keys()

    def __len__(self) -> int:
        if not isinstance(self.value, list):
            raise ValueError(f"its {self.name} is {shown(self.value)} instead of a list")
        return len(self.value)

    def __iter__(self) -> Iterator[Node]:
        for k in range(len(self)):  # one at a time: a hostile list has many items
            yield Node(self._path(str(k)), self.value[k], self._arrays)

    def read_array(self, dtype: DTypeLike, shape: Shape, finite: bool = True) -> NDArray[Any]:
        """The array of this name, which must be of this type and shape."""
        return self._arrays.read(self.name, dtype, shape, finite)

    def read_bits(self, shape: tuple[int, ...]) -> BoolArray:
        """The binary array of this name."""
        return self._arrays.read_bits(self.name, shape)

    def fill_array(self, into: NDArray[Any]) -> None:
        """Read the array of this name into the one that there is."""
        self._arrays.fill(self.name, into)

    def _path(self, name: str) -> str:
        return f"{self.name}-{name}" if self.name else name


def fits(sides: tuple[int, ...], shape: Shape) -> bool:
    """Whether an array with these sides has this shape."""
    return len(sides) == len(shape) and all(
        n in (None, k) for n, k in zip(shape, sides, strict=True)
    )


def shape_text(shape: Shape) -> str:
    """A shape for a message."""
    return "×".join("any" if n is None else str(n) for n in shape)


def shown(value: Any) -> str:
    """A value for a message; a file may hold very long ones."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        text = "something that cannot be shown"
    return text if len(text) <= 60 else text[:60] + "…"
