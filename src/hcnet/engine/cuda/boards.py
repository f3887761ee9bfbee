"""Boards on a GPU: evidence, and the trees that have active leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.active.geometry import Geometry
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, hold, launch
from hcnet.engine.cuda.compilation import THREADS, blocks_for, compiled, kernel
from hcnet.engine.cuda.slots import Slots, run_distance, slot_runs, weight_above
from hcnet.layers import FeatureLayer

_larger = compiled.larger

# Numbers stored for a tree: seven, and one so that each tree starts at a cache line.
TREE_NUMBERS = 8


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees that have active leaves, image by image, line by line."""

    where: DeviceArray  # (trees, 8): image, channel, row, column of the board, `slot_runs`
    firsts: NDArray[np.int64]  # (images + 1,): first tree of every image

    @property
    def n(self) -> int:
        """Number of trees."""
        return int(self.firsts[-1])


NO_TREES = Trees(None, np.zeros(1, np.int64))


def find_trees(
    g: Geometry, slots: Slots, n_images: int, at: DeviceArray, observed: DeviceArray
) -> tuple[DeviceArray, Trees]:
    """A mask of the board's elements that have a tree with active leaves, and their list."""
    covered = arrays.empty((observed.size,), np.uint8)
    launch(_cover, covered.size, g, slots, at, observed, covered)
    lines = covered.size // g.board_width
    counts = arrays.empty((lines,), np.int64)
    launch(_count, lines, covered, g.board_width, counts)
    begin = np.concatenate([[0], np.cumsum(arrays.fetch(counts))])
    where = arrays.empty((max(int(begin[-1]), 1), TREE_NUMBERS), np.int32)
    launch(_list, lines, g, slots, covered, hold(begin), where)
    return covered, Trees(where, begin[:: lines // n_images])


def fill_board(
    values: DeviceArray, layer: FeatureLayer, g: Geometry, observed: DeviceArray, out: DeviceArray
) -> None:
    """Put values (images, channels, height, width) on the board; 0 where nothing is observed."""
    size = (*layer.image_size, *layer.overhang)
    launch(_fill, out.size, arrays.flat(values), size, g, observed, out)


def strongest(E: DeviceArray, n_images: int) -> NDArray[np.float32]:
    """The largest absolute evidence of every image."""
    found = hold(np.zeros(n_images, np.float32))
    size = E.size // n_images
    _strongest[(blocks_for(size), blocks_for(n_images, 1)), THREADS](E, size, found)
    return arrays.fetch(found)


@kernel
def _fill(values, size, g, observed, out):
    height, width, over_rows, over_columns = size
    for z in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        line, column = z // g.board_width, z % g.board_width - over_columns
        plane, row = line // g.board_height, line % g.board_height - over_rows
        inside = 0 <= row < height and 0 <= column < width and observed[z] != 0
        out[z] = values[(plane * height + row) * width + column] if inside else np.float32(0)


@kernel
def _cover(g, slots, at, observed, covered):
    for z in range(cuda.grid(1), covered.size, cuda.gridsize(1)):
        line, column = z // g.board_width, z % g.board_width
        plane, row = line // g.board_height, line % g.board_height
        n, found = plane // g.channels, 0
        if observed[z]:
            first, length, runs = slot_runs(n, row, column, g, slots)
            for y in range(runs):
                begin = first + y * run_distance(slots)
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
def _list(g, slots, covered, begin, where):
    for line in range(cuda.grid(1), begin.size - 1, cuda.gridsize(1)):
        plane, k = line // g.board_height, begin[line]
        for column in range(g.board_width):
            if covered[line * g.board_width + column]:
                n, row = plane // g.channels, line % g.board_height
                where[k, 0], where[k, 1] = n, plane % g.channels
                where[k, 2], where[k, 3] = row, column
                where[k, 4], where[k, 5], where[k, 6] = slot_runs(n, row, column, g, slots)
                k += 1


@kernel
def reset_uncovered(covered, E, U):
    """Set U to the evidence where there is no tree."""
    for z in range(cuda.grid(1), U.size, cuda.gridsize(1)):
        if not covered[z]:
            U[z] = E[z]


@kernel
def _strongest(E, size, found):
    for n in range(cuda.blockIdx.y, found.size, cuda.gridDim.y):
        own = np.float32(0)
        for z in range(cuda.grid(1), size, cuda.gridDim.x * cuda.blockDim.x):
            own = _larger(own, abs(E[n * size + z]))
        cuda.atomic.max(found, n, own)
