"""Messages of the trees of active placements on a GPU: a warp for each tree.

A tree has few active leaves.  Lanes go through their trees one after the other, each with a warp
of its own; blocks have so many trees at the same time.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np
from numba import cuda

from hcnet.engine.cuda.active.colours import has_tree, tree_of
from hcnet.engine.cuda.active.places import element_at, run_apart, runs_above, step_within
from hcnet.engine.cuda.compilation import (
    SIMULATED,
    WARP,
    Number,
    compiled,
    inlined,
    kernel,
    kernel_for,
)
from hcnet.engine.cuda.trees import block_sums
from hcnet.factors import HUGE

_and_down, _and_up = compiled.and_down, compiled.and_up
_or_cap, _or_share, _or_message = compiled.or_cap, compiled.or_share, compiled.or_message
_or_up, _larger, _smaller = compiled.or_up, compiled.larger, compiled.smaller
_damped, _TO_STEPS = compiled.damped, compiled.TO_STEPS

# Threads of a tree.  The simulator has one: others would have to wait for each other in a function
# of another module, which it cannot do.
TREE_THREADS = 1 if SIMULATED else WARP
# Trees that a processor of the GPU works on at the same time where everybody waits for everybody.
TREES_AT_ONCE = 1 if SIMULATED else 16

# What becomes of a change of a belief of W: written, as nobody else has it; added while others
# add, too, in the order of chance; put down as a whole number, so that the order does not matter;
# or nothing, where beliefs are added up anew.
Change = Literal["own", "shared", "whole", "none"]


@functools.cache
def _commit(change: Change) -> Any:
    """What to do with a change of a belief of W."""
    own, shared, whole = change == "own", change == "shared", change == "whole"

    @inlined
    def commit(W: Any, at: Any, seen: Any, change: Any, held: Any, scale: Any) -> None:
        if own:
            W[at] = seen + change
        elif shared:
            if change != np.float32(0):
                cuda.atomic.add(W, at, change)
        elif whole:
            units = np.int64(math.floor(np.float64(change) * scale + 0.5))
            if units != 0:
                cuda.atomic.add(held, at, units)

    return commit


@functools.cache
def _visit(change: Change) -> Any:
    """New messages of one tree, and U for its inactive leaves."""
    commit, places_change = _commit(change), change != "none"

    @inlined
    def visit(
        n: Any,
        a: Any,
        row: Any,
        column: Any,
        first_slot: Any,
        length: Any,
        runs: Any,
        g: Any,
        seats: Any,
        at: Any,
        E: Any,
        U: Any,
        S: Any,
        W: Any,
        W_from: Any,
        to_S: Any,
        to_W: Any,
        held: Any,
        scale: Any,
        damping: Any,
        sums: Any,
    ) -> None:
        plane = g.window_height * g.window_width
        edges = g.channels * plane
        element = np.uint64(element_at(n, a, row, column, g))
        b = E[element]
        cap = _or_cap(b)
        total, first, second = np.float32(0), np.float32(-HUGE), np.float32(-HUGE)
        for y in range(runs):
            begin = first_slot + y * run_apart(seats)
            for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
                step = step_within(at, slot, row, column, g)
                if step >= 0:
                    edge = np.uint64(slot * edges + a * plane + step)
                    weight = np.uint64(W_from + at[slot, 2] * edges + a * plane + step)
                    x = _and_down(S[slot] - to_S[edge], W[weight] - to_W[edge])
                    total += _or_share(x, cap)
                    second = _larger(second, _smaller(first, x))
                    first = _larger(first, x)
        total, first, second = block_sums(total, first, second, sums)
        if cuda.threadIdx.x == 0:
            U[element] = _or_up(b, total, first)
        for y in range(runs):
            begin = first_slot + y * run_apart(seats)
            for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
                step = step_within(at, slot, row, column, g)
                if step >= 0:
                    edge = np.uint64(slot * edges + a * plane + step)
                    weight = np.uint64(W_from + at[slot, 2] * edges + a * plane + step)
                    old_S, old_W, seen_S, seen_W = to_S[edge], to_W[edge], S[slot], W[weight]
                    s, w = seen_S - old_S, seen_W - old_W
                    up = _or_message(b, _and_down(s, w), total, cap, first, second)
                    new_S = _damped(old_S, _and_up(w, up), damping, _TO_STEPS)
                    new_W = _damped(old_W, _and_up(s, up), damping, _TO_STEPS)
                    to_S[edge], to_W[edge] = new_S, new_W
                    if places_change:
                        S[slot] = seen_S + (new_S - old_S)
                    commit(W, weight, seen_W, new_W - old_W, held, scale)
        cuda.syncthreads()

    return visit


@inlined
def _listed(trees: Any, k: Any) -> Any:
    """What is known of a tree of the list."""
    where = trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3]
    return *where, trees[k, 4], trees[k, 5], trees[k, 6]


@functools.cache
def lanes_kernel(change: Change) -> Any:
    """All trees of all lanes; trees ``order[begin[lane] : end[lane]]`` make a lane.

    The weights of a lane begin at an offset of its own, where it has copies.
    """
    visit = _visit(change)

    @kernel
    def run(
        order: Any,
        begin: Any,
        end: Any,
        trees: Any,
        g: Any,
        seats: Any,
        at: Any,
        E: Any,
        U: Any,
        S: Any,
        W: Any,
        W_from: Any,
        to_S: Any,
        to_W: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((1, 3), Number)
        lane = cuda.blockIdx.x
        state = E, U, S, W, W_from[lane], to_S, to_W, to_S, np.float64(1), damping, sums
        first, last = np.int64(begin[lane]), np.int64(end[lane])
        if first >= last:
            return
        # Where the next tree is comes from memory while this one is worked on.
        following = _listed(trees, np.uint64(order[first]))
        for q in range(first, last):
            tree = following
            following = _listed(trees, np.uint64(order[min(q + 1, last - 1)]))
            visit(*tree, g, seats, at, *state)

    return run


@functools.cache
def flood_kernel() -> Any:
    """All trees at the same time, from the same beliefs, which are to be added up afterwards."""
    visit = _visit("none")

    @kernel
    def run(
        trees: Any,
        count: Any,
        g: Any,
        seats: Any,
        at: Any,
        E: Any,
        U: Any,
        S: Any,
        W: Any,
        to_S: Any,
        to_W: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((1, 3), Number)
        state = E, U, S, W, 0, to_S, to_W, to_S, np.float64(1), damping, sums
        for k in range(cuda.blockIdx.x, count, cuda.gridDim.x):
            visit(*_listed(trees, np.uint64(k)), g, seats, at, *state)

    return run


@functools.cache
def blocks_kernel() -> Any:
    """A sweep of blocks of trees that share no placement (`Colours`), one after the other.

    Everybody waits after each: what its trees have to say about W is put down, then added.
    """
    visit = _visit("whole")

    @kernel_for(TREE_THREADS * TREES_AT_ONCE)
    def run(
        sequence: Any,
        colours: Any,
        covered: Any,
        g: Any,
        seats: Any,
        at: Any,
        E: Any,
        U: Any,
        S: Any,
        W: Any,
        to_S: Any,
        to_W: Any,
        held: Any,
        scale: Any,
        damping: Any,
    ) -> None:
        sums = cuda.shared.array((1, 3), Number)
        everybody = cuda.cg.this_grid()
        state = E, U, S, W, 0, to_S, to_W, held, scale, damping, sums
        for c in range(sequence.size):
            for t in range(cuda.blockIdx.x, colours.most, cuda.gridDim.x):
                n, a, row, column = tree_of(sequence[c], t, colours, g)
                if has_tree(n, a, row, column, colours, g, covered):
                    runs = runs_above(n, row, column, g, seats)
                    visit(n, a, row, column, *runs, g, seats, at, *state)
            everybody.sync()
            for t in range(cuda.blockIdx.x, colours.most, cuda.gridDim.x):
                n, a, row, column = tree_of(sequence[c], t, colours, g)
                if has_tree(n, a, row, column, colours, g, covered):
                    _add_held(n, a, row, column, g, seats, at, held, scale, W)
            everybody.sync()

    return run


@inlined
def _add_held(
    n: Any,
    a: Any,
    row: Any,
    column: Any,
    g: Any,
    seats: Any,
    at: Any,
    held: Any,
    scale: Any,
    W: Any,
) -> None:
    """Whoever is the first to look adds what was put down for a weight."""
    plane = g.window_height * g.window_width
    first_slot, length, runs = runs_above(n, row, column, g, seats)
    for y in range(runs):
        begin = first_slot + y * run_apart(seats)
        for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
            step = step_within(at, slot, row, column, g)
            if step >= 0:
                weight = np.uint64((at[slot, 2] * g.channels + a) * plane + step)
                units = cuda.atomic.exch(held, weight, 0)
                if units != 0:
                    W[weight] += np.float32(np.float64(units) / scale)
