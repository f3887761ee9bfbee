"""Slots of active placements and their messages on a GPU, and the trees above which they lie.

Each tile has a fixed number of slots, one for each placement that can be active there, so that
placements come and go without moving the messages of others.  Messages are stored by slot, in the
order of the weights.  A tree is covered by placements of at most two by two tiles.  The slots of
neighbouring tiles of a row follow each other, so the leaves of a tree lie in one or two runs of
slots.
"""

from __future__ import annotations

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.active import geometry
from hcnet.engine.active.geometry import Geometry, IntArray, Tiling, coordinates, tiles_of
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, hold, launch
from hcnet.engine.cuda.compilation import inlined, kernel
from hcnet.layers import FeatureLayer

locate = inlined(geometry.locate.py_func)
first_element = inlined(geometry.first_element.py_func)

# Row of an empty slot, far from every tree.
NOWHERE = -(2**30)
# Numbers stored for a tree: seven, and one so that each tree starts at a cache line.
TREE_NUMBERS = 8


def assign_slots(
    g: Geometry, tiles: Tiling, before: IntArray, active: IntArray
) -> tuple[IntArray, IntArray]:
    """Slots of a new set of active placements, and which slots hold new placements.

    ``before[k]`` is the placement in slot k, or -1.  Placements that stay keep their slots.
    """
    taken = np.flatnonzero(before >= 0)
    stay = np.isin(before[taken], active, assume_unique=True)
    after = np.full_like(before, -1)
    after[taken[stay]] = before[taken[stay]]
    new = np.setdiff1d(active, before[taken], assume_unique=True)
    tile = tiles_of(g, tiles, new)
    order = np.argsort(tile, kind="stable")
    new, tile = new[order], tile[order]
    free = np.flatnonzero(after < 0)
    rank = np.arange(len(new)) - np.searchsorted(tile, tile)
    fresh = free[np.searchsorted(free // tiles.capacity, tile) + rank]
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
def slot_runs(n, row, column, g, tiles):
    """Runs of slots that hold all placements above an element of the board.

    The first slot of the first run, the length of a run, and the number of runs (one or two).  The
    second run begins `run_distance` later.
    """
    top = over(max(row - g.window_height + 1, 0), tiles.height)
    bottom = over(min(row, g.height - 1), tiles.height)
    left = over(max(column - g.window_width + 1, 0), tiles.width)
    right = over(min(column, g.width - 1), tiles.width)
    first = ((n * tiles.down + top) * tiles.across + left) * tiles.capacity
    return first, (right + 1 - left) * tiles.capacity, bottom + 1 - top


@inlined
def run_distance(tiles):
    """Number of slots in a row of tiles."""
    return tiles.across * tiles.capacity


@inlined
def weight_above(at, slot, row, column, g):
    """Which weight of a channel lies on an element; -1 if the placement does not cover it."""
    di, dj = row - at[slot, 0], column - at[slot, 1]
    if 0 <= di < g.window_height and 0 <= dj < g.window_width:
        return di * g.window_width + dj
    return -1


def find_trees(
    g: Geometry, tiles: Tiling, n_images: int, at: DeviceArray, observed: DeviceArray
) -> tuple[DeviceArray, DeviceArray, NDArray[np.int64]]:
    """Trees with active leaves: a mask of the board's elements, their list, and firsts.

    The list is (trees, 8), image by image, line by line: image, channel, row, column of the board,
    `slot_runs`.  The firsts, (images + 1,), are the first tree of every image, and their number.
    """
    covered = arrays.empty((observed.size,), np.uint8)
    launch(_cover, covered.size, g, tiles, at, observed, covered)
    lines = covered.size // g.board_width
    counts = arrays.empty((lines,), np.int64)
    launch(_count, lines, covered, g.board_width, counts)
    begin = np.concatenate([[0], np.cumsum(arrays.fetch(counts))])
    where = arrays.empty((max(int(begin[-1]), 1), TREE_NUMBERS), np.int32)
    launch(_list, lines, g, tiles, covered, hold(begin), where)
    return covered, where, begin[:: lines // n_images]


def fill_board(
    values: DeviceArray, layer: FeatureLayer, g: Geometry, observed: DeviceArray, out: DeviceArray
) -> None:
    """Put values (images, channels, height, width) on the board; 0 where nothing is observed."""
    size = (*layer.image_size, *layer.overhang)
    launch(_fill, out.size, arrays.flat(values), size, g, observed, out)


@kernel
def _fill(values, size, g, observed, out):
    height, width, over_rows, over_columns = size
    for z in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        line, column = z // g.board_width, z % g.board_width - over_columns
        plane, row = line // g.board_height, line % g.board_height - over_rows
        inside = 0 <= row < height and 0 <= column < width and observed[z] != 0
        out[z] = values[(plane * height + row) * width + column] if inside else np.float32(0)


@kernel
def _cover(g, tiles, at, observed, covered):
    for z in range(cuda.grid(1), covered.size, cuda.gridsize(1)):
        line, column = z // g.board_width, z % g.board_width
        plane, row = line // g.board_height, line % g.board_height
        n, found = plane // g.channels, 0
        if observed[z]:
            first, length, runs = slot_runs(n, row, column, g, tiles)
            for y in range(runs):
                begin = first + y * run_distance(tiles)
                for slot in range(begin, begin + length):
                    if weight_above(at, slot, row, column, g) >= 0:
                        found = 1
        covered[z] = found


@kernel
def _count(covered, width, counts):
    for line in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        found = 0
        for column in range(width):
            found += covered[line * width + column]
        counts[line] = found


@kernel
def _list(g, tiles, covered, begin, where):
    for line in range(cuda.grid(1), begin.size - 1, cuda.gridsize(1)):
        plane, k = line // g.board_height, begin[line]
        for column in range(g.board_width):
            if covered[line * g.board_width + column]:
                n, row = plane // g.channels, line % g.board_height
                where[k, 0], where[k, 1] = n, plane % g.channels
                where[k, 2], where[k, 3] = row, column
                where[k, 4], where[k, 5], where[k, 6] = slot_runs(n, row, column, g, tiles)
                k += 1


@kernel
def reset_uncovered(covered, E, U):
    """Set U to the evidence where there is no tree."""
    for z in range(cuda.grid(1), U.size, cuda.gridsize(1)):
        if not covered[z]:
            U[z] = E[z]
