"""Slots: where active placements and their messages lie on a GPU.

Each tile has a fixed number of slots, one for each placement that can be active there, so that
placements come and go without moving the messages of others.  Messages are stored by slot, in the
order of the weights.  A tree is covered by placements of at most two by two tiles.  The slots of
neighbouring tiles of a row follow each other, so the leaves of a tree lie in one or two runs of
slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.active import geometry
from hcnet.engine.active.admission import Tiling, per_tile, tiles_of
from hcnet.engine.active.geometry import Geometry, IntArray, coordinates
from hcnet.engine.cuda.compilation import inlined

locate = inlined(geometry.locate.py_func)
first_element = inlined(geometry.first_element.py_func)

# Row of an empty slot, far from every tree.
NOWHERE = -(2**30)


class Slots(NamedTuple):
    """Sizes for kernels, beside `Geometry`."""

    down: int  # tiles of an image
    across: int
    height: int  # of a tile
    width: int
    each: int  # slots of a tile

    @classmethod
    def of(cls, g: Geometry, tiles: Tiling) -> Slots:
        """The slots of a layer."""
        return cls(tiles.down, tiles.across, tiles.height, tiles.width, per_tile(g))


def assign_slots(
    g: Geometry, tiles: Tiling, before: IntArray, active: IntArray
) -> tuple[IntArray, IntArray]:
    """Slots of a new set of active placements, and which slots hold new placements.

    ``before[k]`` is the placement in slot k, or -1.  Placements that stay keep their slots.
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


def slot_positions(g: Geometry, where: IntArray) -> NDArray[np.int32]:
    """(slots, 3): row, column and feature of the placement in every slot."""
    found = np.full((len(where), 3), NOWHERE, np.int32)
    taken = np.flatnonzero(where >= 0)
    _, f, i, j = coordinates(g, where[taken]).T
    found[taken] = np.stack([i, j, f], axis=1)
    return found


@inlined
def element_at(n, a, row, column, g):
    """The element of the board at a row and a column of a channel."""
    return first_element(n, row, column, g) + a * g.board_height * g.board_width


@inlined
def over(a, b):
    """The quotient of two integers from 0 to 2³² - 1: 64-bit division is slow."""
    return np.int64(np.uint32(a) // np.uint32(b))


@inlined
def slot_runs(n, row, column, g, slots):
    """Runs of slots that hold all placements above an element of the board.

    The first slot of the first run, the length of a run, and the number of runs (one or two).  The
    second run begins `run_distance` later.
    """
    top = over(max(row - g.window_height + 1, 0), slots.height)
    bottom = over(min(row, g.height - 1), slots.height)
    left = over(max(column - g.window_width + 1, 0), slots.width)
    right = over(min(column, g.width - 1), slots.width)
    first = ((n * slots.down + top) * slots.across + left) * slots.each
    return first, (right + 1 - left) * slots.each, bottom + 1 - top


@inlined
def run_distance(slots):
    """Number of slots in a row of tiles."""
    return slots.across * slots.each


@inlined
def weight_above(at, slot, row, column, g):
    """Which weight of a channel lies on an element; -1 if the placement does not cover it."""
    di, dj = row - at[slot, 0], column - at[slot, 1]
    if 0 <= di < g.window_height and 0 <= dj < g.window_width:
        return di * g.window_width + dj
    return -1
