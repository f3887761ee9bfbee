"""NOCA against enumeration and against numerical maximisation, where both are possible."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from benchmarks.baselines import noca_kernels
from benchmarks.baselines.noca import LEAST_THETA, MOST_THETA, Noca
from benchmarks.baselines.noca_learner import learn
from hcnet.datasets import two_bars
from hcnet.metrics import true_explanation


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


def test_bound_is_exact_where_every_pixel_has_one_parent():
    """Then q = 1, the bound of a pixel holds with equality, and the posterior factorises."""
    for seed in range(3):
        model = make(seed, (2, 2, 3), (1, 1), 1)
        model.e_step()
        assert model.bound() == pytest.approx(exact_log_likelihood(model), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("leak", [0.001, 0.05, 0.6])
def test_no_update_lowers_the_bound(seed, leak):
    model = make(seed, (2, 7, 6), (3, 2), 3, leak)
    model.update_q()
    before = model.bound()
    for _ in range(6):
        for update in (
            model.update_q,
            model.update_posterior,
            model.update_weights,
            model.update_leak,
        ):
            update()
            after = model.bound()
            assert after >= before - 1e-5 * abs(before), update.__name__
            before = after


def test_fit_never_lowers_the_bound():
    data = two_bars(random_state=1)
    rng = np.random.default_rng(0)
    model = Noca(data.images[:, 0], rng.uniform(0.1, 0.7, (15, 15, 2)), 0.2, np.full(2, 0.01))
    model.fit(4, tolerance=-np.inf)
    gains = np.diff(model.history)
    assert len(gains) == 3
    assert (gains >= -1e-5 * abs(model.history[-1])).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("leak", [0.01, 0.3])
def test_shares_of_a_pixel_are_the_best_ones(seed, leak):
    model = make(seed, (1, 3, 3), (2, 2), 1, leak)
    rng = np.random.default_rng(seed)
    model.posterior = rng.uniform(0.1, 0.9, model.posterior.shape)
    model.update_q(2000)
    _, y, x = model.pixels[0]
    mu, theta = model.posterior[0, y : y + 2, x : x + 2].ravel(), model.theta.ravel()

    def loss(q):
        return -(mu * q * (log_f(leak + theta / q) - log_f(leak))).sum()

    best = minimize(
        loss,
        np.full(4, 0.25),
        method="SLSQP",
        bounds=[(1e-7, 1)] * 4,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.success
    assert model.values[0] - log_f(leak) == pytest.approx(-best.fun, rel=1e-4)
    assert model.q[0].sum() <= 1


def test_posterior_is_the_best_one():
    model = make(0, (1, 3, 3), (2, 2), 2)
    model.update_q()
    model.update_posterior()
    best = model.posterior.copy()
    for place in np.ndindex(best.shape):
        for step in (-1e-3, 1e-3):
            model.posterior = best.copy()
            model.posterior[place] += step
            assert bound_of(model, model.q) < bound_of_at(model, best)


def bound_of_at(model, posterior):
    keep, model.posterior = model.posterior, posterior
    value = bound_of(model, model.q)
    model.posterior = keep
    return value


def test_weights_and_leak_are_the_best_ones():
    model = make(3, (2, 4, 4), (2, 2), 1)
    model.e_step()
    q = model.q.copy()
    model.update_weights()
    for place in np.ndindex(model.theta.shape):
        found = model.theta[place]

        def loss(theta, place=place):
            model.theta[place] = theta
            return -bound_of(model, q)

        bounds = (LEAST_THETA, MOST_THETA)
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
        assert loss(found) <= best.fun + 1e-6
        model.theta[place] = found
    model.update_leak()
    found = model.leak

    def leak_loss(leak):
        model.leak = leak
        return -bound_of(model, q)

    best = minimize_scalar(leak_loss, bounds=(1e-5, 1.0), method="bounded")
    assert leak_loss(found) <= best.fun + 1e-6


@pytest.mark.parametrize("leak", [1e-3, 0.1, 1.0])
def test_table_of_gains_is_close(leak):
    table = noca_kernels.gain_table(leak)
    t = np.geomspace(1e-4 * leak, 1e6, 400)
    piece = (t.view(np.int64) >> noca_kernels.SHIFT) - (
        noca_kernels.LOW_BITS << (52 - noca_kernels.SHIFT)
    )
    found = table[piece, 0] + table[piece, 1] * t
    with np.errstate(over="ignore"):
        exact = log_f(leak + t) - t / np.expm1(leak + t) - log_f(leak)
    np.testing.assert_allclose(found, exact, rtol=2e-3, atol=1e-12)


def test_planted_parts_survive_and_are_rounded_to_the_truth():
    data = two_bars(noise=0.0, random_state=2)
    size = data.feature_size
    weights = np.where(data.features[:, 0], 0.95, 0.02)
    theta = -np.log1p(-np.moveaxis(weights, 0, 2)[::-1, ::-1])
    model = Noca(data.images[:, 0], np.ascontiguousarray(theta), 0.01, np.full(2, 0.005))
    model.fit(3)
    assert ((model.weights > 0.5) == data.features[:, 0]).mean() > 0.98
    _, truth = true_explanation(data, size)
    assert (model.posterior > 0.5).sum() == pytest.approx(len(truth.placements), abs=2)


def test_learned_parts_agree_with_their_placements_and_ratio():
    data = two_bars(random_state=3)
    parts = learn(data.images, 2, data.feature_size, seed=0, starts=2, max_steps=4)
    assert parts.bound == max(parts.bounds)
    assert len(parts.bounds) == 2
    expected = np.zeros(data.images.shape, bool)
    height, width = expected.shape[2:]
    for n, f, r, c in parts.placements:
        for i, j in np.argwhere(parts.features[f, 0]):
            if 0 <= r + i < height and 0 <= c + j < width:
                expected[n, 0, r + i, c + j] = True
    np.testing.assert_array_equal(parts.reconstruction, expected)
    assert 0 < parts.compression_ratio < 1.3


def test_images_with_channels_are_refused():
    with pytest.raises(ValueError, match="not \\(1, 2, 5, 5\\)"):
        learn(np.zeros((1, 2, 5, 5), bool), 2, (2, 2), 0)
