"""The CPU engine: the factor functions compiled by Numba, over threads.

Per tree and sweep each edge message is read once and written once (16 bytes an AND): the
floor that this engine is measured against.  Everything else a tree touches stays in cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger, parallel, prefetch
from hcnet.engine.cpu_pools import CPUPools
from hcnet.engine.schedules import Batch
from hcnet.factors import HUGE
from hcnet.images import FloatArray
from hcnet.messages import MOST_AT_ONCE, Messages

_and_down, _and_up, _or_up = compiled.and_down, compiled.and_up, compiled.or_up
_tree_down, _damped = compiled.tree_down, compiled.damped
_TO_STEPS = compiled.TO_STEPS
_or_cap, _or_share, _or_answers = compiled.or_cap, compiled.or_share, compiled.or_answers

# Numbers between arrays that no vector instruction reaches across.
_APART = 256
# Shares of the beliefs that threads add up: more than threads, so that no thread waits long.
_PARTS = 16


# Runs of memory are addressed by unsigned offsets into flat arrays: slices would cost more
# than the arithmetic on a run, and signed offsets a check for negative indices on each number.


# Every loop writes at most two arrays and reads few: LLVM vectorises a loop only if it can rule
# out with a handful of comparisons that its arrays overlap.  The field's rows are short, so
# only the simplest loops run over them; the rest runs over all leaves of a tree at once.


@inlined
def _gather(belief: Any, at: Any, own: Any, own_at: Any, out: Any, out_at: Any, n: Any) -> None:
    """Messages in: everything a variable has heard except from this tree."""
    for j in range(n):
        out[out_at + j] = belief[at + j] - own[own_at + j]


@inlined
def _scratch(n: Any) -> Any:
    """Space for the messages of a tree, three times n numbers.

    Compiled loops take a slower way, and add up in another order, where two arrays lie close to
    each other.  Were they allocated one by one, results would depend on where the system puts them.
    """
    apart = n + np.uint64(_APART)
    whole = np.empty(np.uint64(3) * apart, np.float32)
    return whole[:n], whole[apart : apart + n], whole[np.uint64(2) * apart :][:n]


@inlined
def _sum_of_shares(t: Any, n: Any, cap: Any) -> Any:
    """Sum of `or_share` over all tops of an OR, as eight sums side by side.

    One sum would wait for itself at every step, and left to the compiler, the order of addition
    would differ from machine to machine.
    """
    a = b = c = d = e = f = g = h = np.float32(0)
    whole = n - n % 8
    for k in range(np.uint64(whole // 8)):
        j = k * np.uint64(8)
        a += _or_share(t[j], cap)
        b += _or_share(t[j + np.uint64(1)], cap)
        c += _or_share(t[j + np.uint64(2)], cap)
        d += _or_share(t[j + np.uint64(3)], cap)
        e += _or_share(t[j + np.uint64(4)], cap)
        f += _or_share(t[j + np.uint64(5)], cap)
        g += _or_share(t[j + np.uint64(6)], cap)
        h += _or_share(t[j + np.uint64(7)], cap)
    for rest in range(whole, n):
        a += _or_share(t[rest], cap)
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@inlined
def _through_the_or(b: Any, s: Any, w: Any, t: Any, n: Any) -> None:
    """Messages of the OR up to its ANDs, into `t`, from the messages in (`tree_messages`)."""
    first = np.float32(-HUGE)
    for j in range(n):
        x = _and_down(s[j], w[j])
        t[j] = x
        first = larger(first, x)
    cap = _or_cap(b)
    _or_answers(b, t, n, _sum_of_shares(t, n, cap), cap, first)


@inlined
def _commit(
    other: Any, t: Any, belief: Any, at: Any, own: Any, own_at: Any, n: Any, damping: Any
) -> None:
    """New messages out, damped, into `own` and `belief`; `other` are the other tops' messages."""
    for j in range(n):
        old = own[own_at + j]
        value = _damped(old, _and_up(other[j], t[j]), damping, _TO_STEPS)
        own[own_at + j] = value
        belief[at + j] += value - old


@inlined
def _hold(other: Any, t: Any, own: Any, own_at: Any, out: Any, n: Any, damping: Any) -> None:
    """As `_commit`, but the changes go to `out` instead of the beliefs."""
    for j in range(n):
        old = own[own_at + j]
        value = _damped(old, _and_up(other[j], t[j]), damping, _TO_STEPS)
        own[own_at + j] = value
        out[j] = value - old


@inlined
def _add(belief: Any, at: Any, change: Any, change_at: Any, n: Any) -> None:
    for j in range(n):
        belief[at + j] += change[change_at + j]


@inlined
def _field_at(tree: Any, shape: Any) -> Any:
    """Offset of the first leaf of a tree in a flat field of (height, width, features)."""
    row = np.uint64(tree[0]) * np.uint64(shape[0]) + np.uint64(tree[2])
    return (row * np.uint64(shape[1]) + np.uint64(tree[3])) * np.uint64(shape[2])


@inlined
def _listen(
    tree: Any,
    b: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    to_field: Any,
    to_kernel: Any,
    own_at: Any,
    s: Any,
    w: Any,
    t: Any,
) -> None:
    """What a tree hears from the field (s) and the kernel (w), and its OR's answer (t).

    `shape`: height, width and features of the field, height and run length of the kernel.
    """
    rows, run, row = np.uint64(shape[3]), np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = rows * run
    at = _field_at(tree, shape)
    for i in range(rows):
        _gather(field, at + i * row, to_field, own_at + i * run, s, i * run, run)
    _gather(kernel, np.uint64(tree[1]) * n, to_kernel, own_at, w, np.uint64(0), n)
    _through_the_or(b, s, w, t, np.int64(n))


@inlined
def _strongest(
    field: Any,
    at: Any,
    kernel: Any,
    kernel_at: Any,
    to_field: Any,
    to_kernel: Any,
    own: Any,
    n: Any,
) -> Any:
    """The largest message from the ANDs of a run of leaves down to their OR."""
    first = np.float32(-HUGE)
    for j in range(n):
        s = field[at + j] - to_field[own + j]
        w = kernel[kernel_at + j] - to_kernel[own + j]
        first = larger(first, _and_down(s, w))
    return first


@inlined
def _winner(
    field: Any,
    at: Any,
    kernel: Any,
    kernel_at: Any,
    to_field: Any,
    to_kernel: Any,
    own: Any,
    n: Any,
) -> Any:
    """Which leaf of a run sends the largest message, and the largest of the others.

    Not by comparing with what `_strongest` found: the compiler may round differently here.
    """
    winner: Any = np.uint64(0)
    first, second = np.float32(-2 * HUGE), np.float32(-2 * HUGE)
    for j in range(n):
        s = field[at + j] - to_field[own + j]
        w = kernel[kernel_at + j] - to_kernel[own + j]
        x = _and_down(s, w)
        if x > first:
            first, second, winner = x, first, j
        else:
            second = larger(second, x)
    return winner, second


@inlined
def _answer(
    up: Any,
    field: Any,
    at: Any,
    kernel: Any,
    kernel_at: Any,
    to_field: Any,
    to_kernel: Any,
    own: Any,
    n: Any,
    damping: Any,
) -> None:
    """New messages out of a run of leaves that all hear `up` from their OR."""
    for j in range(n):
        old_s, old_w = to_field[own + j], to_kernel[own + j]
        s, w = field[at + j] - old_s, kernel[kernel_at + j] - old_w
        new_s = _damped(old_s, _and_up(w, up), damping, _TO_STEPS)
        new_w = _damped(old_w, _and_up(s, up), damping, _TO_STEPS)
        to_field[own + j] = new_s
        to_kernel[own + j] = new_w
        field[at + j] += new_s - old_s
        kernel[kernel_at + j] += new_w - old_w


@inlined
def _answer_alike(
    b: Any,
    field: Any,
    at: Any,
    row: Any,
    kernel: Any,
    kernel_at: Any,
    to_field: Any,
    to_kernel: Any,
    own_at: Any,
    rows: Any,
    run: Any,
    best: Any,
    damping: Any,
    next_at: Any,
) -> Any:
    """Update a tree all of whose leaves hear the same, but for the strongest; False if not so.

    That is so with evidence for the pixel, and where nothing claims it: what the leaves say then
    adds up to nothing (`or_cap`, `or_share`).  Nearly all trees are of this kind, and need two
    looks at each message and one change instead of seven passes over scratch space.  `next_at` is
    where the messages of the next tree are: they are fetched from memory meanwhile.
    """
    first = np.float32(-HUGE)
    for i in range(rows):
        here, there, own = at + i * row, kernel_at + i * run, own_at + i * run
        best[i] = _strongest(field, here, kernel, there, to_field, to_kernel, own, run)
        first = larger(first, best[i])
    if b <= 0 and first > 0:
        return False
    nothing = np.float32(0)
    alike = _or_up(b, nothing, first)
    # The strongest leaf hears of its strongest rival; if several are as strong, they are rivals.
    # It is answered like all others, and then once more.
    holder: Any = np.uint64(0)
    second, holders = np.float32(-HUGE), 0
    f, w, own, up = at, kernel_at, own_at, alike
    if alike < b:
        for i in range(rows):
            if best[i] == first:
                holder = i
                holders += 1
            else:
                second = larger(second, best[i])
        f, w, own = at + holder * row, kernel_at + holder * run, own_at + holder * run
        winner, rival = _winner(field, f, kernel, w, to_field, to_kernel, own, run)
        f, w, own = f + winner, w + winner, own + winner
        up = _or_up(b, nothing, larger(second, first if holders > 1 else rival))
    old_s, old_w = to_field[own], to_kernel[own]
    from_s, from_w = field[f] - old_s, kernel[w] - old_w
    for i in range(rows):
        here, there, k = at + i * row, kernel_at + i * run, own_at + i * run
        prefetch(to_field, next_at + i * run, run)
        prefetch(to_kernel, next_at + i * run, run)
        _answer(alike, field, here, kernel, there, to_field, to_kernel, k, run, damping)
    if up != alike:
        new_s = _damped(old_s, _and_up(from_w, up), damping, _TO_STEPS)
        new_w = _damped(old_w, _and_up(from_s, up), damping, _TO_STEPS)
        field[f] += new_s - to_field[own]
        kernel[w] += new_w - to_kernel[own]
        to_field[own], to_kernel[own] = new_s, new_w
    return True


@inlined
def _clear(array: Any, at: Any, n: Any) -> None:
    for j in range(n):
        array[at + j] = 0


@inlined
def _run_lane(
    order: Any,
    trees: Any,
    evidence: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    to_field: Any,
    to_kernel: Any,
    lane: Any,
    keep: Any,
    damping: Any,
) -> None:
    """Trees one after the other, each seeing all changes before it.

    Unless messages are kept, each tree begins with none: they have a row per lane instead of one
    per tree, which is forgotten once they have entered the beliefs.
    """
    rows, run, row = np.uint64(shape[3]), np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = rows * run
    s, w, t = _scratch(n)
    best = np.empty(rows, np.float32)
    for q in range(order.size):
        k = order[q]
        tree = (trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3])
        b, at, own_at = evidence[k], _field_at(tree, shape), np.uint64(k) * n
        next_at = np.uint64(order[min(q + 1, order.size - 1)]) * n
        if not keep:
            own_at = next_at = np.uint64(lane) * n
            _clear(to_field, own_at, n)
            _clear(to_kernel, own_at, n)
        kernel_at = np.uint64(tree[1]) * n
        messages = (to_field, to_kernel, own_at, rows, run)
        if _answer_alike(b, field, at, row, kernel, kernel_at, *messages, best, damping, next_at):
            continue
        _listen(tree, b, shape, field, kernel, to_field, to_kernel, own_at, s, w, t)
        _commit(s, t, kernel, kernel_at, to_kernel, own_at, n, damping)
        _hold(w, t, to_field, own_at, s, n, damping)
        for i in range(rows):
            _add(field, at + i * row, s, i * run, run)


@entry
def _run_one_lane(
    order: Any,
    trees: Any,
    evidence: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    to_field: Any,
    to_kernel: Any,
    keep: Any,
    damping: Any,
) -> None:
    """One lane, called from Python: code that is inlined elsewhere is not cached by itself."""
    messages = (field, kernel, to_field, to_kernel)
    _run_lane(order, trees, evidence, shape, *messages, 0, keep, damping)


@parallel
def _run_lanes(
    first: Any,
    last: Any,
    order: Any,
    lanes: Any,
    trees: Any,
    evidence: Any,
    shape: Any,
    fields: Any,
    kernels: Any,
    to_field: Any,
    to_kernel: Any,
    keep: Any,
    damping: Any,
) -> None:
    """Lanes over threads; `fields` or `kernels` holds a private copy for each lane."""
    for lane in range(first, last):
        _run_lane(
            order[lanes[lane] : lanes[lane + 1]],
            trees,
            evidence,
            shape,
            fields[lane if fields.shape[0] > 1 else 0],
            kernels[lane if kernels.shape[0] > 1 else 0],
            to_field,
            to_kernel,
            lane,
            keep,
            damping,
        )


@parallel
def _run_simultaneous(
    first: Any,
    last: Any,
    order: Any,
    trees: Any,
    evidence: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    to_field: Any,
    to_kernel: Any,
    keep: Any,
    damping: Any,
    d_field: Any,
    d_kernel: Any,
) -> None:
    """Messages of all trees of a chunk from the same beliefs; changes are held back."""
    n = np.uint64(shape[3] * shape[4])
    for q in range(first, last):
        k = order[q]
        tree = (trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3])
        s, w, t = _scratch(n)
        own_at = np.uint64(k if keep else q) * n
        if not keep:
            _clear(to_field, own_at, n)
            _clear(to_kernel, own_at, n)
        _listen(tree, evidence[k], shape, field, kernel, to_field, to_kernel, own_at, s, w, t)
        _hold(w, t, to_field, own_at, d_field[q], n, damping)
        _hold(s, t, to_kernel, own_at, d_kernel[q], n, damping)


@parallel
def _add_changes(
    begin: Any,
    end: Any,
    order: Any,
    trees: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    d_field: Any,
    d_kernel: Any,
) -> None:
    """Add the changes of many trees to the beliefs; row q of the changes is tree order[q]'s.

    Threads share out the beliefs, not the trees: every belief is added up by one thread in
    the order of the trees, so the result is the same with any number of threads.
    """
    rows, run, row = np.uint64(shape[3]), np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = rows * run
    parts = np.uint64(_PARTS)
    for part in range(np.uint64(begin), np.uint64(end)):
        first, last = n * part // parts, n * (part + np.uint64(1)) // parts
        whole = kernel.size >= _PARTS * n  # many rows are dealt out whole, few are cut
        for q in range(np.uint64(order.size)):
            at = np.uint64(trees[order[q], 1])
            if not whole:
                _add(kernel, at * n + first, d_kernel, q * n + first, last - first)
            elif at % parts == part:
                _add(kernel, at * n, d_kernel, q * n, n)
        for q in range(np.uint64(order.size)):
            k = order[q]
            tree = (trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3])
            at = _field_at(tree, shape)
            # Rows of the field are dealt out in turn.
            top = np.uint64(tree[0]) * np.uint64(shape[0]) + np.uint64(tree[2])
            for i in range(rows):
                if (top + i) % parts == part:
                    _add(field, at + i * row, d_field, q * n + i * run, run)


@parallel
def _trees_to_R(
    first: Any,
    last: Any,
    trees: Any,
    shape: Any,
    field: Any,
    kernel: Any,
    to_field: Any,
    to_kernel: Any,
    out: Any,
) -> None:
    """Messages down from some of the trees (`tree_down`)."""
    rows, run, row = np.uint64(shape[3]), np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = rows * run
    s, w, _ = _scratch(n)
    for k in range(first, last):
        tree = (trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3])
        at, own_at = _field_at(tree, shape), np.uint64(k) * n
        kernel_at = np.uint64(tree[1]) * n
        strongest = np.float32(-HUGE)
        for i in range(rows):
            here, there, own = at + i * row, kernel_at + i * run, own_at + i * run
            best = _strongest(field, here, kernel, there, to_field, to_kernel, own, run)
            strongest = larger(strongest, best)
        if strongest <= 0:  # it alone decides, as in nearly all trees
            out[k] = strongest
            continue
        for i in range(rows):
            _gather(field, at + i * row, to_field, own_at + i * run, s, i * run, run)
        _gather(kernel, kernel_at, to_kernel, own_at, w, np.uint64(0), n)
        down = _tree_down(s, w, s, np.int64(n))
        out[k] = min(max(down, np.float32(-HUGE)), np.float32(HUGE))


class CPUEngine(CPUPools):
    """Numba, on all threads that `numba.set_num_threads` allows."""

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Update the messages of the trees of a batch and the beliefs that they enter."""
        if len(batch.order) == 0 or messages.layout.leaves == 0:
            return
        if batch.simultaneous:
            self._simultaneous(messages, batch.order, np.float32(damping))
        elif len(batch.lanes) == 2:
            self._sequential(messages, batch.order, np.float32(damping))
        else:
            self._lanes(messages, batch, np.float32(damping))

    def collect(self, messages: Messages) -> None:
        """Put the sums of all messages, without the priors, in place of the beliefs."""
        m = messages
        m.field[:] = 0
        m.kernel[:] = 0
        order = np.arange(m.n_trees)
        _add_changes(
            _PARTS, order, m.trees, m.layout.geometry, *_flat(m.field, m.kernel), *_edges(m)
        )

    def trees_to_R(self, messages: Messages) -> FloatArray:
        """Messages from the trees to R, one per tree."""
        m = messages
        out = np.empty(m.n_trees, np.float32)
        beliefs = _flat(m.field, m.kernel)
        _trees_to_R(m.n_trees, m.trees, m.layout.geometry, *beliefs, *_edges(m), out)
        return out

    def _sequential(self, m: Messages, order: NDArray[np.int64], damping: np.float32) -> None:
        beliefs = _flat(m.field, m.kernel)
        shape = m.layout.geometry
        _run_one_lane(order, m.trees, m.evidence, shape, *beliefs, *_own(m, 1), damping)

    def _lanes(self, m: Messages, batch: Batch, damping: np.float32) -> None:
        shared = m.kernel if m.layout.kernel_is_weights else m.field
        private = np.repeat(shared.reshape(1, -1), len(batch.lanes) - 1, axis=0)
        fields, kernels = m.field.reshape(1, -1), m.kernel.reshape(1, -1)
        if m.layout.kernel_is_weights:
            kernels = private
        else:
            fields = private
        _run_lanes(
            len(batch.lanes) - 1,
            batch.order,
            batch.lanes,
            m.trees,
            m.evidence,
            m.layout.geometry,
            fields,
            kernels,
            *_own(m, len(batch.lanes) - 1),
            damping,
        )
        private -= shared.reshape(-1)
        shared += private.sum(axis=0).reshape(shared.shape)

    def _simultaneous(self, m: Messages, order: NDArray[np.int64], damping: np.float32) -> None:
        beliefs = seen = _flat(m.field, m.kernel)
        if len(order) > MOST_AT_ONCE:  # later chunks must not see what earlier ones changed
            seen = _flat(m.field.copy(), m.kernel.copy())
        changes = np.empty((2, min(MOST_AT_ONCE, len(order)), m.layout.leaves), np.float32)
        shape, own = m.layout.geometry, _own(m, MOST_AT_ONCE)
        for start in range(0, len(order), MOST_AT_ONCE):
            chunk = order[start : start + MOST_AT_ONCE]
            fixed = chunk, m.trees, m.evidence, shape
            _run_simultaneous(len(chunk), *fixed, *seen, *own, damping, *changes)
            _add_changes(_PARTS, chunk, m.trees, shape, *beliefs, *_flat(*changes))


def _flat(*arrays: FloatArray) -> tuple[FloatArray, ...]:
    """Views of contiguous arrays as one run of memory each."""
    return tuple(array.reshape(-1) for array in arrays)


def _edges(m: Messages) -> tuple[FloatArray, ...]:
    return _flat(m.to_field, m.to_kernel)


def _own(m: Messages, rows: int) -> tuple[FloatArray, FloatArray, bool]:
    """The trees' messages, and whether they are kept; otherwise so many rows of scratch space."""
    if m.keeps_messages:
        return *_flat(m.to_field, m.to_kernel), True  # type: ignore[return-value]
    scratch = np.empty((2, rows * m.layout.leaves), np.float32)
    return scratch[0], scratch[1], False
