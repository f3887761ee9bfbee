"""Objects that are saved and go on later: a class declares what it saves, and this does the rest.

::

    class Counter(Stateful):
        def saved_fields(self, finished: bool) -> Fields:
            return {"_rng": Generator(), "_count": WholeNumber(), "_sums": Array(np.float32, (3,))}

    contents = save(counter)
    restore(another_counter, node)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hcnet.archive.contents import Contents
from hcnet.archive.kinds import Kind
from hcnet.archive.nodes import Node

# Attributes and their kinds, in the order in which they are restored.
Fields = Mapping[str, Kind]


class Stateful(Protocol):
    """An object that can go on where another of its class stopped."""

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
    return Attributes(owner.saved_fields(finished)).write(owner)


def restore(owner: Stateful, node: Node, finished: bool = False) -> None:
    """Bring an object to the state that was saved."""
    Attributes(owner.saved_fields(finished)).read(node, owner)
    owner.after_restore(finished)


@dataclass(frozen=True)
class Attributes(Kind):
    """Some attributes of an object, which is restored in place."""

    fields: Fields

    def write(self, value: Any) -> Contents:
        """The attributes by their names, without the underscore of private ones."""
        items = self.fields.items()
        return Contents.of({_key(name): kind.write(getattr(value, name)) for name, kind in items})

    def read(self, node: Node, now: Any = None) -> Any:
        """The present object with other attributes."""
        for name, kind in self.fields.items():
            setattr(now, name, kind.read(node[_key(name)], getattr(now, name)))
        return now


@dataclass(frozen=True)
class Part(Kind):
    """An object within another, restored in place."""

    finished: bool = False

    def write(self, value: Any) -> Contents:
        """Its own fields."""
        return save(value, self.finished)

    def read(self, node: Node, now: Any = None) -> Any:
        """The present object in the state of the file."""
        restore(now, node, self.finished)
        return now


def _key(attribute: str) -> str:
    return attribute.lstrip("_")
