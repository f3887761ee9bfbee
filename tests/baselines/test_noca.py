"""NOCA against enumeration: its bound, and that no update lowers it."""

import itertools

import numpy as np
import pytest

from benchmarks.baselines.noca import Noca


def make(seed, shape=(1, 3, 3), window=(2, 2), n_features=1, leak=0.05):
    rng = np.random.default_rng(seed)
    X = rng.random(shape) < 0.5
    X[0, 0, 0], X[0, -1, -1] = True, False  # some of both
    theta = rng.uniform(0.05, 1.5, (*window, n_features))
    return Noca(X, theta, leak, rng.uniform(0.05, 0.4, n_features))


def log_f(x):
    return np.log(-np.expm1(-x))


def exact_log_likelihood(model):
    """log P(X) by summing over all S, one image at a time."""
    F, h, w = model.weights.shape
    _, hs, ws, _ = model.posterior.shape
    total = 0.0
    for X in model.X:
        terms = []
        for bits in itertools.product((0, 1), repeat=hs * ws * F):
            S = np.array(bits).reshape(hs, ws, F)
            field = np.full((hs + h - 1, ws + w - 1), model.leak)
            for r, c, f in np.argwhere(S):
                field[r : r + h, c : c + w] += -np.log1p(-model.weights[f])
            field = field[h - 1 : hs, w - 1 : ws]
            prior = np.where(S, np.log(model.prior), np.log1p(-model.prior)).sum()
            terms.append(prior + np.where(X, log_f(field), -field).sum())
        total += np.logaddexp.reduce(terms)
    return total


def bound_of(model, q):
    """The bound, spelt out: q is (on pixels, parents)."""
    h, w, _ = model.theta.shape
    mu, value = model.posterior, 0.0
    value += (mu * np.log(model.prior) + (1 - mu) * np.log1p(-model.prior)).sum()
    value -= (mu * np.log(mu) + (1 - mu) * np.log1p(-mu)).sum()
    at = 0
    for n, y, x in np.ndindex(model.X.shape):
        parents = mu[n, y : y + h, x : x + w].ravel()
        if not model.X[n, y, x]:
            value -= model.leak + (parents * model.theta.ravel()).sum()
            continue
        used = q[at] > 0
        share, theta = q[at][used].astype(float), model.theta.ravel()[used]
        gain = share * (log_f(model.leak + theta / share) - log_f(model.leak))
        value += log_f(model.leak) + (parents[used] * gain).sum()
        at += 1
    return value


@pytest.mark.parametrize("seed", range(4))
def test_bound_is_what_the_formula_says(seed):
    model = make(seed, (2, 4, 3), (2, 3), 2)
    model.update_q()
    model.update_posterior()
    assert model.bound() == pytest.approx(bound_of(model, model.q), rel=1e-9)


@pytest.mark.parametrize(("shape", "window", "n_features"), [
    ((1, 2, 2), (2, 2), 1),
    ((2, 1, 4), (1, 2), 2),
    ((1, 1, 5), (1, 3), 1),
])  # fmt: skip
def test_bound_is_below_the_exact_log_likelihood(shape, window, n_features):
    for seed in range(3):
        model = make(seed, shape, window, n_features)
        exact = exact_log_likelihood(model)
        model.update_q()
        first = model.bound()
        model.e_step()
        assert first <= exact + 1e-9
        assert model.bound() <= exact + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", [0.001, 0.05, 0.6])
def test_no_update_lowers_the_bound(seed, leak):
    model = make(seed, (2, 7, 6), (3, 2), 3, leak)
    model.update_q()
    before = model.bound()
    for _ in range(6):
        for name in ("q", "posterior", "weights", "leak"):
            getattr(model, f"update_{name}")()
            after = model.bound()
            assert after >= before - 1e-5 * abs(before), name
            before = after
