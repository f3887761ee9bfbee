"""Factor updates against brute force: maximise over all states, take the difference."""

import itertools
import math
from functools import lru_cache

import numba as nb
import numpy as np
import pytest

from hcnet import factors
from hcnet.engine.compilation import compile_factors

INF = math.inf
UNIT = 1 / 1024
STRICT = compile_factors(nb.njit, np.float64, minus_infinity=-INF)
ENGINES = pytest.mark.parametrize("f", [factors, STRICT], ids=["python", "compiled"])


@lru_cache(maxsize=8)
def possible(factor, n):
    """States of n variables that a factor allows, with their weights."""
    states = ((state, factor(state)) for state in itertools.product((0, 1), repeat=n))
    return [(state, round(weight / UNIT)) for state, weight in states if weight > -INF]


def max_marginal_difference(factor, incoming, target):
    """out(target) = max over states with target on minus max with target off, target's own
    incoming message left out.  Exact: weights are whole multiples of UNIT, so that huge
    messages do not round small ones away, and infinities are counted, not added: a state is
    ranked by (number of violated certainties, finite log-weight)."""
    best = {0: (-INF, -INF), 1: (-INF, -INF)}
    for state, weight in possible(factor, len(incoming)):
        certain = 0
        for k, (bit, message) in enumerate(zip(state, incoming, strict=True)):
            if k == target:
                continue
            if math.isinf(message):
                certain -= bit != (message > 0)
            else:
                weight += bit * round(message / UNIT)
        best[state[target]] = max(best[state[target]], (certain, weight))
    (c1, w1), (c0, w0) = best[1], best[0]
    if c1 == c0:
        return (w1 - w0) * UNIT
    return INF if c1 > c0 else -INF


def and_factor(state):
    b, s, w = state
    return 0.0 if b == s * w else -INF


def or_factor(state):
    return 0.0 if state[0] == max(state[1:]) else -INF


def tree_factor(state):
    b, leaves = state[0], state[1:]
    n = len(leaves) // 2
    return 0.0 if b == max(leaves[k] * leaves[n + k] for k in range(n)) else -INF


def contradictory(factor, incoming):
    """True if no state has all certainties satisfied: there the limit is not defined."""
    return not any(
        all(not math.isinf(m) or bit == (m > 0) for bit, m in zip(state, incoming, strict=True))
        for state, _ in possible(factor, len(incoming))
    )


def draws(rng, size, n):
    """Random messages: real numbers, integers (ties), huge ones and infinities."""
    for _ in range(n):
        kind = rng.integers(4)
        x = np.round(rng.normal(scale=3, size=size) / UNIT) * UNIT
        if kind == 1:
            x = rng.integers(-2, 3, size=size).astype(float)
        if kind == 2:
            x = np.where(rng.random(size) < 0.3, rng.choice([-1e12, 1e12], size), x)
        if kind == 3:
            x = np.where(rng.random(size) < 0.3, rng.choice([-INF, INF], size), np.round(x))
        yield x.tolist()


def row(f, values):
    """A list for plain Python, an array for compiled code."""
    return list(values) if f is factors else np.array(values)


def agree(got, wanted):
    if math.isinf(wanted):
        return got == wanted or (abs(got) >= factors.HUGE / 2 and (got > 0) == (wanted > 0))
    return abs(got - wanted) <= 1e-9 + 1e-12 * abs(wanted)


@ENGINES
def test_and_messages_are_exact(f):
    rng = np.random.default_rng(0)
    checked = 0
    for b, s, w in draws(rng, 3, 4000):
        if contradictory(and_factor, (b, s, w)):
            continue
        checked += 1
        assert agree(f.and_down(s, w), max_marginal_difference(and_factor, (b, s, w), 0))
        assert agree(f.and_up(w, b), max_marginal_difference(and_factor, (b, s, w), 1))
        assert agree(f.and_up(s, b), max_marginal_difference(and_factor, (b, s, w), 2))
    assert checked > 3000


@ENGINES
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_or_messages_are_exact(f, n):
    rng = np.random.default_rng(n)
    checked = 0
    for x in draws(rng, n + 1, 1500):
        if contradictory(or_factor, x):
            continue
        checked += 1
        t = row(f, x[1:])
        f.or_messages(x[0], t, n)
        for k in range(n):
            assert agree(t[k], max_marginal_difference(or_factor, x, k + 1)), (x, t)
        assert agree(f.or_down(row(f, x[1:]), n), max_marginal_difference(or_factor, x, 0)), x
        if n > 1:  # from two halves
            some, others = f.or_down(row(f, x[1:3]), 2), f.or_down(row(f, x[3:]), n - 2)
            whole = f.or_merged(some, others) if n > 2 else some
            assert agree(whole, max_marginal_difference(or_factor, x, 0)), x
    assert checked > 1000


@ENGINES
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tree_messages_are_exact(f, n):
    rng = np.random.default_rng(10 + n)
    checked = 0
    for x in draws(rng, 2 * n + 1, 1000):
        if contradictory(tree_factor, x):
            continue
        checked += 1
        s, w, t = row(f, x[1 : n + 1]), row(f, x[n + 1 :]), row(f, [0.0] * n)
        down = f.tree_down(s, w, t, n)
        f.tree_messages(x[0], s, w, t, n)
        for k in range(n):
            assert agree(s[k], max_marginal_difference(tree_factor, x, 1 + k)), (x, s)
            assert agree(w[k], max_marginal_difference(tree_factor, x, 1 + n + k)), (x, w)
        assert agree(down, max_marginal_difference(tree_factor, x, 0)), x
    assert checked > 700


@ENGINES
@pytest.mark.parametrize("n", [1, 2, 4])
def test_pool_messages_are_exact(f, n):
    rng = np.random.default_rng(20 + n)
    checked = 0
    for x in draws(rng, n + 1, 1500):
        prior = (np.round(np.log(rng.dirichlet(np.ones(n))) / UNIT) * UNIT).tolist()

        def pool_factor(state, prior=prior):
            if state[0] == 0:
                return 0.0 if sum(state) == 0 else -INF
            return prior[state[1:].index(1)] if sum(state[1:]) == 1 else -INF

        if contradictory(pool_factor, x) or x[1:].count(INF) > 1:
            continue
        checked += 1
        wanted = [max_marginal_difference(pool_factor, x, k) for k in range(n + 1)]
        assert agree(f.pool_up(row(f, x[1:]), row(f, prior), n), wanted[0])
        b = row(f, x[1:])
        f.pool_down(x[0], b, row(f, prior), n)
        for k in range(n):
            assert agree(b[k], wanted[k + 1]), (x, prior, b)
    assert checked > 900


@ENGINES
def test_a_clamped_weight_passes_evidence_on_exactly(f):
    for huge in (1e12, factors.HUGE, INF):
        assert f.and_up(huge, 3.25) == 3.25
        assert f.and_up(huge, -3.25) == -3.25
        assert f.and_up(-huge, 3.25) == 0


def test_engine_precision_survives_huge_numbers():
    """float32 with the finite stand-in for minus infinity, as the engines run it."""
    single = compile_factors(nb.njit, np.float32, minus_infinity=-factors.HUGE)
    s = np.array([factors.HUGE, -factors.HUGE, 2.0], np.float32)
    w = np.array([-factors.HUGE, 5.0, 1.5], np.float32)
    t = np.empty(3, np.float32)
    single.tree_messages(np.float32(4.0), s, w, t, 3)
    assert np.isfinite(s).all()
    assert np.isfinite(w).all()
    # Only the third leaf can be on: it explains the pixel alone and hears the evidence.
    assert s[2] == np.float32(4.0)
    assert w[2] == np.float32(4.0)
