"""The most probable configurations that weights lead to, on a GPU: messages up, decisions down.

A thread looks after an element of S or R; only in `settle`, where the elements of a plane get in
each other's way, after a plane.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.choices import OFF, UNDECIDED
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, empty, flat, hold
from hcnet.engine.cuda.compilation import THREADS, Number, blocks_for, compiled, kernel
from hcnet.engine.cuda.pools import planes_of
from hcnet.factors import GRID
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer, PoolLayer

_max_pool, _settle_plane = compiled.max_pool_at, compiled.settle_plane
_choices_log_prior = compiled.choices_log_prior


@dataclass(eq=False)
class DeviceLevel:
    """A feature layer and the pooling layer below it, with some weights, for some images."""

    pool: PoolLayer
    features: FeatureLayer
    n_images: int
    log_prior: DeviceArray
    # Weights that are on: of every feature how many, and where in R, seen from its first element.
    counts: DeviceArray
    where: DeviceArray
    to_R: DeviceArray  # messages up: (images, channels, height, width)
    up: DeviceArray  # the same to S: (images, features, height, width)
    R: DeviceArray  # of the shape of `to_R`: what is on
    choice: DeviceArray  # of the shape of `to_R`
    taken: DeviceArray  # of the shape of the S below
    scratch: tuple[DeviceArray, DeviceArray]  # (planes, elements of R)
    costs: DeviceArray  # (images, channels): log-probability of the choices

    @classmethod
    def start(
        cls, pool: PoolLayer, features: FeatureLayer, log_prior: FloatArray, n_images: int
    ) -> DeviceLevel:
        """Room for everything."""
        n, channels = n_images, pool.n_channels
        shape, elements = (n, channels, *pool.size), int(np.prod(pool.size))
        return cls(
            pool,
            features,
            n,
            hold(log_prior),
            empty((features.n_features,), np.int32),
            empty((features.n_features, channels * int(np.prod(features.feature_size))), np.int32),
            empty(shape),
            empty((n, features.n_features, *features.placement_size)),
            empty(shape, np.uint8),
            empty(shape, np.int16),
            empty((n, channels, *pool.below_size), np.int16),
            (empty((n * channels, elements), np.int32), empty((n * channels, elements), np.int32)),
            empty((n, channels), np.float64),
        )

    def weigh(self, W: BoolArray) -> None:
        """Take these weights: (features, channels, height, width)."""
        on = hold(np.ascontiguousarray(W).view(np.uint8).reshape(len(W), -1))
        arrays.clear(self.counts)
        size = self.features.feature_size
        _list_on[blocks_for(on.size), THREADS](on, size, self.pool.size, self.counts, self.where)

    def forward(self, below: DeviceArray) -> DeviceArray:
        """Messages up to S, given those to the S below, as if nothing were expected."""
        (planes,), window = planes_of(below), (*self.pool.window, *self.pool.offset)
        work = _max_pool_kernel(self.pool.n_members)
        work[blocks_for(self.to_R.size), THREADS](
            planes, self.log_prior, *planes_of(self.to_R), window
        )
        _correlate[blocks_for(self.up.size), THREADS](
            flat(self.to_R), self.to_R.shape, self.counts, self.where, self.up
        )
        return self.up

    def decide(self, S: DeviceArray, below: DeviceArray) -> DeviceArray:
        """The elements below that are on (counted), given S and the evidence for those below."""
        arrays.clear(self.R)
        arrays.clear(self.taken)
        _place[blocks_for(S.size), THREADS](
            S, self.to_R.shape, self.counts, self.where, flat(self.R)
        )
        window = (*self.pool.window, *self.pool.offset)
        R, choice, evidence, taken = planes_of(self.R, self.choice, below, self.taken)
        _settle[blocks_for(len(R)), THREADS](
            R, choice, evidence, self.log_prior, window, taken, *self.scratch, flat(self.costs)
        )
        return self.taken

    def log_priors(self) -> NDArray[np.float64]:
        """Log-probabilities of the choices, per image."""
        return np.asarray(arrays.fetch(self.costs).sum(axis=1))


def best_entries(up: DeviceArray, prior: DeviceArray, best: DeviceArray) -> None:
    """The template at a position that is most probable: its number, for every image."""
    rows = up.reshape(up.shape[0], up.size // up.shape[0])
    _best_entries[blocks_for(len(rows)), THREADS](rows, prior, best)


def switch_on(top: DeviceArray, entries: DeviceArray) -> None:
    """Turn one element of every image on."""
    rows = top.reshape(top.shape[0], top.size // top.shape[0])
    _switch_on[blocks_for(len(rows)), THREADS](rows, entries)


def take_over(rows: BoolArray, new: DeviceArray, old: DeviceArray) -> None:
    """Put the new images in place of the old ones, where `rows` says so."""
    pair = (x.reshape(x.shape[0], x.size // x.shape[0]) for x in (new, old))
    _take_over[blocks_for(new.size), THREADS](hold(rows.view(np.uint8)), *pair)


def explained_away(evidence: DeviceArray, taken: DeviceArray, left: DeviceArray) -> None:
    """The evidence without that of on pixels which are explained."""
    _explained_away[blocks_for(evidence.size), THREADS](flat(evidence), flat(taken), flat(left))


def tally(evidence: DeviceArray, taken: DeviceArray) -> NDArray[np.int64]:
    """Observed pixels that are hit, missed, false and empty, of every image: (images, 4)."""
    counts = hold(np.zeros((evidence.shape[0], 4), np.int64))
    size = evidence.size // evidence.shape[0]
    _tally[blocks_for(evidence.size), THREADS](flat(evidence), flat(taken), size, counts)
    return arrays.fetch(counts)


# Element z of a grid is at z % columns of row z // columns % rows, and so on.


@kernel
def _list_on(on: Any, size: Any, plane: Any, counts: Any, where: Any) -> None:
    # In any order: what is added up are numbers of a grid, which add up exactly.
    for z in range(cuda.grid(1), on.size, cuda.gridsize(1)):
        f, e = z // on.shape[1], z % on.shape[1]
        if on[f, e]:
            j, i, a = e % size[1], e // size[1] % size[0], e // size[1] // size[0]
            k = cuda.atomic.add(counts, f, 1)
            where[f, k] = (a * plane[0] + i) * plane[1] + j


@functools.cache
def _max_pool_kernel(members: int) -> Any:
    """For windows of so many positions."""

    @kernel
    def run(below: Any, log_prior: Any, to_R: Any, window: Any) -> None:
        t = cuda.local.array(members, Number)
        rows, columns = to_R.shape[1], to_R.shape[2]
        for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
            k, r, c = z // columns // rows, z // columns % rows, z % columns
            _max_pool(r, c, below[k], log_prior, to_R[k], window, t)

    return run


@kernel
def _correlate(R: Any, shape: Any, counts: Any, where: Any, up: Any) -> None:
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
def _place(S: Any, shape: Any, counts: Any, where: Any, R: Any) -> None:
    features, rows, columns = S.shape[1], S.shape[2], S.shape[3]
    for z in range(cuda.grid(1), S.size, cuda.gridsize(1)):
        c, r = z % columns, z // columns % rows
        f, n = z // columns // rows % features, z // columns // rows // features
        if S[n, f, r, c] > 0:
            first = (n * shape[1] * shape[2] + r) * shape[3] + c
            for k in range(counts[f]):
                R[first + where[f, k]] = 1  # whoever says so says the same


@kernel
def _settle(
    R: Any,
    choice: Any,
    below: Any,
    log_prior: Any,
    window: Any,
    taken: Any,
    on: Any,
    good: Any,
    costs: Any,
) -> None:
    rows, columns = R.shape[1], R.shape[2]
    for k in range(cuda.grid(1), R.shape[0], cuda.gridsize(1)):
        for r in range(rows):
            for c in range(columns):
                choice[k, r, c] = UNDECIDED if R[k, r, c] else OFF
        _settle_plane(choice[k], below[k], log_prior, window, taken[k], on[k], good[k])
        costs[k] = _choices_log_prior(choice[k], log_prior)


@kernel
def _best_entries(up: Any, prior: Any, best: Any) -> None:
    for n in range(cuda.grid(1), up.shape[0], cuda.gridsize(1)):
        most, found = up[n, 0] + prior[n, 0], 0
        for k in range(1, up.shape[1]):
            score = up[n, k] + prior[n, k]
            if score > most:
                most, found = score, k
        best[n] = found


@kernel
def _switch_on(top: Any, entries: Any) -> None:
    for n in range(cuda.grid(1), top.shape[0], cuda.gridsize(1)):
        top[n, entries[n]] = 1


@kernel
def _take_over(rows: Any, new: Any, old: Any) -> None:
    for z in range(cuda.grid(1), new.size, cuda.gridsize(1)):
        n, k = z // new.shape[1], z % new.shape[1]
        if rows[n]:
            old[n, k] = new[n, k]


@kernel
def _explained_away(evidence: Any, taken: Any, left: Any) -> None:
    for z in range(cuda.grid(1), evidence.size, cuda.gridsize(1)):
        explained = taken[z] > 0 and evidence[z] > np.float32(0)
        left[z] = np.float32(0) if explained else evidence[z]


@kernel
def _tally(evidence: Any, taken: Any, size: Any, counts: Any) -> None:
    for z in range(cuda.grid(1), evidence.size, cuda.gridsize(1)):
        if evidence[z] != np.float32(0):
            kind = (0 if evidence[z] > np.float32(0) else 2) + (0 if taken[z] > 0 else 1)
            cuda.atomic.add(counts, (z // size, kind), 1)
