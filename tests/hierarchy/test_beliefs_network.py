"""Networks whose lowest level stores messages only near ink."""

from __future__ import annotations

import numpy as np
import pytest
from definition import layer, network

from hcnet.archive.kinds import save
from hcnet.engine.active.active_layer import ActivePassing
from hcnet.engine.beliefs.layer_near_ink import BeliefPassing
from hcnet.engine.dense import DensePassing
from hcnet.engine.engines import ReadyEngine
from hcnet.hierarchy import network_messages
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, ink, passing_memory
from hcnet.images import Images, Noise
from tests.memory_peak import memory_peak

CLEAR = Noise(1e-5, 1e-5)
NETWORKS = {
    "two levels": network(
        layer(3, (4, 4), (3, 3), perturbation=0.3),
        layer(3, (2, 2), (2, 2), perturbation=0.3),
        image_size=(9, 9),
        categories=(0, 0, 1),
        noise=CLEAR,
    ),
    "pools beyond the border": network(
        layer(2, (3, 3), (3, 3), "same"),
        layer(2, (2, 3), (3, 1), "same"),
        image_size=(8, 9),
        channels=2,
        categories=(0, 1),
        p_on=0.1,
        noise=CLEAR,
    ),
    "three levels": network(
        layer(3, (3, 3), (2, 2)),
        layer(2, (2, 2), (2, 1)),
        layer(3, (1, 2), (1, 2), perturbation=0.2),
        image_size=(7, 8),
        categories=(0, 1, 1),
        noise=CLEAR,
    ),
}


def start(name, seed, on=0.05, observed=0.9):
    net, rng = NETWORKS[name], np.random.default_rng(seed)
    shape = (4, net.n_channels, *net.image_size)
    images = Images(rng.random(shape) < on, rng.random(shape) < observed)
    priors = [rng.normal(0, 2, level.weight_shape).astype(np.float32) for level in net.levels]
    allowed = np.ones((4, net.classes.n_templates), bool)
    evidence = images.evidence(net.noise)
    return net, images, NetworkPassing(net, evidence, priors, allowed, ReadyEngine("beliefs"), rng)


@pytest.mark.parametrize("name", NETWORKS)
def test_elements_without_ink_never_hear_that_they_are_on(name):
    """So that who has messages is known before a run, and for all of it."""
    explained = 0
    for seed in range(6):
        net, images, passing = start(name, seed)
        near = ink(net, images.evidence(net.noise))
        assert 0 < near.mean() < 0.8
        assert near.sum() == count_ink(ReadyEngine("beliefs"), net, images)
        for _ in range(8):
            passing.forward([0.7] * len(net.levels))
            heard = passing._pools[0].to_R
            assert heard[~near].max() <= 0
            explained += (heard[near] <= 0).sum()
            passing.backward()
    assert explained > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_levels_above_keep_all_messages_or_an_active_set(name):
    _, _, passing = start(name, 0)
    first, *above = passing.levels
    assert isinstance(first, BeliefPassing)
    assert not any(isinstance(level, BeliefPassing) for level in above)
    assert all(isinstance(level, DensePassing | ActivePassing) for level in above)


@pytest.mark.parametrize("name", NETWORKS)
def test_passes_settle_something(name):
    net, _, passing = start(name, 1)
    before = passing.weight_beliefs()[0].copy()  # priors, of which some are larger than others
    for _ in range(10):
        passing.forward([0.5] * len(net.levels))
        passing.backward()
    for beliefs in (*passing.weight_beliefs(), *passing.placement_beliefs()):
        assert np.isfinite(beliefs).all()
    assert np.abs(passing.weight_beliefs()[0] - before).max() > 2


@pytest.mark.parametrize("name", NETWORKS)
def test_pools_that_sleep_would_have_said_the_same(name, monkeypatch):
    found = []
    for asleep in (True, False):
        if not asleep:
            monkeypatch.setattr(network_messages, "set_active_pools", lambda pools, some: None)
        net, _, passing = start(name, 2)
        assert (passing._pools[0].active is not None) == asleep
        for _ in range(6):
            passing.forward([0.5] * len(net.levels))
            passing.backward()
        found.append(save(passing).arrays | dict(enumerate(passing.weight_beliefs())))
    for what, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][what], err_msg=str(what))


def test_the_memory_of_a_network_is_known():
    net = network(
        layer(24, (18, 18), (3, 3)),
        layer(10, (1, 1), (3, 3)),
        image_size=(24, 24),
        channels=6,
        categories=tuple(range(10)),
        noise=CLEAR,
    )
    rng = np.random.default_rng(0)
    pixels = rng.random((20, 6, 24, 24)) < 0.01
    images = Images(pixels, np.ones_like(pixels))
    allowed = np.ones((20, 10), bool)
    priors = [rng.normal(-3, 1, level.weight_shape).astype(np.float32) for level in net.levels]

    def run():
        evidence = images.evidence(net.noise)
        passing = NetworkPassing(net, evidence, priors, allowed, ReadyEngine("beliefs"), rng)
        for _ in range(2):
            passing.forward([0.5, 0.5])
            passing.backward()

    peak = memory_peak(run)
    promised = passing_memory(
        ReadyEngine("beliefs"), net, 20, n_ink=count_ink(ReadyEngine("beliefs"), net, images)
    )
    assert 0.6 * promised < peak < promised
    assert promised < passing_memory(ReadyEngine("dense"), net, 20) / 4
