"""The elements of features, and the pixels of an image that each feature explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hcnet.hierarchy.decoding import Configuration
from hcnet.hierarchy.network import Network
from hcnet.images import BoolArray


def children(W: BoolArray) -> list[list[tuple[int, int, int]]]:
    """The elements of every feature of a layer (features, channels, height, width).

    An element is (feature of the layer below, row, column), row and column within the window.
    """
    return [[(int(a), int(r), int(c)) for a, r, c in np.argwhere(weights)] for weights in W]


@dataclass(frozen=True, slots=True)
class Node:
    """A feature that is on in an image, and the pixels that it explains."""

    level: int  # from 1 at the bottom
    feature: int
    row: int  # in S of its level
    column: int
    pixels: frozenset[tuple[int, int, int]]  # channel, row, column


def nodes(
    network: Network, weights: Sequence[BoolArray], found: Configuration, n: int
) -> list[Node]:
    """All features that are on in image `n`, from the top down."""
    below: dict[tuple[int, int, int], frozenset[tuple[int, int, int]]] = {
        (int(a), int(r), int(c)): frozenset({(int(a), int(r), int(c))})
        for a, r, c in np.argwhere(found.S[0][n])
    }
    layers: list[list[Node]] = []
    for k, (level, W) in enumerate(zip(network.levels, weights, strict=True)):
        (top, left), width = level.pool.offset, level.pool.window[1]
        made = children(W)
        own: list[Node] = []
        for f, i, j in np.argwhere(found.S[k + 1][n]):
            pixels: set[tuple[int, int, int]] = set()
            for a, r, c in made[f]:
                at = int(a), int(i + r), int(j + c)
                di, dj = divmod(int(found.choices[k][n][at]), width)
                pixels |= below.get((at[0], at[1] + di - top, at[2] + dj - left), frozenset())
            own.append(Node(k + 1, int(f), int(i), int(j), frozenset(pixels)))
        below = {(node.feature, node.row, node.column): node.pixels for node in own}
        layers.insert(0, own)
    return [node for layer in layers for node in layer]
