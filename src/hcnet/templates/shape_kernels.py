"""Compiled loops: templates of oriented points are deformed to images, and compared with them.

A shape is a list of points: row, column, the direction as a unit vector (down, right), and weight.
The weights of a shape add up to one; its centre is at 0, and its mean squared radius is 1.

A template moves by an affine map and a smooth warp, a sum of Gaussians around fixed ``centres``.
The map is fitted by expectation and maximisation: every point of the image is shared out among the
template points that may explain it, and the other way round, then the map takes every template
point towards its share.  ``prior`` is the precision of the map around the identity.  The widths
``sigmas``, one per round, fall, so that coarse differences are settled first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import kept
from hcnet.engine.threads import over_threads

_kernel: Any = kept(nogil=True)

# Chosen on tasks made of background alphabets, which no figure is of: benchmarks/NOTES.md.
# What a difference of direction costs, and one of the surroundings, while points are shared out.
DIRECTION, SURROUNDINGS = 2.0, 2.0
# The density of points that nothing explains.
UNEXPLAINED = 0.02
# In the comparison: the distance that costs a half, the cost of a difference of direction, and the
# largest cost of a point.
NEAR, TURNED, MOST = 0.25, 3.0, 8.0
# Two points of opposite directions count as so many squared pixels further apart than they are.
OPPOSITE = 16.0
# The surroundings of a point are counted in rings, which double in size, and in sectors.
SMALLEST, RINGS, SECTORS = 0.3, 4, 8
# A pair that costs more is not explained by each other: exp(-16) is 1e-7.
_FAR = 16.0


@over_threads
@_kernel
def compare_as_they_are(first, last, images, n_points, templates, n_own, costs):
    """The cost of each template (images, templates) that is not deformed at all."""
    for n in range(first, last):
        for t in range(len(templates)):
            costs[n, t] = _difference(images[n, : n_points[n]], templates[t, : n_own[t]])


@over_threads
@_kernel
def compare_deformed(
    first, last, images, n_points, near, templates, n_own, around, chosen, basis, sigmas, costs
):
    """The cost of the `chosen` templates (images, candidates), each deformed to its image.

    `near` and `around` are the surroundings of the points of images and templates; `basis` are the
    centres of the warp, its width, and the prior.
    """
    centres, width, prior = basis
    for n in range(first, last):
        for k in range(chosen.shape[1]):
            t = chosen[n, k]
            X, Y = images[n, : n_points[n]], templates[t, : n_own[t]]
            apart = np.empty((len(X), len(Y)))
            for j in range(len(X)):
                for i in range(len(Y)):
                    total = 0.0
                    for d in range(near.shape[2]):
                        total += (near[n, j, d] - around[t, i, d]) ** 2
                    apart[j, i] = SURROUNDINGS * total
            costs[n, k] = _difference(X, _deformed(Y, X, apart, centres, width, prior, sigmas))


@_kernel
def _difference(X, Y):
    """How badly two shapes explain each other, from 0 to twice `MOST`."""
    best = np.full(len(Y), MOST)
    total = 0.0
    for j in range(len(X)):
        least = MOST
        for i in range(len(Y)):
            dy, dx = X[j, 0] - Y[i, 0], X[j, 1] - Y[i, 1]
            cost = (dy * dy + dx * dx) / (2 * NEAR * NEAR)
            if cost < MOST:
                cost += TURNED * (1 - X[j, 2] * Y[i, 2] - X[j, 3] * Y[i, 3])
                least = min(least, cost)
                best[i] = min(best[i], cost)
        total += least * X[j, 4]
    for i in range(len(Y)):
        total += best[i] * Y[i, 4]
    return total


@_kernel
def _deformed(Y, X, apart, centres, width, prior, sigmas):
    """The template Y after it was deformed to X."""
    n, m, terms = len(Y), len(X), 3 + len(centres)
    value, slope = _basis(Y, centres, width)
    identity = np.zeros((terms, 2))
    identity[0, 0] = identity[1, 1] = 1
    start = prior @ identity
    A, B = np.empty((terms, terms)), np.empty((terms, 2))
    Z = Y.copy()
    near, shares, pull = np.empty((m, n)), np.empty(n), np.empty((n, 2))
    for sigma in sigmas:
        narrow, open_ = 1 / (2 * sigma * sigma), UNEXPLAINED * sigma * sigma
        shares[:] = 0
        pull[:] = 0
        for j in range(m):
            total = open_
            for i in range(n):
                near[j, i] = 0
                dy, dx = X[j, 0] - Z[i, 0], X[j, 1] - Z[i, 1]
                cost = (dy * dy + dx * dx) * narrow + apart[j, i]
                if cost < _FAR:
                    cost += DIRECTION * (1 - X[j, 2] * Z[i, 2] - X[j, 3] * Z[i, 3])
                    near[j, i] = np.exp(-cost)
                    total += near[j, i] * Y[i, 4]
            for i in range(n):
                share = near[j, i] * Y[i, 4] * X[j, 4] / total
                shares[i] += share
                pull[i, 0] += share * X[j, 0]
                pull[i, 1] += share * X[j, 1]
        for i in range(n):
            total = open_
            for j in range(m):
                total += near[j, i] * X[j, 4]
            for j in range(m):
                share = near[j, i] * X[j, 4] * Y[i, 4] / total
                shares[i] += share
                pull[i, 0] += share * X[j, 0]
                pull[i, 1] += share * X[j, 1]
        A[:], B[:] = prior, start
        for i in range(n):
            for a in range(terms):
                v = value[i, a] / (sigma * sigma)
                B[a, 0] += v * pull[i, 0]
                B[a, 1] += v * pull[i, 1]
                v *= shares[i]
                for b in range(a + 1):
                    A[a, b] += v * value[i, b]
        _solve(A, B)
        for i in range(n):
            _move(Y[i], Z[i], value[i], slope[i], B)
    return Z


@_kernel
def _basis(Y, centres, width):
    """The terms of the map at each point: the coordinates, 1, the Gaussians; and their slopes."""
    value = np.ones((len(Y), 3 + len(centres)))
    slope = np.zeros((len(Y), 3 + len(centres), 2))
    for i in range(len(Y)):
        value[i, 0], value[i, 1] = Y[i, 0], Y[i, 1]
        slope[i, 0, 0] = slope[i, 1, 1] = 1
        for k in range(len(centres)):
            dy, dx = Y[i, 0] - centres[k, 0], Y[i, 1] - centres[k, 1]
            bell = np.exp(-(dy * dy + dx * dx) / (2 * width * width))
            value[i, 3 + k] = bell
            slope[i, 3 + k, 0] = -bell * dy / (width * width)
            slope[i, 3 + k, 1] = -bell * dx / (width * width)
    return value, slope


@_kernel
def _move(own, moved, value, slope, weights):
    """Where the map takes a point, and how it turns the edge on which the point lies."""
    y = x = yy = yx = xy = xx = 0.0
    for a in range(len(value)):
        y += value[a] * weights[a, 0]
        x += value[a] * weights[a, 1]
        yy += slope[a, 0] * weights[a, 0]
        yx += slope[a, 1] * weights[a, 0]
        xy += slope[a, 0] * weights[a, 1]
        xx += slope[a, 1] * weights[a, 1]
    moved[0], moved[1] = y, x
    # The direction is across the edge: the edge moves along, and across is a quarter turn from it.
    along_y, along_x = -own[3], own[2]
    new_y, new_x = yy * along_y + yx * along_x, xy * along_y + xx * along_x
    length = np.sqrt(new_y * new_y + new_x * new_x) + 1e-12
    moved[2], moved[3] = new_x / length, -new_y / length


@_kernel
def _solve(A, B):
    """Solve A·x = B in place, for a positive definite A of which the lower half is given."""
    n = len(A)
    for j in range(n):
        for k in range(j):
            factor = A[j, k]
            for i in range(j, n):
                A[i, j] -= A[i, k] * factor
        root = np.sqrt(max(A[j, j], 1e-9))
        for i in range(j, n):
            A[i, j] /= root
    for c in range(B.shape[1]):
        for i in range(n):
            for k in range(i):
                B[i, c] -= A[i, k] * B[k, c]
            B[i, c] /= A[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                B[i, c] -= A[k, i] * B[k, c]
            B[i, c] /= A[i, i]


@_kernel
def spread(candidates, points):
    """Choose points far from each other, centre and scale them; the others weigh for the nearest.

    Returns how many were chosen.
    """
    n, n_points = len(candidates), min(len(candidates), len(points))
    nearest = np.zeros(n, np.int64)
    apart = np.full(n, np.inf)
    latest = 0
    for k in range(n_points):
        points[k, :4] = candidates[latest]
        furthest = -1.0
        following = 0
        for i in range(n):
            dy = candidates[i, 0] - candidates[latest, 0]
            dx = candidates[i, 1] - candidates[latest, 1]
            cosine = candidates[i, 2] * candidates[latest, 2]
            cosine += candidates[i, 3] * candidates[latest, 3]
            distance = dy * dy + dx * dx + OPPOSITE / 2 * (1 - cosine)
            if distance < apart[i]:
                apart[i], nearest[i] = distance, k
            if apart[i] > furthest:
                furthest, following = apart[i], i
        latest = following
    for i in range(n):
        points[nearest[i], 4] += 1 / n
    own = points[:n_points]
    for c in range(2):
        own[:, c] -= (own[:, c] * own[:, 4]).sum()
    radius = np.sqrt(((own[:, 0] ** 2 + own[:, 1] ** 2) * own[:, 4]).sum())
    own[:, :2] /= max(radius, 1.0)
    return n_points


@_kernel
def surroundings(points, around):
    """How much of a shape lies in which direction and distance of each point, as square roots."""
    n = len(points)
    for i in range(n):
        total = 1e-9
        for j in range(n):
            dy, dx = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
            radius = np.sqrt(dy * dy + dx * dx)
            # Rings double in size; a point counts for the two nearest, as for the two sectors.
            ring = np.log2(max(radius, 1e-3) / SMALLEST)
            sector = np.arctan2(dy, dx) / (2 * np.pi) * SECTORS
            below = int(np.floor(sector))
            for r in range(RINGS):
                share = max(0.0, 1 - abs(ring - r))
                if r == 0 and ring < 0:
                    share = radius / SMALLEST
                share *= points[j, 4]
                if share > 0:
                    beside = sector - below
                    around[i, r * SECTORS + below % SECTORS] += share * (1 - beside)
                    around[i, r * SECTORS + (below + 1) % SECTORS] += share * beside
                    total += share
        for d in range(around.shape[1]):
            around[i, d] = np.sqrt(around[i, d] / total)
