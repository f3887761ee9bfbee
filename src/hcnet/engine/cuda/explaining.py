"""The most probable configurations of a network with given weights, on a GPU.

Messages go up, decisions go down.  One thread computes an element of S or R; in `_settle`, where
elements of a plane compete, one thread computes a plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.choices import OFF, UNDECIDED
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, empty, flat, hold, launch
from hcnet.engine.cuda.compilation import compiled, kernel
from hcnet.engine.cuda.pools import planes_of, pool_kernels
from hcnet.factors import GRID
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer, PoolLayer

_settle_plane, _choices_log_prior = compiled.settle_plane, compiled.choices_log_prior


@dataclass(eq=False)
class DeviceLevel:
    """A feature layer and the pooling layer below it, with some weights, for some images."""

    pool: PoolLayer
    features: FeatureLayer
    log_prior: DeviceArray
    # Weights that are on: their number for every feature, and their offsets in R from the
    # placement's first element.
    counts: DeviceArray
    where: DeviceArray
    to_R: DeviceArray  # messages up: (images, channels, height, width)
    up: DeviceArray  # messages up to S: (images, features, height, width)
    R: DeviceArray  # elements that are on, shaped as `to_R`
    choice: DeviceArray  # shaped as `to_R`
    taken: DeviceArray  # how many explain each element below, shaped as the S below
    scratch: tuple[DeviceArray, DeviceArray]  # (planes, elements of R)
    costs: DeviceArray  # (images, channels): log-probability of the choices

    @classmethod
    def start(
        cls, pool: PoolLayer, features: FeatureLayer, log_prior: FloatArray, n_images: int
    ) -> DeviceLevel:
        """A level without weights."""
        n, channels = n_images, pool.n_channels
        shape, planes = (n, channels, *pool.size), (n * channels, int(np.prod(pool.size)))
        weights = channels * int(np.prod(features.feature_size))
        return cls(
            pool,
            features,
            hold(log_prior),
            empty((features.n_features,), np.int32),
            empty((features.n_features, weights), np.int32),
            empty(shape),
            empty((n, features.n_features, *features.placement_size)),
            empty(shape, np.uint8),
            empty(shape, np.int16),
            empty((n, channels, *pool.below_size), np.int16),
            (empty(planes, np.int32), empty(planes, np.int32)),
            empty((n, channels), np.float64),
        )

    def weigh(self, W: BoolArray) -> None:
        """Set the weights: (features, channels, height, width)."""
        on = hold(np.ascontiguousarray(W).view(np.uint8).reshape(len(W), -1))
        arrays.clear(self.counts)
        size = self.features.feature_size
        launch(_list_on, on.size, on, size, self.pool.size, self.counts, self.where)

    @property
    def _window(self) -> tuple[int, int, int, int]:
        return (*self.pool.window, *self.pool.offset)

    def forward(self, below: DeviceArray) -> DeviceArray:
        """Messages up to S, given those to the S below, as if no message came down."""
        (planes,), (to_R,) = planes_of(below), planes_of(self.to_R)
        work = pool_kernels(self.pool.n_members).max_pool
        launch(work, to_R.size, planes, self.log_prior, to_R, self._window)
        listed = self.counts, self.where
        launch(_correlate, self.up.size, flat(self.to_R), self.to_R.shape, *listed, self.up)
        return self.up

    def decide(self, S: DeviceArray, below: DeviceArray) -> DeviceArray:
        """How many explain each element below, given S and the evidence for those elements."""
        arrays.clear(self.R)
        arrays.clear(self.taken)
        listed = self.counts, self.where
        launch(_place, S.size, S, self.to_R.shape, *listed, flat(self.R))
        R, choice, evidence, taken = planes_of(self.R, self.choice, below, self.taken)
        planes = R, choice, evidence, self.log_prior, self._window, taken, *self.scratch
        launch(_settle, len(R), *planes, flat(self.costs))
        return self.taken

    def log_priors(self) -> NDArray[np.float64]:
        """Log-probabilities of the choices, per image."""
        return np.asarray(arrays.fetch(self.costs).sum(axis=1))


def tally(evidence: DeviceArray, taken: DeviceArray) -> NDArray[np.int64]:
    """Numbers of observed pixels that are hit, missed, false and empty: (images, 4)."""
    counts = hold(np.zeros((evidence.shape[0], 4), np.int64))
    size = evidence.size // evidence.shape[0]
    launch(_tally, evidence.size, flat(evidence), flat(taken), size, counts)
    return arrays.fetch(counts)


@kernel
def _list_on(on, size, plane, counts, where):
    # The order does not matter: `_correlate` adds numbers of a grid, which is exact.
    for z in range(cuda.grid(1), on.size, cuda.gridsize(1)):
        f, e = z // on.shape[1], z % on.shape[1]
        if on[f, e]:
            j, i, a = e % size[1], e // size[1] % size[0], e // size[1] // size[0]
            k = cuda.atomic.add(counts, f, 1)
            where[f, k] = (a * plane[0] + i) * plane[1] + j


@kernel
def _correlate(R, shape, counts, where, up):
    features, rows, columns = up.shape[1], up.shape[2], up.shape[3]
    for z in range(cuda.grid(1), up.size, cuda.gridsize(1)):
        c, r = z % columns, z // columns % rows
        f, n = z // columns // rows % features, z // columns // rows // features
        first = (n * shape[1] * shape[2] + r) * shape[3] + c
        total = 0.0
        for k in range(counts[f]):
            total += round(np.float64(R[first + where[f, k]]) * GRID) / GRID
        up[n, f, r, c] = total


@kernel
def _place(S, shape, counts, where, R):
    features, rows, columns = S.shape[1], S.shape[2], S.shape[3]
    for z in range(cuda.grid(1), S.size, cuda.gridsize(1)):
        c, r = z % columns, z // columns % rows
        f, n = z // columns // rows % features, z // columns // rows // features
        if S[n, f, r, c] > 0:
            first = (n * shape[1] * shape[2] + r) * shape[3] + c
            for k in range(counts[f]):
                R[first + where[f, k]] = 1  # all threads write the same


@kernel
def _settle(R, choice, below, log_prior, window, taken, on, good, costs):
    rows, columns = R.shape[1], R.shape[2]
    for k in range(cuda.grid(1), R.shape[0], cuda.gridsize(1)):
        for r in range(rows):
            for c in range(columns):
                choice[k, r, c] = UNDECIDED if R[k, r, c] else OFF
        _settle_plane(choice[k], below[k], log_prior, window, taken[k], on[k], good[k])
        costs[k] = _choices_log_prior(choice[k], log_prior)


@kernel
def _tally(evidence, taken, size, counts):
    for z in range(cuda.grid(1), evidence.size, cuda.gridsize(1)):
        if evidence[z] != np.float32(0):
            kind = (0 if evidence[z] > np.float32(0) else 2) + (0 if taken[z] > 0 else 1)
            cuda.atomic.add(counts, (z // size, kind), 1)
