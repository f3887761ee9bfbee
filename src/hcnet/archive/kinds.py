"""Contents of a file (`Contents`, `Node`), and kinds of values: how each is written and read.

Whatever a file holds is checked while it is read, so that a damaged or hostile file ends in a
sentence, before memory is taken for it.  Use it as a vocabulary::

    noise = kinds.object_of(Noise, p01=kinds.probability(), p10=kinds.probability())

An object that is saved and continues later declares its fields::

    class Counter(Stateful):
        def saved_fields(self, finished: bool) -> Fields:
            return {"_rng": kinds.generator(), "_count": kinds.whole_number()}

    contents = save(counter)
    restore(another_counter, node)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hcnet.images import BoolArray

# No size or count is larger, so that products of several stay exact.
LARGEST_COUNT = 2**48
# Height or width of anything.
LARGEST_SIDE = 2**20
# Noise of one half would carry no information.
BELOW_HALF = math.nextafter(0.5, 0)

# None stands for any length.
Shape = tuple[int | None, ...]


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
            _path(name, path): array
            for name, part in parts.items()
            for path, array in part.arrays.items()
        }
        return cls({name: part.header for name, part in parts.items()}, arrays)

    @classmethod
    def of_list(cls, items: Iterable[Contents]) -> Contents:
        """Several contents, each under its number."""
        named = cls.of({str(k): item for k, item in enumerate(items)})
        return cls(list(named.header.values()), named.arrays)


class ArraySource(Protocol):
    """Arrays by their names: those of a file, or of a dictionary that `to_dict` made."""

    def read(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of this type and shape."""
        ...

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        ...

    def fill(self, name: str, into: NDArray[Any]) -> None:
        """Read numbers into an existing array."""
        into[...] = self.read(name, into.dtype, into.shape)


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A value of the header, and the arrays of the file.

    Values with names are found by ``node[name]``; a list is iterated over.
    """

    name: str  # its path, joined by hyphens
    value: Any
    arrays: ArraySource

    def __getitem__(self, name: str) -> Node:
        if name not in self:
            raise ValueError(f"its {_path(self.name, name)} is missing")
        return Node(_path(self.name, name), self.value[name], self.arrays)

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def names(self) -> KeysView[str]:
        """Names of the values in it."""
        if not isinstance(self.value, dict):
            where = self.name or "header"
            raise ValueError(f"its {where} is {shown(self.value)} instead of values with names")
        return self.value.keys()

    def __len__(self) -> int:
        if not isinstance(self.value, list):
            raise ValueError(f"its {self.name} is {shown(self.value)} instead of a list")
        return len(self.value)

    def __iter__(self) -> Iterator[Node]:
        for k in range(len(self)):  # one at a time: a hostile list has many items
            yield Node(_path(self.name, str(k)), self.value[k], self.arrays)


def _path(*names: str) -> str:
    return "-".join(filter(None, names))


def fits(sides: tuple[int, ...], shape: Shape) -> bool:
    """Whether an array with these sides has this shape."""
    return len(sides) == len(shape) and all(
        n in (None, k) for n, k in zip(shape, sides, strict=True)
    )


def shape_text(shape: Shape) -> str:
    """A shape for a message."""
    return "×".join("any" if n is None else str(n) for n in shape)


def shown(value: Any) -> str:
    """A value for a message; a file may hold very long ones."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        text = "something that cannot be shown"
    return text if len(text) <= 60 else text[:60] + "…"


@dataclass(frozen=True)
class Kind:
    """One kind of value: a function that writes it, and one that reads it from a place in a file.

    The second argument of the latter is the present value, for kinds that are restored in place.
    """

    write: Callable[[Any], Contents]
    read_over: Callable[[Node, Any], Any]

    def read(self, node: Node) -> Any:
        """A new value from a place in a file."""
        return self.read_over(node, None)


def plain(
    expected: str, accepts: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda v: v
) -> Kind:
    """A value that JSON holds as it is, if the file's is accepted."""

    def read(node: Node, now: Any) -> Any:
        if not accepts(node.value):
            raise ValueError(f"its {node.name} is {shown(node.value)} instead of {expected}")
        return convert(node.value)

    return Kind(Contents, read)


def is_number(value: Any, least: float = -1e300, most: float = 1e300) -> bool:
    """A number within bounds, and no boolean; NaN is within none."""
    return type(value) in (int, float) and least <= value <= most


def whole_number(least: int = 0, most: int = LARGEST_COUNT) -> Kind:
    """A whole number within bounds."""
    expected = f"a whole number from {least} to {most}"
    return plain(expected, lambda value: type(value) is int and least <= value <= most)


def number(least: float = -1e300, most: float = 1e300) -> Kind:
    """A finite number within bounds."""
    expected = f"a number from {least:g} to {most:g}"
    return plain(expected, lambda value: is_number(value, least, most), float)


def number_or(infinity: float) -> Kind:
    """A number, or one of the infinities, for which JSON has null."""
    return converted(
        optional(number()),
        lambda value: value if math.isfinite(value) else None,
        lambda value: infinity if value is None else value,
    )


def probability(most: float = 0.5) -> Kind:
    """A probability above 0."""
    expected = f"a probability above 0 and up to {most:g}"
    return plain(expected, lambda value: is_number(value, math.ulp(0), most), float)


def flag() -> Kind:
    """True or False."""
    return plain("true or false", lambda value: isinstance(value, bool))


def text() -> Kind:
    """Any text."""
    return plain("a text", lambda value: isinstance(value, str))


def choice(*words: str) -> Kind:
    """One of a few words."""
    expected = f"one of {', '.join(words)}"
    return plain(expected, lambda value: isinstance(value, str) and value in words)


def size() -> Kind:
    """Height and width."""
    side = whole_number(1, LARGEST_SIDE)
    return converted(each_of([side, side]), list, tuple)


def array(
    dtype: DTypeLike,
    shape: Shape,
    least: float = -math.inf,
    most: float = math.inf,
    finite: bool = True,
) -> Kind:
    """An array of numbers of a type and shape, in which None stands for any length.

    Numbers lie within bounds; if they need not be `finite`, anything goes.
    """

    def read(node: Node, now: Any) -> Any:
        values = node.arrays.read(node.name, dtype, shape)
        if finite and not (np.isfinite(values) & (values >= least) & (values <= most)).all():
            expected = f"finite numbers from {least:g} to {most:g}"
            raise ValueError(f"its {node.name} holds values that are not {expected}")
        return values

    return Kind(lambda value: Contents("array", {"": np.asarray(value, dtype)}), read)


def binary_array(shape: Shape, dtype: DTypeLike = np.bool_) -> Kind:
    """A binary array of a shape, which the header holds; None stands for any length."""

    def read(node: Node, now: Any) -> Any:
        sides = tuple(list_of(whole_number(), most=len(shape)).read(node))
        if not fits(sides, shape):
            wanted = shape_text(shape)
            raise ValueError(f"its {node.name} has the shape {shown(sides)} instead of {wanted}")
        return node.arrays.read_bits(node.name, sides).astype(dtype, copy=False)

    return Kind(lambda value: Contents(list(np.shape(value)), {"": np.asarray(value, bool)}), read)


def array_in_place(
    fetch: Callable[[Any], Any] = lambda array: array,
    hold: Callable[[Any], Any] = lambda array: array,
) -> Kind:
    """Messages that are read into the present array: they may be too many to have twice.

    Infinities may be among them.  `fetch` and `hold` bring arrays from a device and back.
    """

    def read(node: Node, now: Any) -> Any:
        own = fetch(now)
        node.arrays.fill(node.name, own)
        if own is not now:
            now[:] = hold(own)
        return now

    return Kind(lambda value: Contents("array", {"": fetch(value)}), read)


def optional(kind: Kind) -> Kind:
    """A value, or None."""
    return Kind(
        lambda value: Contents(None) if value is None else kind.write(value),
        lambda node, now: None if node.value is None else kind.read_over(node, now),
    )


def list_of(kind: Kind, least: int = 0, most: int = LARGEST_COUNT) -> Kind:
    """A list of values of one kind."""

    def read(node: Node, now: Any) -> list[Any]:
        if not least <= len(node) <= most:
            raise ValueError(f"its {node.name} has {len(node)} items, not {least} to {most}")
        return [kind.read(item) for item in node]

    return Kind(lambda value: Contents.of_list(map(kind.write, value)), read)


def each_of(kinds: Sequence[Kind]) -> Kind:
    """A list with a kind for each of its items."""

    def write(value: Any) -> Contents:
        pairs = zip(kinds, value, strict=True)
        return Contents.of_list(kind.write(item) for kind, item in pairs)

    def read(node: Node, now: Any) -> Any:
        if len(node) != len(kinds):
            raise ValueError(f"its {node.name} has {len(node)} items, not {len(kinds)}")
        all_now = [None] * len(kinds) if now is None else now
        found = [k.read_over(*pair) for k, *pair in zip(kinds, node, all_now, strict=True)]
        return tuple(found) if isinstance(now, tuple) else found

    return Kind(write, read)


def dict_of(kind: Kind) -> Kind:
    """Values of one kind by their names."""
    return Kind(
        lambda value: Contents.of({name: kind.write(one) for name, one in value.items()}),
        lambda node, now: {name: kind.read(node[name]) for name in node.names()},
    )


def object_of(make: Callable[..., Any], **kinds: Kind) -> Kind:
    """An object that is made from its attributes."""
    return Kind(
        attributes(kinds).write,
        lambda node, now: make(**{name: kind.read(node[name]) for name, kind in kinds.items()}),
    )


def attributes(kinds: Mapping[str, Kind]) -> Kind:
    """Some attributes of an object, which is restored in place.

    A file has their names without the underscore of private ones.
    """

    def read(node: Node, now: Any) -> Any:
        for name, kind in kinds.items():
            setattr(now, name, kind.read_over(node[name.lstrip("_")], getattr(now, name)))
        return now

    def write(value: Any) -> Contents:
        items = kinds.items()
        return Contents.of({name.lstrip("_"): k.write(getattr(value, name)) for name, k in items})

    return Kind(write, read)


def converted(kind: Kind, to_file: Callable[[Any], Any], from_file: Callable[[Any], Any]) -> Kind:
    """A value that is stored as one of another kind."""
    return Kind(
        lambda value: kind.write(to_file(value)), lambda node, now: from_file(kind.read(node))
    )


def constant(value: Any) -> Kind:
    """A value that is known without a file."""
    return Kind(lambda _: Contents(None), lambda node, now: value)


def generator() -> Kind:
    """A random generator, restored in place if the file's is of the same type."""

    def read(node: Node, now: Any) -> Any:
        now.bit_generator.state = _generator_state(now.bit_generator.state, node)
        return now

    return Kind(lambda value: Contents(_plain_state(value.bit_generator.state)), read)


def saveable(rng: np.random.Generator) -> np.random.Generator:
    """The same generator, or one of NumPy's default type seeded by it: models save only those."""
    if rng.bit_generator.state["bit_generator"] == "PCG64":
        return rng
    return np.random.default_rng(rng.integers(2**32))


def _plain_state(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain_state(part) for key, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _generator_state(own: Any, node: Node) -> Any:
    """A state from a file, which must look like the one that the generator has."""
    if isinstance(own, dict):
        return {key: _generator_state(part, node[key]) for key, part in own.items()}
    if isinstance(own, np.ndarray):
        words = list_of(whole_number(0, 2**64 - 1), len(own), len(own)).read(node)
        return np.array(words, own.dtype)
    return (choice(own) if isinstance(own, str) else whole_number(0, 2**128 - 1)).read(node)


# Attributes and their kinds, in the order in which they are restored.
Fields = Mapping[str, Kind]


class Stateful(Protocol):
    """An object that can continue where another of its class stopped."""

    def saved_fields(self, finished: bool) -> Fields:
        """Attributes that a further step depends on, the random generator included.

        Once the object is `finished`, only those that are still of interest.
        """
        ...

    def after_restore(self, finished: bool) -> None:
        """Check restored attributes against each other, and bring up to date what follows."""
        return None  # noqa: RET501


def save(owner: Stateful, finished: bool = False) -> Contents:
    """The values of all fields."""
    return attributes(owner.saved_fields(finished)).write(owner)


def restore(owner: Stateful, node: Node, finished: bool = False) -> None:
    """Bring an object to the state that was saved."""
    attributes(owner.saved_fields(finished)).read_over(node, owner)
    owner.after_restore(finished)


def part(finished: bool = False) -> Kind:
    """A stateful object within another, restored in place."""

    def read(node: Node, now: Any) -> Any:
        restore(now, node, finished)
        return now

    return Kind(lambda value: save(value, finished), read)
