"""Pooling layers, one element of a plane (image and channel) at a time: POOL and OR factors meet.

Plain Python over arrays, like `hcnet.factors`: the reference engine calls these functions as they
are, `hcnet.engine.compilation` compiles the very same code.  Steps are those of the paper's
Algorithm 1.

A plane of R has a pool per element (r, c); member m = (i, j) of it is U[r, c, m], which can turn on
the element (r + i - top, c + j - left) of the plane of S below.  ``window`` is (height, width, top,
left).  ``t`` is scratch space for one window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.factors import HUGE, damped, larger, or_down, or_messages, pool_down, pool_up, smaller
from hcnet.grid import to_steps

# Pools are damped in double precision: by small shares of messages that can be large.
POOL_TO_STEPS = float(to_steps(np.double))


def or_to_U(y: Any, x: Any, below: Any, from_pool: Any, to_U: Any, window: Any, t: Any) -> None:
    """Step 1: messages from the ORs over the plane below to U; `below` are its messages up."""
    height, width, top, left = window
    rows, columns = to_U.shape[0], to_U.shape[1]
    n = 0
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                t[n] = from_pool[r, c, i * width + j]
                n += 1
    or_messages(below[y, x], t, n)
    n = 0
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                to_U[r, c, i * width + j] = t[n]
                n += 1


def pool_to_R(r: Any, c: Any, to_U: Any, log_prior: Any, to_R: Any, damping: Any) -> None:
    """Step 2: messages from the pools to R, damped."""
    new = pool_up(to_U[r, c], log_prior[r, c], to_U.shape[2])
    to_R[r, c] = damped(to_R[r, c], new, damping, POOL_TO_STEPS)


def max_pool(r: Any, c: Any, below: Any, log_prior: Any, to_R: Any, window: Any, t: Any) -> None:
    """Steps 1 and 2 at once, in the first pass: all of U is expected off, so that ORs are wires."""
    height, width, top, left = window
    for i in range(height):
        for j in range(width):
            y, x = r + i - top, c + j - left
            inside = 0 <= y < below.shape[0] and 0 <= x < below.shape[1]
            t[i * width + j] = below[y, x] if inside else -HUGE
    to_R[r, c] = pool_up(t, log_prior[r, c], height * width)


def pool_to_U(
    r: Any, c: Any, to_U: Any, above: Any, log_prior: Any, from_pool: Any, t: Any
) -> None:
    """Step 5: messages from the pools to U; `above` are the messages that R sends down."""
    members = to_U.shape[2]
    for m in range(members):
        t[m] = to_U[r, c, m]
    pool_down(above[r, c], t, log_prior[r, c], members)
    for m in range(members):
        from_pool[r, c, m] = larger(t[m], -HUGE)


def or_to_S(y: Any, x: Any, from_pool: Any, down: Any, window: Any, t: Any) -> None:
    """Step 6: messages from the ORs to the plane of S below, into `down`."""
    height, width, top, left = window
    rows, columns = from_pool.shape[0], from_pool.shape[1]
    n = 0
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                t[n] = from_pool[r, c, i * width + j]
                n += 1
    down[y, x] = smaller(larger(or_down(t, n), -HUGE), HUGE)


def class_to_S(up: Any, log_prior: Any, exclusive: Any) -> None:
    """Replace the messages up to the templates of an image by the messages of the class layer.

    Pools of categories below a pool that is certainly on are one pool: exactly one template is on.
    Otherwise every template is on by itself, and `log_prior` is the log-odds of that.
    """
    if exclusive:
        pool_down(HUGE, up, log_prior, len(up))
    for j in range(len(up)):
        up[j] = smaller(larger(up[j], -HUGE), HUGE) if exclusive else log_prior[j]
