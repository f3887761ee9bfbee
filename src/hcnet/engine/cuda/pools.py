"""Pooling layers and the class layer on a GPU: messages, and decisions with given weights.

One thread computes an element of S or R; in `_settle`, where elements of a block of channels
compete, one thread computes a block.
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
_max_pool, _settle_block = compiled.max_pool, compiled.settle_block
_choices_log_prior = compiled.choices_log_prior


@inlined
def _element(z, elements):
    """Image, channel, row and column of element z."""
    line = z // elements.shape[3]
    plane = line // elements.shape[2]
    return (
        plane // elements.shape[1],
        plane % elements.shape[1],
        line % elements.shape[2],
        z % elements.shape[3],
    )


@functools.cache
def pool_kernels(members: int) -> SimpleNamespace:
    """Kernels for windows of `members` choices."""

    @kernel
    def or_to_U(below, from_pool, to_U, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), below.size, cuda.gridsize(1)):
            n, b, y, x = _element(z, below)
            _or_to_U(b, y, x, below[n], from_pool[n], to_U[n], window, t)

    @kernel
    def pool_to_U(to_U, above, log_prior, from_pool):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), above.size, cuda.gridsize(1)):
            n, a, r, c = _element(z, above)
            _pool_to_U(a, r, c, to_U[n], above[n], log_prior, from_pool[n], t)

    @kernel
    def or_to_S(from_pool, down, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), down.size, cuda.gridsize(1)):
            n, b, y, x = _element(z, down)
            _or_to_S(b, y, x, from_pool[n], down[n], window, t)

    @kernel
    def max_pool(below, log_prior, to_R, window):
        t = cuda.local.array(members, Number)
        for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
            n, a, r, c = _element(z, to_R)
            _max_pool(a, r, c, below[n], log_prior, to_R[n], window, t)

    return SimpleNamespace(or_to_U=or_to_U, pool_to_U=pool_to_U, or_to_S=or_to_S, max_pool=max_pool)


@kernel
def _run_pool_to_R(to_U, log_prior, to_R, damping):
    for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
        n, a, r, c = _element(z, to_R)
        _pool_to_R(a, r, c, to_U[n], log_prior, to_R[n], damping)


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
        work = pool_kernels(pools.layer.n_members).or_to_U
        launch(work, below.size, below, pools.from_pool, pools.to_U, pools.window)

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Messages from POOL to R; the largest change of one."""
        before, share = arrays.copied(pools.to_R), pool_share(damping)
        launch(_run_pool_to_R, before.size, pools.to_U, pools.log_prior, pools.to_R, share)
        return arrays.largest(pools.to_R, before)

    def pool_to_U(self, pools: PoolMessages, above: DeviceArray) -> None:
        """Messages from POOL to U, given the messages that come down to R."""
        work = pool_kernels(pools.layer.n_members).pool_to_U
        launch(work, above.size, pools.to_U, above, pools.log_prior, pools.from_pool)

    def or_to_S(self, pools: PoolMessages) -> DeviceArray:
        """Messages from OR down to the S below."""
        layer = pools.layer
        down = arrays.empty((pools.to_R.shape[0], layer.n_below, *layer.below_size))
        launch(pool_kernels(layer.n_members).or_to_S, down.size, pools.from_pool, down, layer.reach)
        return down

    def class_to_S(self, log_prior: DeviceArray, up: DeviceArray, exclusive: bool) -> DeviceArray:
        """Messages from the class layer to the templates, given those that come up."""
        down = arrays.copied(up)
        rows = down.reshape(up.shape[0], up.size // up.shape[0])
        launch(_run_class_to_S, len(rows), rows, log_prior, exclusive)
        return down


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
        shape, blocks = (n, channels, *pool.size), channels if pool.apart else 1
        work = n * blocks, channels // blocks * int(np.prod(pool.size))
        self.pool, self.features, self.log_prior = pool, features, hold(log_prior)
        # Weights that are on: their number for every feature, and their offsets in R from the
        # placement's first element.
        self.counts = empty((n_features,), np.int32)
        self.where = empty((n_features, channels * int(np.prod(features.feature_size))), np.int32)
        self.to_R = empty(shape)  # messages up: (images, channels, height, width)
        self.up = empty((n, n_features, *features.placement_size))  # messages up to S
        self.R, self.choice = empty(shape, np.uint8), empty(shape, np.int16)
        # How many explain each element of the S below.
        self.taken = empty((n, pool.n_below, *pool.below_size), np.int16)
        self.scratch = empty(work, np.int32), empty(work, np.int32)
        self.costs = empty((n, blocks), np.float64)  # log-probability of the choices

    def weigh(self, W: BoolArray) -> None:
        """Set the weights: (features, channels, height, width)."""
        on = hold(np.ascontiguousarray(W).view(np.uint8).reshape(len(W), -1))
        arrays.clear(self.counts)
        size = self.features.feature_size
        launch(_list_on, on.size, on, size, self.pool.size, self.counts, self.where)

    def forward(self, below: DeviceArray) -> DeviceArray:
        """Messages up to S, given those to the S below, as if no message came down."""
        work = pool_kernels(self.pool.n_members).max_pool
        launch(work, self.to_R.size, below, self.log_prior, self.to_R, self.pool.reach)
        listed = self.counts, self.where
        launch(_correlate, self.up.size, flat(self.to_R), self.to_R.shape, *listed, self.up)
        return self.up

    def decide(self, S: DeviceArray, below: DeviceArray) -> DeviceArray:
        """How many explain each element below, given S and the evidence for those elements."""
        arrays.clear(self.R)
        arrays.clear(self.taken)
        listed = self.counts, self.where
        launch(_place, S.size, S, self.to_R.shape, *listed, flat(self.R))
        elements = self.R, self.choice, below, self.log_prior, self.pool.reach, self.taken
        launch(_settle, self.costs.size, *elements, *self.scratch, self.costs)
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
    blocks = costs.shape[1]
    wide, deep = R.shape[1] // blocks, below.shape[1] // blocks
    for k in range(cuda.grid(1), costs.size, cuda.gridsize(1)):
        n, block = k // blocks, k % blocks
        for a in range(block * wide, (block + 1) * wide):
            for r in range(R.shape[2]):
                for c in range(R.shape[3]):
                    choice[n, a, r, c] = UNDECIDED if R[n, a, r, c] else OFF
        prior = log_prior
        if blocks > 1:
            first = block % log_prior.shape[0]
            prior = log_prior[first : first + 1]
        own = choice[n, block * wide : (block + 1) * wide]
        at = slice(block * deep, (block + 1) * deep)
        _settle_block(own, below[n, at], prior, window, taken[n, at], on[k], good[k])
        costs[n, block] = _choices_log_prior(own, prior)


@kernel
def _tally(evidence, taken, size, counts):
    for z in range(cuda.grid(1), evidence.size, cuda.gridsize(1)):
        if evidence[z] != np.float32(0):
            kind = (0 if evidence[z] > np.float32(0) else 2) + (0 if taken[z] > 0 else 1)
            cuda.atomic.add(counts, (z // size, kind), 1)
