"""Which placements are active: how many there is room for, who comes in and who has to go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hcnet.engine.active.geometry import Geometry, IntArray, coordinates
from hcnet.images import FloatArray

# Placements that may be active in a tile of the size of a window, so that memory is known: one in
# `SHARE`, within these limits.  The less probable ones wait until others have been dropped.
LEAST_PER_TILE, PER_TILE = 8, 16
SHARE = 40
# Placements of a tile that become active in the same sweep.
AT_ONCE = 4
# A placement is inactive below minus the largest evidence of its image; it is dropped only when
# it has fallen further, so that it does not come and go.
DROP = 1.5


class Tiling(NamedTuple):
    """How the positions of images are cut into tiles."""

    images: int
    down: int
    across: int
    height: int  # of a tile
    width: int
    capacity: int  # placements that may be active in a tile

    @property
    def tiles(self) -> int:
        """Of all images."""
        return self.images * self.down * self.across


def tiling(g: Geometry, n_images: int) -> Tiling:
    """Tiles of the size of a window, or as large as the positions leave them."""
    height, width = min(g.window_height, g.height), min(g.window_width, g.width)
    everything = height * width * g.features
    capacity = min(int(np.clip(everything // SHARE, LEAST_PER_TILE, PER_TILE)), everything)
    return Tiling(n_images, -(-g.height // height), -(-g.width // width), height, width, capacity)


def tiles_of(g: Geometry, tiles: Tiling, where: IntArray) -> IntArray:
    """The tile of every placement."""
    n, _, i, j = coordinates(g, where).T
    found: IntArray = (n * tiles.down + i // tiles.height) * tiles.across + j // tiles.width
    return found


def admitted(
    g: Geometry,
    tiles: Tiling,
    strongest: FloatArray,
    active: tuple[IntArray, FloatArray],
    candidates: tuple[IntArray, FloatArray],
) -> IntArray:
    """The placements that are active from now on, in order.

    `strongest` is the largest evidence of every image; `active` and `candidates` are placements
    and their beliefs.  The most probable ones of a tile have priority.
    """
    where, belief = active
    owner = where // (g.positions * g.features)
    stay = -DROP * strongest[owner] < belief
    where = np.concatenate([where[stay], candidates[0]])
    belief = np.concatenate([belief[stay], candidates[1]])
    tile = tiles_of(g, tiles, where)
    order = np.lexsort((-belief, tile))
    rank = np.arange(len(order)) - np.searchsorted(tile[order], tile[order])
    found: IntArray = np.sort(where[order[rank < tiles.capacity]])
    return found
