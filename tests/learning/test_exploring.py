"""Regions in turn give features their first shape."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest

from hcnet import FeatureLearner
from hcnet.datasets import letters
from hcnet.engine.driver import Status
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning import message_passing
from hcnet.learning.learn import starting_priors
from hcnet.learning.message_passing import (
    FADED,
    MOST_REGIONS,
    WINDOWS,
    exploration_memory,
    explore,
    regions,
    weight_prior,
)
from hcnet.messages import Layout
from hcnet.objective import Priors
from tests.memory_peak import memory_peak


def page(height, width, n=1, seed=0):
    rng = np.random.default_rng(seed)
    pixels = rng.random((n, 1, height, width)) < 0.3
    return Images(pixels, rng.random(pixels.shape) < 0.9)


def windows_of(images, block):
    """Every block of the size of another image, as bytes."""
    height, width = block.size
    both = np.stack([images.pixels, images.observed])
    views = np.lib.stride_tricks.sliding_window_view(both, (height, width), (3, 4))
    return {view.tobytes() for view in np.moveaxis(views, 0, 4).reshape(-1, 2, height, width)}


@pytest.mark.parametrize(
    ("size", "n", "window"),
    [((100, 90), 1, (8, 8)), ((14, 14), 40, (6, 6)), ((30, 5), 3, (4, 4)), ((200, 50), 1, (9, 7))],
)
def test_regions_are_cut_from_the_images(size, n, window):
    images = page(*size, n)
    layer = FeatureLayer(3, 1, window, size)
    found = regions(layer, images, np.random.default_rng(0))
    assert 1 <= len(found) <= MOST_REGIONS
    for region in found:
        assert region.size[0] <= 1.5 * WINDOWS * window[0]
        assert region.size[1] <= 1.5 * WINDOWS * window[1]
        assert all(a <= b for a, b in zip(region.size, size, strict=True))
        known = windows_of(images, region)
        for pixels, observed in zip(region.pixels, region.observed, strict=True):
            assert np.stack([pixels[0], observed[0]]).tobytes() in known
    pixels = [region.n_observed for region in found]
    assert max(pixels) < 3 * WINDOWS**2 * np.prod(window)


def test_small_images_come_in_groups():
    layer = FeatureLayer(5, 1, (6, 6), (14, 14))
    found = regions(layer, page(14, 14, n=100), np.random.default_rng(0))
    assert len(found) == MOST_REGIONS
    assert {region.n_images for region in found} == {3}


def test_blank_regions_are_not_looked_at():
    images = page(120, 120)
    images.pixels[:, :, :, 30:] = False
    layer = FeatureLayer(3, 1, (7, 7), (120, 120))
    found = regions(layer, images, np.random.default_rng(0))
    assert 0 < len(found) <= 4
    assert all((region.pixels & region.observed).any() for region in found)
    nothing = Images(np.zeros((1, 1, 60, 60), bool), np.ones((1, 1, 60, 60), bool))
    assert regions(layer, nothing, np.random.default_rng(0)) == []


@pytest.mark.parametrize("limit", [2**20, 2**23, 2**30])
@pytest.mark.parametrize(
    ("layer", "n"),
    [
        (FeatureLayer(8, 1, (10, 10), (300, 200)), 1),
        (FeatureLayer(12, 1, (12, 12), (71, 71)), 1),
        (FeatureLayer(5, 1, (6, 6), (14, 14)), 60),
        (FeatureLayer(4, 2, (30, 40), (90, 90)), 1),
    ],
)
def test_a_region_takes_no_more_memory_than_is_said_and_allowed(layer, n, limit, monkeypatch):
    monkeypatch.setattr(message_passing, "REGION_BYTES", limit)
    rng = np.random.default_rng(0)
    pixels = rng.random((n, layer.n_channels, *layer.image_size)) < 0.3
    found = regions(layer, Images(pixels, np.ones_like(pixels)), rng)
    assert len(found) > 0
    assert exploration_memory(layer) <= limit
    for region in found:
        of_region = Layout(replace(layer, image_size=region.size), region.n_images)
        needed = of_region.memory(region.n_observed)
        assert needed <= exploration_memory(layer)


def test_a_run_goes_on_until_what_led_it_is_gone():
    """A page of one part settles at once, with what was explored still in the beliefs."""
    rng = np.random.default_rng(0)
    part, page = rng.random((8, 8)) < 0.5, np.zeros((160, 160), bool)
    for r in range(5):
        for c in range(5):
            page[30 * r + 5 : 30 * r + 13, 30 * c + 5 : 30 * c + 13] = part
    found = FeatureLearner(5, (10, 10), algorithm="mpmp", random_state=0).fit(page)
    assert found.status_ == Status.CONVERGED.value
    assert found.n_iter_ > FADED
    assert found.history_[-1].belief_change < 1e-3


@pytest.mark.parametrize("algorithm", ["mpmp", "refined"])
def test_one_sweep_is_enough_to_get_something(algorithm):
    data = letters(size=(150, 150), n_placements=90, random_state=0)
    found = FeatureLearner(12, (12, 12), algorithm=algorithm, max_iter=1, random_state=0)
    found.fit(data.images)
    assert len(found.features_) > 0


def test_a_page_without_ink_ends_at_once():
    blank = np.zeros((100, 100), bool)
    blank[0, 0] = True
    learner = FeatureLearner(16, (12, 12), algorithm="mpmp", random_state=0)
    with pytest.warns(UserWarning, match="No part was found"):
        learner.fit(np.tile(blank, (2, 2)))
    assert len(learner.features_) == 0


def lettered(size, seed=0, noise=0.0):
    """A page of letters and how to begin with it."""
    data = letters(
        size=(size, size), n_placements=size * size // 250, noise=noise, random_state=seed
    )
    images = Images(data.images.astype(bool), np.ones(data.images.shape, bool))
    layer = FeatureLayer(12, 1, (12, 12), (size, size))
    priors = starting_priors(Priors(), layer.feature_pixels)[0]
    rng = np.random.default_rng(seed)
    prior = weight_prior(priors.p_W, (1, 12, 12, 12), rng)
    return layer, images, priors, prior, rng


def test_exploring_takes_the_memory_that_it_says():
    layer, *start = lettered(110)
    state = start[-1].bit_generator.state

    def run():
        start[-1].bit_generator.state = state
        explore(layer, *start, [])

    assert memory_peak(run) <= 1.1 * exploration_memory(layer) + 100 * 110**2


def test_the_number_of_threads_does_not_matter():
    before, found = numba.get_num_threads(), []
    data = letters(size=(150, 150), n_placements=90, noise=0.01, random_state=2)
    for threads in (1, before):
        numba.set_num_threads(threads)
        try:
            learner = FeatureLearner(12, (12, 12), algorithm="mpmp", max_iter=4, random_state=0)
            found.append(learner.fit(data.images))
        finally:
            numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0].features_, found[1].features_)
    np.testing.assert_array_equal(found[0].placements_, found[1].placements_)
    assert len(found[0].placements_) > 50


def test_exploring_gives_features_a_shape():
    layer, images, priors, prior, rng = lettered(150)
    learned = explore(layer, images, priors, prior, rng, [])
    on = (prior + learned > 0).sum(axis=(0, 2, 3))
    assert (on > 10).sum() >= 6  # nothing was on before
    assert not (prior > 0).any()


def test_the_active_set_learns_as_well_as_the_dense_engine_in_a_fraction_of_the_memory():
    data = letters(size=(150, 150), n_placements=90, random_state=1)
    ratios, memory = [], []
    for engine in ("dense", "active"):
        learner = FeatureLearner(12, (12, 12), algorithm="mpmp", engine=engine, random_state=0)
        learner.fit(data.images)
        ratios.append(learner.compression_ratio_)
        memory.append(learner.memory_)
    assert ratios[1] < 1.2 * ratios[0] < 0.3
    assert memory[1] < memory[0] / 5
