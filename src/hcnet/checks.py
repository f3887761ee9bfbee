"""Checks of single arguments, shared by everything that users call.

Each returns the value in one type.  A value that does not fit raises an error whose sentence names
the argument, says what was expected and what came, and often what to do.
"""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.atomic_files import file_path

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

# No array here is larger; beyond, NumPy cannot even say that there is too little memory.
MOST = 2**31 - 1


def is_number(value: Any) -> bool:
    """A real number, and not a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def is_count(value: Any, least: int = 1) -> bool:
    """A whole number of at least `least`."""
    return is_number(value) and isinstance(value, numbers.Integral) and int(value) >= least


def check_count(
    name: str, value: Any, least: int = 1, *, most: int = MOST, note: str = "", hint: str = ""
) -> int:
    """A whole number of at least `least` and at most `most`.

    In the message, `note` stands after the bound, and `hint` says why, or what to do.
    """
    if is_count(value, least) and value <= most:
        return int(value)
    bound = f"at least {least}"
    if is_count(value, least):
        bound, value = f"at most {most:,}", int(value)
    raise ValueError(f"{name} must be a whole number of {bound}{note}, got {value!r}{_end(hint)}")


def check_optional_count(
    name: str, value: Any, least: int, none: str, most: int = 2**63
) -> int | None:
    """As `check_count`, or None; `none` says what None stands for."""
    if value is None:
        return None
    return check_count(name, value, least, most=most, note=f", or None {none}")


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    note: str = "",
    hint: str = "",
) -> float:
    """A number within bounds; `note` stands after them in the message, `hint` says what to do."""
    fits = is_number(value) and (
        (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if fits and value == value:
        return float(value)
    bounds = {"at least": least, "larger than": above, "at most": most, "below": below}
    known = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
    words = f"be {' and '.join(known)}"
    if least is not None and most is not None:
        words = f"be a number from {least:g} to {most:g}"
    elif above is not None and below is not None:
        words = f"lie strictly between {above:g} and {below:g}"
    elif known == ["larger than 0"]:
        words = "be a positive number"
    raise ValueError(f"{name} must {words}{note}, got {value!r}{_end(hint)}")


def check_share(name: str, value: float) -> float:
    """A number from 0 to 1."""
    return check_number(name, value, least=0, most=1)


def check_probability(name: str, value: Any, *, most: float = 1.0) -> float:
    """A number from 0 to `most`."""
    return check_number(
        name, value, least=0, most=most, hint="pass a probability, not a percentage"
    )


def check_noise(value: Any, name: str = "noise") -> float:
    """A flip probability: beyond one half, flipping would be the image and not the noise."""
    return check_probability(name, value, most=0.5)


def check_pair(name: str, value: Any, least: int = 1, *, single: bool = True) -> tuple[int, int]:
    """Two whole numbers (height, width); with `single`, one number stands for both."""
    pair: Any = value.tolist() if isinstance(value, np.ndarray) else value
    if single and is_count(pair, least):
        pair = (pair, pair)
    two = isinstance(pair, tuple | list) and len(pair) == 2
    if two and all(is_count(side, least) for side in pair):
        return check_count(name, pair[0], least), check_count(name, pair[1], least)
    wanted = f"two whole numbers (height, width) of at least {least}"
    if single and least == 1:
        wanted = "one positive whole number or two (height, width)"
    raise ValueError(f"{name} must be {wanted}, got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """True or False, or a whole number that counts as one of them."""
    if not isinstance(value, bool | np.bool_ | numbers.Integral):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_path(name: str, value: Any) -> Path:
    """The path of a file in a folder that exists."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be the path of a file, got {value!r}.")
    path = file_path(value)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    return path


def check_random_state(value: Any) -> np.random.Generator:
    """A random generator from a seed, a generator, or None."""
    if isinstance(value, np.random.RandomState):
        value = np.random.Generator(value._bit_generator)
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number of at least 0 or a "
            f"numpy.random.Generator, got {value!r}."
        ) from None


def as_array(name: str, value: ArrayLike, hint: str = "make them equally large") -> NDArray[Any]:
    """Anything that NumPy takes for one array."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be one array, but its rows differ in size; {hint}."
        ) from None


def as_numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    """An array of numbers or booleans without NaN."""
    array = as_array(name, value)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers or booleans, got dtype {array.dtype}; convert it first."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(
            f"{name} must not hold NaN; pass the missing pixels as a mask, and 0 in their place."
        )
    return array


def check_grey(X: ArrayLike) -> tuple[NDArray[Any], float]:
    """Images (n, height, width) as they came, and the value that is white in them.

    White is 255 in bytes, and 1 in floats and booleans.
    """
    array = np.asarray(X)
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"X must be grey images of shape (n, height, width) or (n, 1, height, width), got "
            f"shape {array.shape}; for one image pass image[None], and average colours first."
        )
    if array.dtype == np.uint8:
        if array.max() == 1:
            warnings.warn(
                "X is uint8 but holds only 0 and 1, which is all but black where 255 is white; for "
                "binary images pass X.astype(bool).",
                UserWarning,
                stacklevel=4,
            )
        return array, 255.0
    if array.dtype.kind not in "fb":
        raise TypeError(
            f"X must be uint8 from 0 to 255, or floats or booleans from 0 to 1, got dtype "
            f"{array.dtype}; convert it, for example with X.astype(np.uint8)."
        )
    least, most = array.min(), array.max()
    if not (least >= 0 and most <= 1):  # NaN is neither
        raise ValueError(
            f"X of dtype {array.dtype} must lie from 0 (black) to 1 (white), got {least:g} to "
            f"{most:g}; divide by the value that is white, and replace what is missing."
        )
    return array, 1.0


def in_short(error: Exception, most: int = 200) -> str:
    """What an error says, on one line of at most so many characters."""
    return one_line(str(error), most) or type(error).__name__


def one_line(text: str, most: int = 200) -> str:
    """A text from a file, on one line of at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + "…"


def _end(hint: str) -> str:
    return f"; {hint}." if hint else "."
