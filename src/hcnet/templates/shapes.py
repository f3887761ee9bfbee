"""Shapes: what is drawn in an image as points on its edges, wherever it lies and however large."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.images import FloatArray
from hcnet.templates.shape_kernels import (
    RINGS,
    SECTORS,
    compare_as_they_are,
    compare_deformed,
    spread,
    surroundings,
)

# The longer side of the ink, in pixels, at which edges are taken, and the paper around it.
SIDE, MARGIN = 64, 10
# The warp: Gaussians of a width, on a square grid, of which the corners are out of reach.
WIDTH, SPACING, REACH = 1.3, 1.0, 2.0
# Spread of the affine map around the identity, and of its shift.  The shapes are centred already.
AFFINE, SHIFT = 0.063, 0.095
# Rounds of fitting, and the widths of the first and of the last.
ROUNDS, COARSE, FINE = 12, 0.4, 0.12


class Shapes(NamedTuple):
    """Points of some shapes (shapes, points, 5), their numbers, and the surroundings of each."""

    points: NDArray[np.float64]
    n_points: NDArray[np.int64]
    around: NDArray[np.float64]


def enlarge(image: NDArray[Any], white: float) -> FloatArray:
    """The ink of a grey image, from 0 to 1, of a standard size in the middle of a square."""
    side = SIDE + 2 * MARGIN
    grey = image.astype(np.float32) / np.float32(white)
    rows, columns = np.nonzero(grey >= grey.max() / 2)
    if not grey.any():
        return np.zeros((side, side), np.float32)
    low, high = (rows.min(), columns.min()), (rows.max(), columns.max())
    step = (max(high[0] - low[0], high[1] - low[1]) + 1) / SIDE
    if step > 1:  # pixels that fall between those of the result count, too
        grey = ndimage.gaussian_filter(grey, step / 2)
    at = (np.arange(side) - (side - 1) / 2) * step
    where = [at + (low[k] + high[k]) / 2 for k in range(2)]
    rows_, columns_ = np.meshgrid(*where, indexing="ij")
    found = ndimage.map_coordinates(grey, [rows_, columns_], order=1)
    return np.asarray(np.clip(found / max(found.max(), 1e-6), 0, 1), np.float32)


def shapes_of(edges: NDArray[np.bool_], n_points: int) -> Shapes:
    """Shapes from edges (images, directions, height, width), the directions around the circle."""
    n, directions = edges.shape[:2]
    angles = 2 * np.pi * np.arange(directions) / directions
    points = np.zeros((n, n_points, 5))
    numbers = np.zeros(n, np.int64)
    around = np.zeros((n, n_points, RINGS * SECTORS))
    for k, own in enumerate(edges):
        channel, row, column = np.nonzero(own)
        if len(row):
            angle = angles[channel]
            candidates = np.stack([row, column, np.sin(angle), np.cos(angle)], axis=1)
            numbers[k] = spread(candidates, points[k])
            surroundings(points[k, : numbers[k]], around[k])
    return Shapes(points, numbers, around)


def join(some: Shapes, others: Shapes) -> Shapes:
    """All shapes of both."""
    return Shapes(*(np.concatenate(pair) for pair in zip(some, others, strict=True)))


def costs_of_templates(
    images: Shapes, templates: Shapes, candidates: int, stiffness: float
) -> NDArray[np.float64]:
    """How badly each template explains each image: (images, templates), 0 for not at all badly.

    The `candidates` that are most like the image as they are, are deformed to it; all others count
    as they are, but never as better than one of these.
    """
    n, n_templates = len(images.points), len(templates.points)
    costs = np.zeros((n, n_templates))
    compare_as_they_are(n, images.points, images.n_points, *templates[:2], costs)
    few = min(candidates, n_templates)
    chosen = np.argsort(costs, axis=1, kind="stable")[:, :few].copy()
    deformed = np.zeros((n, few))
    compare_deformed(
        n,
        images.points,
        images.n_points,
        images.around,
        *templates,
        chosen,
        _warp(stiffness),
        COARSE * (FINE / COARSE) ** np.linspace(0, 1, ROUNDS),
        deformed,
    )
    costs = np.maximum(costs, deformed.max(axis=1, keepdims=True))
    np.put_along_axis(costs, chosen, deformed, axis=1)
    return np.asarray(costs)


def _warp(stiffness: float) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Centres of the Gaussians, their width, and the precision of the map around the identity."""
    line = np.arange(-REACH, REACH + SPACING / 2, SPACING)
    centres = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    apart = ((centres[:, None] - centres) ** 2).sum(axis=-1)
    prior = np.zeros((3 + len(centres),) * 2)
    prior[0, 0] = prior[1, 1] = AFFINE**-2
    prior[2, 2] = SHIFT**-2
    prior[3:, 3:] = stiffness * np.exp(-apart / (2 * WIDTH**2)) + 1e-3 * np.eye(len(centres))
    return centres, WIDTH, prior
