"""Blocks of trees that share no placement, worked out instead of listed.

Trees of one channel whose elements lie a whole number of windows apart are of one colour.  Those
of a colour are numbered image by image, line by line, and cut into blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.active.admission import per_tile
from hcnet.engine.active.geometry import Geometry
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.active.places import element_at
from hcnet.engine.cuda.arrays import DeviceArray
from hcnet.engine.cuda.compilation import THREADS, blocks_for, inlined, kernel


class Colours(NamedTuple):
    """Sizes that kernels need."""

    images: int
    down: int  # trees of a colour in an image
    across: int
    chunks: int  # blocks of a colour
    most: int  # trees of a block

    @classmethod
    def of(cls, g: Geometry, n_images: int, block_size: int) -> Colours:
        """Blocks in which about `block_size` trees have something to say about a weight, at most.

        So many has a block of as many trees where all messages are stored.  Here a tree has at
        most as many leaves as a tile has room for, on average, each with another weight.
        """
        down, across = -(-g.board_height // g.window_height), -(-g.board_width // g.window_width)
        each = n_images * down * across
        weights = g.features * g.window_height * g.window_width
        most = min(max(block_size * weights // per_tile(g), 1), each)
        return cls(n_images, down, across, -(-each // most), most)


def blocks_with_trees(colours: Colours, g: Geometry, covered: DeviceArray) -> NDArray[np.int64]:
    """The blocks that have something to do."""
    busy = arrays.zeros((g.edges * colours.chunks,), np.uint8)
    _find_busy[blocks_for(covered.size), THREADS](colours, g, covered, busy)
    return np.flatnonzero(arrays.fetch(busy))


@inlined
def tree_of(block: Any, t: Any, colours: Any, g: Any) -> Any:
    """Image, channel, row and column of a tree of a block."""
    colour, number = block // colours.chunks, block % colours.chunks * colours.most + t
    column = colour % g.window_width
    row = colour // g.window_width % g.window_height
    a = colour // (g.window_width * g.window_height)
    p, q = number // colours.across, number % colours.across
    n = p // colours.down
    return n, a, row + p % colours.down * g.window_height, column + q * g.window_width


@inlined
def has_tree(n: Any, a: Any, row: Any, column: Any, colours: Any, g: Any, covered: Any) -> Any:
    """Whether there is such a tree, and it has active leaves."""
    if n >= colours.images or row >= g.board_height or column >= g.board_width:
        return False
    return covered[element_at(n, a, row, column, g)] != 0


@kernel
def _find_busy(colours: Any, g: Any, covered: Any, busy: Any) -> None:
    """Inverse of `tree_of`: the blocks of all trees."""
    h, w = g.window_height, g.window_width
    for z in range(cuda.grid(1), covered.size, cuda.gridsize(1)):
        if covered[z]:
            line, column = z // g.board_width, z % g.board_width
            plane, row = line // g.board_height, line % g.board_height
            n, a = plane // g.channels, plane % g.channels
            colour = (a * h + row % h) * w + column % w
            number = (n * colours.down + row // h) * colours.across + column // w
            busy[colour * colours.chunks + number // colours.most] = 1
