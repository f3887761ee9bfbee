"""The active set: a fixed point of it is one of the dense engine, message by message."""

from __future__ import annotations

import numpy as np
import pytest
from dense_twin import dense_twin

from hcnet.engine.active import geometry
from hcnet.engine.active.active_layer import ActivePassing, active_memory
from hcnet.engine.active.geometry import coordinates
from hcnet.engine.engines import ReadyEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.layers import FeatureLayer
from tests.engine import random_images
from tests.engine.random_images import K, with_one_thread_and_several
from tests.memory_peak import memory_peak

# name: (layer, images)
LAYERS = {
    "page": (FeatureLayer(3, 1, (4, 4), (14, 15), "full"), 1),
    "small images": (FeatureLayer(3, 1, (4, 3), (9, 8), "valid"), 3),
    "two channels": (FeatureLayer(2, 2, (3, 3), (8, 9), "full"), 2),
    "large features": (FeatureLayer(3, 2, (7, 6), (9, 9), "valid"), 3),
}
ANY_LAYER = pytest.mark.parametrize("name", LAYERS)


@pytest.fixture(autouse=True)
def no_limit(monkeypatch):
    """Every undecided placement may be active."""
    monkeypatch.setattr(geometry, "PER_TILE", 10**5)
    monkeypatch.setattr(geometry, "AT_ONCE", 10**5)
    monkeypatch.setattr(geometry, "SHARE", 1)


def problem(name, seed, lead):
    return random_images.problem(*LAYERS[name], seed, lead)


def settle(passing, schedule="sequential", sweeps=300, seed=0):
    rng = np.random.default_rng(seed)
    order = Schedule(schedule, rounds=3, block_size=20)
    steps = (passing.sweep(order, rng, 1.0 if k < 30 else 0.5) for k in range(sweeps))
    return any(change < 1e-4 for change in steps)


@ANY_LAYER
@pytest.mark.parametrize("lead", [0.0, 1.0, 20.0])
def test_a_fixed_point_is_one_of_the_dense_engine(name, lead):
    settled = 0
    for seed in range(6):
        passing = ActivePassing(*problem(name, seed, lead))
        if not settle(passing):
            continue
        settled += 1
        assert 0 < passing.n_active < passing.placement_beliefs().size
        twin = dense_twin(passing)
        for what in ("placement_beliefs", "weight_beliefs"):
            got, wanted = (getattr(one, what)() for one in (passing, twin))
            np.testing.assert_allclose(got, wanted, atol=2e-3, err_msg=what)
        np.testing.assert_allclose(passing.up(), twin.up(), atol=2e-3)
        assert twin.sweep(Schedule(), np.random.default_rng(0)) < 2e-3
    assert settled >= 4


@ANY_LAYER
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_every_schedule_settles_at_a_fixed_point_of_the_dense_engine(name, schedule):
    passing = ActivePassing(*problem(name, 1, 20.0))
    assert settle(passing, schedule)
    assert dense_twin(passing).sweep(Schedule(), np.random.default_rng(0)) < 2e-3


@ANY_LAYER
def test_messages_to_R_are_those_of_the_dense_engine(name):
    layer, observed, evidence, prior, weights = problem(name, 2, 20.0)
    everything = np.ones_like(observed)
    evidence = np.where(observed, evidence, -1).astype(np.float32)
    passing = ActivePassing(layer, everything, evidence, prior, weights)
    assert settle(passing)
    down = passing.down()
    assert down.max() > 0 > down.min() > -1e4
    np.testing.assert_allclose(down, dense_twin(passing).down(), atol=2e-3)


def test_new_evidence_and_priors_are_taken_up():
    layer, observed, evidence, prior, weights = problem("small images", 3, 20.0)
    everything = np.ones_like(observed)
    rng = np.random.default_rng(0)
    passing = ActivePassing(layer, everything, np.zeros_like(evidence), -1e30, weights)
    passing.sweep(Schedule(), rng)
    assert passing.n_active == 0
    assert np.abs(passing.up()).max() == 0
    passing.set_evidence(evidence)
    passing.set_placement_prior(
        np.full((len(evidence), layer.n_features, *layer.placement_size), prior)
    )
    assert settle(passing)
    wanted = ActivePassing(layer, everything, evidence, prior, weights)
    assert settle(wanted)
    np.testing.assert_allclose(passing.placement_beliefs(), wanted.placement_beliefs(), atol=2e-3)


@pytest.mark.parametrize("schedule", ["per-image", "blocks"])
def test_the_number_of_threads_does_not_matter(schedule):
    def run():
        passing = ActivePassing(*problem("small images", 4, 20.0))
        rng = np.random.default_rng(0)
        for _ in range(4):
            passing.sweep(Schedule(schedule, rounds=3), rng)
        return passing.weight_beliefs()

    beliefs = with_one_thread_and_several(run)
    np.testing.assert_array_equal(*beliefs)
    assert np.ptp(beliefs[0]) > K


@ANY_LAYER
def test_no_belief_is_above_what_calls_can_reach(name):
    passing = ActivePassing(*problem(name, 5, 1.0))
    for k in range(4):
        passing.sweep(Schedule(), np.random.default_rng(k))
        g = passing._g
        calls = np.maximum(passing._U, 0).reshape(-1, g.channels, g.board_height, g.board_width)
        windows = np.lib.stride_tricks.sliding_window_view(
            calls.sum(axis=1, dtype=float), (g.window_height, g.window_width), (1, 2)
        )
        wanted = windows.sum(axis=(3, 4)) + passing._prior
        reach = passing._reach().reshape(wanted.shape)
        np.testing.assert_allclose(reach, wanted, rtol=1e-5, atol=1e-4)
        inactive = passing.placement_beliefs().copy()
        n, f, i, j = coordinates(g, passing._edges.where).T
        inactive[n, f, i, j] = -np.inf
        assert (inactive.max(axis=1) <= reach).all()


def test_no_more_placements_are_active_than_a_tile_may_have(monkeypatch):
    monkeypatch.setattr(geometry, "PER_TILE", 5)
    monkeypatch.setattr(geometry, "AT_ONCE", 2)
    passing = ActivePassing(*problem("page", 5, 1.0))
    rng = np.random.default_rng(0)
    most = 0
    for k in range(6):
        passing.sweep(Schedule(), rng)
        g = passing._g
        position, _ = np.divmod(passing._edges.where, g.features)
        tile = position // g.width // 4 * 100 + position % g.width // 4
        assert np.unique(tile, return_counts=True)[1].max(initial=0) <= min(2 * k + 2, 5)
        most = max(most, passing.n_active)
    assert most > 8


def test_memory_is_known_before_a_run(monkeypatch):
    monkeypatch.setattr(geometry, "PER_TILE", 32)
    monkeypatch.setattr(geometry, "AT_ONCE", 32)
    layer = FeatureLayer(8, 1, (10, 10), (90, 90))
    rng = np.random.default_rng(0)
    observed = np.ones((1, 1, 90, 90), bool)
    evidence = np.where(rng.random(observed.shape) < 0.3, K, -K).astype(np.float32)
    weights = rng.uniform(-0.6, -0.4, (1, 8, 10, 10)).astype(np.float32)

    def run():
        passing = ActivePassing(layer, observed, evidence, -2 * K, weights)
        for _ in range(3):
            passing.sweep(Schedule(), np.random.default_rng(0))
        return passing.n_active

    assert run() > 2000
    peak = memory_peak(run)
    assert 0.5 * active_memory(layer, 1) < peak < active_memory(layer, 1)


def test_small_layers_store_everything(monkeypatch):
    monkeypatch.undo()  # the limits as they are
    small, n = LAYERS["page"]
    page = FeatureLayer(16, 1, (12, 12), (200, 200))
    assert not ReadyEngine().keeps_active_set(small, n, 14 * 15)
    assert ReadyEngine().keeps_active_set(page, 1, 40_000)
    assert not ReadyEngine("dense").keeps_active_set(page, 1, 40_000)
    dense, sparse = (ReadyEngine(name).memory(page, 1, 40_000) for name in ("dense", "active"))
    assert sparse < dense / 10
