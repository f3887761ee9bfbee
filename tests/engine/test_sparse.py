"""Messages that are zero are left out, and beliefs stay those of the dense engine, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.schedules import Schedule
from hcnet.engine.sparse import passing as sparse
from hcnet.engine.sparse.passing import Room, SparsePassing, sparse_memory
from hcnet.engine.sparse.state import ALL
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of
from tests.engine.random_images import random_images
from tests.memory_peak import memory_peak

K = 6.9  # evidence of a pixel
# name: (layer, images)
LAYERS = {
    "page": (FeatureLayer(3, 1, (4, 4), (14, 15), "full"), 1),
    "small images": (FeatureLayer(3, 1, (4, 3), (9, 8), "valid"), 3),
    "two channels": (FeatureLayer(2, 2, (3, 3), (8, 9), "full"), 2),
    "large features": (FeatureLayer(3, 2, (7, 6), (9, 9), "valid"), 3),
    "odd sizes": (FeatureLayer(5, 1, (3, 5), (20, 17), "full"), 2),
}
ANY_LAYER = pytest.mark.parametrize("name", LAYERS)


def problem(name, seed, lead, uneven=False):
    """Images of random parts, not all pixels observed; W's priors lead to the parts, or not."""
    layer, n = LAYERS[name]
    rng = np.random.default_rng(seed)
    parts, pixels = random_images(layer, n, 5, rng)
    pixels = pixels ^ (rng.random((n, 1, *layer.image_size)) < 0.05)
    evidence = np.where(pixels, K, -K).astype(np.float32)
    if uneven:
        evidence *= rng.uniform(0.0, 2.0, evidence.shape).astype(np.float32)
        evidence[rng.random(evidence.shape) < 0.1] = 0
    prior = rng.uniform(-0.6, -0.4, (layer.n_channels, layer.n_features, *layer.feature_size))
    prior += lead * np.where(np.swapaxes(parts, 0, 1), 1, -1)
    trees = trees_of(rng.random(pixels.shape) < 0.9, rng)
    return layer, trees, evidence, -2 * K, prior.astype(np.float32)


def both(start, room=None):
    layer, trees, evidence, *_ = start
    room = room or Room(layer, len(evidence), len(trees))
    return SparsePassing(*start, room), DensePassing(CPUEngine(), *start)


def sweeps_are_the_same(got, wanted, sweeps=6):
    for k in range(sweeps):
        got.sweep(np.random.default_rng(k))
        wanted.sweep(Schedule(), np.random.default_rng(k))
        np.testing.assert_array_equal(got.weight_beliefs(), wanted.weight_beliefs())
        np.testing.assert_array_equal(got.placement_beliefs(), wanted.placement_beliefs())


@ANY_LAYER
@pytest.mark.parametrize("lead", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("uneven", [False, True])
def test_beliefs_are_those_of_the_dense_engine(name, lead, uneven):
    learned = 0
    for seed in range(10):
        got, wanted = both(problem(name, seed, lead, uneven))
        sweeps_are_the_same(got, wanted)
        learned += (got.placement_beliefs() > 0).any()
    assert learned >= 5


@ANY_LAYER
def test_long_lists_are_stored_whole(name, monkeypatch):
    monkeypatch.setattr(sparse, "SHARE", 10**6)
    long = 0
    for seed in range(5):
        got, wanted = both(problem(name, seed, 1.0))
        sweeps_are_the_same(got, wanted, sweeps=1)
        long += (got._said.counts == ALL).sum()
        sweeps_are_the_same(got, wanted)
    assert long > 10


def test_weights_may_be_clamped():
    layer, trees, evidence, prior, weights = problem("page", 3, 1.0)
    weights[0, 0, 0], weights[0, 0, 1] = 1e30, -1e30
    got, wanted = both((layer, trees, evidence, prior, weights))
    sweeps_are_the_same(got, wanted)


@ANY_LAYER
def test_a_room_may_hold_anything(name):
    layer, trees, evidence, *_ = problem(name, 0, 1.0)
    room = Room(layer, len(evidence), len(trees) + 7)
    for array in (room.to_field, room.to_kernel, room.what):
        array[:] = np.nan
    room.whom[:] = -5
    for seed in (0, 1):
        sweeps_are_the_same(*both(problem(name, seed, 1.0), room))


def test_most_messages_are_zero_and_left_out():
    """On a page on which most pixels are explained, few trees have told all their leaves."""
    got, _ = both(problem("page", 1, 5.0))
    rng = np.random.default_rng(0)
    for _ in range(5):
        got.sweep(rng)
    assert (got._said.told == ALL).mean() < 0.2
    assert got._lists.n[0] < 0.8 * Layout(LAYERS["page"][0], 1).leaves


@ANY_LAYER
def test_memory_is_known_before_a_run(name):
    start = problem(name, 0, 0.0)
    layer, trees, evidence, *_ = start

    def run():
        room = Room(layer, len(evidence), len(trees))
        passing = SparsePassing(*start, room)
        for _ in range(2):
            passing.sweep(np.random.default_rng(0))

    said = sparse_memory(layer, len(evidence), len(trees))
    assert 0.5 * said < memory_peak(run) < 1.1 * said + 5000
