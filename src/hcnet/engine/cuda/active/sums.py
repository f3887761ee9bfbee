"""Messages that begin, beliefs as sums of messages, and their order on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from hcnet.engine.cuda.active.places import first_element
from hcnet.engine.cuda.compilation import SIMULATED, WARP, Number, compiled, kernel
from hcnet.engine.cuda.trees import block_sums
from hcnet.factors import HUGE

_and_up = compiled.and_up

# Threads that add up the messages of a placement.
SUM_THREADS = 1 if SIMULATED else 4 * WARP
_PARTIAL = max(SUM_THREADS // WARP, 1)


@kernel
def start_messages(
    fresh: Any,
    g: Any,
    seats: Any,
    at: Any,
    observed: Any,
    U: Any,
    W: Any,
    to_S: Any,
    to_W: Any,
) -> None:
    """New placements have the messages that the closed form gives them; a block for each."""
    plane = g.window_height * g.window_width
    edges = g.channels * plane
    slot = fresh[cuda.blockIdx.x]
    n = slot // (seats.down * seats.across * seats.slots)
    corner = first_element(n, at[slot, 0], at[slot, 1], g)
    for e in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        a, step = e // plane, e % plane
        di, dj = step // g.window_width, step % g.window_width
        element = corner + (a * g.board_height + di) * g.board_width + dj
        heard = np.float32(0)
        if observed[element]:
            heard = _and_up(W[at[slot, 2] * edges + e], U[element])
        to_S[slot * edges + e], to_W[slot * edges + e] = heard, np.float32(0)


@kernel
def sum_placements(taken: Any, edges: Any, to_S: Any, sums_S: Any) -> None:
    """What active placements hear, added up; a block for each."""
    sums = cuda.shared.array((_PARTIAL, 3), Number)
    slot = taken[cuda.blockIdx.x]
    total = np.float32(0)
    for e in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        total += to_S[np.uint64(slot * edges + e)]
    total, _, _ = block_sums(total, np.float32(-HUGE), np.float32(-HUGE), sums)
    if cuda.threadIdx.x == 0:
        sums_S[slot] = total


@kernel
def sum_weights(
    taken: Any, begin: Any, edges: Any, to_W: Any, prior: Any, carried: Any, W: Any
) -> None:
    """Beliefs of W.

    ``taken[begin[f] : begin[f + 1]]`` are the slots of feature f, in whose order they are added.
    """
    for z in range(cuda.grid(1), W.size, cuda.gridsize(1)):
        f, e = z // edges, z % edges
        total = np.float32(0)
        for k in range(begin[f], begin[f + 1]):
            total += to_W[np.uint64(taken[k] * edges + e)]
        W[z] = total + (carried[z] + prior[z])


@kernel
def add_prior(where: Any, prior: Any, sums: Any, S: Any) -> None:
    """Beliefs of active placements; 0 in slots that are empty."""
    for slot in range(cuda.grid(1), where.size, cuda.gridsize(1)):
        number = where[slot]
        if number < 0:
            S[slot] = np.float32(0)
        else:
            S[slot] = sums[slot] + prior[number if prior.size > 1 else 0]


@kernel
def add_to_all(prior: Any, belief: Any) -> None:
    """Add the priors of all placements, or the one that all have."""
    for number in range(cuda.grid(1), belief.size, cuda.gridsize(1)):
        belief[number] += prior[number if prior.size > 1 else 0]


@kernel
def put_active(where: Any, values: Any, out: Any) -> None:
    """Put something of every slot where its placement is."""
    for slot in range(cuda.grid(1), where.size, cuda.gridsize(1)):
        if where[slot] >= 0:
            out[where[slot]] = values[slot]


@kernel
def features_outside(values: Any, features: Any, positions: Any, out: Any) -> None:
    """From the order of the placements' numbers to (images, features, positions)."""
    for z in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        position, f = z % positions, z // positions % features
        n = z // (positions * features)
        out[z] = values[(n * positions + position) * features + f]


@kernel
def features_inside(values: Any, features: Any, positions: Any, out: Any) -> None:
    """Inverse of `features_outside`."""
    for z in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        position, f = z % positions, z // positions % features
        n = z // (positions * features)
        out[(n * positions + position) * features + f] = values[z]
