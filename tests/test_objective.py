"""The code length is the joint probability, term by term."""

import math
from dataclasses import fields

import numpy as np
import pytest

from hcnet.images import Images
from hcnet.objective import (
    Counts,
    Priors,
    code_length,
    compression_ratio,
    entropy_bits,
    estimate,
    image_bits,
    log_joint,
)

PRIORS = Priors(p_S=0.01, p_W=0.3, p01=0.05, p10=0.02)


def bernoulli(bits, p):
    """Product of p for every 1 and 1-p for every 0, as -log2, one factor at a time."""
    return -sum(math.log2(p if bit else 1 - p) for bit in bits)


def draw(seed):
    rng = np.random.default_rng(seed)
    S, W = rng.random(60) < 0.1, rng.random(30) < 0.4
    R = rng.random(100) < 0.3
    X = R ^ (rng.random(100) < 0.2)
    counts = Counts(
        placed=int(S.sum()),
        positions=60,
        weights_on=int(W.sum()),
        weights=30,
        hit=int((X & R).sum()),
        missed=int((X & ~R).sum()),
        false=int((~X & R).sum()),
        empty=int((~X & ~R).sum()),
    )
    return S, W, R, X, counts


@pytest.mark.parametrize("seed", range(5))
def test_code_length_is_the_product_of_all_terms(seed):
    S, W, R, X, counts = draw(seed)
    wanted = bernoulli(S, PRIORS.p_S) + bernoulli(W, PRIORS.p_W)
    wanted += bernoulli(X[R] == 0, PRIORS.p01) + bernoulli(X[~R] == 1, PRIORS.p10)
    assert code_length(counts, PRIORS) == pytest.approx(wanted, rel=1e-12)
    assert log_joint(counts, PRIORS) == pytest.approx(-wanted * math.log(2), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_an_open_prior_is_at_its_best_value(seed):
    *_, counts = draw(seed)
    best = code_length(counts, Priors())
    for p in np.linspace(0.001, 0.499, 60):
        fixed = Priors(p_S=p, p_W=p, p01=p, p10=p)
        assert best <= code_length(counts, fixed) + 1e-9
        assert code_length(counts, Priors(p_S=p)) <= code_length(counts, fixed) + 1e-9
    rates = {
        "p_S": counts.placed / counts.positions,
        "p_W": counts.weights_on / counts.weights,
        "p01": counts.errors / counts.observed,
        "p10": counts.errors / counts.observed,
    }
    assert best == pytest.approx(code_length(counts, Priors(**rates)), rel=1e-12)


def test_entropy_is_symmetric_and_free_where_certain():
    assert entropy_bits(0, 10) == entropy_bits(10, 10) == entropy_bits(0, 0) == 0
    assert entropy_bits(5, 10) == pytest.approx(10)
    assert entropy_bits(3, 10) == pytest.approx(entropy_bits(7, 10))


def test_nothing_but_errors_is_not_free():
    """The channel flips less than half of the pixels, so an inverted image is no explanation."""
    nothing = Counts(0, 0, 0, 0, hit=0, missed=90, false=0, empty=10)
    assert code_length(nothing, Priors()) == pytest.approx(100)


def test_estimates_are_the_observed_rates_off_zero_and_one():
    counts = Counts(9, 998, 99, 398, hit=500, missed=5, false=4, empty=489)
    found = estimate(counts, Priors())
    assert found.p_S == pytest.approx(10 / 1000)
    assert found.p_W == pytest.approx(100 / 400)
    assert found.p01 == found.p10 == pytest.approx(10 / 1000)
    clean = estimate(Counts(0, 0, 0, 0, 0, 0, 0, 50), Priors())
    assert all(0 < getattr(clean, p.name) < 1 for p in fields(Priors))
    assert estimate(Counts(0, 0, 0, 0, 0, 50, 0, 0), Priors()).p10 < 0.5


def test_estimates_leave_given_priors_alone():
    *_, counts = draw(0)
    assert estimate(counts, PRIORS) == PRIORS
    some = estimate(counts, Priors(p_S=0.123))
    assert some.p_S == 0.123
    assert some.p_W == estimate(counts, Priors()).p_W


def test_least_noise_is_a_lower_bound():
    counts = Counts(1, 10, 1, 10, hit=50, missed=0, false=0, empty=950)
    assert estimate(counts, Priors(), 0.01).p01 == 0.01
    assert estimate(counts, Priors()).p01 < 0.002


def test_images_cost_what_their_observed_pixels_cost():
    pixels = np.zeros((1, 1, 10, 10), bool)
    pixels[..., :3] = True
    observed = np.ones_like(pixels)
    assert image_bits(Images(pixels, observed)) == pytest.approx(entropy_bits(30, 100))
    observed[..., 0] = False
    assert image_bits(Images(pixels, observed)) == pytest.approx(entropy_bits(20, 90))


def test_compression_ratio_is_defined_for_blank_images():
    blank = Images(np.zeros((1, 1, 4, 4), bool), np.ones((1, 1, 4, 4), bool))
    assert compression_ratio(Counts(0, 0, 0, 0, 0, 0, 0, 16), blank) == 1
    assert compression_ratio(Counts(1, 16, 1, 4, 0, 0, 1, 15), blank) == math.inf
