"""Updates of the trees of active placements."""

from __future__ import annotations

from hcnet.engine.cpu_compilation import compiled, entry, inlined, parallel, pointer
from hcnet.engine.cpu_trees import tree_to_R, update_tree

_or_merged = compiled.or_merged


@inlined
def _pointers(lists):
    """The lists of `Edges`; they are held by whoever has called from Python."""
    trees, base, begin, offset, who, to_S, to_W = lists
    first = pointer(trees), pointer(base), pointer(begin), pointer(offset)
    return *first, pointer(who), pointer(to_S), pointer(to_W)


@parallel
def run_lanes(
    first, last, order, lanes, lists, E, U, seen_S, seen_W, all_S, all_W, scratch, damping
):
    """In each lane trees one after the other: messages of active leaves, and U for all others.

    Inactive placements are so improbable that they add nothing to the sum of an OR and are
    nobody's strongest rival.  `seen_S` and `seen_W` are the beliefs that the trees start from: the
    very ones that they change, or a copy of them where all trees are to be updated at once.  Every
    lane has beliefs of W and scratch space of its own, and images of its own.
    """
    trees, base, begin, offset, who, to_S, to_W = _pointers(lists)
    order_at, S_seen, S = pointer(order), pointer(seen_S), pointer(all_S)
    E_at, U_at = pointer(E), pointer(U)
    for lane in range(first, last):
        W_seen, W = pointer(seen_W[lane]), pointer(all_W[lane])
        s, w, best = pointer(scratch[lane, 0]), pointer(scratch[lane, 1]), pointer(scratch[lane, 2])
        for q in range(lanes[lane], lanes[lane + 1]):
            k = order_at[q]
            start, n, here = begin[k], begin[k + 1] - begin[k], base[k]
            for j in range(n):
                p = who[start + j]
                s[j], w[j] = S_seen[p], W_seen[here + offset[p]]
            leaves = 1, n, s, 0, 0, w, 0, to_S, to_W
            U_at[trees[k]] = update_tree(E_at[trees[k]], *leaves, start, start, best, damping)
            for j in range(n):
                p = who[start + j]
                S[p] += s[j] - S_seen[p]
                W[here + offset[p]] += w[j] - W_seen[here + offset[p]]


@entry
def trees_down(lists, all_S, all_W, scratch, out):
    """Messages down from the trees of active placements, into `out`.

    There `out` holds the message from the inactive placements alone.
    """
    n_trees = lists[0].size
    trees, base, begin, offset, who, to_S, to_W = _pointers(lists)
    S, W, s, w = pointer(all_S), pointer(all_W), pointer(scratch[0, 0]), pointer(scratch[0, 1])
    for k in range(n_trees):
        start, n = begin[k], begin[k + 1] - begin[k]
        for j in range(n):
            p = who[start + j]
            s[j], w[j] = S[p], W[base[k] + offset[p]]
        down = tree_to_R(1, n, s, 0, 0, w, 0, to_S, to_W, start)
        out[trees[k]] = _or_merged(down, out[trees[k]])


@entry
def add_up(lists, S, W):
    """Add all messages to the sums of the variables that they go to."""
    n = lists[0].size
    _, base, begin, offset, who, to_S, to_W = _pointers(lists)
    S_at, W_at = pointer(S), pointer(W)
    for k in range(n):
        for e in range(begin[k], begin[k + 1]):
            S_at[who[e]] += to_S[e]
            W_at[base[k] + offset[who[e]]] += to_W[e]
