"""The update of one AND-OR tree on the CPU: the only one, whichever messages are stored.

The leaves of a tree lie in rows of memory: the beliefs of one kind of variable (the field) row by
row, the beliefs of the other (the kernel) and the tree's own messages one row after the other.  An
engine whose leaves lie elsewhere copies their beliefs into one row, and back.

Arrays come as pointers, since an array that is passed on counts references, which takes longer than
the work on a short row.
"""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import compiled, inlined, larger, prefetch
from hcnet.factors import HUGE

_and_down, _and_up = compiled.and_down, compiled.and_up
_or_cap, _or_share, _or_up = compiled.or_cap, compiled.or_share, compiled.or_up
_or_message, _or_outcome = compiled.or_message, compiled.or_outcome
_damped, _TO_STEPS = compiled.damped, compiled.TO_STEPS


@inlined
def update_tree(
    b,
    rows,
    run,
    field,
    at,
    stride,
    kernel,
    kernel_at,
    to_field,
    to_kernel,
    own,
    following,
    best,
    damping,
):
    """Update the messages of a tree with evidence b, and the beliefs of its leaves.

    `factors.tree_messages`, in as few passes over memory as possible.  `own` is where the messages
    of the tree begin, `following` where those of the next tree begin, which are fetched into cache
    meanwhile; `best` is scratch space for a number per row.  Returns the message from the OR to any
    leaf that sends too little to matter, and is not stored.
    """
    first = np.float32(-HUGE)
    for i in range(rows):
        f, k, m = at + i * stride, kernel_at + i * run, own + i * run
        highest = np.float32(-HUGE)
        for j in range(run):
            s, w = field[f + j] - to_field[m + j], kernel[k + j] - to_kernel[m + j]
            highest = larger(highest, _and_down(s, w))
        best[i] = highest
        first = larger(first, highest)
    cap, total = _or_cap(b), np.float32(0)
    if cap > 0 and first > 0:  # a rare case: otherwise all shares are 0
        for i in range(rows):
            f, k, m = at + i * stride, kernel_at + i * run, own + i * run
            for j in range(run):
                s, w = field[f + j] - to_field[m + j], kernel[k + j] - to_kernel[m + j]
                total += _or_share(_and_down(s, w), cap)
    # Only the strongest leaf hears of the second, and only if its message could be positive.
    second = first
    if b + (total - _or_share(first, cap)) > 0:
        second, ties = np.float32(-HUGE), 0
        for i in range(rows):
            if best[i] < first:
                second = larger(second, best[i])
                continue
            f, k, m = at + i * stride, kernel_at + i * run, own + i * run
            for j in range(run):
                s, w = field[f + j] - to_field[m + j], kernel[k + j] - to_kernel[m + j]
                x = _and_down(s, w)
                ties += x == first
                second = larger(second, x if x < first else np.float32(-HUGE))
        if ties > 1:
            second = first
    # Nearly always all leaves get the same answer, and the compiler makes a loop of its own of it.
    alike = _or_up(b, total, first)
    same = total == 0 and _or_up(b, total, second) == alike
    for i in range(rows):
        f, k, m = at + i * stride, kernel_at + i * run, own + i * run
        prefetch(to_field, following + i * run, run)
        prefetch(to_kernel, following + i * run, run)
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
    first, total = np.float32(-HUGE), np.float32(0)
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
                total += larger(_and_down(s, w), np.float32(0))
    return _or_outcome(total, first)
