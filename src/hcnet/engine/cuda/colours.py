"""Blocks of trees that share no placement, computed instead of listed.

Trees of one channel whose elements lie a whole number of windows apart have the same colour.  The
trees of a colour are numbered image by image, line by line, and cut into blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.active.admission import per_tile
from hcnet.engine.active.geometry import Geometry
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, launch
from hcnet.engine.cuda.compilation import inlined, kernel
from hcnet.engine.cuda.slots import element_at


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
        most = min(max(block_size * weights // per_tile(g), 1), trees)
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
