"""The order of updates: lanes of trees one after the other, blocks of trees at the same time.

A lane is visited by one warp.  Trees are stored image by image; a sweep goes through the trees of a
lane in steps of a random length that is coprime with their number, so that each tree is visited
once, and a new order for all lanes costs two random numbers.

The trees of a block share no placement, and are computed instead of listed.  Trees of one channel
whose elements lie a whole number of windows apart have the same colour.  The trees of a colour are
numbered image by image, line by line, and cut into blocks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.active.geometry import Geometry, tiling
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, hold, launch
from hcnet.engine.cuda.compilation import inlined, kernel
from hcnet.engine.cuda.slots import element_at

_LONGEST_STEP = 2**31


class Lanes:
    """All trees, cut into lanes; a lane is visited in `rounds` parts."""

    def __init__(self, firsts: NDArray[np.int64], rounds: int = 1) -> None:
        """``firsts[k]:firsts[k + 1]`` are the trees of lane k."""
        start, count = firsts[:-1], np.diff(firsts)
        # (rounds + 1, lanes): where the rounds of every lane begin, and where the last one ends.
        self.cuts = hold(start + count * np.arange(rounds + 1)[:, None] // rounds)
        self._counts = [int(n) for n in np.unique(count) if n]

    def order(self, rng: np.random.Generator | None) -> tuple[np.int64, np.int64]:
        """A new order, the numbers `step` and `ahead`; without a generator, that of storage.

        Of the n trees of a lane, number ``(step * i + ahead * (lane + 1)) % n`` is visited as the
        i-th, so that lanes of the same length start at different trees.
        """
        step, ahead = (1, 0) if rng is None else rng.integers(1, _LONGEST_STEP, 2).tolist()
        while any(math.gcd(step, n) > 1 for n in self._counts):
            step += 1
        return np.int64(step), np.int64(ahead)


class Colours(NamedTuple):
    """Sizes for kernels."""

    images: int
    down: int  # trees of a colour in an image
    across: int
    chunks: int  # blocks of a colour
    most: int  # trees of a block

    @classmethod
    def of(cls, g: Geometry, n_images: int, block_size: int) -> Colours:
        """Blocks in which on average at most `block_size` trees have a message for a weight.

        That is the size of a block where all messages are stored.  Here a tree has on average at
        most as many leaves as a tile has slots, each with a weight of its own.
        """
        down, across = -(-g.board_height // g.window_height), -(-g.board_width // g.window_width)
        trees = n_images * down * across
        weights = g.features * g.window_height * g.window_width
        most = min(max(block_size * weights // tiling(g, 1).capacity, 1), trees)
        return cls(n_images, down, across, -(-trees // most), most)


def blocks_with_trees(colours: Colours, g: Geometry, covered: DeviceArray) -> NDArray[np.int64]:
    """The blocks that have a tree with active leaves."""
    busy = arrays.zeros((g.edges * colours.chunks,), np.uint8)
    launch(_find_busy, covered.size, colours, g, covered, busy)
    return np.flatnonzero(arrays.fetch(busy))


@inlined
def tree_of(block, t, colours, g):
    """Image, channel, row and column of a tree of a block."""
    colour, number = block // colours.chunks, block % colours.chunks * colours.most + t
    column = colour % g.window_width
    row = colour // g.window_width % g.window_height
    a = colour // (g.window_width * g.window_height)
    p, q = number // colours.across, number % colours.across
    n = p // colours.down
    return n, a, row + p % colours.down * g.window_height, column + q * g.window_width


@inlined
def has_tree(n, a, row, column, colours, g, covered):
    """Whether this tree exists and has active leaves."""
    if n >= colours.images or row >= g.board_height or column >= g.board_width:
        return False
    return covered[element_at(n, a, row, column, g)] != 0


@kernel
def _find_busy(colours, g, covered, busy):
    """Inverse of `tree_of`: mark the blocks of all trees."""
    h, w = g.window_height, g.window_width
    for z in range(cuda.grid(1), covered.size, cuda.gridsize(1)):
        if covered[z]:
            line, column = z // g.board_width, z % g.board_width
            plane, row = line // g.board_height, line % g.board_height
            n, a = plane // g.channels, plane % g.channels
            colour = (a * h + row % h) * w + column % w
            number = (n * colours.down + row // h) * colours.across + column // w
            busy[colour * colours.chunks + number // colours.most] = 1
