"""Pooling layers, one element of an image at a time: POOL and OR factors meet.

Plain Python over arrays, like `hcnet.factors`: the reference engine calls these functions as they
are, `hcnet.engine.compilation` compiles the very same code.  Steps are those of the paper's
Algorithm 1.

R of an image has a pool per element (a, r, c); member m = (d, i, j) of it is U[a, r, c, m], which
can turn on the element (b, r + i - top, c + j - left) of the S below, with the feature
b = a · stride + d - first.  ``window`` is (height, width, top, left, depth, stride, first, ring);
on a ring the first feature follows the last.  ``t`` is scratch space for one window.
``log_prior`` (channels, rows, columns, members) has one channel where it is the same for all.

Decisions: ``choice`` (channels, rows, columns) is the member that every active element of R moves
to.  ``taken`` counts, for every element of the S below, how many have moved there; ``below`` is the
evidence for each of these, gained once if it is taken.
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


def feature_below(window, a, d, features):
    """The feature below of depth d of a channel of R; off a line it is less than 0 or too large."""
    b = a * window[5] + d - window[6]
    return b % features if window[7] else b


def channel_above(window, b, d, channels):
    """The channel of R that reaches feature b below by depth d: the inverse of `feature_below`."""
    if window[5] > 1:  # dividing takes as long as a message
        return (b - d) // window[5]
    a = b - d + window[6]
    return a % channels if window[7] else a


def first_depth(window, b):
    """The first depth by which some channel may reach feature b; others follow by the stride."""
    return b % window[5] if window[5] > 1 else 0


def priors_of(log_prior, a):
    """The priors of a channel of R, (rows, columns, members): its own, or those of all."""
    return log_prior[a if log_prior.shape[0] > 1 else 0]


def position(window, features, a, r, c, m):
    """Feature, row and column below of member m of the pool of an element."""
    d, i, j = m // (window[0] * window[1]), m // window[1] % window[0], m % window[1]
    return feature_below(window, a, d, features), r + i - window[2], c + j - window[3]


def pools_above(y, x, own, first, window, t, n):
    """Copy the messages from the pools of a channel that reach (y, x) to `t`, behind n others."""
    height, width, top, left = window[0], window[1], window[2], window[3]
    rows, columns = own.shape[0], own.shape[1]
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                t[n] = own[r, c, first + i * width + j]
                n += 1
    return n


def from_pools_above(b, y, x, from_pool, window, t):
    """Copy the messages from all pools that reach an element below to `t`; how many there are."""
    positions, channels = window[0] * window[1], from_pool.shape[0]
    if window[5] > 1 or window[4] == 1:  # a single channel
        d = first_depth(window, b)
        own = from_pool[channel_above(window, b, d, channels)]
        return pools_above(y, x, own, d * positions, window, t, 0)
    n = 0
    for d in range(window[4]):
        a = channel_above(window, b, d, channels)
        if 0 <= a < channels:
            n = pools_above(y, x, from_pool[a], d * positions, window, t, n)
    return n


def to_pools_above(y, x, own, first, window, t, n):
    """The inverse of `pools_above`: copy `t` to the messages of the pools of a channel."""
    height, width, top, left = window[0], window[1], window[2], window[3]
    rows, columns = own.shape[0], own.shape[1]
    for i in range(height):
        for j in range(width):
            r, c = y - i + top, x - j + left
            if 0 <= r < rows and 0 <= c < columns:
                own[r, c, first + i * width + j] = t[n]
                n += 1
    return n


def or_to_U(b, y, x, below, from_pool, to_U, window, t):
    """Step 1: messages from the ORs over the S below to U; `below` are its messages up."""
    n = from_pools_above(b, y, x, from_pool, window, t)
    or_messages(below[b, y, x], t, n)
    positions, channels = window[0] * window[1], to_U.shape[0]
    if window[5] > 1 or window[4] == 1:  # a single channel
        d = first_depth(window, b)
        own = to_U[channel_above(window, b, d, channels)]
        to_pools_above(y, x, own, d * positions, window, t, 0)
        return
    n = 0
    for d in range(window[4]):
        a = channel_above(window, b, d, channels)
        if 0 <= a < channels:
            n = to_pools_above(y, x, to_U[a], d * positions, window, t, n)


def pool_to_R(a, r, c, to_U, log_prior, to_R, damping):
    """Step 2: messages from the pools to R, damped."""
    new = pool_up(to_U[a, r, c], priors_of(log_prior, a)[r, c], to_U.shape[3])
    to_R[a, r, c] = damped(to_R[a, r, c], new, damping, POOL_TO_STEPS)


def max_pool(a, r, c, below, log_prior, to_R, window, t):
    """Steps 1 and 2 at once, in the first pass: all of U is expected off, so that ORs are wires."""
    height, width, top, left, depth = window[:5]
    features, rows, columns = below.shape[0], below.shape[1], below.shape[2]
    n = 0
    for d in range(depth):
        b = feature_below(window, a, d, features)
        for i in range(height):
            for j in range(width):
                y, x = r + i - top, c + j - left
                inside = 0 <= b < features and 0 <= y < rows and 0 <= x < columns
                t[n] = below[b, y, x] if inside else -HUGE
                n += 1
    to_R[a, r, c] = pool_up(t, priors_of(log_prior, a)[r, c], n)


def pool_to_U(a, r, c, to_U, above, log_prior, from_pool, t):
    """Step 5: messages from the pools to U; `above` are the messages that R sends down."""
    members = to_U.shape[3]
    for m in range(members):
        t[m] = to_U[a, r, c, m]
    pool_down(above[a, r, c], t, priors_of(log_prior, a)[r, c], members)
    for m in range(members):
        from_pool[a, r, c, m] = larger(t[m], -HUGE)


def or_to_S(b, y, x, from_pool, down, window, t):
    """Step 6: messages from the ORs to the S below, into `down`."""
    n = from_pools_above(b, y, x, from_pool, window, t)
    down[b, y, x] = smaller(larger(or_down(t, n), -HUGE), HUGE)


def class_to_S(up, log_prior, exclusive):
    """Replace the messages up to the templates of an image by the messages of the class layer.

    Pools of categories below a pool that is certainly on are one pool: exactly one template is on.
    Otherwise every template is on by itself, and `log_prior` is the log-odds of that.
    """
    if exclusive:
        pool_down(HUGE, up, log_prior, len(up))
    for j in range(len(up)):
        up[j] = smaller(larger(up[j], -HUGE), HUGE) if exclusive else log_prior[j]


# Decisions are those of a block: channels of R, and the features below that they reach.  Blocks
# have no feature in common.


def settle_block(choice, below, log_prior, window, taken, on, good):
    """Elements with the fewest good positions choose first; then each may change its mind.

    `on` and `good` are scratch space for as many numbers as the block has elements.
    """
    rows, columns = choice.shape[1], choice.shape[2]
    members = window[0] * window[1] * window[4]
    n = 0
    for a in range(choice.shape[0]):
        for r in range(rows):
            for c in range(columns):
                if choice[a, r, c] == UNDECIDED:
                    on[n] = (a * rows + r) * columns + c
                    # Without any good position it does not matter when an element chooses.
                    good[n] = good_positions(below, a, r, c, window) or members
                    n += 1
    for options in range(1, members + 1):
        for k in range(n):
            if good[k] == options:
                a, r, c = on[k] // columns // rows, on[k] // columns % rows, on[k] % columns
                move(below, log_prior, window, a, r, c, choice, taken)
    for _ in range(ROUNDS):
        changed = False
        for k in range(n):
            a, r, c = on[k] // columns // rows, on[k] // columns % rows, on[k] % columns
            before = choice[a, r, c]
            count(window, a, r, c, choice, taken, -1)
            move(below, log_prior, window, a, r, c, choice, taken)
            changed = changed or choice[a, r, c] != before
        if not changed:
            break


def choices_log_prior(choice, log_prior):
    """Log-probability of the choices of a block."""
    total = 0.0
    for a in range(choice.shape[0]):
        for r in range(choice.shape[1]):
            for c in range(choice.shape[2]):
                m = choice[a, r, c]
                if m != OFF:
                    total += np.float64(priors_of(log_prior, a)[r, c, m])
    return total


# Loops over a window run over its features, rows and columns: dividing would take most of the time.


def gain(below, log_prior, b, y, x, taken):
    """What an element gains if it moves there; where another is already, nothing but the prior."""
    inside = 0 <= b < below.shape[0] and 0 <= y < below.shape[1] and 0 <= x < below.shape[2]
    if not inside:
        return -np.inf
    value = np.float64(log_prior)
    return value + below[b, y, x] if taken[b, y, x] == 0 else value


def good_positions(below, a, r, c, window):
    """Choices of an element that have evidence for them."""
    good, features = 0, below.shape[0]
    top, left = r - window[2], c - window[3]
    for d in range(window[4]):
        b = feature_below(window, a, d, features)
        if not 0 <= b < features:
            continue
        for y in range(max(top, 0), min(top + window[0], below.shape[1])):
            for x in range(max(left, 0), min(left + window[1], below.shape[2])):
                if below[b, y, x] > 0:
                    good += 1
    return good


def move(below, log_prior, window, a, r, c, choice, taken):
    """Move an element to its best position.

    Of equally good ones the centre, which is tried first, and then the next in order.
    """
    height, width, depth = window[0], window[1], window[4]
    d, i, j = window[6], (height - 1) // 2, (width - 1) // 2
    m = (d * height + i) * width + j
    top, left = r - window[2], c - window[3]
    prior = priors_of(log_prior, a)[r, c]
    best = -np.inf
    for _ in range(depth * height * width):
        b = feature_below(window, a, d, below.shape[0])
        value = gain(below, prior[m], b, top + i, left + j, taken)
        if value > best:
            best = value
            choice[a, r, c] = m
        m, j = m + 1, j + 1
        if j == width:
            i, j = i + 1, 0
            if i == height:
                d, i = d + 1, 0
                if d == depth:
                    d, m = 0, 0
    count(window, a, r, c, choice, taken, 1)


def count(window, a, r, c, choice, taken, change):
    """Count an element where it moved to, or take it back."""
    b, y, x = position(window, taken.shape[0], a, r, c, choice[a, r, c])
    taken[b, y, x] += change
