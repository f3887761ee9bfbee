"""Loops over a run of leaves, which lie side by side in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, inlined, larger
from hcnet.factors import HUGE

_and_down, _and_up = compiled.and_down, compiled.and_up


@inlined
def highest(field: Any, at: Any, n: Any) -> Any:
    """The largest belief of a run of the field."""
    first = np.float32(-HUGE)
    for j in range(n):
        first = larger(first, field[at + j])
    return first


@inlined
def strongest(field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any) -> Any:
    """The largest message from the ANDs of a run down to their OR."""
    first = np.float32(-HUGE)
    for j in range(n):
        first = larger(first, _and_down(field[at + j] - own[own_at + j], kernel[w_at + j]))
    return first


@inlined
def winner_of(field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any) -> Any:
    """Which leaf of a run sends the largest message, and the largest of the others."""
    winner: Any = np.int64(0)
    first, second = np.float32(-2 * HUGE), np.float32(-2 * HUGE)
    for j in range(n):
        x = _and_down(field[at + j] - own[own_at + j], kernel[w_at + j])
        if x > first:
            first, second, winner = x, first, j
        else:
            second = larger(second, x)
    return winner, second


@inlined
def tell(
    up: Any, field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any
) -> None:
    """Messages to a run of the field whose leaves all hear `up` and were told nothing before."""
    for j in range(n):
        new = _and_up(kernel[w_at + j], up)
        own[own_at + j] = new
        field[at + j] += new


@inlined
def tell_again(
    up: Any, field: Any, at: Any, own: Any, own_at: Any, kernel: Any, w_at: Any, n: Any
) -> None:
    """The same, where they were told something before."""
    for j in range(n):
        old = own[own_at + j]
        new = _and_up(kernel[w_at + j], up)
        own[own_at + j] = new
        field[at + j] += new - old


@inlined
def take_back(field: Any, at: Any, own: Any, own_at: Any, n: Any) -> None:
    """Nothing is told to a run of the field any more."""
    for j in range(n):
        field[at + j] -= own[own_at + j]
