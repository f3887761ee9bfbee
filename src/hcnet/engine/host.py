"""What engines have in common that work in the memory of the machine."""

from __future__ import annotations

import numpy as np

from hcnet.images import FloatArray


class HostArrays:
    """Arrays are where everybody has them."""

    def hold(self, array: FloatArray) -> FloatArray:
        """The same array."""
        return array

    def fetch(self, array: FloatArray) -> FloatArray:
        """The same array."""
        return array

    def largest(self, array: FloatArray) -> float:
        """The largest number of an array, without its sign."""
        return float(np.abs(array).max(initial=0.0))
