"""Messages of pooling layers and of the class layer on a GPU, one thread for each element."""

from __future__ import annotations

import functools
from types import SimpleNamespace

from numba import cuda

from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, launch
from hcnet.engine.cuda.compilation import Number, compiled, kernel
from hcnet.grid import pool_share
from hcnet.images import FloatArray
from hcnet.pool_messages import PoolMessages

_or_to_U, _or_to_S, _class_to_S = compiled.or_to_U, compiled.or_to_S, compiled.class_to_S
_pool_to_R, _pool_to_U = compiled.pool_to_R, compiled.pool_to_U
_max_pool = compiled.max_pool


@functools.cache
def pool_kernels(members: int) -> SimpleNamespace:
    """Kernels for windows of `members` positions; they work on planes (`planes_of`)."""

    @kernel
    def or_to_U(below, from_pool, to_U, window):
        t = cuda.local.array(members, Number)
        rows, columns = below.shape[1], below.shape[2]
        for z in range(cuda.grid(1), below.size, cuda.gridsize(1)):
            k, y, x = z // columns // rows, z // columns % rows, z % columns
            _or_to_U(y, x, below[k], from_pool[k], to_U[k], window, t)

    @kernel
    def pool_to_U(to_U, above, log_prior, from_pool):
        t = cuda.local.array(members, Number)
        rows, columns = above.shape[1], above.shape[2]
        for z in range(cuda.grid(1), above.size, cuda.gridsize(1)):
            k, r, c = z // columns // rows, z // columns % rows, z % columns
            _pool_to_U(r, c, to_U[k], above[k], log_prior, from_pool[k], t)

    @kernel
    def or_to_S(from_pool, down, window):
        t = cuda.local.array(members, Number)
        rows, columns = down.shape[1], down.shape[2]
        for z in range(cuda.grid(1), down.size, cuda.gridsize(1)):
            k, y, x = z // columns // rows, z // columns % rows, z % columns
            _or_to_S(y, x, from_pool[k], down[k], window, t)

    @kernel
    def max_pool(below, log_prior, to_R, window):
        t = cuda.local.array(members, Number)
        rows, columns = to_R.shape[1], to_R.shape[2]
        for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
            k, r, c = z // columns // rows, z // columns % rows, z % columns
            _max_pool(r, c, below[k], log_prior, to_R[k], window, t)

    return SimpleNamespace(or_to_U=or_to_U, pool_to_U=pool_to_U, or_to_S=or_to_S, max_pool=max_pool)


@kernel
def _run_pool_to_R(to_U, log_prior, to_R, damping):
    rows, columns = to_R.shape[1], to_R.shape[2]
    for z in range(cuda.grid(1), to_R.size, cuda.gridsize(1)):
        k, r, c = z // columns // rows, z // columns % rows, z % columns
        _pool_to_R(r, c, to_U[k], log_prior, to_R[k], damping)


@kernel
def _run_class_to_S(up, log_prior, exclusive):
    for k in range(cuda.grid(1), up.shape[0], cuda.gridsize(1)):
        _class_to_S(up[k], log_prior[k], exclusive)


class CUDAPools:
    """The messages of pools and classes (`engine.base.PoolUpdater`)."""

    def hold(self, array: FloatArray) -> DeviceArray:
        """A copy on the GPU."""
        return arrays.hold(array)

    def fetch(self, array: DeviceArray) -> FloatArray:
        """A copy in the memory of the processor."""
        return arrays.fetch(array)

    def largest(self, array: DeviceArray) -> float:
        """The largest absolute value of an array."""
        return arrays.largest(array)

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
