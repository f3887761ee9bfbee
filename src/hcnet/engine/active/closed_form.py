"""What inactive placements hear, without a message stored: sums over the trees below them.

An inactive placement is so improbable that it tells its weights nothing and takes part in no OR.
All its edges in a tree then hear the same U, and what the AND passes on is a function of U and of
the belief of the weight.  Two sparse sums make its belief: over the trees that call for an
explanation (U > 0: ink that nothing explains) and over the weights that are on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hcnet.engine.active.geometry import Geometry, IntArray, first_element
from hcnet.engine.cpu_compilation import compiled, inlined, larger, parallel, pointer
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.images import FloatArray

_and_down, _and_up, _or_merged = compiled.and_down, compiled.and_up, compiled.or_merged


class Lists(NamedTuple):
    """What is not zero: trees that call, line by line of the board, and weights, by feature."""

    calls: IntArray  # elements of the board with U > 0
    lines: IntArray  # where each line of the board begins in `calls`
    features: IntArray  # where each feature begins in the two below
    steps: IntArray  # from a placement's first element of the board to the one of a weight
    weights: FloatArray  # beliefs


def list_nonzero(g: Geometry, U: FloatArray, W: FloatArray, above: float = 0.0) -> Lists:
    """Trees with U > 0, and weights whose belief is greater than `above`."""
    calls = np.flatnonzero(U > 0)
    ends = np.arange(len(U) // g.board_width + 1) * g.board_width
    lines = np.searchsorted(calls, ends)
    table = W.reshape(g.features, -1)
    f, k = np.nonzero(table > above)
    line, column = np.divmod(k, g.window_width)
    a, di = np.divmod(line, g.window_height)
    steps = (a * g.board_height + di) * g.board_width + column
    features = np.searchsorted(f, np.arange(g.features + 1))
    return Lists(calls, lines, features, steps, table[f, k])


# Lists come one by one, and as pointers where there is a call for every number: each look into a
# tuple, and each array that is passed on, would count references, slowly.


@inlined
def _add_from_calling_trees(n, first, last, g, U, W, calls, lines, out):
    """Add what the placements of some rows hear from trees that call.

    Row by row, so that the sums and the weights that meet them stay in cache.
    """
    run = g.width * g.features
    for i in range(first, last):
        for a in range(g.channels):
            for di in range(g.window_height):
                line = (n * g.channels + a) * g.board_height + i + di
                weights = (a * g.window_height + di) * g.window_width
                for z in range(lines[line], lines[line + 1]):
                    left = calls[z] - line * g.board_width - g.window_width + 1
                    low, high = max(left, 0), min(left + g.window_width, g.width)
                    source = np.uint64((weights + low - left) * g.features)
                    target = np.uint64((i - first) * run + low * g.features)
                    u = U[calls[z]]
                    for x in range(np.uint64((high - low) * g.features)):
                        out[target + x] += _and_up(W[source + x], u)


@inlined
def _add_from_other_trees(corner, first, last, U, steps, weights, total, least):
    """Add what a placement hears from the other trees: only weights that are on pass it on.

    Nothing of it is positive: once the total is below `least`, the rest is of no interest.
    """
    for y in range(first, last):
        if total <= least:
            break
        u = U[corner + steps[y]]
        if u < 0:
            total += _and_up(weights[y], u)
    return total


@parallel
def add_all_messages(first, last, g, U, W, lists, out):
    """Sums of the messages to all placements; a job is a row of placements of an image."""
    calls, lines, features, steps, weights = lists
    U_at, W_at, steps_at, weights_at = pointer(U), pointer(W), pointer(steps), pointer(weights)
    calls_at, lines_at = pointer(calls), pointer(lines)
    row = g.width * g.features
    for job in range(first, last):
        n, i = job // g.height, job % g.height
        sums = np.zeros(row, FLOAT)
        _add_from_calling_trees(n, i, i + 1, g, U_at, W_at, calls_at, lines_at, pointer(sums))
        for j in range(g.width):
            corner = first_element(n, i, j, g)
            for f in range(g.features):
                x = j * g.features + f
                between = features[f], features[f + 1]
                least = FLOAT(-HUGE)
                total = _add_from_other_trees(
                    corner, *between, U_at, steps_at, weights_at, sums[x], least
                )
                out[job * row + x] = total


@parallel
def reach_of_calls(first, last, g, U, out):
    """The most that trees that call can tell a placement at each position; a job is an image.

    Differences of sums over all elements up to a corner, in double precision, a little too large.
    """
    U_at, total = pointer(U), np.zeros((g.board_height + 1, g.board_width + 1))
    for n in range(first, last):
        for y in range(g.board_height):
            line = 0.0
            for x in range(g.board_width):
                for a in range(g.channels):
                    at = first_element(n, y, x, g) + a * g.board_height * g.board_width
                    line += larger(U_at[at], FLOAT(0))
                total[y + 1, x + 1] = total[y, x + 1] + line
        for i in range(g.height):
            above, below = total[i], total[i + g.window_height]
            for j in range(g.width):
                right = j + g.window_width
                reach = below[right] - below[j] - above[right] + above[j]
                out[(n * g.height + i) * g.width + j] = reach * (1 + 1e-6) + 1e-6


@parallel
def find_candidates(
    begin, end, tiles, g, U, W, lists, prior, is_active, reach, threshold, found, beliefs, counts
):
    """The most probable inactive placements of every tile whose belief is above the threshold.

    A job is a row of tiles of an image.
    `reach` is the most that calling trees can tell a position.
    """
    down, across, tile_height, tile_width = tiles.down, tiles.across, tiles.height, tiles.width
    calls, lines, features, steps, weights = lists
    U_at, W_at, steps_at, weights_at = pointer(U), pointer(W), pointer(steps), pointer(weights)
    calls_at, lines_at = pointer(calls), pointer(lines)
    most = found.shape[1]
    for job in range(begin, end):
        n, first = job // down, (job % down) * tile_height
        last = min(first + tile_height, g.height)
        within = False  # reach of a position that may have a candidate
        for position in range((n * g.height + first) * g.width, (n * g.height + last) * g.width):
            within = within or reach[position] > threshold[n]
        if not within:
            continue
        sums = np.zeros((last - first) * g.width * g.features, FLOAT)
        _add_from_calling_trees(n, first, last, g, U_at, W_at, calls_at, lines_at, pointer(sums))
        for x in range(across):
            tile, m, k, bar = job * across + x, 0, 0, threshold[n]
            for i in range(first, last):
                for j in range(x * tile_width, min((x + 1) * tile_width, g.width)):
                    position = (n * g.height + i) * g.width + j
                    if reach[position] <= bar:
                        continue
                    corner = first_element(n, i, j, g)
                    at = ((i - first) * g.width + j) * g.features
                    for f in range(g.features):
                        number = position * g.features + f
                        b = sums[at + f] + prior[number if prior.size > 1 else 0]
                        if b <= bar or is_active[number]:
                            continue
                        between = features[f], features[f + 1]
                        b = _add_from_other_trees(
                            corner, *between, U_at, steps_at, weights_at, b, bar
                        )
                        if b <= bar:
                            continue
                        # The best so far; once there are enough, the worst of them is the bar,
                        # and the next takes its place.
                        found[tile, k], beliefs[tile, k] = number, b
                        if m < most:
                            m += 1
                        k = m
                        if m == most:
                            k = 0
                            for z in range(1, most):
                                if beliefs[tile, z] < beliefs[tile, k]:
                                    k = z
                            bar = beliefs[tile, k]
            counts[tile] = m


@parallel
def down_from_inactive(first, last, g, U, reach, lists, belief, is_active, least, out):
    """Into `out` the message down to every tree from the OR of its inactive placements alone.

    Those below `least` are left out: a message is at most what the placement or the weight says.
    `reach` is the largest U, whatever its sign.
    """
    _, _, features, steps, weights = lists
    each = g.height * g.width * g.features
    for n in range(first, last):
        for x in range(each):
            number = n * each + x
            if is_active[number] or belief[number] + reach < least:
                continue
            f, position = x % g.features, x // g.features
            i, j = position // g.width, position % g.width
            corner = first_element(n, i, j, g)
            for y in range(features[f], features[f + 1]):
                element = corner + steps[y]
                w = weights[y]
                s = belief[number] - _and_up(w, U[element])
                out[element] = _or_merged(out[element], _and_down(s, w))
