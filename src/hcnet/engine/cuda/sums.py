"""Sums of messages on a GPU: of active placements, which are stored, and of inactive ones.

The messages to and from inactive placements have a closed form (`engine.active.closed_form`).  On a
GPU a placement sums over all weights of its window, which are in the cache; lists of nonzero terms,
as on the processor, would make threads diverge.  Neighbouring threads compute the features of one
position, so the closed form uses W as (channel, di, dj, f).
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from hcnet.engine.active.geometry import AT_ONCE
from hcnet.engine.cuda.compilation import SIMULATED, WARP, Number, compiled, inlined, kernel
from hcnet.engine.cuda.slots import element_at, first_element, locate, over, weight_above
from hcnet.factors import HUGE

_and_down, _and_up, _or_outcome = compiled.and_down, compiled.and_up, compiled.or_outcome
_larger, _smaller, _merged_second = compiled.larger, compiled.smaller, compiled.merged_second

# Threads that add up the messages of a placement and the leaves of a tree, and that search a tile.
SUM_THREADS = 1 if SIMULATED else 4 * WARP
LEAF_THREADS = 1 if SIMULATED else 2 * WARP
TILE_THREADS = 2 if SIMULATED else 256
_SUM_WARPS, _LEAF_WARPS = max(SUM_THREADS // WARP, 1), max(LEAF_THREADS // WARP, 1)
_ALL = 0xFFFFFFFF

if SIMULATED:

    @inlined
    def block_sums(total, first, second, sums):
        """With one thread there is nothing to add; the simulator cannot wait in a function."""
        return total, first, second

else:

    @inlined
    def block_sums(total, first, second, sums):
        """Over all threads of a block: the sum, and the two largest numbers.

        `sums` is shared memory, (warps, 3).
        """
        apart = WARP // 2
        while apart:
            other_first = cuda.shfl_xor_sync(_ALL, first, apart)
            other_second = cuda.shfl_xor_sync(_ALL, second, apart)
            total += cuda.shfl_xor_sync(_ALL, total, apart)
            second = _merged_second(first, second, other_first, other_second)
            first = _larger(first, other_first)
            apart //= 2
        here = cuda.threadIdx.x // WARP
        if cuda.threadIdx.x % WARP == 0:
            sums[here, 0], sums[here, 1], sums[here, 2] = total, first, second
        cuda.syncthreads()
        total, first, second = sums[0, 0], sums[0, 1], sums[0, 2]
        for other in range(1, cuda.blockDim.x // WARP):
            total += sums[other, 0]
            second = _merged_second(first, second, sums[other, 1], sums[other, 2])
            first = _larger(first, sums[other, 1])
        return total, first, second


@kernel
def start_messages(fresh, g, tiles, at, observed, U, W, to_S, to_W):
    """Give new placements the messages of the closed form; a block for each placement."""
    plane = g.window_height * g.window_width
    edges = g.channels * plane
    slot = fresh[cuda.blockIdx.x]
    n = slot // (tiles.down * tiles.across * tiles.capacity)
    corner = first_element(n, at[slot, 0], at[slot, 1], g)
    for e in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        a, step = e // plane, e % plane
        di, dj = step // g.window_width, step % g.window_width
        element = corner + (a * g.board_height + di) * g.board_width + dj
        message = np.float32(0)
        if observed[element]:
            message = _and_up(W[at[slot, 2] * edges + e], U[element])
        to_S[slot * edges + e], to_W[slot * edges + e] = message, np.float32(0)


@kernel
def sum_placements(taken, edges, to_S, sums_S):
    """Sums of the messages to active placements; a block for each placement."""
    sums = cuda.shared.array((_SUM_WARPS, 3), Number)
    slot = taken[cuda.blockIdx.x]
    total = np.float32(0)
    for e in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        total += to_S[np.uint64(slot * edges + e)]
    total, _, _ = block_sums(total, np.float32(-HUGE), np.float32(-HUGE), sums)
    if cuda.threadIdx.x == 0:
        sums_S[slot] = total


@kernel
def sum_weights(taken, begin, edges, to_W, prior, carried, W):
    """Beliefs of W; ``taken[begin[f] : begin[f + 1]]`` are the slots of feature f."""
    for z in range(cuda.grid(1), W.size, cuda.gridsize(1)):
        f, e = z // edges, z % edges
        total = np.float32(0)
        for k in range(begin[f], begin[f + 1]):
            total += to_W[np.uint64(taken[k] * edges + e)]
        W[z] = total + (carried[z] + prior[z])


@kernel
def add_prior(where, prior, sums, S):
    """Beliefs of active placements; 0 in empty slots."""
    for slot in range(cuda.grid(1), where.size, cuda.gridsize(1)):
        number = where[slot]
        if number < 0:
            S[slot] = np.float32(0)
        else:
            S[slot] = sums[slot] + prior[number if prior.size > 1 else 0]


@kernel
def scatter_slots(where, values, out):
    """Copy the value of every taken slot to its placement."""
    for slot in range(cuda.grid(1), where.size, cuda.gridsize(1)):
        if where[slot] >= 0:
            out[where[slot]] = values[slot]


@kernel
def swap_axes(values, rows, columns, out):
    """(..., rows, columns) to (..., columns, rows)."""
    for z in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        column, row, n = z % columns, z // columns % rows, z // (rows * columns)
        out[(n * columns + column) * rows + row] = values[z]


@inlined
def _plus_messages(total, corner, f, g, U, W, rest, least):
    """A total, plus the messages from all trees to a placement.

    `rest` is an upper bound of the positive messages that are still to be added.  The sum stops
    early when the total can no longer exceed `least`.
    """
    weight, features = np.uint64(f), np.uint64(g.features)
    for a in range(g.channels):
        for di in range(g.window_height):
            if total + rest <= least:
                return total + rest
            line = np.uint64(corner + (a * g.board_height + di) * g.board_width)
            for dj in range(g.window_width):
                u = U[line + np.uint64(dj)]
                rest -= _larger(u, np.float32(0))
                total += _and_up(W[weight], u)
                weight += features
    return total


@kernel
def positive_sums(g, U, out):
    """An upper bound of the sum of positive messages to a placement, for each position."""
    for position in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, i, j, _ = locate(position * g.features, g)
        corner = first_element(n, i, j, g)
        total = np.float32(0)
        for a in range(g.channels):
            for di in range(g.window_height):
                line = np.uint64(corner + (a * g.board_height + di) * g.board_width)
                for dj in range(g.window_width):
                    total += _larger(U[line + np.uint64(dj)], np.float32(0))
        out[position] = total * np.float32(1.001) + np.float32(1e-3)


@kernel
def sum_messages(g, U, W, prior, out):
    """Sums of a prior and the messages to all placements, as if none were active."""
    for number in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, i, j, f = locate(number, g)
        corner = first_element(n, i, j, g)
        rest, least = np.float32(HUGE), np.float32(-HUGE)
        total = _plus_messages(np.float32(0), corner, f, g, U, W, rest, least)
        out[number] = total + prior[number if prior.size > 1 else 0]


@kernel
def find_candidates(g, tiles, at, U, W, prior, reach, threshold, found, beliefs):
    """The most probable inactive placements of every tile with a belief above the threshold.

    A block of threads searches a tile.  Of equally probable placements the first comes first.
    """
    best = cuda.shared.array(TILE_THREADS, Number)
    number_of = cuda.shared.array(TILE_THREADS, np.int64)
    own = cuda.local.array(AT_ONCE, Number)
    own_number = cuda.local.array(AT_ONCE, np.int64)
    tile, here = cuda.blockIdx.x, cuda.threadIdx.x
    column, line = tile % tiles.across, tile // tiles.across
    n, top, left = line // tiles.down, line % tiles.down * tiles.height, column * tiles.width
    rows, columns = min(tiles.height, g.height - top), min(tiles.width, g.width - left)
    bar = threshold[n]
    for k in range(AT_ONCE):
        own[k], own_number[k] = bar, -1
    for x in range(here, rows * columns * g.features, cuda.blockDim.x):
        within = over(x, g.features)
        f, row = x - within * g.features, over(within, columns)
        i, j = top + row, left + within - row * columns
        position = (n * g.height + i) * g.width + j
        number = position * g.features + f
        start = prior[number if prior.size > 1 else 0]
        b = _plus_messages(start, first_element(n, i, j, g), f, g, U, W, reach[position], bar)
        if b <= bar:
            continue
        is_active = False
        for slot in range(tile * tiles.capacity, (tile + 1) * tiles.capacity):
            is_active |= at[slot, 0] == i and at[slot, 1] == j and at[slot, 2] == f
        if is_active:
            continue
        for k in range(AT_ONCE):
            if b > own[k] or (b == own[k] and number < own_number[k]):
                b, own[k] = own[k], b
                number, own_number[k] = own_number[k], number
        bar = own[AT_ONCE - 1]
    # Take the best of all threads AT_ONCE times; threads without candidates have the threshold.
    for place in range(AT_ONCE):
        best[here], number_of[here] = own[0], own_number[0]
        cuda.syncthreads()
        winner = 0
        for other in range(1, cuda.blockDim.x):
            better = best[other] > best[winner]
            tied = best[other] == best[winner] and number_of[other] < number_of[winner]
            if better or tied:
                winner = other
        if here == 0:
            found[tile * AT_ONCE + place] = number_of[winner]
            beliefs[tile * AT_ONCE + place] = best[winner]
        if here == winner:
            for k in range(AT_ONCE - 1):
                own[k], own_number[k] = own[k + 1], own_number[k + 1]
        cuda.syncthreads()


@kernel
def messages_down(g, size, U, W, senders, begin, beliefs, to_S, to_W, least, out):
    """Messages down to R, (images, channels, height, width); a block of threads for each tree.

    ``senders[begin[n] : begin[n + 1]]`` are the placements of image n with messages to R: row,
    column, feature, and slot or -1.  Messages of inactive placements below `least` are left out.
    """
    sums = cuda.shared.array((_LEAF_WARPS, 3), Number)
    height, width, over_rows, over_columns = size
    plane = g.window_height * g.window_width
    edges = g.channels * plane
    for z in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
        row, column = z // width % height + over_rows, z % width + over_columns
        n, a = z // (width * height) // g.channels, z // (width * height) % g.channels
        u = U[np.uint64(element_at(n, a, row, column, g))]
        total, first, second = np.float32(0), np.float32(-HUGE), np.float32(-HUGE)
        for k in range(begin[n] + cuda.threadIdx.x, begin[n + 1], cuda.blockDim.x):
            step = weight_above(senders, k, row, column, g)
            if step < 0:
                continue
            weight, slot = a * plane + step, np.int64(senders[k, 3])
            s, w = beliefs[k], W[np.uint64(weight * g.features + senders[k, 2])]
            if slot >= 0:
                edge = np.uint64(slot * edges + weight)
                s, w = s - to_S[edge], w - to_W[edge]
            elif w <= least:
                continue
            else:
                s -= _and_up(w, u)
            x = _and_down(s, w)
            total += _larger(x, np.float32(0))
            first = _larger(first, x)
        total, first, second = block_sums(total, first, second, sums)
        if cuda.threadIdx.x == 0:
            down = _or_outcome(total, first)
            out[z] = _smaller(_larger(down, np.float32(-HUGE)), np.float32(HUGE))
        cuda.syncthreads()
