"""Messages of the trees of active placements on a GPU: one warp updates one tree at a time.

The trees of a lane are updated one after the other, all lanes at the same time; the trees of a
block are updated at the same time, one block after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda

from hcnet.engine.cuda.compilation import SIMULATED, WARP, Number, compiled, inlined, kernel_for
from hcnet.engine.cuda.orders import has_tree, tree_of
from hcnet.engine.cuda.slots import element_at, run_distance, slot_runs, weight_above
from hcnet.engine.cuda.sums import block_sums
from hcnet.factors import HUGE
from hcnet.grid import STEP

_and_down, _and_up = compiled.and_down, compiled.and_up
_or_cap, _or_share, _or_message = compiled.or_cap, compiled.or_share, compiled.or_message
_or_up, _larger, _smaller = compiled.or_up, compiled.larger, compiled.smaller
_damped, _TO_STEPS = compiled.damped, compiled.TO_STEPS
_PER_STEP = 1 / STEP

# Threads of a tree.  The simulator has one, as its threads cannot wait for each other in a function
# of another module.
TREE_THREADS = 1 if SIMULATED else WARP
# Trees that a multiprocessor updates at the same time.
TREES_AT_ONCE = 1 if SIMULATED else 16


def _tree_update(holds: bool) -> Any:
    """The update of one tree: new messages, beliefs, and U for its inactive leaves.

    `tree`: image, channel, row, column, `slot_runs`.  `first_weight`: where its copy of W begins.
    `state`: E, U, S, W, to_S, to_W.  `sums`: shared memory for `block_sums`.  Where other trees use
    the same copy of W at the same time, the update `holds` changes of W: they are counted in steps
    of the grid until the block is over, as integers, whose sum does not depend on the order.
    """

    @inlined
    def update(tree, first_weight, g, tiles, at, state, held, damping, sums):
        n, a, row, column, first_slot, length, runs = tree
        E, U, S, W, to_S, to_W = state
        plane = g.window_height * g.window_width
        edges = g.channels * plane
        element = np.uint64(element_at(n, a, row, column, g))
        b = E[element]
        cap = _or_cap(b)
        total, first, second = np.float32(0), np.float32(-HUGE), np.float32(-HUGE)
        for y in range(runs):
            begin = first_slot + y * run_distance(tiles)
            for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
                step = weight_above(at, slot, row, column, g)
                if step >= 0:
                    edge = np.uint64(slot * edges + a * plane + step)
                    weight = np.uint64(first_weight + at[slot, 2] * edges + a * plane + step)
                    x = _and_down(S[slot] - to_S[edge], W[weight] - to_W[edge])
                    total += _or_share(x, cap)
                    second = _larger(second, _smaller(first, x))
                    first = _larger(first, x)
        total, first, second = block_sums(total, first, second, sums)
        if cuda.threadIdx.x == 0:
            U[element] = _or_up(b, total, first)
        for y in range(runs):
            begin = first_slot + y * run_distance(tiles)
            for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
                step = weight_above(at, slot, row, column, g)
                if step >= 0:
                    edge = np.uint64(slot * edges + a * plane + step)
                    weight = np.uint64(first_weight + at[slot, 2] * edges + a * plane + step)
                    old_S, old_W, seen_S, seen_W = to_S[edge], to_W[edge], S[slot], W[weight]
                    s, w = seen_S - old_S, seen_W - old_W
                    up = _or_message(b, _and_down(s, w), total, cap, first, second)
                    new_S = _damped(old_S, _and_up(w, up), damping, _TO_STEPS)
                    new_W = _damped(old_W, _and_up(s, up), damping, _TO_STEPS)
                    to_S[edge], to_W[edge] = new_S, new_W
                    S[slot] = seen_S + (new_S - old_S)
                    if holds:
                        change = np.float64(new_W - old_W)
                        steps = np.int64(math.floor(change * _PER_STEP + 0.5))
                        if steps != 0:
                            cuda.atomic.add(held, weight, steps)
                    else:
                        W[weight] = seen_W + (new_W - old_W)
        cuda.syncthreads()

    return update


_update, _update_and_hold = _tree_update(holds=False), _tree_update(holds=True)


@inlined
def _stored(trees, k):
    """The numbers of tree k (`slots.find_trees`)."""
    n, a, row, column = trees[k, 0], trees[k, 1], trees[k, 2], trees[k, 3]
    return n, a, row, column, trees[k, 4], trees[k, 5], trees[k, 6]


@inlined
def _merge_lanes(copies, W):
    """Add the changes that lanes made in their copies to W, in the order of the lanes."""
    for z in range(cuda.grid(1), W.size, cuda.gridsize(1)):
        before, total = W[z], np.float32(0)
        for copy in range(z, copies.size, W.size):
            total += copies[copy] - before
        W[z] = before + total
        for copy in range(z, copies.size, W.size):
            copies[copy] = before + total


@kernel_for(TREE_THREADS * TREES_AT_ONCE)
def update_lanes(cuts, step, ahead, trees, g, tiles, at, E, U, S, W, to_S, to_W, copies, damping):
    """A sweep over lanes, all of them at the same time, in rounds (`Lanes`).

    Each of several lanes changes a copy of W; changes are merged after each round.  A single lane
    changes W itself, which is then `copies`.
    """
    sums = cuda.shared.array((1, 3), Number)
    everybody = cuda.cg.this_grid()
    state = E, U, S, copies, to_S, to_W
    lanes, several = cuts.shape[1], cuts.shape[1] > 1
    if several:
        for z in range(cuda.grid(1), copies.size, cuda.gridsize(1)):
            copies[z] = W[z % W.size]
        everybody.sync()
    for k in range(cuts.shape[0] - 1):
        for lane in range(cuda.blockIdx.x, lanes, cuda.gridDim.x):
            first, begin, end = cuts[0, lane], cuts[k, lane], cuts[k + 1, lane]
            n = cuts[cuts.shape[0] - 1, lane] - first
            if begin < end:
                place, stride = (step * (begin - first) + ahead * (lane + 1)) % n, step % n
                following = _stored(trees, np.uint64(first + place))
                for _ in range(begin, end):
                    # The next tree is loaded from memory during the update of this one.
                    tree = following
                    place += stride
                    if place >= n:
                        place -= n
                    following = _stored(trees, np.uint64(first + place))
                    _update(tree, lane * W.size, g, tiles, at, state, to_S, damping, sums)
        if several:
            everybody.sync()
            _merge_lanes(copies, W)
            everybody.sync()


@inlined
def _with_runs(n, a, row, column, g, tiles):
    """The numbers of a tree that is not stored."""
    first, length, runs = slot_runs(n, row, column, g, tiles)
    return n, a, row, column, first, length, runs


@inlined
def _apply_held(tree, g, tiles, at, held, W):
    """Apply the held changes of a tree's weights; of trees that share a weight the first does."""
    _, a, row, column, first_slot, length, runs = tree
    plane = g.window_height * g.window_width
    for y in range(runs):
        begin = first_slot + y * run_distance(tiles)
        for slot in range(begin + cuda.threadIdx.x, begin + length, cuda.blockDim.x):
            step = weight_above(at, slot, row, column, g)
            if step >= 0:
                weight = np.uint64((at[slot, 2] * g.channels + a) * plane + step)
                steps = cuda.atomic.exch(held, weight, 0)
                if steps != 0:
                    W[weight] += np.float32(np.float64(steps) * STEP)


@kernel_for(TREE_THREADS * TREES_AT_ONCE)
def update_blocks(sequence, colours, covered, g, tiles, at, E, U, S, W, to_S, to_W, held, damping):
    """A sweep over blocks of trees that share no placement (`Colours`), one after the other.

    All threads wait after each block; then the changes of W that were held are applied.
    """
    sums = cuda.shared.array((1, 3), Number)
    everybody = cuda.cg.this_grid()
    state = E, U, S, W, to_S, to_W
    for c in range(sequence.size):
        for t in range(cuda.blockIdx.x, colours.most, cuda.gridDim.x):
            n, a, row, column = tree_of(sequence[c], t, colours, g)
            if has_tree(n, a, row, column, colours, g, covered):
                tree = _with_runs(n, a, row, column, g, tiles)
                _update_and_hold(tree, 0, g, tiles, at, state, held, damping, sums)
        everybody.sync()
        for t in range(cuda.blockIdx.x, colours.most, cuda.gridDim.x):
            n, a, row, column = tree_of(sequence[c], t, colours, g)
            if has_tree(n, a, row, column, colours, g, covered):
                tree = _with_runs(n, a, row, column, g, tiles)
                _apply_held(tree, g, tiles, at, held, W)
        everybody.sync()
