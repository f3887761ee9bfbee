"""Decisions in a pooling layer: every active element of R takes its best position.

A plane is one channel of one image; `engine.planes` has the decision for one plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import compiled, inlined, parallel
from hcnet.engine.planes import OFF, UNDECIDED
from hcnet.hierarchy.network import Level, moved
from hcnet.images import BoolArray, FloatArray

_leave, _position, _gain = compiled.leave, compiled.position, compiled.gain
_settle_plane, _cost = compiled.settle_plane, compiled.choices_log_prior


@dataclass(frozen=True, eq=False)
class PoolDecision:
    """The positions of all active elements of R."""

    choice: NDArray[np.int16]
    S: BoolArray  # the elements below that are on
    log_prior: NDArray[np.float64]  # (images,): log-probability of all choices
    # (images,): for each element, the log-ratio of the probability of all its positions to that of
    # its own, with all others fixed; summed over the elements.
    freedom: NDArray[np.float64]


def decide_pools(
    level: Level, R: BoolArray, below: FloatArray, freedom: bool = False
) -> PoolDecision:
    """Decide the positions of the active elements of R, given the evidence for the S below.

    The `freedom` is worked out only on request.
    """
    choice = np.where(R, UNDECIDED, OFF).astype(np.int16)
    taken = np.zeros((*R.shape[:2], *level.pool.below_size), np.int16)
    cost, free = np.zeros((2, *R.shape[:2]))
    window = (*level.pool.window, *level.pool.offset)
    evidence = np.ascontiguousarray(below)
    _decide(free.size, choice, evidence, level.log_prior, window, taken, cost, free, freedom)
    return PoolDecision(choice, taken > 0, cost.sum(axis=1), free.sum(axis=1))


def given_decision(level: Level, choice: NDArray[np.int16]) -> PoolDecision:
    """The decision with given positions of the elements of R."""
    R, cost = choice != OFF, np.zeros(choice.shape[:2])
    n, a, r, c = np.nonzero(R)
    np.add.at(cost, (n, a), level.log_prior[r, c, choice[R]])
    S = moved(level, R, choice[R])
    return PoolDecision(choice, S, cost.sum(axis=1), np.zeros(len(choice)))


@inlined
def _open_gain(below, log_prior, window, r, c, taken):
    """The gain of an element with its position left open: the log of a sum over all positions."""
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


@inlined
def _freedom(choice, below, log_prior, window, taken):
    total = 0.0
    for r in range(choice.shape[0]):
        for c in range(choice.shape[1]):
            member = choice[r, c]
            if member == OFF:
                continue
            _leave(window, r, c, choice, taken)
            y, x = _position(window, r, c, member)
            total += _open_gain(below, log_prior, window, r, c, taken)
            total -= _gain(below, log_prior[r, c, member], y, x, taken)
            taken[y, x] += 1
    return total


@parallel
def _decide(first, last, choice, below, log_prior, window, taken, cost, free, freedom):
    """Decide the planes from the first to the last."""
    on = np.empty(choice.shape[2] * choice.shape[3], np.int32)
    good = np.empty(on.size, np.int32)
    for q in range(first, last):
        n, a = q // choice.shape[1], q % choice.shape[1]
        _settle_plane(choice[n, a], below[n, a], log_prior, window, taken[n, a], on, good)
        cost[n, a] = _cost(choice[n, a], log_prior)
        if freedom:
            free[n, a] = _freedom(choice[n, a], below[n, a], log_prior, window, taken[n, a])
