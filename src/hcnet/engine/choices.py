"""Which positions the active elements of a plane of R move to: plain Python, compiled twice.

Like `engine.planes`, whose ``window`` it shares: `engine.compilation` compiles the very same code
for the processor and for a GPU.  ``choice`` (rows, columns) is the member that every element moves
to.  ``taken`` counts, for every element of the plane of S below, how many have moved there;
``below`` is the evidence for each of these, gained once if it is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Rounds in which the elements of R change their minds; hardly any plane needs more than five.
ROUNDS = 10
# In `choice`: the element is off; it is on and has not moved yet.
OFF, UNDECIDED = -1, -2


def settle_plane(
    choice: Any, below: Any, log_prior: Any, window: Any, taken: Any, on: Any, good: Any
) -> None:
    """Elements with the fewest good positions choose first; then each may change its mind.

    `on` and `good` are scratch space for as many numbers as the plane has elements.
    """
    members, columns = window[0] * window[1], choice.shape[1]
    n = 0
    for r in range(choice.shape[0]):
        for c in range(columns):
            if choice[r, c] == UNDECIDED:
                on[n] = r * columns + c
                # Without any good position it does not matter when an element chooses.
                good[n] = good_positions(below, r, c, window) or members
                n += 1
    for options in range(1, members + 1):
        for k in range(n):
            if good[k] == options:
                move(below, log_prior, window, on[k] // columns, on[k] % columns, choice, taken)
    for _ in range(ROUNDS):
        changed = False
        for k in range(n):
            r, c = on[k] // columns, on[k] % columns
            before = choice[r, c]
            leave(window, r, c, choice, taken)
            move(below, log_prior, window, r, c, choice, taken)
            changed = changed or choice[r, c] != before
        if not changed:
            break


def choices_log_prior(choice: Any, log_prior: Any) -> Any:
    """Log-probability of the choices of a plane."""
    total = 0.0
    for r in range(choice.shape[0]):
        for c in range(choice.shape[1]):
            if choice[r, c] != OFF:
                total += np.float64(log_prior[r, c, choice[r, c]])
    return total


def position(window: Any, r: Any, c: Any, m: Any) -> Any:
    """Row and column below of member m of the pool of an element."""
    return r + m // window[1] - window[2], c + m % window[1] - window[3]


# Loops over a window run over its rows and columns: dividing would take most of the time.


def gain(below: Any, log_prior: Any, y: Any, x: Any, taken: Any) -> Any:
    """What an element gains if it moves there; where another is already, nothing but the prior."""
    if not (0 <= y < below.shape[0] and 0 <= x < below.shape[1]):
        return -np.inf
    value = np.float64(log_prior)
    return value + below[y, x] if taken[y, x] == 0 else value


def good_positions(below: Any, r: Any, c: Any, window: Any) -> Any:
    """Positions in the window of an element that have evidence for them."""
    good = 0
    top, left = r - window[2], c - window[3]
    for y in range(max(top, 0), min(top + window[0], below.shape[0])):
        for x in range(max(left, 0), min(left + window[1], below.shape[1])):
            if below[y, x] > 0:
                good += 1
    return good


def move(below: Any, log_prior: Any, window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Move an element to its best position.

    Of equally good positions the centre, which is tried first, and then the next in order.
    """
    i, j = (window[0] - 1) // 2, (window[1] - 1) // 2
    m = i * window[1] + j
    top, left = r - window[2], c - window[3]
    best = -np.inf
    for _ in range(window[0] * window[1]):
        value = gain(below, log_prior[r, c, m], top + i, left + j, taken)
        if value > best:
            best = value
            choice[r, c] = m
        m, j = m + 1, j + 1
        if j == window[1]:
            i, j = i + 1, 0
            if i == window[0]:
                i, m = 0, 0
    y, x = position(window, r, c, choice[r, c])
    taken[y, x] += 1


def leave(window: Any, r: Any, c: Any, choice: Any, taken: Any) -> None:
    """Take an element back from where it moved to."""
    y, x = position(window, r, c, choice[r, c])
    taken[y, x] -= 1
