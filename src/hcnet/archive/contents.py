"""Contents of a file before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


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
