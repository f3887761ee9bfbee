"""Sums of what is on the grid are exact."""

from fractions import Fraction

import numpy as np
import pytest

from hcnet.datasets import deconvolution
from hcnet.engine import planes
from hcnet.engine.placements import PlacementPassing
from hcnet.factors import HUGE, and_down, and_up, damped, or_message
from hcnet.grid import STEP, on_grid, pool_share, to_steps, tree_share
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.learning.message_passing import placement_prior, weight_prior
from hcnet.objective import Priors
from hcnet.solutions.explanation import Canvas
from hcnet.solutions.improver import Improver


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
    drawn = weight_prior(0.4, (50, 50), np.random.default_rng(0))
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


@pytest.mark.parametrize("damping", [0.05, 0.1, 1 / 3, 0.9, 1.0])
def test_damped_messages_stay_on_the_grid_and_are_the_same_in_any_precision(damping):
    rng = np.random.default_rng(2)
    for old, new in on_grid(rng.normal(0, 100, (500, 2))):
        share = pool_share(damping)
        found = damped(old, new, share, planes.POOL_TO_STEPS)
        assert found == damped(float(old), float(new), share, planes.POOL_TO_STEPS)
        assert multiples(found)
        # Not even a product is rounded before the steps are.
        left = Fraction(1 - float(share)) * Fraction(float(new) - float(old))
        assert found == float(new) - round(left / Fraction(STEP)) * STEP
        wanted = float(old) + damping * (float(new) - float(old))
        assert abs(found - wanted) <= STEP / 2 + 1e-5
        if damping == 1:
            assert found == new


@pytest.mark.parametrize("damping", [1e-4, 0.05, 0.1, 1 / 3, 0.5, 0.9, 1.0])
def test_trees_are_damped_exactly_in_single_precision(damping):
    share, rng = tree_share(damping), np.random.default_rng(3)
    assert abs(share - damping) <= 1 / 64
    steps = to_steps(np.float32)
    for old, new in on_grid(rng.uniform(-30, 30, (500, 2))):
        found = damped(old, new, np.float32(share), steps)
        assert isinstance(found, np.float32)
        assert found == damped(float(old), float(new), share, planes.POOL_TO_STEPS)


def test_damped_messages_of_certainties_stay_finite():
    for old, new in ((0.0, -HUGE), (-HUGE, HUGE), (HUGE, 1.5)):
        wanted = pytest.approx(0.75 * old + 0.25 * new)
        assert damped(old, new, 0.25, planes.POOL_TO_STEPS) == wanted
        single = np.float32(old), np.float32(new), np.float32(0.25), to_steps(np.float32)
        assert damped(*single) == wanted


def test_placements_of_known_parts_are_found_on_the_grid():
    data = deconvolution(n_images=3, random_state=0)
    images = Images(data.images, np.ones(data.images.shape, bool))
    layer = FeatureLayer(4, 1, data.feature_size, images.size, "full")
    improver = Improver(Canvas(layer, images), Priors())
    features = [improver.feature(weights) for weights in data.features]
    passing = PlacementPassing(
        features, improver, Priors(p_S=0.0123, p01=0.013, p10=0.027), np.random.default_rng(0)
    )
    for _ in range(3):
        passing.step()
        assert passing.state().counts.placed > 0
        assert multiples(passing._belief)
        assert multiples(passing._messages)


def test_what_is_certain_stays_so():
    assert on_grid([HUGE, -HUGE]).tolist() == np.float32([HUGE, -HUGE]).tolist()
