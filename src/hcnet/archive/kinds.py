"""Kinds of values in a file: how each is written, checked and read.

Whatever a file holds is checked while it is read, so that a damaged or hostile file ends in a
sentence, before memory is taken for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from hcnet.archive.contents import Contents
from hcnet.archive.nodes import Node, shown

# No size or count is larger, so that products of several stay exact.
LARGEST_COUNT = 2**48
# Height or width of anything.
LARGEST_SIDE = 2**20
# Noise of one half would carry no information.
BELOW_HALF = math.nextafter(0.5, 0)


class Kind(ABC):
    """One kind of value."""

    @abstractmethod
    def write(self, value: Any) -> Contents:
        """The value for a file."""

    @abstractmethod
    def read(self, node: Node, now: Any = None) -> Any:
        """The value of a file; `now` is the present one, for kinds that are restored in place."""


class Plain(Kind):
    """A value that JSON holds as it is."""

    expected: str

    @abstractmethod
    def accepts(self, value: Any) -> bool:
        """Whether a file may hold this value."""

    def convert(self, value: Any) -> Any:
        """The value of the program for an accepted value of a file."""
        return value

    def check(self, name: str, value: Any) -> Any:
        """The value, or a ValueError that says what was expected."""
        if not self.accepts(value):
            raise ValueError(f"its {name} is {shown(value)} instead of {self.expected}")
        return self.convert(value)

    def write(self, value: Any) -> Contents:
        """The value itself."""
        return Contents(value)

    def read(self, node: Node, now: Any = None) -> Any:
        """The value, checked."""
        return self.check(node.name, node.value)


@dataclass(frozen=True)
class WholeNumber(Plain):
    """A whole number within bounds."""

    least: int = 0
    most: int = LARGEST_COUNT

    @property
    def expected(self) -> str:  # type: ignore[override]
        """Words for a message."""
        return f"a whole number from {self.least} to {self.most}"

    def accepts(self, value: Any) -> bool:
        """An int within the bounds."""
        return type(value) is int and self.least <= value <= self.most


@dataclass(frozen=True)
class Number(Plain):
    """A finite number within bounds."""

    least: float = -1e300
    most: float = 1e300

    @property
    def expected(self) -> str:  # type: ignore[override]
        """Words for a message."""
        return f"a number from {self.least:g} to {self.most:g}"

    def accepts(self, value: Any) -> bool:
        """An int or float within the bounds; NaN is in none."""
        return type(value) in (int, float) and self.least <= value <= self.most

    def convert(self, value: Any) -> float:
        """A float."""
        return float(value)


@dataclass(frozen=True)
class NumberOrInfinity(Number):
    """A number, or the one infinity that it can be: JSON has none, and says null."""

    infinity: float = math.inf

    def accepts(self, value: Any) -> bool:
        """None stands for the infinity."""
        return value is None or super().accepts(value)

    def convert(self, value: Any) -> float:
        """A float."""
        return self.infinity if value is None else float(value)

    def write(self, value: Any) -> Contents:
        """The number, or None."""
        return Contents(value if math.isfinite(value) else None)


@dataclass(frozen=True)
class Probability(Number):
    """A probability above 0."""

    least: float = math.ulp(0.0)
    most: float = 0.5

    @property
    def expected(self) -> str:  # type: ignore[override]
        """Words for a message."""
        return f"a probability above 0 and up to {self.most:g}"


class Flag(Plain):
    """True or False."""

    expected = "true or false"

    def accepts(self, value: Any) -> bool:
        """A bool."""
        return isinstance(value, bool)


class Text(Plain):
    """Any text."""

    expected = "a text"

    def accepts(self, value: Any) -> bool:
        """A string."""
        return isinstance(value, str)


@dataclass(frozen=True)
class Choice(Plain):
    """One of a few words."""

    words: Sequence[str]

    @property
    def expected(self) -> str:  # type: ignore[override]
        """Words for a message."""
        return f"one of {', '.join(self.words)}"

    def accepts(self, value: Any) -> bool:
        """One of the words."""
        return isinstance(value, str) and value in self.words


class Size(Plain):
    """Height and width."""

    expected = f"two whole numbers from 1 to {LARGEST_SIDE}"

    def accepts(self, value: Any) -> bool:
        """A list of two sides."""
        side = WholeNumber(1, LARGEST_SIDE)
        return isinstance(value, list) and len(value) == 2 and all(map(side.accepts, value))

    def convert(self, value: Any) -> tuple[int, int]:
        """A pair."""
        return value[0], value[1]

    def write(self, value: Any) -> Contents:
        """A list."""
        return Contents(list(value))


Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Array(Kind):
    """An array of numbers of a type and shape; None stands for any length."""

    dtype: DTypeLike
    shape: Shape
    finite: bool = True

    def write(self, value: Any) -> Contents:
        """The array; the header only says that there is one."""
        return Contents("array", {"": np.asarray(value, self.dtype)})

    def read(self, node: Node, now: Any = None) -> Any:
        """A new array."""
        return node.read_array(self.dtype, self.shape, self.finite)


@dataclass(frozen=True)
class BinaryArray(Kind):
    """A binary array of a shape; None stands for any length."""

    shape: Shape
    dtype: DTypeLike = np.bool_

    def write(self, value: Any) -> Contents:
        """Packed bits; their shape is in the header."""
        return Contents(list(np.shape(value)), {"": np.asarray(value, bool)})

    def read(self, node: Node, now: Any = None) -> Any:
        """A new array."""
        sides = [WholeNumber().read(side) for side in node.items()]
        fits = len(sides) == len(self.shape) and all(
            n in (None, k) for n, k in zip(self.shape, sides, strict=True)
        )
        if not fits:
            wanted = "×".join("any" if n is None else str(n) for n in self.shape)
            raise ValueError(f"its {node.name} has the shape {shown(sides)} instead of {wanted}")
        return node.read_bits(tuple(sides)).astype(self.dtype, copy=False)


@dataclass(frozen=True)
class InPlace(Kind):
    """Messages that are read into the array that there is: they may be too many to have twice.

    Infinities may be among them.  `fetch` and `hold` bring arrays from a device and back.
    """

    fetch: Callable[[Any], Any] = lambda array: array
    hold: Callable[[Any], Any] = lambda array: array

    def write(self, value: Any) -> Contents:
        """The array; the header only says that there is one."""
        return Contents("array", {"": self.fetch(value)})

    def read(self, node: Node, now: Any = None) -> Any:
        """The present array with other numbers."""
        own = self.fetch(now)
        node.fill_array(own)
        if own is not now:
            now[:] = self.hold(own)
        return now


@dataclass(frozen=True)
class Optional(Kind):
    """A value, or None."""

    kind: Kind

    def write(self, value: Any) -> Contents:
        """The value, or null."""
        return Contents(None) if value is None else self.kind.write(value)

    def read(self, node: Node, now: Any = None) -> Any:
        """The value, or None."""
        return None if node.value is None else self.kind.read(node, now)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind."""

    kind: Kind
    least: int = 0
    most: int = LARGEST_COUNT

    def write(self, value: Any) -> Contents:
        """The items by their numbers."""
        return Contents.of_list(self.kind.write(item) for item in value)

    def read(self, node: Node, now: Any = None) -> list[Any]:
        """A new list."""
        items = node.items()
        if not self.least <= len(items) <= self.most:
            raise ValueError(
                f"its {node.name} has {len(items)} items instead of {self.least} to {self.most}"
            )
        return [self.kind.read(item) for item in items]


@dataclass(frozen=True)
class EachOf(Kind):
    """A list with a kind for each of its items; objects in it are restored in place."""

    kinds: Sequence[Kind]

    def write(self, value: Any) -> Contents:
        """The items by their numbers."""
        pairs = zip(self.kinds, value, strict=True)
        return Contents.of_list(kind.write(item) for kind, item in pairs)

    def read(self, node: Node, now: Any = None) -> Sequence[Any]:
        """A new list, or a tuple if the present value is one."""
        items, n = node.items(), len(self.kinds)
        if len(items) != n:
            raise ValueError(f"its {node.name} has {len(items)} items instead of {n}")
        present = [None] * n if now is None else now
        found = [k.read(*pair) for k, *pair in zip(self.kinds, items, present, strict=True)]
        return tuple(found) if isinstance(now, tuple) else found


@dataclass(frozen=True)
class DictOf(Kind):
    """Values of one kind by their names."""

    kind: Kind

    def write(self, value: Any) -> Contents:
        """The values by their names."""
        return Contents.of({name: self.kind.write(one) for name, one in value.items()})

    def read(self, node: Node, now: Any = None) -> dict[str, Any]:
        """The values by their names."""
        return {name: self.kind.read(node[name]) for name in node.names()}


class Object(Kind):
    """An object that is made from its attributes: ``Object(Noise, p01=Probability(), ...)``."""

    def __init__(self, make: Callable[..., Any], /, **kinds: Kind) -> None:
        self._make, self._kinds = make, kinds

    def write(self, value: Any) -> Contents:
        """The attributes."""
        return Contents.of({name: k.write(getattr(value, name)) for name, k in self._kinds.items()})

    def read(self, node: Node, now: Any = None) -> Any:
        """A new object."""
        return self._make(**{name: kind.read(node[name]) for name, kind in self._kinds.items()})


@dataclass(frozen=True)
class Converted(Kind):
    """A value that is stored as one of another kind."""

    kind: Kind
    to_file: Callable[[Any], Any]
    from_file: Callable[[Any], Any]

    def write(self, value: Any) -> Contents:
        """The other value."""
        return self.kind.write(self.to_file(value))

    def read(self, node: Node, now: Any = None) -> Any:
        """The value itself."""
        return self.from_file(self.kind.read(node))


@dataclass(frozen=True)
class Constant(Kind):
    """A value that is known without a file."""

    value: Any

    def write(self, value: Any) -> Contents:
        """Nothing."""
        return Contents(None)

    def read(self, node: Node, now: Any = None) -> Any:
        """The value that is known."""
        return self.value


class Generator(Kind):
    """A random generator, restored in place."""

    def write(self, value: Any) -> Contents:
        """Its state."""
        return Contents(_plain(value.bit_generator.state))

    def read(self, node: Node, now: Any = None) -> Any:
        """The present generator in the state of the file, which must be one of its kind."""
        now.bit_generator.state = _like(now.bit_generator.state, node)
        return now


def saveable(rng: np.random.Generator) -> np.random.Generator:
    """The same generator, or one of NumPy's default kind seeded by it: models save only those."""
    if rng.bit_generator.state["bit_generator"] == "PCG64":
        return rng
    return np.random.default_rng(rng.integers(2**32))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _like(own: Any, node: Node) -> Any:
    """A state from a file, which must look like the one that the generator has."""
    if isinstance(own, dict):
        return {key: _like(part, node[key]) for key, part in own.items()}
    if isinstance(own, np.ndarray):
        words = [WholeNumber(0, 2**64 - 1).read(item) for item in node.items()]
        if len(words) != len(own):
            raise ValueError(f"its {node.name} is incomplete")
        return np.array(words, own.dtype)
    return (Choice((own,)) if isinstance(own, str) else WholeNumber(0, 2**128 - 1)).read(node)
