"""Objects that are saved and continue later: a class declares its fields, and this does the rest.

::

    class Counter(Stateful):
        def saved_fields(self, finished: bool) -> Fields:
            return {"_rng": kinds.generator(), "_count": kinds.whole_number()}

    contents = save(counter)
    restore(another_counter, node)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hcnet.archive.contents import Contents
from hcnet.archive.kinds import Kind, attributes
from hcnet.archive.nodes import Node

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
