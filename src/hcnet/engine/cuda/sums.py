"""Sums on a GPU: over the threads of a block, and beliefs as sums of messages."""

from __future__ import annotations

import numpy as np
from numba import cuda

from hcnet.engine.cuda.compilation import SIMULATED, WARP, Number, compiled, inlined, kernel
from hcnet.engine.cuda.slots import first_element
from hcnet.factors import HUGE

_and_up, _larger, _merged_second = compiled.and_up, compiled.larger, compiled.merged_second

# Threads that add up the messages of a placement.
SUM_THREADS = 1 if SIMULATED else 4 * WARP
_WARPS = max(SUM_THREADS // WARP, 1)
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
def start_messages(fresh, g, slots, at, observed, U, W, to_S, to_W):
    """Give new placements the messages of the closed form; a block for each placement."""
    plane = g.window_height * g.window_width
    edges = g.channels * plane
    slot = fresh[cuda.blockIdx.x]
    n = slot // (slots.down * slots.across * slots.each)
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
    sums = cuda.shared.array((_WARPS, 3), Number)
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
