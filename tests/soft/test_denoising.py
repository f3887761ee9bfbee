"""Pixels that were flipped: how many there are, and what is left of them."""

import warnings

import numpy as np
import pytest
from scipy import ndimage

from hcnet import FeatureLearner
from hcnet.datasets import scanned_text
from hcnet.images import Images
from hcnet.metrics import glyph_scores
from hcnet.soft.denoising import flip_rates, without_flips, without_noise


@pytest.fixture(scope="module")
def text():
    return scanned_text(size=(500, 900), random_state=2)


@pytest.fixture(scope="module")
def noisy(text):
    return text.images ^ (np.random.default_rng(0).random(text.images.shape) < 0.03)


@pytest.fixture(scope="module")
def clean_learner(text):
    return FeatureLearner(algorithm="soft", random_state=0).fit(text.images)


@pytest.fixture(scope="module")
def learner(noisy):
    return FeatureLearner(algorithm="soft", random_state=0).fit(noisy)


@pytest.mark.parametrize(("p10", "p01"), [(0.0, 0.0), (0.02, 0.01), (0.005, 0.05), (0.1, 0.1)])
def test_rates_of_flips_are_measured(p10, p01):
    rng = np.random.default_rng(1)
    page = np.kron(rng.random((12, 12)) < 0.5, np.ones((25, 25))) > 0
    chance = np.where(page, p01, p10)
    on, off = flip_rates(page ^ (rng.random(page.shape) < chance))
    assert on == pytest.approx(p10, abs=0.001 + 0.1 * p10)
    assert off == pytest.approx(p01, abs=0.001 + 0.1 * p01)


def test_rates_of_flips_are_measured_in_thin_strokes(noisy):
    """Few pixels of letters have 24 on pixels around them."""
    assert flip_rates(noisy[0, 0]) == pytest.approx((0.03, 0.03), abs=0.004)


def test_a_clean_page_has_no_flips(text):
    assert max(flip_rates(text.images[0, 0])) < 1e-3
    images = Images(text.images, np.ones(text.images.shape, bool))
    (page,), bits = without_noise(images)
    np.testing.assert_array_equal(page, text.images[0, 0])
    assert bits == 0


def test_known_flips_are_taken_back():
    rng = np.random.default_rng(2)
    page = np.kron(rng.random((20, 20)) < 0.5, np.ones((20, 20))) > 0
    np.testing.assert_array_equal(without_flips(page, flip_rates(page)), page)  # nothing to do
    noisy = page ^ (rng.random(page.shape) < 0.03)
    cleaned = without_flips(noisy, flip_rates(noisy))
    assert (cleaned != page).sum() < 0.1 * (noisy != page).sum()


def test_a_part_tells_what_neighbours_cannot():
    rng = np.random.default_rng(3)
    page = rng.random((700, 700)) < 0.5
    noisy = page ^ (rng.random(page.shape) < 0.03)
    alone = without_flips(noisy, (0.03, 0.03))
    level = np.where(page, 0.97, 0.03).astype(np.float32)
    known = without_flips(noisy, (0.03, 0.03), level)
    assert (known != page).sum() < 0.2 * (alone != page).sum()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_regular_patterns_stay(step):
    for value in (False, True):
        page = np.full((60, 80), value)
        page[::step, ::step] ^= step > 1
        np.testing.assert_array_equal(without_flips(page, flip_rates(page)), page)


def lost(before, after):
    """Number of components of 20 pixels or more that have lost most of their ink."""
    label, n = ndimage.label(before, np.ones((3, 3)))
    size, left = (np.bincount(label[x], minlength=n + 1)[1:] for x in (before, before & after))
    return int(((size >= 20) & (2 * left < size)).sum())


def test_flips_of_a_page_are_taken_back_without_losing_or_inventing_anything(text, noisy, learner):
    page, given = text.images[0, 0], noisy[0, 0]
    clean = learner.denoise(noisy)[0, 0]
    wrong = (clean != page).sum()
    assert wrong < 0.6 * (ndimage.median_filter(given, 3) != page).sum()
    assert wrong < 0.12 * (given != page).sum()
    assert lost(page, clean) == lost(clean, page) == 0


def test_a_page_without_flips_stays(text, clean_learner):
    assert (clean_learner.denoise(text.images) != text.images).mean() < 0.0003


def test_parts_of_a_noisy_page_are_those_of_the_page(text, learner, clean_learner):
    scores, clean = (
        glyph_scores(model.placements_, model.features_, text) for model in (learner, clean_learner)
    )
    assert scores.in_pure_parts > clean.in_pure_parts - 0.15
    assert scores.parts_per_shape < clean.parts_per_shape + 0.1
    assert scores.missing < clean.missing + 0.05


def test_little_explained_ink_is_said(text, learner):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.denoise(text.images)
    page = np.kron(np.random.default_rng(5).random((50, 90)) < 0.5, np.ones((10, 10))) > 0
    with pytest.warns(UserWarning, match="% of the ink of X.*Learn the parts from X itself"):
        learner.denoise(page[None])
