"""Checks on what users pass to the generators; nothing below them checks again."""

import operator
from typing import TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.Generator | None


# Nothing of ours is larger; beyond, NumPy cannot even say that there is too little memory.
MOST = 2**31 - 1


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """An integer of at least `minimum`."""
    count = _as_integer(value)
    if count is not None and count > MOST:
        raise ValueError(f"{name} must be at most {MOST:,}, but it is {count:,}: pass less.")
    if count is None or count < minimum:
        raise ValueError(
            f"{name} must be an integer of at least {minimum}, but it is {value!r}: pass one."
        )
    return count


def check_size(name: str, value: object, *, minimum: int = 1) -> tuple[int, int]:
    """A pair (height, width) of integers of at least `minimum`."""
    if isinstance(value, tuple | list) and len(value) == 2:
        height, width = _as_integer(value[0]), _as_integer(value[1])
        if height is not None and width is not None and min(height, width) >= minimum:
            return check_count(name, height), check_count(name, width)
    raise ValueError(
        f"{name} must be a pair of integers (height, width) of at least {minimum}, "
        f"but it is {value!r}: pass for example ({max(minimum, 20)}, {max(minimum, 20)})."
    )


def check_probability(name: str, value: object, *, low: float = 0.0, high: float = 1.0) -> float:
    """A number from `low` to `high`, both included."""
    if isinstance(value, int | float | np.integer | np.floating) and low <= value <= high:
        return float(value)
    raise ValueError(
        f"{name} must be a number from {low:g} to {high:g}, but it is {value!r}: "
        f"pass a probability, not a percentage."
    )


def check_noise(value: object, name: str = "noise") -> float:
    """A flip probability: beyond one half, flipping would be the image and not the noise."""
    return check_probability(name, value, high=0.5)


def check_positive(name: str, value: object) -> float:
    """A number above 0."""
    if isinstance(value, int | float | np.integer | np.floating) and value > 0:
        return float(value)
    raise ValueError(f"{name} must be a number above 0, but it is {value!r}: pass one.")


def check_flag(name: str, value: object) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name} must be True or False, but it is {value!r}: pass one of these.")


def make_generator(random_state: object) -> np.random.Generator:
    """The source of all randomness of one data set."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    seed = _as_integer(random_state)
    if seed is None or seed < 0:
        raise ValueError(
            f"random_state must be a non-negative integer, a numpy.random.Generator or None, "
            f"but it is {random_state!r}: pass for example random_state=0."
        )
    return np.random.default_rng(seed)


def _as_integer(value: object) -> int | None:
    """The value as an int if it is one, True and False aside."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
