"""Contents of a file: before it is written (`Contents`), and while it is read (`Node`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from hcnet.images import BoolArray

# None stands for any length.
Shape = tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Contents:
    """A value that JSON can hold, and the arrays that belong to it by their names.

    The name of an array is its path in `header`, joined by hyphens; "" is the value itself.
    """

    header: Any
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Mapping[str, Contents]) -> Contents:
        """Several contents, each under its name."""
        arrays = {
            _path(name, path): array
            for name, part in parts.items()
            for path, array in part.arrays.items()
        }
        return cls({name: part.header for name, part in parts.items()}, arrays)

    @classmethod
    def of_list(cls, items: Iterable[Contents]) -> Contents:
        """Several contents, each under its number."""
        named = cls.of({str(k): item for k, item in enumerate(items)})
        return cls(list(named.header.values()), named.arrays)


class ArraySource(Protocol):
    """Arrays by their names: those of a file, or of a dictionary that `to_dict` made."""

    def read(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of this type and shape."""
        ...

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        ...

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers into an existing array."""
        into[...] = self.read(name, into.dtype, into.shape)


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A value of the header, and the arrays of the file.

    Values with names are found by ``node[name]``; a list is iterated over.
    """

    name: str  # its path, joined by hyphens
    value: Any
    arrays: ArraySource

    def __getitem__(self, name: str) -> Node:
        if name not in self:
            raise ValueError(f"its {_path(self.name, name)} is missing")
        return Node(_path(self.name, name), self.value[name], self.arrays)

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
            yield Node(_path(self.name, str(k)), self.value[k], self.arrays)


def _path(*names: str) -> str:
    return "-".join(filter(None, names))


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
