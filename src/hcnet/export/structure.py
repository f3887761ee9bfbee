"""Models as dictionaries that JSON can hold: sizes, pools, priors, and weights that can be read.

A binary array becomes nested lists whose rows are strings, ``"#"`` for on and ``"."`` for off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hcnet.archive.contents import Contents
from hcnet.archive.nodes import Node
from hcnet.images import BoolArray

ON, OFF = "#", "."

Model = TypeVar("Model")


@dataclass(frozen=True, slots=True)
class Kind:
    """A format, its version, and the estimator that it is of."""

    format: str
    version: int
    estimator: str


PARTS = Kind("hcnet-parts", 1, "FeatureLearner")
NETWORK = Kind("hcnet-network", 1, "HCN")


class DrawnArrays:
    """Arrays of a dictionary (`archive.nodes.ArraySource`)."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays

    def read(
        self, name: str, dtype: DTypeLike, shape: tuple[int | None, ...], finite: bool
    ) -> NDArray[Any]:
        """An array of this shape; None stands for any length."""
        found = np.asarray(self._arrays[name], dtype)
        fits = len(shape) == found.ndim and all(
            n in (None, k) for n, k in zip(shape, found.shape, strict=True)
        )
        if not fits or (finite and not np.isfinite(found).all()):
            raise ValueError(f"its {name} have the shape {found.shape}, or hold what is no number")
        return found

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        found = _read(self._arrays[name])
        if found.size == 0 and 0 in shape:
            return np.zeros(shape, bool)
        if found.shape != shape:
            raise ValueError(f"its {name} have the shape {found.shape} instead of {shape}")
        return found

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers into an array that there is already."""
        into[...] = self.read(name, into.dtype, into.shape, finite=False)


def to_dict(contents: Contents, kind: Kind, parameters: dict[str, Any]) -> dict[str, Any]:
    """Everything that goes into a file."""
    about = {"format": kind.format, "version": kind.version, "parameters": parameters}
    arrays = {
        key: _drawn(array) if array.dtype == bool else array.tolist()
        for key, array in contents.arrays.items()
    }
    found: dict[str, Any] = about | contents.header | {"arrays": arrays}
    return found


def from_dict(given: Any, kind: Kind, read: Callable[[Node], Model]) -> Model:
    """The model that a dictionary describes; whatever is wrong with it becomes one sentence."""
    others = {other.format: other for other in (PARTS, NETWORK)}
    try:
        found, version = others[given["format"]], int(given["version"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _damaged(kind, error) from error
    if found != kind:
        raise ValueError(
            f"This is a dictionary of {found.estimator}, not of {kind.estimator}; read it with "
            f"{found.estimator}.from_dict."
        )
    if version > kind.version:
        raise ValueError(
            f"This dictionary was made by a newer hcnet (version {version}, this hcnet reads up "
            f"to {kind.version}); update hcnet."
        )
    try:
        return read(Node("", given, DrawnArrays(given["arrays"])))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise _damaged(kind, error) from error


def _damaged(kind: Kind, error: Exception) -> ValueError:
    what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return ValueError(
        f"A dictionary that {kind.estimator}.to_dict made was expected ({what}); pass one as it "
        f"was made, or as json.loads gives it back."
    )


def _drawn(array: BoolArray) -> Any:
    if array.ndim == 1:
        return "".join(ON if one else OFF for one in array)
    return [_drawn(one) for one in array]


def _read(drawn: Any) -> BoolArray:
    if isinstance(drawn, str):
        if set(drawn) - {ON, OFF}:
            raise ValueError(f"a row may hold {ON!r} and {OFF!r} only, not {drawn!r}")
        return np.array([one == ON for one in drawn], bool)
    return np.array([_read(one) for one in drawn], bool)
