"""`to_dict` and `from_dict`: fitted estimators as dictionaries that JSON can hold.

A binary array becomes nested lists whose rows are strings, ``"#"`` for on and ``"."`` for off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from hcnet.archive.nodes import ArraySource, Node, Shape, fits, shape_text
from hcnet.estimators.files import ESTIMATORS, Estimator
from hcnet.images import BoolArray

FORMAT, VERSION = "hcnet-model", 1
ON, OFF = "#", "."


def to_dict(model: Estimator) -> dict[str, Any]:
    """A fitted estimator as a dictionary that JSON can hold; `from_dict` reads it.

    Features and weights are rows of "#" and ".".  The state of a stream is left out: `save` keeps
    it.
    """
    check_is_fitted(model)
    contents = model._model_kind.write(model._model)
    arrays = {
        key: _drawn(array) if array.dtype == bool else array.tolist()
        for key, array in contents.arrays.items()
    }
    about = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": model._kind,
        "parameters": model._plain_parameters(),
    }
    found: dict[str, Any] = about | contents.header | {"arrays": arrays}
    return found


def from_dict(description: dict[str, Any]) -> Estimator:
    """The estimator that `to_dict` described."""
    try:
        if description["format"] != FORMAT:
            raise ValueError(f"its format is {str(description['format'])[:40]!r}")
        kind, version = ESTIMATORS[description["estimator"]], int(description["version"])
        if version <= VERSION:
            node = Node("", description, DrawnArrays(description["arrays"]))
            found: Estimator = kind._from_model(node["parameters"], node)
            return found
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"A dictionary that to_dict made was expected ({what}); pass one as it was made, or "
            f"as json.loads gives it back."
        ) from error
    raise ValueError(
        f"This dictionary was made by a newer hcnet (version {version}, this hcnet reads up to "
        f"{VERSION}); update hcnet."
    )


class DrawnArrays(ArraySource):
    """The arrays of a dictionary."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays

    def read(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of this shape."""
        found = np.asarray(self._arrays[name], dtype)
        if not fits(found.shape, shape):
            wanted = shape_text(shape)
            raise ValueError(f"its {name} have the shape {found.shape} instead of {wanted}")
        return found

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        found = _read(self._arrays[name])
        if found.size == 0 and 0 in shape:
            return np.zeros(shape, bool)
        if found.shape != shape:
            raise ValueError(f"its {name} have the shape {found.shape} instead of {shape}")
        return found


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
