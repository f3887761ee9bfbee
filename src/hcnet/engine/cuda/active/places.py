"""Where active placements, their messages and trees lie on a GPU.

Every tile has room for so many active placements: its *slots*, one after the other, so that
placements come and go without moving anybody's messages.  Messages lie by slot, in the order of
the weights.  A tree is covered by placements of at most two by two tiles, and the slots of tiles
side by side follow each other: a tree finds its leaves in one or two runs of slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.active import geometry
from hcnet.engine.active.admission import Tiling, per_tile, tiles_of
from hcnet.engine.active.geometry import Geometry, IntArray, coordinates
from hcnet.engine.cuda.compilation import inlined

locate = inlined(geometry.locate.py_func)
first_element = inlined(geometry.first_element.py_func)

# Row of a slot that is empty: far from every tree.
NOWHERE = -(2**30)


class Seats(NamedTuple):
    """Sizes that kernels need beside `Geometry`."""

    down: int  # tiles
    across: int
    height: int  # of a tile
    width: int
    slots: int  # of a tile

    @classmethod
    def of(cls, g: Geometry, tiles: Tiling) -> Seats:
        """For the tiles of a layer."""
        return cls(tiles.down, tiles.across, tiles.height, tiles.width, per_tile(g))

    @property
    def per_image(self) -> int:
        """Slots of an image."""
        return self.down * self.across * self.slots


def seated(
    g: Geometry, tiles: Tiling, before: IntArray, active: IntArray
) -> tuple[IntArray, IntArray]:
    """Slots of another set of active placements, and which of them are new.

    ``before[k]`` is the placement in slot k, or -1.  Who stays keeps its slot.
    """
    taken = np.flatnonzero(before >= 0)
    stay = np.isin(before[taken], active)
    after = np.full_like(before, -1)
    after[taken[stay]] = before[taken[stay]]
    new = active[~np.isin(active, before[taken])]
    tile = tiles_of(g, tiles, new)
    order = np.argsort(tile, kind="stable")
    new, tile = new[order], tile[order]
    free = np.flatnonzero(after < 0)
    rank = np.arange(len(new)) - np.searchsorted(tile, tile)
    fresh = free[np.searchsorted(free // per_tile(g), tile) + rank]
    after[fresh] = new
    return after, fresh


def places(g: Geometry, where: IntArray) -> NDArray[np.int32]:
    """(slots, 3): row, column and feature of the placement in every slot."""
    found = np.full((len(where), 3), NOWHERE, np.int32)
    taken = np.flatnonzero(where >= 0)
    _, f, i, j = coordinates(g, where[taken]).T
    found[taken] = np.stack([i, j, f], axis=1)
    return found


@inlined
def element_at(n: Any, a: Any, row: Any, column: Any, g: Any) -> Any:
    """The element of the board at a row and a column of a channel."""
    return first_element(n, row, column, g) + a * g.board_height * g.board_width


@inlined
def over(a: Any, b: Any) -> Any:
    """A whole number divided by another; neither is negative, and dividing long ones is slow."""
    return np.int64(np.uint32(a) // np.uint32(b))


@inlined
def runs_above(n: Any, row: Any, column: Any, g: Any, seats: Any) -> Any:
    """The slots of the tiles above an element of the board: one or two runs.

    The first slot of the first run, how long a run is, and how many there are; the second begins
    `run_apart` later.
    """
    top = over(max(row - g.window_height + 1, 0), seats.height)
    bottom = over(min(row, g.height - 1), seats.height)
    left = over(max(column - g.window_width + 1, 0), seats.width)
    right = over(min(column, g.width - 1), seats.width)
    first = ((n * seats.down + top) * seats.across + left) * seats.slots
    return first, (right + 1 - left) * seats.slots, bottom + 1 - top


@inlined
def run_apart(seats: Any) -> Any:
    """Slots of a row of tiles."""
    return seats.across * seats.slots


@inlined
def step_within(at: Any, slot: Any, row: Any, column: Any, g: Any) -> Any:
    """From the first weight of a channel to the one above an element; -1 if there is none."""
    di, dj = row - at[slot, 0], column - at[slot, 1]
    if 0 <= di < g.window_height and 0 <= dj < g.window_width:
        return di * g.window_width + dj
    return -1
