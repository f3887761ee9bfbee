"""What goes into a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray


@dataclass(frozen=True, eq=False)
class Contents:
    """What goes into a file, or into a part of one: plain values, and arrays."""

    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def with_part(self, name: str, part: Contents) -> Contents:
        """The same, and a part of this name."""
        assert name not in self.header
        arrays = {f"{name}-{key}": array for key, array in part.arrays.items()}
        return Contents(self.header | {name: part.header}, self.arrays | arrays)

    def with_bits(self, name: str, bits: BoolArray) -> Contents:
        """The same, and an array of booleans, eight to a byte."""
        return Contents(self.header, self.arrays | {name: np.packbits(bits)})

    def with_all(self, name: str, arrays: Sequence[NDArray[Any]]) -> Contents:
        """The same, and arrays that are told apart by their numbers."""
        return Contents(
            self.header, self.arrays | {f"{name}-{k}": array for k, array in enumerate(arrays)}
        )
