"""Decisions in a pooling layer: where the active elements of R move to, each to its best position.

Planes are images' channels; `engine.choices` says what happens in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.choices import OFF, UNDECIDED
from hcnet.engine.cpu_compilation import compiled, inlined, parallel
from hcnet.hierarchy.network import Level
from hcnet.images import BoolArray, FloatArray

_leave, _position, _gain = compiled.leave, compiled.position, compiled.gain
_settle_plane, _cost = compiled.settle_plane, compiled.choices_log_prior


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
    cost = np.zeros(choice.shape[:2])
    _costs(cost.size, choice, level.log_prior, cost)
    return np.asarray(cost.sum(axis=1))


@inlined
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


@inlined
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


@parallel
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
    on = np.empty(choice.shape[2] * choice.shape[3], np.int32)
    good = np.empty(on.size, np.int32)
    for q in range(first, last):
        n, a = q // choice.shape[1], q % choice.shape[1]
        _settle_plane(choice[n, a], below[n, a], log_prior, window, taken[n, a], on, good)
        if freedom:
            free[n, a] = _freedom(choice[n, a], below[n, a], log_prior, window, taken[n, a])


@parallel
def _costs(first: Any, last: Any, choice: Any, log_prior: Any, cost: Any) -> None:
    for q in range(first, last):
        n, a = q // choice.shape[1], q % choice.shape[1]
        cost[n, a] = _cost(choice[n, a], log_prior)
