"""Deformations: a family of random changes of shape, applied to the elements of binary images.

An element that is on is a point.  A deformation moves every point, and turns the direction of the
edge that it is part of.  No grey image is needed, and nothing is drawn: the variants of an image
are lists of elements, like the image itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.checks import check_flag, check_number
from hcnet.images import BoolArray
from hcnet.templates.variant_kernels import vary_all

# More would turn things over, or tear them apart.
MOST = {"rotation": 180, "shear": 2, "scale": 1, "warp": 1000, "smoothness": 1000, "stroke": 1000}


@dataclass(frozen=True)
class Deformations:
    """Random changes of the shape of a drawing, which make variants of an example.

    Every variant draws its own changes: all of them uniformly, up to these limits in both
    directions, but for the warp, whose shifts are normally distributed.

    Parameters
    ----------
    rotation : float, default=12.0
        Largest rotation, in degrees.
    shear : float, default=0.4
        Largest slant: a shift to the side by this share of the height.
    scale : float, default=0.18
        Largest change of size, separately for height and width: 0.2 is up to 20 % larger.
    warp : float, default=0.6
        Smooth local shifts: their standard deviation in pixels.
    smoothness : float, default=14.0
        Distance in pixels over which such shifts change.
    stroke : float, default=0.4
        Largest shift in pixels of edges along their directions, which makes strokes thicker or
        thinner.  Only for channels that are directions.
    directions : bool, default=True
        Channels are directions around the full circle, as `OrientedEdges` makes them, and turn with
        the shape.  Images of one channel have none.

    """

    rotation: float = 12.0
    shear: float = 0.4
    scale: float = 0.18
    warp: float = 0.6
    smoothness: float = 14.0
    stroke: float = 0.4
    directions: bool = True


def check_deformations(value: object) -> Deformations:
    """Deformations; None stands for the default ones."""
    if value is None:
        return Deformations()
    if not isinstance(value, Deformations):
        raise TypeError(
            f"deformations must be hcnet.Deformations or None, got {type(value).__name__}; pass "
            f"for example Deformations(rotation=20)."
        )
    for name, most in MOST.items():
        check_number(name, getattr(value, name), least=1 if name == "smoothness" else 0, most=most)
    check_flag("directions", value.directions)
    return value


class Points(NamedTuple):
    """Elements of several images: those of image n are start[n] to start[n + 1]."""

    start: NDArray[np.int64]
    channel: NDArray[np.float32]  # halves lie between two directions
    row: NDArray[np.float32]
    column: NDArray[np.float32]


class Elements(NamedTuple):
    """Elements of several images as numbers in the flat image."""

    start: NDArray[np.int64]
    where: NDArray[np.int32]


def points(images: BoolArray, directions: bool) -> Points:
    """The elements of images (n, channels, height, width) that are on.

    Of directions, two neighbouring ones in the same pixel are one point between them.
    """
    channel: NDArray[np.float32]
    on = images.copy()
    n, row, column, k = [], [], [], []
    channels = images.shape[1]
    if directions and channels > 2:
        pair = on & np.roll(on, -1, axis=1) & (on.sum(axis=1, keepdims=True) == 2)
        image, a, y, x = np.nonzero(pair)
        n, row, column, k = [image], [y], [x], [a + 0.5]
        on &= ~(pair | np.roll(pair, 1, axis=1))
    image, a, y, x = np.nonzero(on)
    where = np.concatenate([*n, image])
    order = np.argsort(where, kind="stable")
    channel, rows, columns = (
        np.concatenate(part)[order].astype(np.float32)
        for part in ([*k, a], [*row, y], [*column, x])
    )
    start = np.searchsorted(where[order], np.arange(len(images) + 1))
    return Points(start, channel, rows, columns)


def vary(
    images: BoolArray, n_variants: int, how: Deformations, rng: np.random.Generator
) -> Elements:
    """The images themselves, and so many variants of each: a round of all images after another."""
    n, channels, height, width = images.shape
    own = points(images, how.directions)
    nodes = int(np.ceil(max(height, width) / how.smoothness)) + 3
    total = n * (n_variants + 1)
    numbers = rng.uniform(-1, 1, (total, 5))
    grids = how.warp * rng.standard_normal((total, 2, nodes, nodes))
    numbers[:n], grids[:n] = 0, 0
    angle = np.deg2rad(how.rotation) * numbers[:, 0]
    tall, wide = np.exp(np.log1p(how.scale) * numbers[:, 1:3]).T
    sine, cosine = np.sin(angle).round(12), np.cos(angle).round(12)
    slant = how.shear * numbers[:, 3]
    # Rows first; scaled, then turned, then slanted.
    linear = np.stack(
        [
            tall * cosine,
            wide * sine,
            -tall * sine + slant * tall * cosine,
            wide * cosine + slant * wide * sine,
        ],
        axis=1,
    )
    turns = how.directions and channels > 2
    stroke = how.stroke * numbers[:, 4] if turns else np.zeros(total)
    most = 2 * int(np.diff(own.start).max(initial=0))
    found = np.zeros((total, most), np.int32)
    counts = np.zeros(total, np.int64)
    size = np.array([channels, height, width])
    vary_all(total, own, size, linear, stroke, grids, how.smoothness, turns, found, counts)
    start = np.concatenate([[0], np.cumsum(counts)])
    where = found[np.arange(most) < counts[:, None]]
    return Elements(start, where)
