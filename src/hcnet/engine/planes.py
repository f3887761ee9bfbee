"""Pooling layers, one element of a plane (image and channel) at a time: POOL and OR factors meet.

Plain Python over arrays, like `hcnet.factors`: the reference engine calls these functions as they
are, `hcnet.engine.compilation` compiles the very same code.  Steps are those of the paper's
Algorithm 1.

A plane of R has a pool per element (r, c); member m = (i, j) of it is U[r, c, m], which can turn on
the element (r + i - top, c + j - left) of the plane of S below.  ``window`` is (height, width, top,
left).  ``t`` is scratch space for one window.

Decisions: ``choice`` (rows, columns) is the member that every active element of R moves to.
``taken`` counts, for every element of the plane of S below, how many have moved there; ``below`` is
the evidence for each of these, gained once if it is taken.
"""

from __future__ import annotations

import numpy as np

from hcnet.factors import HUGE, damped, larger, or_down, or_messages, pool_down, pool_up, smaller
from hcnet.grid import to_steps

# Pools are damped in double precision: by small shares of messages that can be large.
POOL_TO_STEPS = float(to_steps(np.double))

# Rounds in which the elements of R change their minds; hardly any plane needs more than five.
ROUNDS = 10
# In `choice`: the element is off; it is on and has not moved yet.
OFF, UNDECIDED = -1, -2


def from_pools_above(y, x, from_pool, window, t):
    """Copy the messages from all pools that reach an element below to `t`; how many there are."""
    height, width, top, left = window
    rows, columns = from_pool.shape[0], from_pool.shape[1]
    n = 0
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                t[n] = from_pool[r, c, i * width + j]
                n += 1
    return n


def or_to_U(y, x, below, from_pool, to_U, window, t):
    """Step 1: messages from the ORs over the plane below to U; `below` are its messages up."""
    height, width, top, left = window
    rows, columns = to_U.shape[0], to_U.shape[1]
    n = from_pools_above(y, x, from_pool, window, t)
    or_messages(below[y, x], t, n)
    n = 0
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                to_U[r, c, i * width + j] = t[n]
                n += 1


def pool_to_R(r, c, to_U, log_prior, to_R, damping):
    """Step 2: messages from the pools to R, damped."""
    new = pool_up(to_U[r, c], log_prior[r, c], to_U.shape[2])
    to_R[r, c] = damped(to_R[r, c], new, damping, POOL_TO_STEPS)


def max_pool(r, c, below, log_prior, to_R, window, t):
    """Steps 1 and 2 at once, in the first pass: all of U is expected off, so that ORs are wires."""
    height, width, top, left = window
    for i in range(height):
        for j in range(width):
            y, x = r + i - top, c + j - left
            inside = 0 <= y < below.shape[0] and 0 <= x < below.shape[1]
            t[i * width + j] = below[y, x] if inside else -HUGE
    to_R[r, c] = pool_up(t, log_prior[r, c], height * width)


def pool_to_U(r, c, to_U, above, log_prior, from_pool, t):
    """Step 5: messages from the pools to U; `above` are the messages that R sends down."""
    members = to_U.shape[2]
    for m in range(members):
        t[m] = to_U[r, c, m]
    pool_down(above[r, c], t, log_prior[r, c], members)
    for m in range(members):
        from_pool[r, c, m] = larger(t[m], -HUGE)


def or_to_S(y, x, from_pool, down, window, t):
    """Step 6: messages from the ORs to the plane of S below, into `down`."""
    n = from_pools_above(y, x, from_pool, window, t)
    down[y, x] = smaller(larger(or_down(t, n), -HUGE), HUGE)


def class_to_S(up, log_prior, exclusive):
    """Replace the messages up to the templates of an image by the messages of the class layer.

    Pools of categories below a pool that is certainly on are one pool: exactly one template is on.
    Otherwise every template is on by itself, and `log_prior` is the log-odds of that.
    """
    if exclusive:
        pool_down(HUGE, up, log_prior, len(up))
    for j in range(len(up)):
        up[j] = smaller(larger(up[j], -HUGE), HUGE) if exclusive else log_prior[j]


def settle_plane(choice, below, log_prior, window, taken, on, good):
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


def choices_log_prior(choice, log_prior):
    """Log-probability of the choices of a plane."""
    total = 0.0
    for r in range(choice.shape[0]):
        for c in range(choice.shape[1]):
            if choice[r, c] != OFF:
                total += np.float64(log_prior[r, c, choice[r, c]])
    return total


def position(window, r, c, m):
    """Row and column below of member m of the pool of an element."""
    return r + m // window[1] - window[2], c + m % window[1] - window[3]


# Loops over a window run over its rows and columns: dividing would take most of the time.


def gain(below, log_prior, y, x, taken):
    """What an element gains if it moves there; where another is already, nothing but the prior."""
    if not (0 <= y < below.shape[0] and 0 <= x < below.shape[1]):
        return -np.inf
    value = np.float64(log_prior)
    return value + below[y, x] if taken[y, x] == 0 else value


def good_positions(below, r, c, window):
    """Positions in the window of an element that have evidence for them."""
    good = 0
    top, left = r - window[2], c - window[3]
    for y in range(max(top, 0), min(top + window[0], below.shape[0])):
        for x in range(max(left, 0), min(left + window[1], below.shape[1])):
            if below[y, x] > 0:
                good += 1
    return good


def move(below, log_prior, window, r, c, choice, taken):
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


def leave(window, r, c, choice, taken):
    """Take an element back from where it moved to."""
    y, x = position(window, r, c, choice[r, c])
    taken[y, x] -= 1
