"""Decisions in a pooling layer: where the active elements of R move to, each to its best position.

``choice`` (images, channels, height, width) is the member that every active element of R moves to;
``taken`` counts, for every element of S below, how many have moved there.  ``below`` is the
evidence for each element of S, gained once if it is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from hcnet.engine.threads import over_threads
from hcnet.hierarchy.network import Level
from hcnet.images import BoolArray, FloatArray

# Rounds in which the elements of R change their minds; hardly any plane needs more than five.
ROUNDS = 10
# In `choice`: the element is off; it is on and has not moved yet.
OFF, UNDECIDED = -1, -2

_kernel: Any = nb.njit(nogil=True, cache=True)


@dataclass(frozen=True, eq=False)
class Settled:
    """Where all active elements of R have moved to."""

    choice: NDArray[np.int16]
    S: BoolArray  # the elements below that are on
    log_prior: NDArray[np.float64]  # (images,): log-probability of all choices
    # (images,): how much more probable all positions of an element are together than the one that
    # it has moved to, the others staying where they are; summed over the elements.
    freedom: NDArray[np.float64]


def settle(level: Level, R: BoolArray, below: FloatArray, freedom: bool = False) -> Settled:
    """Where the active elements of R move to, given the evidence for the elements of S below.

    `freedom` is worked out if wanted.
    """
    choice = np.where(R, UNDECIDED, OFF).astype(np.int16)
    taken = np.zeros((*R.shape[:2], *level.pool.below_size), np.int16)
    free = np.zeros(R.shape[:2])
    window = (*level.pool.window, *level.pool.offset)
    evidence = np.ascontiguousarray(below)
    _settle(free.size, choice, evidence, level.log_prior, window, taken, free, freedom)
    return Settled(choice, taken > 0, _log_prior(level, choice), free.sum(axis=1))


def settled(level: Level, choice: NDArray[np.int16]) -> Settled:
    """What follows from where the elements of R have moved to."""
    S = np.zeros((*choice.shape[:2], *level.pool.below_size), bool)
    n, a, r, c = np.nonzero(choice != OFF)
    i, j = np.divmod(choice[n, a, r, c], level.pool.window[1])
    S[n, a, r + i - level.pool.offset[0], c + j - level.pool.offset[1]] = True
    return Settled(choice, S, _log_prior(level, choice), np.zeros(len(choice)))


def _log_prior(level: Level, choice: NDArray[np.int16]) -> NDArray[np.float64]:
    cost = np.zeros(len(choice))
    _add_costs(choice, level.log_prior, cost)
    return cost


@over_threads
@_kernel
def _settle(
    first: Any,
    last: Any,
    choice: Any,
    below: Any,
    log_prior: Any,
    window: Any,
    taken: Any,
    free: Any,
    freedom: Any,
) -> None:
    """Planes from the first to the last: of all channels of all images."""
    for q in range(first, last):
        n, a = q // choice.shape[1], q % choice.shape[1]
        _settle_plane(choice[n, a], below[n, a], log_prior, window, taken[n, a])
        if freedom:
            free[n, a] = _freedom(choice[n, a], below[n, a], log_prior, window, taken[n, a])


@_kernel
def _freedom(choice: Any, below: Any, log_prior: Any, window: Any, taken: Any) -> Any:
    total = 0.0
    for r, c in np.argwhere(choice != OFF):
        member = choice[r, c]
        _leave(window, r, c, choice, taken)
        y, x = _position(window, r, c, member)
        total += _open_gain(below, log_prior, window, r, c, taken)
        total -= _gain(below, log_prior[r, c, member], y, x, taken)
        taken[y, x] += 1
    return total


@_kernel
def _settle_plane(choice: Any, below: Any, log_prior: Any, window: Any, taken: Any) -> None:
    """Elements with the fewest good positions choose first; then each may change its mind."""
    members = window[0] * window[1]
    on = np.argwhere(choice == UNDECIDED)
    good = np.empty(len(on), np.int64)
    for k in range(len(on)):
        # Without any good position it does not matter when an element chooses.
        good[k] = _good_positions(below, on[k, 0], on[k, 1], window) or members
    for options in range(1, members + 1):
        for k in range(len(on)):
            if good[k] == options:
                _move(below, log_prior, window, on[k, 0], on[k, 1], choice, taken)
    for _ in range(ROUNDS):
        changed = False
        for r, c in on:
            before = choice[r, c]
            _leave(window, r, c, choice, taken)
            _move(below, log_prior, window, r, c, choice, taken)
            changed = changed or choice[r, c] != before
        if not changed:
            break


@_kernel
def _add_costs(choice: Any, log_prior: Any, cost: Any) -> None:
    for n in range(choice.shape[0]):
        for a in range(choice.shape[1]):
            for r in range(choice.shape[2]):
                for c in range(choice.shape[3]):
                    if choice[n, a, r, c] != OFF:
                        cost[n] += log_prior[r, c, choice[n, a, r, c]]


@_kernel
def _position(window: Any, r: Any, c: Any, m: Any) -> Any:
    """Row and column below of member m of the pool of an element."""
    return r + m // window[1] - window[2], c + m % window[1] - window[3]


# Loops over a window run over its rows and columns: dividing would take most of the time.


@_kernel
def _gain(below: Any, log_prior: Any, y: Any, x: Any, taken: Any) -> Any:
    """What an element gains if it moves there; where another is already, nothing but the prior."""
    if not (0 <= y < below.shape[0] and 0 <= x < below.shape[1]):
        return -np.inf
    value = np.float64(log_prior)
    return value + below[y, x] if taken[y, x] == 0 else value


@_kernel
def _open_gain(below: Any, log_prior: Any, window: Any, r: Any, c: Any, taken: Any) -> Any:
    """What an element gains if all positions are left open to it: the log of a sum over them."""
    best, rest = -np.inf, 0.0
    top, left, m = r - window[2], c - window[3], 0
    for y in range(top, top + window[0]):
        for x in range(left, left + window[1]):
            value = _gain(below, log_prior[r, c, m], y, x, taken)
            m += 1
            if value > best:
                rest, best = rest * np.exp(best - value) + 1.0, value
            elif value > -np.inf:
                rest += np.exp(value - best)
    return best + np.log(rest)


@_kernel
def _good_positions(below: Any, r: Any, c: Any, window: Any) -> Any:
    """Positions in the window of an element that have evidence for them."""
    good = 0
    top, left = r - window[2], c - window[3]
    for y in range(max(top, 0), min(top + window[0], below.shape[0])):
        for x in range(max(left, 0), min(left + window[1], below.shape[1])):
            if below[y, x] > 0:
                good += 1
    return good


@_kernel
def _move(below: Any, log_prior: Any, window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Move an element to its best position.

    Of equally good positions the centre, which is tried first, and then the next in order.
    """
    i, j = (window[0] - 1) // 2, (window[1] - 1) // 2
    m = i * window[1] + j
    top, left = r - window[2], c - window[3]
    best = -np.inf
    for _ in range(window[0] * window[1]):
        value = _gain(below, log_prior[r, c, m], top + i, left + j, taken)
        if value > best:
            best = value
            choice[r, c] = m
        m, j = m + 1, j + 1
        if j == window[1]:
            i, j = i + 1, 0
            if i == window[0]:
                i, m = 0, 0
    y, x = _position(window, r, c, choice[r, c])
    taken[y, x] += 1


@_kernel
def _leave(window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Take an element back from where it moved to."""
    y, x = _position(window, r, c, choice[r, c])
    taken[y, x] -= 1
