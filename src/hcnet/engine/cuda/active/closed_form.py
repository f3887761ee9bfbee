"""What inactive placements hear and say, without a message stored (`engine.active.closed_form`).

On a GPU every inactive placement sums over all weights of its window: it moves no bytes that are
not in cache, and a processor's lists of what is not zero would only send threads different ways.
Neighbouring threads have the features of a position, so that they read neighbouring weights of W as
it is here: (channel, di, dj, f).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from hcnet.engine.active.admission import AT_ONCE
from hcnet.engine.cuda.active.places import element_at, first_element, locate, over, step_within
from hcnet.engine.cuda.compilation import SIMULATED, WARP, Number, compiled, inlined, kernel
from hcnet.engine.cuda.trees import block_sums
from hcnet.factors import HUGE

_and_down, _and_up, _larger = compiled.and_down, compiled.and_up, compiled.larger
_or_outcome, _smaller = compiled.or_outcome, compiled.smaller

# Threads that look through the placements of a tile, and through those above a tree.
TILE_THREADS = 2 if SIMULATED else 256
LEAF_THREADS = 1 if SIMULATED else 2 * WARP
_PARTIAL = max(LEAF_THREADS // WARP, 1)


@inlined
def _heard(corner: Any, f: Any, g: Any, U: Any, W: Any, total: Any, rest: Any, least: Any) -> Any:
    """Add to a total what a placement hears from all its trees.

    `rest` is no less than what trees that call (U > 0) can still add: once the total cannot rise
    above `least` any more it is of no interest.
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
def reach_of_calls(g: Any, U: Any, out: Any) -> None:
    """The most that trees that call can tell a placement at each position; a little too much."""
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
def hear_all(g: Any, U: Any, W: Any, out: Any) -> None:
    """Sums of the messages to all placements, as if none were active."""
    for number in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, i, j, f = locate(number, g)
        corner = first_element(n, i, j, g)
        out[number] = _heard(corner, f, g, U, W, np.float32(0), np.float32(HUGE), np.float32(-HUGE))


@kernel
def find_candidates(
    g: Any,
    seats: Any,
    at: Any,
    U: Any,
    W: Any,
    prior: Any,
    reach: Any,
    threshold: Any,
    found: Any,
    beliefs: Any,
) -> None:
    """The most probable inactive placements of every tile whose belief is above the threshold.

    A block has a tile.  Of equally probable ones the first comes first.
    """
    best = cuda.shared.array(TILE_THREADS, Number)
    number_of = cuda.shared.array(TILE_THREADS, np.int64)
    own = cuda.local.array(AT_ONCE, Number)
    own_number = cuda.local.array(AT_ONCE, np.int64)
    tile, here = cuda.blockIdx.x, cuda.threadIdx.x
    column, line = tile % seats.across, tile // seats.across
    n, top, left = line // seats.down, line % seats.down * seats.height, column * seats.width
    rows, columns = min(seats.height, g.height - top), min(seats.width, g.width - left)
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
        b = _heard(first_element(n, i, j, g), f, g, U, W, start, reach[position], bar)
        if b <= bar:
            continue
        is_active = False
        for slot in range(tile * seats.slots, (tile + 1) * seats.slots):
            is_active |= at[slot, 0] == i and at[slot, 1] == j and at[slot, 2] == f
        if is_active:
            continue
        for k in range(AT_ONCE):
            if b > own[k] or (b == own[k] and number < own_number[k]):
                b, own[k] = own[k], b
                number, own_number[k] = own_number[k], number
        bar = own[AT_ONCE - 1]
    # The best of all threads, as often as there are places; who found nothing is at the bar.
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
def find_speakers(where: Any, belief: Any, least: Any, speaks: Any) -> None:
    """Which placements have something to say to R: active ones, and beliefs of at least so much."""
    for number in range(cuda.grid(1), belief.size, cuda.gridsize(1)):
        if belief[number] >= least:
            speaks[number] = 1
    for slot in range(cuda.grid(1), where.size, cuda.gridsize(1)):
        if where[slot] >= 0:
            speaks[where[slot]] = 1


@kernel
def all_down(
    g: Any,
    size: Any,
    U: Any,
    W: Any,
    speakers: Any,
    begin: Any,
    beliefs: Any,
    to_S: Any,
    to_W: Any,
    least: Any,
    out: Any,
) -> None:
    """Messages down to R: (images, channels, height, width), a block for each tree.

    ``speakers[begin[n] : begin[n + 1]]`` are the placements of image n that have something to say:
    row, column, feature, and slot or -1.  What inactive ones say below `least` is left out.
    """
    sums = cuda.shared.array((_PARTIAL, 3), Number)
    height, width, over_rows, over_columns = size
    plane = g.window_height * g.window_width
    edges = g.channels * plane
    for z in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
        row, column = z // width % height + over_rows, z % width + over_columns
        n, a = z // (width * height) // g.channels, z // (width * height) % g.channels
        u = U[np.uint64(element_at(n, a, row, column, g))]
        total, first, second = np.float32(0), np.float32(-HUGE), np.float32(-HUGE)
        for k in range(begin[n] + cuda.threadIdx.x, begin[n + 1], cuda.blockDim.x):
            step = step_within(speakers, k, row, column, g)
            if step < 0:
                continue
            weight, slot = a * plane + step, np.int64(speakers[k, 3])
            s, w = beliefs[k], W[np.uint64(weight * g.features + speakers[k, 2])]
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
