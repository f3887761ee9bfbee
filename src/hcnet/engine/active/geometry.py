"""Where placements, pixels and weights lie in the arrays of this engine, and which are active.

A *board* is the image with a margin of unobserved pixels as wide as windows reach over its border,
so that the window of every placement lies on it: element (i + di, j + dj) of the board is under
weight (di, dj) of a placement at (i, j).

Placements are numbered ((image × height + i) × width + j) × features + f.  Weights lie as
(f, channel, di, dj): what neighbouring trees have to do with a placement lies side by side, and
the weight of a tree's leaf is at `tree_base` + `placement_offset`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import inlined
from hcnet.grid import FLOAT
from hcnet.images import FloatArray
from hcnet.layers import FeatureLayer

IntArray = NDArray[np.int64]

# Placements that may be active in a tile of the size of a window, so that memory is known: one in
# `SHARE`, within these limits.  The less probable ones wait until others have been dropped.
LEAST_PER_TILE, PER_TILE = 8, 16
SHARE = 40
# Placements of a tile that become active in the same sweep.
AT_ONCE = 4
# A placement is inactive below minus the largest evidence of its image; it is dropped only when
# it has fallen further, so that it does not come and go.
DROP = 1.5


class Geometry(NamedTuple):
    """Sizes that compiled code needs."""

    channels: int
    board_height: int
    board_width: int
    height: int  # of S
    width: int
    window_height: int
    window_width: int
    features: int

    @property
    def positions(self) -> int:
        """Positions of a feature in an image."""
        return self.height * self.width

    @property
    def board_size(self) -> int:
        """Elements of the board of one image."""
        return self.channels * self.board_height * self.board_width

    @property
    def edges(self) -> int:
        """Edges of a placement: its weights."""
        return self.channels * self.window_height * self.window_width


def geometry_of(layer: FeatureLayer) -> Geometry:
    """The sizes of a layer."""
    (h, w), (hs, ws) = layer.feature_size, layer.placement_size
    return Geometry(layer.n_channels, hs + h - 1, ws + w - 1, hs, ws, h, w, layer.n_features)


def to_board(layer: FeatureLayer, values: NDArray[Any]) -> NDArray[Any]:
    """(images, channels, height, width) with the margin, as one run of memory; 0 there."""
    oh, ow = layer.overhang
    return np.ascontiguousarray(np.pad(values, ((0, 0), (0, 0), (oh, oh), (ow, ow)))).reshape(-1)


def from_board(layer: FeatureLayer, board: NDArray[Any], n_images: int) -> NDArray[Any]:
    """Inverse of `to_board`."""
    g, (H, W), (oh, ow) = geometry_of(layer), layer.image_size, layer.overhang
    planes = board.reshape(n_images, g.channels, g.board_height, g.board_width)
    return planes[:, :, oh : oh + H, ow : ow + W]


def to_weights(values: FloatArray) -> FloatArray:
    """(channels, features, height, width) to this engine's order."""
    return np.ascontiguousarray(np.swapaxes(values, 0, 1), dtype=FLOAT).reshape(-1)


def from_weights(layer: FeatureLayer, weights: FloatArray) -> FloatArray:
    """Inverse of `to_weights`."""
    shape = (layer.n_features, layer.n_channels, *layer.feature_size)
    return np.swapaxes(weights.reshape(shape), 0, 1)


def features_last(g: Geometry, weights: FloatArray) -> FloatArray:
    """Weights as (channel, di, last column first, f).

    For a tree the weights of neighbouring placements are then neighbours in memory.
    """
    shape = (g.features, g.channels, g.window_height, g.window_width)
    flipped = np.moveaxis(weights.reshape(shape)[..., ::-1], 0, 3)
    return np.ascontiguousarray(flipped).reshape(-1)


def to_placements(values: FloatArray) -> FloatArray:
    """(images, features, height, width) to the order of the placements' numbers."""
    return np.ascontiguousarray(np.moveaxis(values, 1, 3), dtype=FLOAT).reshape(-1)


def from_placements(layer: FeatureLayer, values: FloatArray) -> FloatArray:
    """Inverse of `to_placements`."""
    return np.moveaxis(values.reshape(-1, *layer.placement_size, layer.n_features), 3, 1)


def coordinates(g: Geometry, where: IntArray) -> IntArray:
    """(placements, 4): image, feature, row and column."""
    position, f = np.divmod(where, g.features)
    row, column = np.divmod(position, g.width)
    n, row = np.divmod(row, g.height)
    return np.stack([n, f, row, column], axis=1)


@inlined
def locate(where, g):
    """Image, row, column and feature of a placement."""
    f = where % g.features
    position = where // g.features
    row = position // g.width
    return row // g.height, row % g.height, position % g.width, f


@inlined
def first_element(n, i, j, g):
    """The element of the board under a placement's first weight."""
    return (n * g.channels * g.board_height + i) * g.board_width + j


@inlined
def placement_offset(i, j, f, g):
    """What a placement adds to a tree's base (`tree_base`)."""
    return f * g.channels * g.window_height * g.window_width - i * g.window_width - j


@inlined
def tree_base(a, row, column, g):
    """Where the weights of the leaves of a tree are counted from."""
    return (a * g.window_height + row) * g.window_width + column


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
    return np.asarray((n * tiles.down + i // tiles.height) * tiles.across + j // tiles.width)


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
    stay = -DROP * strongest[where // (g.positions * g.features)] < belief
    where = np.concatenate([where[stay], candidates[0]])
    belief = np.concatenate([belief[stay], candidates[1]])
    tile = tiles_of(g, tiles, where)
    order = np.lexsort((-belief, tile))
    rank = np.arange(len(order)) - np.searchsorted(tile[order], tile[order])
    return np.sort(where[order[rank < tiles.capacity]])
