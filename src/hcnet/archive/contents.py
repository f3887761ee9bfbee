"""Contents of a file before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from hcnet.images import BoolArray


@dataclass(frozen=True, eq=False)
class Contents:
    """A value that JSON can hold, and the arrays that belong to it by their names.

    The name of an array is its path in `header`, joined by hyphens; "" is the value itself.
    """

    header: Any = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Mapping[str, Contents]) -> Contents:
        """Several contents, each under its name."""
        arrays = {
            f"{name}-{path}" if path else name: array
            for name, part in parts.items()
            for path, array in part.arrays.items()
        }
        return cls({name: part.header for name, part in parts.items()}, arrays)

    @classmethod
    def of_list(cls, items: Iterable[Contents]) -> Contents:
        """Several contents, each under its number."""
        named = cls.of({str(k): item for k, item in enumerate(items)})
        return cls(list(named.header.values()), named.arrays)

    def with_part(self, name: str, part: Contents) -> Contents:
        """The same, and a part of this name."""
        assert name not in self.header
        more = Contents.of({name: part})
        return Contents(self.header | more.header, self.arrays | more.arrays)

    def with_bits(self, name: str, bits: BoolArray) -> Contents:
        """The same, and an array of booleans, eight to a byte."""
        return Contents(self.header, self.arrays | {name: bits})

    def with_all(self, name: str, arrays: Sequence[NDArray[Any]]) -> Contents:
        """The same, and arrays that are told apart by their numbers."""
        return Contents(
            self.header, self.arrays | {f"{name}-{k}": array for k, array in enumerate(arrays)}
        )
