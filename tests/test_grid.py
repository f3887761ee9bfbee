"""Sums of what is on the grid are exact."""

import numpy as np

from hcnet.factors import HUGE, and_down, and_up, or_message
from hcnet.grid import STEP, on_grid
from hcnet.images import Images, Noise
from hcnet.learning.passing import placement_prior, weight_prior_on_grid


def multiples(values):
    steps = np.asarray(values, np.double) / STEP
    return bool((steps == np.rint(steps)).all())


def test_evidence_and_priors_are_on_the_grid_and_near_what_they_stand_for():
    images = Images(np.eye(3, dtype=bool)[None, None], np.ones((1, 1, 3, 3), bool))
    noise = Noise(0.013, 0.027)
    for got, wanted in (
        (images.evidence_on_grid(noise), images.evidence(noise)),
        (placement_prior(0.0123), np.log(0.0123 / (1 - 0.0123))),
    ):
        assert multiples(got)
        np.testing.assert_allclose(got, wanted, atol=STEP / 2 + 1e-6)
    drawn = weight_prior_on_grid(0.4, (50, 50), np.random.default_rng(0))
    assert multiples(drawn)
    assert len(np.unique(drawn)) > 500  # enough to tell features apart


def test_no_order_of_a_sum_matters():
    rng = np.random.default_rng(0)
    values = on_grid(rng.normal(0, 5, 2000))
    sums = {float(rng.permutation(values).sum(dtype=np.float32)) for _ in range(20)}
    assert len(sums) == 1
    assert multiples(list(sums))


def test_messages_stay_on_the_grid():
    rng = np.random.default_rng(1)
    for _ in range(200):
        s, w, b, total = (float(x) for x in on_grid(rng.normal(0, 9, 4)))
        found = and_down(s, w), and_up(s, b), or_message(b, s, abs(total), abs(w), s, w)
        assert multiples(found)


def test_what_is_certain_stays_so():
    assert on_grid([HUGE, -HUGE]).tolist() == np.float32([HUGE, -HUGE]).tolist()
