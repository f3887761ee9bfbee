"""Networks whose levels keep active sets, or whose lowest level keeps messages near ink."""

from __future__ import annotations

import numpy as np
import pytest
from definition import CLEAR, PASSING, layer, network

from hcnet.archive.kinds import save
from hcnet.engine.active import geometry
from hcnet.engine.active.active_layer import ActivePassing
from hcnet.engine.engines import ReadyEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.factors import HUGE
from hcnet.hierarchy import network_messages
from hcnet.hierarchy.decoding import forward
from hcnet.hierarchy.network import sample, sample_templates
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, ink, passing_memory
from hcnet.images import Images
from tests.engine.dense_twin import dense_twin
from tests.memory_peak import memory_peak


@pytest.fixture(autouse=True)
def every_level_keeps_an_active_set(monkeypatch):
    monkeypatch.setattr(ReadyEngine, "keeps_active_set", lambda how, *size: how.name == "active")
    monkeypatch.setattr(geometry, "PER_TILE", 10**4)
    monkeypatch.setattr(geometry, "AT_ONCE", 10**4)
    monkeypatch.setattr(geometry, "SHARE", 1)


def start(name, seed, certainty, engine="active", schedule="sequential"):
    net, rng = PASSING[name], np.random.default_rng(seed)
    weights = [rng.random(level.weight_shape) < 0.4 for level in net.levels]
    pixels, _ = sample(net, weights, sample_templates(net, 4, rng), rng)
    images = Images(pixels, rng.random(pixels.shape) < 0.95)
    priors = [np.where(W, certainty, -certainty) + rng.normal(0, 0.5, W.shape) for W in weights]
    priors = [prior.astype(np.float32) for prior in priors]
    allowed = np.ones((4, net.classes.n_templates), bool)
    evidence = images.evidence(net.noise)
    passing = NetworkPassing(
        net, evidence, priors, allowed, ReadyEngine(engine, Schedule(schedule)), rng
    )
    return net, weights, images, passing


@pytest.mark.parametrize("certainty", [2.0, 8.0, HUGE])
@pytest.mark.parametrize("name", PASSING)
def test_every_level_settles_at_a_fixed_point_of_the_dense_engine(name, certainty):
    """Given what it hears from its neighbours; all levels together need not settle."""
    settled = [0] * len(PASSING[name].levels)
    for seed in range(10):
        net, _, _, passing = start(name, seed, certainty)
        for _ in range(5):
            passing.forward([0.5] * len(net.levels))
            passing.backward()
        for k, trees in enumerate(passing.levels):
            assert isinstance(trees, ActivePassing)
            rng = np.random.default_rng(0)
            changes = (trees.sweep(Schedule(), rng, 0.5) for _ in range(200))
            if not any(change < 1e-4 for change in changes):
                continue
            settled[k] += 1
            twin = dense_twin(trees)
            got, wanted = trees.placement_beliefs(), twin.placement_beliefs()
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=0.01)
            np.testing.assert_allclose(trees.down(), twin.down(), rtol=1e-5, atol=0.01)
            assert twin.sweep(Schedule(), rng) < 0.01
    assert min(settled) >= 2


@pytest.mark.parametrize("name", PASSING)
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_first_pass_is_the_fast_forward_pass(name, schedule):
    net, weights, images, passing = start(name, 0, HUGE, schedule=schedule)
    passing.forward([1.0] * len(net.levels))
    wanted = forward(net, weights, images.evidence(net.noise))
    for got, expected in zip(passing.up, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)
        assert np.ptp(expected) > 1


def test_what_is_left_out_on_the_way_down_changes_nothing(monkeypatch):
    beliefs = []
    for exact in (False, True):
        if exact:
            monkeypatch.setattr(NetworkPassing, "_least", lambda self, k: -HUGE)
        net, _, _, passing = start("two levels", 3, 2.0)
        for _ in range(6):
            passing.forward([0.5] * len(net.levels))
            passing.backward()
        beliefs.append(passing.weight_beliefs())
    for cut, exact in zip(*beliefs, strict=True):
        np.testing.assert_allclose(cut, exact, atol=1e-3)
        assert np.ptp(exact) > 5


def test_placements_that_have_become_probable_count_on_the_way_down_at_once():
    """Before they have messages of their own: as all placements do in the first pass."""
    for name in PASSING:
        net, _, _, passing = start(name, 1, 8.0)
        _, _, _, dense = start(name, 1, 8.0, engine="dense")
        for one in (passing, dense):
            one.forward([1.0] * len(net.levels))
        heard = []
        for one in (passing, dense):
            top = one.levels[-1]
            prior = np.full_like(one.up[-1], 3.0)
            top.set_placement_prior(prior)
            heard.append(top.down())
        assert heard[1].max() > 3
        np.testing.assert_allclose(*heard, rtol=1e-4, atol=1e-3)


def test_the_memory_of_a_network_is_known(monkeypatch):
    monkeypatch.undo()
    net = network(
        layer(48, (12, 12), (3, 3)),
        layer(10, (2, 2), (3, 3)),
        image_size=(40, 40),
        categories=tuple(range(10)),
        noise=CLEAR,
    )
    rng = np.random.default_rng(0)
    pixels = rng.random((20, 1, 40, 40)) < 0.2
    evidence = Images(pixels, np.ones_like(pixels)).evidence(net.noise)
    allowed = np.ones((20, 10), bool)
    priors = [rng.normal(-0.5, 1, level.weight_shape).astype(np.float32) for level in net.levels]

    def run():
        passing = NetworkPassing(net, evidence, priors, allowed, ReadyEngine("active"), rng)
        assert isinstance(passing.levels[0], ActivePassing)
        for _ in range(3):
            passing.forward([0.5, 0.5])
            passing.backward()

    peak = memory_peak(run)
    assert peak < passing_memory(ReadyEngine("active"), net, 20)


# Messages near ink alone.


def start_near_ink(name, seed, on=0.05, observed=0.9):
    net, rng = PASSING[name], np.random.default_rng(seed)
    shape = (4, net.n_channels, *net.image_size)
    images = Images(rng.random(shape) < on, rng.random(shape) < observed)
    priors = [rng.normal(0, 2, level.weight_shape).astype(np.float32) for level in net.levels]
    allowed = np.ones((4, net.classes.n_templates), bool)
    evidence = images.evidence(net.noise)
    return net, images, NetworkPassing(net, evidence, priors, allowed, ReadyEngine("beliefs"), rng)


@pytest.mark.parametrize("name", PASSING)
def test_elements_without_ink_never_hear_that_they_are_on(name):
    """So that who has messages is known before a run, and for all of it."""
    explained = 0
    for seed in range(6):
        net, images, passing = start_near_ink(name, seed)
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


@pytest.mark.parametrize("name", PASSING)
def test_pools_that_sleep_would_have_said_the_same(name, monkeypatch):
    found = []
    for asleep in (True, False):
        if not asleep:
            monkeypatch.setattr(network_messages, "set_active_pools", lambda pools, some: None)
        net, _, passing = start_near_ink(name, 2)
        assert (passing._pools[0].active is not None) == asleep
        for _ in range(6):
            passing.forward([0.5] * len(net.levels))
            passing.backward()
        found.append(save(passing).arrays | dict(enumerate(passing.weight_beliefs())))
    for what, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][what], err_msg=str(what))


def test_the_memory_of_a_network_that_uses_ink_is_known():
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
