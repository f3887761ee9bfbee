"""Checks on the values of a header: what a file says may be anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from hcnet.archive.nodes import shown

Word = TypeVar("Word", bound=str)

# No size, count or number of anything is larger; products of several stay exact in Python.
MOST = 2**48
# Height or width of anything.
LARGEST = 2**20
# Noise of one half would carry no information.
BELOW_HALF = math.nextafter(0.5, 0)


def whole(what: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def number(what: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        raise ValueError(f"its {what} is {shown(value)}")
    if not math.isfinite(value):
        raise ValueError(f"its {what} is {shown(value)}")
    return float(value)


def probability(what: str, value: Any, most: float = 0.5) -> float:
    """A probability above 0 and at most one half, or another one."""
    p = number(what, value)
    if not 0 < p <= most:
        raise ValueError(f"its {what} is {shown(value)} instead of a probability up to {most:g}")
    return p


def share(what: str, value: Any) -> float:
    """A number from 0 to 1."""
    part = number(what, value)
    if not 0 <= part <= 1:
        raise ValueError(f"its {what} is {shown(value)}, which is no share")
    return part


def flag(what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def word(what: str, value: Any, choices: Sequence[Word]) -> Word:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"its {what} is {shown(value)}")
    return choices[list(choices).index(value)]  # type: ignore[arg-type]


def listed(what: str, value: Any, length: int | None = None) -> list[Any]:
    """A list, of a length if one is given."""
    if not isinstance(value, list) or length not in (None, len(value)):
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def named(what: str, value: Any) -> dict[str, Any]:
    """Values with names."""
    if not isinstance(value, dict):
        raise ValueError(f"its {what} is {shown(value)}")
    return value


def size(what: str, value: Any) -> tuple[int, int]:
    """Height and width."""
    height, width = (whole(what, side, 1, LARGEST) for side in listed(what, value, 2))
    return height, width
