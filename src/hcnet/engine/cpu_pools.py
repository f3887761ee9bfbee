"""Pooling layers and the class layer on the CPU: `engine.planes`, compiled, over threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.base import PoolUpdater
from hcnet.engine.cpu_compilation import compiled, inlined, parallel
from hcnet.factors import HUGE
from hcnet.grid import FLOAT, pool_share
from hcnet.images import FloatArray
from hcnet.layers import PoolLayer
from hcnet.messages import PoolMessages

_or_to_U, _or_to_S, _class_to_S = compiled.or_to_U, compiled.or_to_S, compiled.class_to_S
_pool_to_R, _pool_to_U, _max_pool = compiled.pool_to_R, compiled.pool_to_U, compiled.max_pool

# Jobs are elements of planes (image and channel).  `some` are the numbers of those to be updated;
# empty: all of them.
_ALL = np.empty(0, np.int64)


@inlined
def _element(z, some, height, width):
    """Plane, row and column of a job."""
    number = some[z] if some.size else z
    line = number // width
    return line // height, line % height, number % width


@parallel
def _run_or_to_U(first, last, some, below, from_pool, to_U, window):
    t = np.empty(to_U.shape[3], FLOAT)
    for z in range(first, last):
        k, y, x = _element(z, some, below.shape[1], below.shape[2])
        _or_to_U(y, x, below[k], from_pool[k], to_U[k], window, t)


@parallel
def _run_pool_to_R(first, last, to_U, log_prior, to_R, damping):
    for z in range(first, last):
        k, r, c = _element(z, _ALL, to_R.shape[1], to_R.shape[2])
        _pool_to_R(r, c, to_U[k], log_prior, to_R[k], damping)


@parallel
def _run_max_pool(first, last, below, log_prior, to_R, window):
    t = np.empty(log_prior.shape[2], FLOAT)
    for z in range(first, last):
        k, r, c = _element(z, _ALL, to_R.shape[1], to_R.shape[2])
        _max_pool(r, c, below[k], log_prior, to_R[k], window, t)


@parallel
def _run_pool_to_U(first, last, some, to_U, above, log_prior, from_pool):
    t = np.empty(to_U.shape[3], FLOAT)
    for z in range(first, last):
        k, r, c = _element(z, some, above.shape[1], above.shape[2])
        _pool_to_U(r, c, to_U[k], above[k], log_prior, from_pool[k], t)


@parallel
def _run_or_to_S(first, last, some, from_pool, down, window):
    t = np.empty(from_pool.shape[3], FLOAT)
    for z in range(first, last):
        k, y, x = _element(z, some, down.shape[1], down.shape[2])
        _or_to_S(y, x, from_pool[k], down[k], window, t)


@parallel
def _run_class_to_S(first, last, up, log_prior, exclusive):
    for k in range(first, last):
        _class_to_S(up[k], log_prior[k], exclusive)


class CPUPools(PoolUpdater):
    """The steps of an engine that do not touch weights."""

    def or_to_U(self, pools: PoolMessages, below: FloatArray) -> None:
        """Messages from OR to U, given the messages up to the S below."""
        n, some = _jobs(pools.active.below if pools.active else None, below)
        _run_or_to_U(n, some, *_planes(below, pools.from_pool, pools.to_U), pools.window)

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Messages from POOL to R; the largest change of one."""
        before = pools.to_R.copy()
        to_U, to_R = _planes(pools.to_U, pools.to_R)
        _run_pool_to_R(to_R.size, to_U, pools.log_prior, to_R, pool_share(damping))
        return self.largest(pools.to_R - before)

    def pool_to_U(self, pools: PoolMessages, above: FloatArray) -> None:
        """Messages from POOL to U, given the messages that R sends down."""
        to_U, down, from_pool = _planes(pools.to_U, above, pools.from_pool)
        n, some = _jobs(pools.active.pools if pools.active else None, above)
        _run_pool_to_U(n, some, to_U, down, pools.log_prior, from_pool)

    def or_to_S(self, pools: PoolMessages) -> FloatArray:
        """Messages from OR down to the S below."""
        shape = (*pools.to_R.shape[:2], *pools.layer.below_size)
        down = np.full(shape, -HUGE, FLOAT)
        n, some = _jobs(pools.active.below if pools.active else None, down)
        _run_or_to_S(n, some, *_planes(pools.from_pool, down), pools.window)
        return down

    def class_to_S(self, log_prior: FloatArray, up: FloatArray, exclusive: bool) -> FloatArray:
        """Messages from the class layer to the templates, given those that come up."""
        down = up.reshape(len(up), -1).copy()
        _run_class_to_S(len(down), down, log_prior, exclusive)
        return down.reshape(up.shape)


def max_pool(layer: PoolLayer, log_prior: FloatArray, below: FloatArray) -> FloatArray:
    """Messages up through a pooling layer in the first pass, when nothing is expected."""
    to_R = np.empty((*below.shape[:2], *layer.size), FLOAT)
    planes, window = _planes(below, to_R), (*layer.window, *layer.offset)
    _run_max_pool(to_R.size, planes[0], log_prior, planes[1], window)
    return to_R


def _jobs(some: NDArray[np.int64] | None, elements: FloatArray) -> tuple[int, NDArray[np.int64]]:
    """How many elements there are to update, and which; none given: all."""
    return (elements.size, _ALL) if some is None else (len(some), some)


def _planes(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Views with images and channels as one axis."""
    return tuple(np.ascontiguousarray(x).reshape(-1, *x.shape[2:]) for x in arrays)
