"""Updates of the trees of active placements.

Inside are pointers instead of arrays: each look into a tuple in a loop, and each array that is
passed on, would count references, which takes longer than a tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger, parallel, pointer
from hcnet.factors import HUGE

_and_down, _and_up, _or_up = compiled.and_down, compiled.and_up, compiled.or_up
_or_cap, _or_share, _or_answers = compiled.or_cap, compiled.or_share, compiled.or_answers
_or_down, _damped = compiled.or_down, compiled.damped
_TO_STEPS = compiled.TO_STEPS


@inlined
def _pointers(lists: Any) -> Any:
    """The lists of `Edges`; they are held by whoever has called from Python."""
    trees, base, begin, offset, who, to_S, to_W = lists
    first = pointer(trees), pointer(base), pointer(begin), pointer(offset)
    return *first, pointer(who), pointer(to_S), pointer(to_W)


@inlined
def _run(order: Any, lists: Any, E: Any, U: Any, seen: Any, beliefs: Any, damping: Any) -> None:
    """Trees one after the other: all messages of their active leaves, and U for all others.

    Inactive placements are so improbable that they add nothing to the sum of an OR and are
    nobody's strongest rival.
    """
    trees, base, begin, offset, who, to_S, to_W = _pointers(lists)
    seen_S, seen_W = pointer(seen[0]), pointer(seen[1])
    S, W = pointer(beliefs[0]), pointer(beliefs[1])
    longest = 0
    for k in order:
        longest = max(longest, begin[k + 1] - begin[k])
    s, w, t = np.empty((3, longest), np.float32)
    for k in order:
        start, n = begin[k], begin[k + 1] - begin[k]
        here = base[k]
        b = E[trees[k]]
        cap = _or_cap(b)
        total, first = np.float32(0), np.float32(-HUGE)
        for j in range(n):
            p = who[start + j]
            s[j] = seen_S[p] - to_S[start + j]
            w[j] = seen_W[here + offset[p]] - to_W[start + j]
            x = _and_down(s[j], w[j])
            t[j] = x
            total += _or_share(x, cap)
            first = larger(first, x)
        U[trees[k]] = _or_up(b, total, first)
        _or_answers(b, pointer(t), n, total, cap, first)
        for j in range(n):
            p = who[start + j]
            old_S, old_W = to_S[start + j], to_W[start + j]
            new_S = _damped(old_S, _and_up(w[j], t[j]), damping, _TO_STEPS)
            new_W = _damped(old_W, _and_up(s[j], t[j]), damping, _TO_STEPS)
            to_S[start + j], to_W[start + j] = new_S, new_W
            S[p] += new_S - old_S
            W[here + offset[p]] += new_W - old_W


@entry
def run_lane(order: Any, lists: Any, E: Any, U: Any, seen: Any, beliefs: Any, damping: Any) -> None:
    """One lane.

    `seen` are the beliefs that the trees hear: the very ones that they change, or a copy of them
    where all are to be updated at once.
    """
    _run(order, lists, E, U, seen, beliefs, damping)


@parallel
def run_lanes(
    first: Any,
    last: Any,
    order: Any,
    lanes: Any,
    lists: Any,
    E: Any,
    U: Any,
    S: Any,
    weights: Any,
    damping: Any,
) -> None:
    """Lanes over threads: each has beliefs of W of its own, in `weights`, and images of its own."""
    for lane in range(first, last):
        beliefs = (S, weights[lane])
        own = order[lanes[lane] : lanes[lane + 1]]
        _run(own, lists, E, U, beliefs, beliefs, damping)


@entry
def trees_down(lists: Any, beliefs: Any, out: Any) -> None:
    """Messages down from the trees of active placements, into `out`.

    There `out` holds the message from the inactive placements alone.
    """
    trees, base, begin, offset, who, to_S, to_W = lists
    S, W = beliefs
    longest = 0
    for k in range(trees.size):
        longest = max(longest, begin[k + 1] - begin[k])
    t = np.empty(longest + 1, np.float32)
    for k in range(trees.size):
        start, n = begin[k], begin[k + 1] - begin[k]
        for j in range(n):
            p = who[start + j]
            s = S[p] - to_S[start + j]
            t[j] = _and_down(s, W[base[k] + offset[p]] - to_W[start + j])
        t[n] = out[trees[k]]
        out[trees[k]] = _or_down(t, n + 1)


@entry
def add_up(lists: Any, S: Any, W: Any) -> None:
    """Add all messages to the sums of what they are about."""
    n = lists[0].size
    _, base, begin, offset, who, to_S, to_W = _pointers(lists)
    S_at, W_at = pointer(S), pointer(W)
    for k in range(n):
        for e in range(begin[k], begin[k + 1]):
            S_at[who[e]] += to_S[e]
            W_at[base[k] + offset[who[e]]] += to_W[e]
