"""The edges of active placements: lists by tree, and the updates of these trees.

Lists are built anew when the set of placements changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.active.geometry import Geometry, IntArray, locate, placement_offset, tree_base
from hcnet.engine.cpu import tree_to_R, update_tree
from hcnet.engine.cpu_compilation import compiled, entry, in_pieces, inlined, laned, pointer
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray

_and_up, _or_merged = compiled.and_up, compiled.or_merged

# Bytes of an edge: which placement, the message to it, and the message to its weight.
EDGE_BYTES = 12


@dataclass
class Edges:
    """Active placements in the order of their numbers, and the trees that they reach.

    Edges ``begin[k]`` to ``begin[k + 1]`` are those of tree k, in the order of the placements.
    """

    where: IntArray  # (placements,): their numbers
    offset: IntArray  # (placements,): `placement_offset`
    trees: IntArray  # (trees,): elements of the board
    base: IntArray  # (trees,): `tree_base`
    begin: IntArray  # (trees + 1,)
    index: NDArray[np.int32]  # (board,): which tree an element has; arbitrary where it has none
    who: NDArray[np.int32]  # (edges,)
    to_S: FloatArray
    to_W: FloatArray

    @property
    def lists(self) -> tuple[NDArray[Any], ...]:
        """For compiled code."""
        return self.trees, self.base, self.begin, self.offset, self.who, self.to_S, self.to_W

    def scratch(self, lanes: int) -> FloatArray:
        """Space for three numbers per leaf of the largest tree, for every lane."""
        return np.empty((lanes, 3, int(np.diff(self.begin).max(initial=1))), FLOAT)


def no_edges(board: int) -> Edges:
    """Nothing is active."""
    nothing, none = np.empty(0, np.int64), np.empty(0, FLOAT)
    index = np.empty(board, np.int32)
    who = np.empty(0, np.int32)
    begin = np.zeros(1, np.int64)
    return Edges(nothing, nothing, nothing, nothing, begin, index, who, none, none.copy())


def rebuilt(
    edges: Edges, where: IntArray, g: Geometry, observed: BoolArray, U: FloatArray, W: FloatArray
) -> Edges:
    """The edges of another set of placements.

    Placements that stay keep their messages; new ones get what the closed form gives them, with
    U what the trees tell inactive placements and W the beliefs of the weights.
    """
    size = len(observed)
    cover = np.zeros((size // g.board_size, g.board_height + 1, g.board_width + 1), np.int32)
    trees, base, begin, index = *np.empty((3, size + 1), np.int64), np.empty(size, np.int32)
    n = _list_trees(where, g, observed, cover, trees, base, begin, index)
    n_edges = int(begin[n])
    new = Edges(
        where=where,
        offset=np.empty(len(where), np.int64),
        trees=trees[:n].copy(),
        base=base[:n].copy(),
        begin=begin[: n + 1].copy(),
        index=index,
        who=np.empty(n_edges, np.int32),
        to_S=np.empty(n_edges, FLOAT),
        to_W=np.empty(n_edges, FLOAT),
    )
    lists = (
        (one.index, one.begin[:-1].copy(), one.to_S, one.to_W)  # `_move` counts the begins up
        for one in (edges, new)
    )
    filled = new.base, new.who, new.offset, np.zeros(2, np.int64)
    _move(len(edges.where) + len(where), edges.where, where, g, observed, U, W, *lists, *filled)
    return new


@entry
def _list_trees(where, g, observed, cover, trees, base, begin, index):
    """List the observed elements of the board below placements, in order; how many there are.

    `cover` is 0 before.  Corners of windows, added up twice, are how many placements cover each.
    """
    for z in range(where.size):
        n, i, j, _ = locate(where[z], g)
        below, right = i + g.window_height, j + g.window_width
        cover[n, i, j] += 1
        cover[n, below, right] += 1
        cover[n, below, j] -= 1
        cover[n, i, right] -= 1
    k, edges = 0, 0
    for n in range(cover.shape[0]):
        for i in range(g.board_height):
            line = 0
            for j in range(g.board_width):
                line += cover[n, i, j]
                cover[n, i, j] = line + (cover[n, i - 1, j] if i > 0 else 0)
        for a in range(g.channels):
            for i in range(g.board_height):
                at = ((n * g.channels + a) * g.board_height + i) * g.board_width
                for j in range(g.board_width):
                    if cover[n, i, j] > 0 and observed[at + j]:
                        trees[k], base[k], begin[k] = at + j, tree_base(a, i, j, g), edges
                        index[at + j] = k
                        edges += cover[n, i, j]
                        k += 1
    begin[k] = edges
    return k


@inlined
def _pointers(lists):
    """Index, next edge of every tree, and messages."""
    index, following, to_S, to_W = lists
    return pointer(index), pointer(following), pointer(to_S), pointer(to_W)


@in_pieces
def _move(first, last, before, now, g, observed, U, W, old, new, base, who, offset, state):
    """Walk through old and new placements in order; lists of both kinds fill in step.

    `state` is how many of both are done.
    """
    old_index, old_next, old_S, old_W = _pointers(old)
    new_index, new_next, new_S, new_W = _pointers(new)
    U_at, W_at = pointer(U), pointer(W)
    base_at, who_at = pointer(base), pointer(who)
    x, p = state[0], state[1]
    for _ in range(first, last):
        if x == before.size and p == now.size:
            break
        was = x < before.size and (p == now.size or before[x] <= now[p])
        stays = p < now.size and (x == before.size or now[p] <= before[x])
        n, i, j, f = locate(before[x] if was else now[p], g)
        own = placement_offset(i, j, f, g)
        for a in range(g.channels):
            for di in range(g.window_height):
                line = ((n * g.channels + a) * g.board_height + i + di) * g.board_width + j
                for element in range(line, line + g.window_width):
                    if not observed[element]:
                        continue
                    source = -1
                    if was:
                        k = old_index[element]
                        source = old_next[k]
                        old_next[k] += 1
                    if stays:
                        k = new_index[element]
                        e = new_next[k]
                        new_next[k] += 1
                        who_at[e] = p
                        if source >= 0:
                            new_S[e], new_W[e] = old_S[source], old_W[source]
                        else:
                            belief = W_at[base_at[k] + own]
                            new_S[e], new_W[e] = _and_up(belief, U_at[element]), 0
        x += was
        if stays:
            offset[p] = own
            p += 1
    state[0], state[1] = x, p


@inlined
def _list_pointers(lists):
    """The lists of `Edges`; they are held by whoever has called from Python."""
    trees, base, begin, offset, who, to_S, to_W = lists
    first = pointer(trees), pointer(base), pointer(begin), pointer(offset)
    return *first, pointer(who), pointer(to_S), pointer(to_W)


@laned
def run_lanes(
    first, last, order, lanes, lists, E, U, seen_S, seen_W, all_S, all_W, scratch, damping
):
    """In each lane trees one after the other: messages of active leaves, and U for all others.

    Inactive placements are so improbable that they add nothing to the sum of an OR and are
    nobody's strongest rival.  `seen_S` and `seen_W` are the beliefs that the trees start from: the
    very ones that they change, or a copy of them where all trees are to be updated at once.  Every
    lane has beliefs of W and scratch space of its own, and images of its own.
    """
    trees, base, begin, offset, who, to_S, to_W = _list_pointers(lists)
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
            leaves = 1, n, (s, 0, 0, w, 0), (to_S, to_W, start, start)
            U_at[trees[k]] = update_tree(E_at[trees[k]], *leaves, best, damping)
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
    trees, base, begin, offset, who, to_S, to_W = _list_pointers(lists)
    S, W, s, w = pointer(all_S), pointer(all_W), pointer(scratch[0, 0]), pointer(scratch[0, 1])
    for k in range(n_trees):
        start, n = begin[k], begin[k + 1] - begin[k]
        for j in range(n):
            p = who[start + j]
            s[j], w[j] = S[p], W[base[k] + offset[p]]
        down = tree_to_R(1, n, s, 0, 0, w, 0, to_S, to_W, start)
        out[trees[k]] = _or_merged(down, out[trees[k]])


@in_pieces
def add_up(first, last, lists, S, W):
    """Add all messages of trees to the sums of the variables that they go to."""
    _, base, begin, offset, who, to_S, to_W = _list_pointers(lists)
    S_at, W_at = pointer(S), pointer(W)
    for k in range(first, last):
        for e in range(begin[k], begin[k + 1]):
            S_at[who[e]] += to_S[e]
            W_at[base[k] + offset[who[e]]] += to_W[e]
