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

from hcnet.hierarchy.network import Level
from hcnet.images import BoolArray, FloatArray

# Rounds in which the elements of R change their minds; hardly any plane needs more than five.
ROUNDS = 10
# In `choice`: the element is off; it is on and has not moved yet.
OFF, UNDECIDED = -1, -2

_kernel: Any = nb.njit(nogil=True, cache=True)
_parallel: Any = nb.njit(nogil=True, cache=True, parallel=True)


@dataclass(frozen=True, eq=False)
class Settled:
    """Where all active elements of R have moved to."""

    S: BoolArray  # the elements below that are on
    log_prior: NDArray[np.float64]  # (images,): log-probability of all choices
    # (images,): what all elements gain if each is spread over its window instead of decided, the
    # ones before it staying where they have moved to.
    gain: NDArray[np.float64]


def settle(level: Level, R: BoolArray, below: FloatArray, spread: bool = False) -> Settled:
    """Where the active elements of R move to, given the evidence for the elements of S below.

    `gain` is worked out if `spread` is wanted.
    """
    choice = np.where(R, UNDECIDED, OFF).astype(np.int16)
    taken = np.zeros((*R.shape[:2], *level.pool.below_size), np.int16)
    window = (*level.pool.window, *level.pool.offset)
    gain = np.zeros(R.shape[:2])
    _settle(choice, np.ascontiguousarray(below), level.log_prior, window, taken, gain, spread)
    cost = np.zeros(len(R))
    _add_costs(choice, level.log_prior, cost)
    return Settled(taken > 0, cost, gain.sum(axis=1))


@_parallel
def _settle(
    choice: Any, below: Any, log_prior: Any, window: Any, taken: Any, gain: Any, spread: Any
) -> None:
    for q in nb.prange(choice.shape[0] * choice.shape[1]):
        n, a = q // choice.shape[1], q % choice.shape[1]
        _settle_plane(choice[n, a], below[n, a], log_prior, window, taken[n, a])
        if spread:
            gain[n, a] = _spread(choice[n, a], below[n, a], log_prior, window)


@_kernel
def _spread(choice: Any, below: Any, log_prior: Any, window: Any) -> Any:
    """What the elements gain one after the other, each as the mean over its window."""
    seen = np.zeros(below.shape, np.bool_)
    total = 0.0
    for r, c in np.argwhere(choice != OFF):
        best, rest = -np.inf, 0.0  # log-sum-exp, in one go
        for m in range(window[0] * window[1]):
            y, x = r + m // window[1] - window[2], c + m % window[1] - window[3]
            if 0 <= y < below.shape[0] and 0 <= x < below.shape[1]:
                value = log_prior[r, c, m]
                if not seen[y, x]:
                    value += below[y, x]
                if value > best:
                    rest, best = rest * np.exp(best - value) + 1.0, value
                else:
                    rest += np.exp(value - best)
        total += best + np.log(rest)
        m = choice[r, c]
        seen[r + m // window[1] - window[2], c + m % window[1] - window[3]] = True
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
def _good_positions(below: Any, r: Any, c: Any, window: Any) -> Any:
    """Positions in the window of an element that have evidence for them."""
    good = 0
    for i in range(window[0]):
        for j in range(window[1]):
            y, x = r + i - window[2], c + j - window[3]
            if 0 <= y < below.shape[0] and 0 <= x < below.shape[1] and below[y, x] > 0:
                good += 1
    return good


@_kernel
def _move(below: Any, log_prior: Any, window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Move an element to its best position; one that is on already gains nothing more.

    Of equally good positions the centre, which is tried first, and then the next in order.
    """
    members = window[0] * window[1]
    centre = (window[0] - 1) // 2 * window[1] + (window[1] - 1) // 2
    best, row, column = -np.inf, 0, 0
    for k in range(members):
        m = (centre + k) % members
        y, x = r + m // window[1] - window[2], c + m % window[1] - window[3]
        if 0 <= y < below.shape[0] and 0 <= x < below.shape[1]:
            value = log_prior[r, c, m]
            if taken[y, x] == 0:
                value += below[y, x]
            if value > best:
                best, row, column = value, y, x
                choice[r, c] = m
    taken[row, column] += 1


@_kernel
def _leave(window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Take an element back from where it moved to."""
    member = choice[r, c]
    taken[r + member // window[1] - window[2], c + member % window[1] - window[3]] -= 1
