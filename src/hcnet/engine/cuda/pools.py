"""Pooling layers and the class layer on a GPU: messages, and decisions with given weights.

One thread computes an element of S or R; in `_settle`, where elements of a plane compete, one
thread computes a plane.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, empty, flat, hold, launch
from hcnet.engine.cuda.compilation import Number, compiled, inlined, kernel
from hcnet.engine.planes import OFF, UNDECIDED
from hcnet.factors import GRID
from hcnet.grid import pool_share
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer, PoolLayer
from hcnet.messages import PoolMessages

_or_to_U, _or_to_S, _class_to_S = compiled.or_to_U, compiled.or_to_S, compiled.class_to_S
_pool_to_R, _pool_to_U = compiled.pool_to_R, compiled.pool_to_U
_max_pool, _settle_plane = compiled.max_pool, compiled.settle_plane
_choices_log_prior = compiled.choices_log_prior


@inlined
def _element(z, planes):
    """Plane, row and column of element z."""
    line = z // planes.shape[2]
    return line // planes.shape[1], line % planes.shape[1], z % planes.shape[2]


@functools.cache
def pool_kernels(members: int) -> SimpleNamespace:
    """Kernels for windows of `members` positions; they work on planes (`planes_of`)."""

    @kernel
    def or_to_U(below, from_pool, to_U, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), below.size, cuda.gridsize(1)):
            k, y, x = _element(z, below)
            _or_to_U(y, x, below[k], from_pool[k], to_U[k], window, t)

    @kernel
    def pool_to_U(to_U, above, log_prior, from_pool):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), above.size, cuda.gridsize(1)):
            k, r, c = _element(z, above)
            _pool_to_U(r, c, to_U[k], above[k], log_prior, from_pool[k], t)

    @kernel
    def or_to_S(from_pool, down, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), down.size, cuda.gridsize(1)):
            k, y, x = _element(z, down)
            _or_to_S(y, x, from_pool[k], down[k], window, t)

    @kernel
    def max_pool(below, log_prior, to_R, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
            k, r, c = _element(z, to_R)
            _max_pool(r, c, below[k], log_prior, to_R[k], window, t)

    return SimpleNamespace(or_to_U=or_to_U, pool_to_U=pool_to_U, or_to_S=or_to_S, max_pool=max_pool)


@kernel
def _run_pool_to_R(to_U, log_prior, to_R, damping):
    for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
        k, r, c = _element(z, to_R)
        _pool_to_R(r, c, to_U[k], log_prior, to_R[k], damping)


@kernel
def _run_class_to_S(up, log_prior, exclusive):
    for k in range(cuda.grid(1), up.shape[0], cuda.gridsize(1)):
        _class_to_S(up[k], log_prior[k], exclusive)


class CUDAPools:
    """The messages of pools and classes (`engine.base.PoolUpdater`)."""

    hold = staticmethod(arrays.hold)
    fetch = staticmethod(arrays.fetch)
    largest = staticmethod(arrays.largest)

    def or_to_U(self, pools: PoolMessages, below: DeviceArray) -> None:
        """Messages from OR to U, given the messages up to the S below."""
        planes = planes_of(below, pools.from_pool, pools.to_U)
        launch(pool_kernels(pools.layer.n_members).or_to_U, below.size, *planes, pools.window)

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Messages from POOL to R; the largest change of one."""
        before = arrays.copied(pools.to_R)
        to_U, to_R = planes_of(pools.to_U, pools.to_R)
        launch(_run_pool_to_R, to_R.size, to_U, pools.log_prior, to_R, pool_share(damping))
        return arrays.largest(pools.to_R, before)

    def pool_to_U(self, pools: PoolMessages, above: DeviceArray) -> None:
        """Messages from POOL to U, given the messages that come down to R."""
        to_U, down, from_pool = planes_of(pools.to_U, above, pools.from_pool)
        work = pool_kernels(pools.layer.n_members).pool_to_U
        launch(work, above.size, to_U, down, pools.log_prior, from_pool)

    def or_to_S(self, pools: PoolMessages) -> DeviceArray:
        """Messages from OR down to the S below."""
        down = arrays.empty((*pools.to_R.shape[:2], *pools.layer.below_size))
        planes = planes_of(pools.from_pool, down)
        launch(pool_kernels(pools.layer.n_members).or_to_S, down.size, *planes, pools.window)
        return down

    def class_to_S(self, log_prior: DeviceArray, up: DeviceArray, exclusive: bool) -> DeviceArray:
        """Messages from the class layer to the templates, given those that come up."""
        down = arrays.copied(up)
        rows = down.reshape(up.shape[0], up.size // up.shape[0])
        launch(_run_class_to_S, len(rows), rows, log_prior, exclusive)
        return down


def planes_of(*grids: DeviceArray) -> tuple[DeviceArray, ...]:
    """Views with images and channels as one axis: element z is in plane z // (rows · columns)."""
    return tuple(x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]) for x in grids)


class DeviceLevel:
    """A feature layer and the pooling layer below it, with some weights, for some images.

    Of a network with given weights it finds the most probable configurations: messages go up,
    decisions go down.
    """

    def __init__(
        self, pool: PoolLayer, features: FeatureLayer, log_prior: FloatArray, n_images: int
    ) -> None:
        """A level without weights."""
        n, channels, n_features = n_images, pool.n_channels, features.n_features
        shape, planes = (n, channels, *pool.size), (n * channels, int(np.prod(pool.size)))
        self.pool, self.features, self.log_prior = pool, features, hold(log_prior)
        # Weights that are on: their number for every feature, and their offsets in R from the
        # placement's first element.
        self.counts = empty((n_features,), np.int32)
        self.where = empty((n_features, channels * int(np.prod(features.feature_size))), np.int32)
        self.to_R = empty(shape)  # messages up: (images, channels, height, width)
        self.up = empty((n, n_features, *features.placement_size))  # messages up to S
        self.R, self.choice = empty(shape, np.uint8), empty(shape, np.int16)
        # How many explain each element of the S below.
        self.taken = empty((n, channels, *pool.below_size), np.int16)
        self.scratch = empty(planes, np.int32), empty(planes, np.int32)
        self.costs = empty((n, channels), np.float64)  # log-probability of the choices

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
