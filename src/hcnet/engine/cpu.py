"""The CPU engine: trees whose messages are all stored, and pools; compiled by Numba, over threads.

Per tree and sweep each edge message is read once and written once (16 bytes an AND): the
floor that this engine is measured against.  Everything else a tree touches stays in cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.base import PoolUpdater
from hcnet.engine.cpu_compilation import (
    compiled,
    inlined,
    laned,
    larger,
    parallel,
    pointer,
    prefetch,
)
from hcnet.engine.schedules import Batch
from hcnet.factors import HUGE
from hcnet.grid import FLOAT, pool_share
from hcnet.images import FloatArray
from hcnet.layers import PoolLayer
from hcnet.messages import Messages, PoolMessages, filled

# Shares of the beliefs that threads add up: more than threads, so that no thread waits long.
_PARTS = 16

_and_down, _and_up = compiled.and_down, compiled.and_up
_or_cap, _or_share, _or_up = compiled.or_cap, compiled.or_share, compiled.or_up
_or_message, _or_outcome = compiled.or_message, compiled.or_outcome
_damped, _TO_STEPS = compiled.damped, compiled.TO_STEPS
_or_to_U, _or_to_S, _class_to_S = compiled.or_to_U, compiled.or_to_S, compiled.class_to_S
_pool_to_R, _pool_to_U, _max_pool = compiled.pool_to_R, compiled.pool_to_U, compiled.max_pool

# Of a row of leaves none of which is on in the field: less than any message.
_OFF = FLOAT(-2 * HUGE)

# The leaves of a tree lie in rows of memory: the beliefs of one kind of variable (the field) row by
# row, the beliefs of the other (the kernel) and the tree's own messages one row after the other.
# An engine whose leaves lie elsewhere copies their beliefs into one row, and back.  Arrays come as
# pointers: an array that is passed on counts references, which takes longer than a short row.


@inlined
def _said(to_kernel, own, quiet, row, zeros):
    """Where a row of messages to the kernel is: those of a quiet row are not read."""
    if quiet is not None and quiet[row]:
        return zeros, 0
    return to_kernel, own


@inlined
def _tell(up, kernel, k, to_field, m, field, f, run, damping):
    """Messages to a row of the field alone, whose leaves all get `up`."""
    for j in range(run):
        old = to_field[m + j]
        new = _damped(old, _and_up(kernel[k + j], up), damping, _TO_STEPS)
        to_field[m + j] = new
        field[f + j] += new - old


@inlined
def update_tree(b, rows, run, beliefs, messages, best, damping, quiet=None, zeros=None):
    """Update the messages of a tree with evidence b, and the beliefs of its leaves.

    `factors.tree_messages`, in as few passes over memory as possible.  `own` is where the messages
    of the tree begin, `following` where those of the next tree begin, which are fetched into cache
    meanwhile; `best` is scratch space for a number per row.  Returns the message from the OR to any
    leaf that sends too little to matter, and is not stored.

    Most messages to the kernel are 0.  `quiet` is 1 for rows of messages where all of them are:
    these are read from `zeros`, and nothing is written while they stay 0.
    """
    field, at, stride, kernel, kernel_at = beliefs
    to_field, to_kernel, own, following = messages
    first, row = FLOAT(-HUGE), own // run
    for i in range(rows):
        f, k, m = at + i * stride, kernel_at + i * run, own + i * run
        highest = FLOAT(-HUGE)
        if quiet is not None:
            for j in range(run):
                highest = larger(highest, field[f + j] - to_field[m + j])
            if highest <= -larger(b, FLOAT(0)):  # then no leaf matters to the OR
                best[i] = _OFF
                continue
            highest = FLOAT(-HUGE)
        said, z = _said(to_kernel, m, quiet, row + i, zeros)
        for j in range(run):
            s, w = field[f + j] - to_field[m + j], kernel[k + j] - said[z + j]
            highest = larger(highest, _and_down(s, w))
        best[i] = highest
        first = larger(first, highest)
    cap, total = _or_cap(b), FLOAT(0)
    if cap > 0 and first > 0:  # a rare case: otherwise all shares are 0
        for i in range(rows):
            if best[i] <= 0:
                continue
            f, k, m = at + i * stride, kernel_at + i * run, own + i * run
            said, z = _said(to_kernel, m, quiet, row + i, zeros)
            for j in range(run):
                s, w = field[f + j] - to_field[m + j], kernel[k + j] - said[z + j]
                total += _or_share(_and_down(s, w), cap)
    # Only the strongest leaf hears of the second, and only if its message could be positive.
    second = first
    if b + (total - _or_share(first, cap)) > 0:
        second, ties = FLOAT(-HUGE), 0
        for i in range(rows):
            if best[i] < first:
                second = larger(second, best[i])
                continue
            f, k, m = at + i * stride, kernel_at + i * run, own + i * run
            said, z = _said(to_kernel, m, quiet, row + i, zeros)
            for j in range(run):
                s, w = field[f + j] - to_field[m + j], kernel[k + j] - said[z + j]
                x = _and_down(s, w)
                ties += x == first
                second = larger(second, x if x < first else FLOAT(-HUGE))
        if ties > 1:
            second = first
    # Nearly always all leaves get the same answer, and the compiler makes a loop of its own of it.
    alike = _or_up(b, total, first)
    same = total == 0 and _or_up(b, total, second) == alike
    for i in range(rows):
        f, k, m = at + i * stride, kernel_at + i * run, own + i * run
        prefetch(to_field, following + i * run, run)
        if quiet is None:
            prefetch(to_kernel, following + i * run, run)
        else:
            if not quiet[following // run + i]:
                prefetch(to_kernel, following + i * run, run)
            explained = b > 0 and alike == 0 and (same or best[i] < first)
            still = explained or best[i] == _OFF  # nothing but 0 for the kernel
            if quiet[row + i] and still:
                if damping == 1:
                    _tell(alike, kernel, k, to_field, m, field, f, run, FLOAT(1))
                else:
                    _tell(alike, kernel, k, to_field, m, field, f, run, damping)
                continue
            if quiet[row + i]:
                for j in range(run):
                    to_kernel[m + j] = 0
            quiet[row + i] = np.uint8(still and damping == 1)
        for j in range(run):
            old_s, old_w = to_field[m + j], to_kernel[m + j]
            s, w = field[f + j] - old_s, kernel[k + j] - old_w
            up = alike
            if not same:
                up = _or_message(b, _and_down(s, w), total, cap, first, second)
            new_s = _damped(old_s, _and_up(w, up), damping, _TO_STEPS)
            new_w = _damped(old_w, _and_up(s, up), damping, _TO_STEPS)
            to_field[m + j] = new_s
            to_kernel[m + j] = new_w
            field[f + j] += new_s - old_s
            kernel[k + j] += new_w - old_w
    return alike


@inlined
def tree_to_R(rows, run, field, at, stride, kernel, kernel_at, to_field, to_kernel, own):
    """Message from a tree down to its pixel (`factors.tree_down`)."""
    first, total = FLOAT(-HUGE), FLOAT(0)
    for i in range(rows):
        f, k, m = at + i * stride, kernel_at + i * run, own + i * run
        for j in range(run):
            s, w = field[f + j] - to_field[m + j], kernel[k + j] - to_kernel[m + j]
            first = larger(first, _and_down(s, w))
    if first > 0:
        for i in range(rows):
            f, k, m = at + i * stride, kernel_at + i * run, own + i * run
            for j in range(run):
                s, w = field[f + j] - to_field[m + j], kernel[k + j] - to_kernel[m + j]
                total += larger(_and_down(s, w), FLOAT(0))
    return _or_outcome(total, first)


# In all loops, `shape` is height, width and features of the field, height and run length of the
# kernel (`Layout.geometry`).


@inlined
def _field_at(trees, k, shape):
    """Offset of the first leaf of a tree in a flat field of (height, width, features)."""
    row = np.int64(trees[4 * k]) * shape[0] + trees[4 * k + 2]
    return (row * shape[1] + trees[4 * k + 3]) * shape[2]


@laned
def _run_lanes(
    first, last, order, lanes, trees, evidence, shape, fields, kernels, own, fresh, damping, scratch
):
    """In each lane trees one after the other, each seeing all changes before it.

    `fields` or `kernels` holds a private copy for each lane, if there are several.  Unless messages
    are kept, they have a row per lane instead of one per tree, which is forgotten once they have
    entered the beliefs.  Trees that are `fresh` begin with no messages, whatever is in memory.
    """
    rows, run, stride = shape[3], shape[4], shape[1] * shape[2]
    n = rows * run
    tree, order_at, b = pointer(trees), pointer(order), pointer(evidence)
    to_field, to_kernel, is_quiet, keep = own
    to_f, to_k, quiet = pointer(to_field), pointer(to_kernel), pointer(is_quiet)
    for lane in range(first, last):
        field = pointer(fields[lane if fields.shape[0] > 1 else 0])
        kernel = pointer(kernels[lane if kernels.shape[0] > 1 else 0])
        best, zeros = pointer(scratch[lane]), pointer(scratch[lane, rows:])
        for q in range(lanes[lane], lanes[lane + 1]):
            k = order_at[q]
            mine, following = k * n, order_at[min(q + 1, lanes[lane + 1] - 1)] * n
            if not keep:
                mine = following = lane * n
            if fresh:
                for j in range(mine, mine + n):
                    to_f[j] = 0
                for i in range(rows):
                    quiet[mine // run + i] = 1
            beliefs = field, _field_at(tree, k, shape), stride, kernel, tree[4 * k + 1] * n
            messages = to_f, to_k, mine, following
            update_tree(b[k], rows, run, beliefs, messages, best, damping, quiet, zeros)


@parallel
def _run_simultaneous(
    first, last, order, trees, evidence, shape, fields, kernels, own, damping, changes, scratch
):
    """Messages of all trees of a batch from the same beliefs; changes are held back."""
    rows, run, stride = shape[3], shape[4], shape[1] * shape[2]
    n = rows * run
    tree, b = pointer(trees), pointer(evidence)
    to_field, to_kernel, quiet, keep = own
    to_f, to_k = pointer(to_field), pointer(to_kernel)
    field, kernel = pointer(fields), pointer(kernels)
    s_all, w_all = pointer(changes[0]), pointer(changes[1])
    best = pointer(scratch[first:])  # each thread has its own
    for q in range(first, last):
        k = order[q]
        mine = (k if keep else q) * n
        for i in range(rows):
            quiet[mine // run + i] = 0  # from now on it is not known
        if not keep:
            for j in range(mine, mine + n):
                to_f[j] = to_k[j] = 0
        # The tree works on a copy of the beliefs, of which only the changes are left.
        at, kernel_at, here = _field_at(tree, k, shape), tree[4 * k + 1] * n, q * n
        for i in range(rows):
            for j in range(run):
                s_all[here + i * run + j] = field[at + i * stride + j]
        for j in range(n):
            w_all[here + j] = kernel[kernel_at + j]
        copies = s_all, here, 0, w_all, here
        update_tree(b[k], 1, n, copies, (to_f, to_k, mine, mine), best, damping)
        for i in range(rows):
            for j in range(run):
                s_all[here + i * run + j] -= field[at + i * stride + j]
        for j in range(n):
            w_all[here + j] -= kernel[kernel_at + j]


@parallel
def _add_changes(begin, end, order, trees, shape, field, kernel, d_field, d_kernel):
    """Add the changes of many trees to the beliefs; row q of the changes is tree order[q]'s.

    Threads share out the beliefs, not the trees: every belief is added up by one thread in
    the order of the trees, so the result is the same with any number of threads.
    """
    rows, run, stride = shape[3], shape[4], shape[1] * shape[2]
    n = rows * run
    tree, to_field, to_kernel = pointer(trees), pointer(field), pointer(kernel)
    s, w = pointer(d_field), pointer(d_kernel)
    for part in range(begin, end):
        first, last = n * part // _PARTS, n * (part + 1) // _PARTS
        many = kernel.size >= _PARTS * n  # many rows are dealt out undivided, few are cut
        for q in range(order.size):
            k = order[q]
            row, at = np.int64(tree[4 * k + 1]), _field_at(tree, k, shape)
            if many:
                first, last = 0, n if row % _PARTS == part else 0
            for j in range(first, last):
                to_kernel[row * n + j] += w[q * n + j]
            # Rows of the field are dealt out in turn.
            top = np.int64(tree[4 * k]) * shape[0] + tree[4 * k + 2]
            for i in range(rows):
                if (top + i) % _PARTS == part:
                    for j in range(run):
                        to_field[at + i * stride + j] += s[q * n + i * run + j]


@parallel
def _trees_to_R(first, last, trees, shape, field, kernel, to_field, to_kernel, out):
    """Messages down from some of the trees."""
    rows, run, stride = shape[3], shape[4], shape[1] * shape[2]
    n = rows * run
    tree, s, w = pointer(trees), pointer(field), pointer(kernel)
    messages = pointer(to_field), pointer(to_kernel)
    for k in range(first, last):
        at = _field_at(tree, k, shape)
        down = tree_to_R(rows, run, s, at, stride, w, tree[4 * k + 1] * n, *messages, k * n)
        out[k] = min(max(down, FLOAT(-HUGE)), FLOAT(HUGE))


# Jobs of loops over pools are elements of R or S.  `some` are the numbers of those to be updated;
# empty: all of them.
_ALL = np.empty(0, np.int64)


@inlined
def _element(z, some, elements):
    """Image, channel, row and column of a job."""
    number = some[z] if some.size else z
    channels, height, width = elements.shape[1:4]
    line = number // width
    plane = line // height
    return plane // channels, plane % channels, line % height, number % width


@parallel
def _run_or_to_U(first, last, some, below, from_pool, to_U, window):
    t = np.empty(to_U.shape[4], FLOAT)
    for z in range(first, last):
        n, b, y, x = _element(z, some, below)
        _or_to_U(b, y, x, below[n], from_pool[n], to_U[n], window, t)


@parallel
def _run_pool_to_R(first, last, to_U, log_prior, to_R, damping):
    for z in range(first, last):
        n, a, r, c = _element(z, _ALL, to_R)
        _pool_to_R(a, r, c, to_U[n], log_prior, to_R[n], damping)


@parallel
def _run_max_pool(first, last, below, log_prior, to_R, window):
    t = np.empty(log_prior.shape[3], FLOAT)
    for z in range(first, last):
        n, a, r, c = _element(z, _ALL, to_R)
        _max_pool(a, r, c, below[n], log_prior, to_R[n], window, t)


@parallel
def _run_pool_to_U(first, last, some, to_U, above, log_prior, from_pool):
    t = np.empty(to_U.shape[4], FLOAT)
    for z in range(first, last):
        n, a, r, c = _element(z, some, above)
        _pool_to_U(a, r, c, to_U[n], above[n], log_prior, from_pool[n], t)


@parallel
def _run_or_to_S(first, last, some, from_pool, down, window):
    t = np.empty(from_pool.shape[4], FLOAT)
    for z in range(first, last):
        n, b, y, x = _element(z, some, down)
        _or_to_S(b, y, x, from_pool[n], down[n], window, t)


@parallel
def _run_class_to_S(first, last, up, log_prior, exclusive):
    for k in range(first, last):
        _class_to_S(up[k], log_prior[k], exclusive)


class CPUEngine(PoolUpdater):
    """Numba, on all threads that `numba.set_num_threads` allows."""

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Update the messages of the trees of a batch and the beliefs that they enter."""
        if len(batch.order) == 0 or messages.layout.leaves == 0:
            return
        m = messages
        if batch.simultaneous:
            self._simultaneous(m, batch.order, FLOAT(damping))
            return
        n = len(batch.lanes) - 1
        fields, kernels = m.field.reshape(1, -1), m.kernel.reshape(1, -1)
        shared = kernels if m.layout.kernel_is_weights else fields
        private = np.repeat(shared, n, axis=0) if n > 1 else shared
        if m.layout.kernel_is_weights:
            kernels = private
        else:
            fields = private
        fixed = batch.order, batch.lanes, m.trees, m.evidence, m.layout.geometry
        fresh = m.fresh or not m.keeps_messages
        scratch = np.zeros((n, m.layout.kernel_size[0] + m.layout.geometry[4]), FLOAT)
        _run_lanes(n, *fixed, fields, kernels, _own(m, n), fresh, FLOAT(damping), scratch)
        if n > 1:
            private -= shared
            shared += private.sum(axis=0)

    def collect(self, messages: Messages) -> None:
        """Put the sums of all messages, without the priors, in place of the beliefs."""
        m = messages
        m.field[:] = 0
        m.kernel[:] = 0
        order = np.arange(m.n_trees)
        beliefs, changes = flat(m.field, m.kernel), flat(m.to_field, m.to_kernel)
        _add_changes(_PARTS, order, m.trees, m.layout.geometry, *beliefs, *changes)

    def trees_to_R(self, messages: Messages) -> FloatArray:
        """Messages from the trees to R, one per tree."""
        m = messages
        out = np.empty(m.n_trees, FLOAT)
        arrays = flat(m.field, m.kernel, m.to_field, m.to_kernel)
        _trees_to_R(m.n_trees, m.trees, m.layout.geometry, *arrays, out)
        return out

    def _simultaneous(self, m: Messages, order: NDArray[np.int64], damping: np.float32) -> None:
        n, shape, beliefs = len(order), m.layout.geometry, flat(m.field, m.kernel)
        changes = flat(*np.empty((2, n, m.layout.leaves), FLOAT))
        scratch = np.empty(n, FLOAT)
        fixed, own = (order, m.trees, m.evidence, shape), _own(m, n)
        _run_simultaneous(n, *fixed, *beliefs, own, damping, changes, scratch)
        _add_changes(_PARTS, order, m.trees, shape, *beliefs, *changes)

    def or_to_U(self, pools: PoolMessages, below: FloatArray) -> None:
        """Messages from OR to U, given the messages up to the S below."""
        n, some = _jobs(pools.active.below if pools.active else None, below)
        below = np.ascontiguousarray(below)
        _run_or_to_U(n, some, below, pools.from_pool, pools.to_U, pools.window)

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Messages from POOL to R; the largest change of one."""
        before, share = pools.to_R.copy(), pool_share(damping)
        _run_pool_to_R(before.size, pools.to_U, pools.log_prior, pools.to_R, share)
        return self.largest(pools.to_R - before)

    def pool_to_U(self, pools: PoolMessages, above: FloatArray) -> None:
        """Messages from POOL to U, given the messages that R sends down."""
        n, some = _jobs(pools.active.pools if pools.active else None, above)
        above = np.ascontiguousarray(above)
        _run_pool_to_U(n, some, pools.to_U, above, pools.log_prior, pools.from_pool)

    def or_to_S(self, pools: PoolMessages) -> FloatArray:
        """Messages from OR down to the S below."""
        down = filled((len(pools.to_R), pools.layer.n_below, *pools.layer.below_size), -HUGE)
        n, some = _jobs(pools.active.below if pools.active else None, down)
        _run_or_to_S(n, some, pools.from_pool, down, pools.window)
        return down

    def class_to_S(self, log_prior: FloatArray, up: FloatArray, exclusive: bool) -> FloatArray:
        """Messages from the class layer to the templates, given those that come up."""
        down = up.reshape(len(up), -1).copy()
        _run_class_to_S(len(down), down, log_prior, exclusive)
        return down.reshape(up.shape)


def max_pool(layer: PoolLayer, log_prior: FloatArray, below: FloatArray) -> FloatArray:
    """Messages up through a pooling layer in the first pass, when nothing is expected."""
    to_R = np.empty((len(below), layer.n_channels, *layer.size), FLOAT)
    _run_max_pool(to_R.size, np.ascontiguousarray(below), log_prior, to_R, layer.reach)
    return to_R


def _jobs(some: NDArray[np.int64] | None, elements: FloatArray) -> tuple[int, NDArray[np.int64]]:
    """How many elements there are to update, and which; none given: all."""
    return (elements.size, _ALL) if some is None else (len(some), some)


def flat(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Views of contiguous arrays as one run of memory each."""
    return tuple(array.reshape(-1) for array in arrays)


def _own(m: Messages, rows: int) -> tuple[FloatArray, FloatArray, NDArray[np.uint8], bool]:
    """The trees' messages, and whether they are kept; otherwise so many rows of scratch space."""
    if m.keeps_messages:
        return *flat(m.to_field, m.to_kernel), m.quiet, True  # type: ignore[return-value]
    scratch = np.empty((2, rows * m.layout.leaves), FLOAT)
    return scratch[0], scratch[1], np.empty(rows * m.layout.kernel_size[0], np.uint8), False
