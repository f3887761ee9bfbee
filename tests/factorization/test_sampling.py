"""The Gibbs pass, the joint probability and the projection of the factors."""

import itertools

import numpy as np
import pytest
from scipy.special import beta as beta_function

from hcnet.factorization.binary_factors import (
    Factors,
    Parameters,
    Table,
    estimate_parameters,
    marginal_log_joint,
)
from hcnet.factorization.sampling import Annealing, PosteriorMean, Sampler, project
from hcnet.grid import STEP
from hcnet.images import Noise
from hcnet.objective import Priors


def random_problem(seed, shape=(6, 5), rank=2, missing=0.2):
    rng = np.random.default_rng(seed)
    table = Table(rng.random(shape) < 0.5, rng.random(shape) >= missing)
    factors = Factors(
        (rng.random((shape[0], rank)) < 0.4).astype(np.int8),
        (rng.random((shape[1], rank)) < 0.4).astype(np.int8),
    )
    return table, factors, rng


def log_weight(table, factors, parameters):
    k1, k0 = parameters.evidence
    evidence = np.where(table.on, k1, np.where(table.off, k0, 0.0))
    value = (evidence * factors.product()).sum()
    value += (factors.S * parameters.prior_S.astype(float)).sum()
    return value + (factors.W * parameters.prior_W.astype(float)).sum()


@pytest.mark.parametrize("seed", range(20))
def test_climbing_never_lowers_the_joint_probability(seed):
    table, factors, rng = random_problem(seed)
    parameters = Parameters(Noise(0.1, 0.2), np.float32([-0.4, -0.2]), np.float32([-0.1, -0.3]))
    before = log_weight(table, factors, parameters)
    sampler = Sampler(table, rng)
    for _ in range(4):
        sampler.sweep(factors, parameters, 0.0)
        after = log_weight(table, factors, parameters)
        assert after >= before - 1e-5
        before = after


def test_gibbs_samples_follow_the_joint_probability():
    """Frequencies of all 16 states of a 2×2 table of rank 1 against their exact weights."""
    table = Table(np.array([[1, 0], [1, 1]], bool), np.array([[1, 1], [1, 0]], bool))
    parameters = Parameters(Noise(0.2, 0.3), np.float32([-0.5]), np.float32([0.3]))
    exact = {}
    for bits in itertools.product((0, 1), repeat=4):
        state = Factors(np.int8(bits[:2]).reshape(2, 1), np.int8(bits[2:]).reshape(2, 1))
        exact[bits] = np.exp(log_weight(table, state, parameters))
    total = sum(exact.values())
    sampler = Sampler(table, np.random.default_rng(0))
    factors = Factors(np.zeros((2, 1), np.int8), np.zeros((2, 1), np.int8))
    n = 20_000
    seen = dict.fromkeys(exact, 0)
    for _ in range(n):
        sampler.sweep(factors, parameters, 1.0)
        seen[(*factors.S[:, 0].tolist(), *factors.W[:, 0].tolist())] += 1
    for bits, weight in exact.items():
        p = weight / total
        # Successive samples are correlated: allow three times the independent error.
        assert abs(seen[bits] / n - p) < 3 * 4 * np.sqrt(p * (1 - p) / n) + 1e-3, bits


def test_marginal_joint_is_a_product_of_beta_integrals():
    table, factors, _ = random_problem(3)
    c = factors.counts(table)
    wanted = np.log(beta_function(c.false + 1, c.hit + 1))
    wanted += np.log(beta_function(c.missed + 1, c.empty + 1))
    for bits in (factors.S, factors.W):
        for column in bits.T:
            wanted += np.log(beta_function(column.sum() + 1, len(column) - column.sum() + 1))
    assert marginal_log_joint(factors, table) == pytest.approx(wanted)


def test_given_parameters_are_not_estimated():
    table, factors, _ = random_problem(1)
    fixed = Priors(p_S=0.2, p_W=0.3, p01=0.05, p10=0.1)
    parameters = estimate_parameters(factors, table, fixed, shared=False)
    assert parameters.noise == Noise(0.05, 0.1)
    np.testing.assert_allclose(parameters.prior_S, np.log(0.2 / 0.8), atol=STEP / 2)
    np.testing.assert_allclose(parameters.prior_W, np.log(0.3 / 0.7), atol=STEP / 2)


def test_projection_has_no_more_wrong_entries_than_its_starts():
    _, factors, rng = random_problem(5, (20, 15), 3)
    votes = rng.integers(-300, 301, (20, 15))
    majority = Table(votes > 0, np.ones(votes.shape, bool), np.abs(votes))
    found = project(majority, [factors], rng)
    assert found.counts(majority).errors < factors.counts(majority).errors


def test_annealing_is_the_same_for_the_same_seed_and_ends():
    table, _, _ = random_problem(0, (15, 12))
    results = []
    for _ in range(2):
        process = Annealing(table, 2, Priors(), np.random.default_rng(7))
        steps = 1
        while process.step():
            steps += 1
        assert steps == process.total
        results.append(process.factors)
    np.testing.assert_array_equal(results[0].S, results[1].S)
    np.testing.assert_array_equal(results[0].W, results[1].W)


def test_posterior_mean_is_certain_where_there_is_no_noise():
    rng = np.random.default_rng(0)
    S, W = (rng.random((30, 2)) < 0.5).astype(np.int8), (rng.random((25, 2)) < 0.5).astype(np.int8)
    truth = Factors(S, W)
    table = Table(truth.product(), np.ones((30, 25), bool))
    process = PosteriorMean(truth, table, Priors(), True, rng, sweeps=60)
    while process.step():
        pass
    np.testing.assert_array_equal(process.majority.values, truth.product())
    weights = process.majority.weights
    assert weights is not None
    assert weights.mean() > 0.96 * process.n_samples
