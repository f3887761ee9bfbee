"""Compiled search for the most probable factors; tables and factors are bits.

As in `error_kernels`, all kernels treat rows and columns alike.  `evidence` holds the log-odds that
an entry gives where it is on, and where it is off.  `odds` are those of a bit of either side, and
infinite where every component has its own, estimated from how many of its bits are on.
"""

from __future__ import annotations

import math

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined, n_bits
from hcnet.factorization.error_kernels import (
    MOST_REMOVED,
    ONE,
    ONE_MORE,
    ROUNDS,
    SEEDS,
    ZERO,
    count_errors,
    draw,
    pack,
    seed,
    shuffle,
    uncovered,
)

# A move ends with at most so many sweeps: the next one goes on.
SWEEPS = 4
# Probability that a move only adds a component, and that it removes more than it adds.
ADDS, SHRINKS = 0.4, 0.1
# The log-odds of bits with which a new component begins.
FIRST_ODDS = -2.0


@inlined
def _gain(on, off, n, given, f, before, after, evidence):
    """What a component of a row gains by the entries that only it could switch on."""
    hit, false = 0, 0
    for w in range(on.shape[2]):
        own = given[f, w] & ~(before[w] | after[w])
        for p in range(on.shape[1]):
            hit += n_bits(own & on[n, p, w]) << p
            false += n_bits(own & off[n, p, w]) << p
    return evidence[0] * hit + evidence[1] * false


@called
def _pass(on, off, bits, given, evidence, prior, order, beta, draws):
    """One pass over the bits of a side, as `sample`, in an order of the components."""
    n_rows, n_words = on.shape[0], on.shape[2]
    rank = given.shape[0]
    after = np.zeros((rank + 1, n_words), np.uint64)
    before = np.zeros(n_words, np.uint64)
    changed = 0
    for n in range(n_rows):
        for i in range(rank - 1, -1, -1):
            f = order[i]
            for w in range(n_words):
                after[i, w] = after[i + 1, w] | (given[f, w] if bits[n, f] else ZERO)
        before[:] = ZERO
        for i in range(rank):
            f = order[i]
            odds = _gain(on, off, n, given, f, before, after[i + 1], evidence) + prior[f]
            if beta == 0:
                bit = 1 if odds > 0 else 0
            else:
                bit = 1 if draws[n, f] * (1 + math.exp(-beta * odds)) < 1 else 0
            if bit != bits[n, f]:
                bits[n, f] = bit
                changed += 1
            if bit:
                for w in range(n_words):
                    before[w] |= given[f, w]
    return changed


@entry
def sample(on, off, bits, given, evidence, prior, beta, draws):
    """One Gibbs pass over the bits of a side, `given` the other's; how many changed.

    The log-odds of a bit are its prior plus the evidence of the entries that only it could switch
    on.  `beta` is the inverse temperature; with beta = 0 each bit takes its better value.
    """
    order = np.arange(given.shape[0])
    return _pass(on, off, bits, given, evidence, prior, order, beta, draws)


@called
def _log_beta(on, n):
    """The logarithm of the integral of p^on (1-p)^(n-on)."""
    return math.lgamma(on + 1.0) + math.lgamma(n - on + 1.0) - math.lgamma(n + 2.0)


@inlined
def _own_odds(bits, odds):
    """Log-odds of a bit of a component with these bits."""
    on = float(bits.sum())
    return odds if odds < np.inf else math.log((on + 1.0) / (len(bits) - on + 1.0))


@inlined
def _is_used(S, W, f):
    return S[:, f].any() and W[:, f].any()


@called
def _value(on, off, S, W, W_words, totals):
    """The joint log-probability of table and factors as `marginal_log_joint`, which see."""
    missed, false = count_errors(on, off, S, W_words)
    hit, empty = totals[0] - missed, totals[1] - false
    value = _log_beta(false * totals[2], (hit + false) * totals[2])
    value += _log_beta(missed * totals[2], (empty + missed) * totals[2])
    for f in range(S.shape[1]):
        if _is_used(S, W, f):
            value += _log_beta(float(S[:, f].sum()), len(S))
            value += _log_beta(float(W[:, f].sum()), len(W))
    return value


@called
def _climb(on, off, bits, given, evidence, odds, state):
    """Set each bit to its better value, given all others; how many changed."""
    rank = given.shape[0]
    prior = np.zeros(rank)
    order = np.arange(rank)
    for f in range(rank):
        prior[f] = _own_odds(bits[:, f], odds)
    shuffle(order, state)
    return _pass(on, off, bits, given, evidence, prior, order, 0.0, np.zeros((1, 1)))


@called
def _respond(component, on, off, evidence, prior, bits, words):
    """Rows that gain by a component, as bits and as words; what they gain without the prior."""
    n_rows, planes, n_words = on.shape
    words[:] = ZERO
    total = 0.0
    for n in range(n_rows):
        hit, false = 0, 0
        for w in range(n_words):
            for p in range(planes):
                hit += n_bits(component[w] & on[n, p, w]) << p
                false += n_bits(component[w] & off[n, p, w]) << p
        gain = evidence[0] * hit + evidence[1] * false
        bits[n] = 1 if gain + prior > 0 else 0
        if bits[n]:
            total += gain
            words[n >> 6] |= ONE << np.uint64(n & 63)
    return total


@called
def _new_component(on, off, on_T, off_T, evidence, odds, seeds, state, s, w):
    """A component for uncovered entries: the best from a few seeds, by turns of both sides."""
    s_words = np.zeros(on_T.shape[2], np.uint64)
    w_words = np.zeros(on.shape[2], np.uint64)
    s_now, w_now = np.zeros(len(s), np.int8), np.zeros(len(w), np.int8)
    best = 0.0
    s[:], w[:] = 0, 0
    for _ in range(seeds):
        s_odds = odds[0] if odds[0] < np.inf else FIRST_ODDS
        w_odds = odds[1] if odds[1] < np.inf else FIRST_ODDS
        if draw(state) < 0.5:
            seed(on, state, w_words)
        else:
            seed(on_T, state, s_words)
            _respond(s_words, on_T, off_T, evidence, w_odds, w_now, w_words)
        last = -np.inf
        for _ in range(ROUNDS):
            _respond(w_words, on, off, evidence, s_odds, s_now, s_words)
            s_odds = _own_odds(s_now, odds[0])
            gain = _respond(s_words, on_T, off_T, evidence, w_odds, w_now, w_words)
            w_odds = _own_odds(w_now, odds[1])
            gain += _log_beta(float(s_now.sum()), len(s)) + _log_beta(float(w_now.sum()), len(w))
            if gain <= last:
                break
            last = gain
            if gain > best:
                best = gain
                s[:] = s_now
                w[:] = w_now


@entry
def explore(table, now, best, values, evidence, odds, totals, span, heat, state):
    """Moves from `now`: remove some components, add others, and climb.

    `table` holds its bits by rows and by columns, on and off.  A less probable solution is taken
    with a probability that falls with the temperature, as in `search`.  `values` are those of
    `now` and `best`, pairs of factors, in place.  `totals` are the ones and zeros of the table in
    steps, and the weight of a step.
    """
    on, off, on_T, off_T = table
    S, W = now
    rank = S.shape[1]
    S_words = np.zeros((rank, on_T.shape[2]), np.uint64)
    W_words = np.zeros((rank, on.shape[2]), np.uint64)
    left = np.zeros_like(on), np.zeros_like(off), np.zeros_like(on_T), np.zeros_like(off_T)
    s, w = np.zeros(len(S), np.int8), np.zeros(len(W), np.int8)
    S_new, W_new = S.copy(), W.copy()
    if span[0] == 0:
        pack(W, W_words)
        values[:] = _value(on, off, S, W, W_words, totals)
    for move in range(span[0], span[1]):
        temperature = heat[0] * (heat[1] / heat[0]) ** (move / span[2])
        S_new[:] = S
        W_new[:] = W
        present = 0
        for f in range(rank):
            present += 1 if _is_used(S, W, f) else 0
        removed, added, kind = 0, 1, draw(state)
        if present == rank or (present > 0 and kind > ADDS):
            removed = 1
            while removed < min(MOST_REMOVED, present) and draw(state) < ONE_MORE:
                removed += 1
            added = removed - 1 if kind > 1 - SHRINKS else removed
        for _ in range(removed):
            f = int(draw(state) * rank)
            while not _is_used(S_new, W_new, f):
                f = (f + 1) % rank
            S_new[:, f] = 0
            W_new[:, f] = 0
        for f in range(rank):
            if added > 0 and not _is_used(S_new, W_new, f):
                added -= 1
                pack(S_new, S_words)
                pack(W_new, W_words)
                uncovered(on, off, S_new, W_words, left[0], left[1])
                uncovered(on_T, off_T, W_new, S_words, left[2], left[3])
                seeds = 1 + int(draw(state) * SEEDS)
                _new_component(
                    left[0], left[1], left[2], left[3], evidence, odds, seeds, state, s, w
                )
                S_new[:, f] = s
                W_new[:, f] = w
        pack(W_new, W_words)
        for _ in range(SWEEPS):
            changed = _climb(on, off, S_new, W_words, evidence, odds[0], state)
            pack(S_new, S_words)
            changed += _climb(on_T, off_T, W_new, S_words, evidence, odds[1], state)
            pack(W_new, W_words)
            if changed == 0:
                break
        for f in range(rank):
            if not _is_used(S_new, W_new, f):
                S_new[:, f] = 0
                W_new[:, f] = 0
        found = _value(on, off, S_new, W_new, W_words, totals)
        if found >= values[0] or draw(state) < math.exp((found - values[0]) / temperature):
            values[0] = found
            S[:] = S_new
            W[:] = W_new
            if found > values[1]:
                values[1] = found
                best[0][:] = S
                best[1][:] = W
