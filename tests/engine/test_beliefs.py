"""Belief-based passing: message by message what its definition says."""

from __future__ import annotations

import numpy as np
import pytest

from hcnet.engine import near_ink
from hcnet.engine.active.active_layer import ActivePassing
from hcnet.engine.dense import DensePassing
from hcnet.engine.engines import ReadyEngine
from hcnet.engine.near_ink import BLOCKS, BLOCKS_PER_TURN, BeliefPassing, belief_memory, in_blocks
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.factors import HUGE, and_up
from hcnet.layers import FeatureLayer
from hcnet.messages import trees_of
from tests.engine.random_images import with_one_thread_and_several
from tests.memory_peak import memory_peak

K = 6.9  # evidence of a pixel
# name: (layer, images)
LAYERS = {
    "page": (FeatureLayer(2, 1, (3, 4), (7, 8), "full"), 1),
    "small images": (FeatureLayer(2, 1, (3, 2), (6, 5), "valid"), 3),
    "two channels": (FeatureLayer(2, 2, (2, 3), (5, 5), "full"), 2),
    "large features": (FeatureLayer(2, 2, (5, 4), (6, 6), "valid"), 3),
    "window beyond the image": (FeatureLayer(2, 1, (5, 5), (3, 4), "full"), 2),
}
ANY_LAYER = pytest.mark.parametrize("name", LAYERS)


class Definition:
    """Trees with ink by the reference engine; what the others say is added up one by one."""

    def __init__(self, layer, ink, evidence, placement_prior, weight_prior, rng):
        self.layer, self.ink, self.evidence = layer, ink, evidence
        trees = trees_of(ink, rng)
        start = layer, trees, evidence, placement_prior, weight_prior
        self.dense = DensePassing(ReferenceEngine(), *start)
        n = len(evidence)
        self.to_S = np.zeros((n, layer.n_features, *layer.placement_size))
        self.to_W = np.zeros(weight_prior.shape)

    def set_evidence(self, evidence):
        self.evidence = evidence
        self.dense.set_evidence(evidence)

    def sweep(self, schedule, rng, damping):
        m = self.dense._messages
        for k, batch in in_blocks(schedule.batches(m.images, rng), m.n_trees):
            if k is not None:
                S, W = self.dense.placement_beliefs(), self.dense.weight_beliefs()
                self._move(self.to_W, self.said(S, W)[1], damping / BLOCKS)
                if k % BLOCKS_PER_TURN == 0:
                    S, W = self.dense.placement_beliefs(), self.dense.weight_beliefs()
                    share = damping * BLOCKS_PER_TURN / BLOCKS
                    self._move(self.to_S, self.said(S, W)[0], share)
            self.dense._engine.update(m, batch, damping)

    def said(self, S, W):
        """What all trees without ink send to placements and weights, given these beliefs."""
        to_S, to_W = np.zeros(self.to_S.shape), np.zeros(self.to_W.shape)
        oh, ow = self.layer.overhang
        for n, a, r, c in np.argwhere(~self.ink):
            e = min(float(self.evidence[n, a, r, c]), 0.0)
            for f, di, dj in np.ndindex(*W.shape[1:]):
                i, j = r + oh - di, c + ow - dj
                if 0 <= i < S.shape[2] and 0 <= j < S.shape[3]:
                    to_S[n, f, i, j] += and_up(float(W[a, f, di, dj]), e)
                    to_W[a, f, di, dj] += and_up(float(S[n, f, i, j]), e)
        return to_S, to_W

    def _move(self, sums, new, share):
        change = share * (new - sums)
        sums += change
        m = self.dense._messages
        layout = m.layout
        if (sums is self.to_W) == layout.kernel_is_weights:
            m.kernel += layout.to_kernel(change)
        else:
            m.field += layout.to_field(change, fill=0)


def problem(name, seed, kinds=True):
    """Random ink; unless all are of the same kind, pixels are also missing, or weakly off."""
    layer, n = LAYERS[name]
    rng = np.random.default_rng(seed)
    shape = (n, layer.n_channels, *layer.image_size)
    kind = rng.choice(4, shape, p=[0.25, 0.5, 0.1, 0.15] if kinds else [0.25, 0.75, 0, 0])
    evidence = np.array([K, -K, 0, -1.7], np.float32)[kind]
    weights = rng.normal(0.0, 2.0, (layer.n_channels, layer.n_features, *layer.feature_size))
    return layer, evidence > 0, evidence, -0.5 * K, weights.astype(np.float32)


def state(passing):
    """All messages, beliefs and sums."""
    m = passing._messages
    field, kernel = passing._sums_without_ink
    return {
        "to field": m.to_field,
        "to kernel": m.to_kernel,
        "S": passing.placement_beliefs(),
        "W": passing.weight_beliefs(),
        "without ink to field": m.layout.from_field(field),
        "without ink to kernel": m.layout.from_kernel(kernel),
    }


def expected(twin):
    m = twin.dense._messages
    pair = (twin.to_S, twin.to_W) if m.layout.kernel_is_weights else (twin.to_W, twin.to_S)
    return {
        "to field": m.to_field,
        "to kernel": m.to_kernel,
        "S": twin.dense.placement_beliefs(),
        "W": twin.dense.weight_beliefs(),
        "without ink to field": pair[0],
        "without ink to kernel": pair[1],
    }


@ANY_LAYER
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_messages_are_those_of_the_definition(name, schedule):
    said = 0.0
    for seed in range(4 if schedule == "sequential" else 2):
        start = problem(name, seed, kinds=seed > 0)
        got = BeliefPassing(*start, np.random.default_rng(seed))
        wanted = Definition(*start, np.random.default_rng(seed))
        order = Schedule(schedule, rounds=3, block_size=4)
        ours, theirs = np.random.default_rng(7), np.random.default_rng(7)
        for k in range(2):
            damping = (1.0, 0.6)[k]
            got.sweep(order, ours, damping)
            wanted.sweep(order, theirs, damping)
            evidence = np.where(start[1], K / 2, 0.7 * start[2]).astype(np.float32)
            got.set_evidence(evidence)
            wanted.set_evidence(evidence)
        for what, values in expected(wanted).items():
            found = state(got)[what]
            np.testing.assert_allclose(found, values, atol=2e-3, err_msg=f"{what}, seed {seed}")
        said += np.abs(wanted.to_S).max()
    assert said > 0.1


@ANY_LAYER
def test_one_full_step_is_the_sum_of_messages_of_trees_without_ink(name, monkeypatch):
    """Whatever the evidence of each: usual, weak, or none; and at the border."""
    for threads_work in (1, 2**20):
        monkeypatch.setattr(near_ink, "_WORK", threads_work)
        for seed in range(5):
            start = problem(name, seed)
            passing = BeliefPassing(*start, np.random.default_rng(seed))
            rng = np.random.default_rng(seed)
            S = rng.normal(0, K, passing.placement_beliefs().shape).astype(np.float32)
            twin = Definition(*start, np.random.default_rng(seed))
            passing.set_placement_prior(S)
            W = passing.weight_beliefs().copy()
            passing._update_placement_sums(1.0)
            to_S, to_W = twin.said(S, W)
            np.testing.assert_allclose(passing.placement_beliefs(), S + to_S, atol=1e-3)
            passing = BeliefPassing(*start, np.random.default_rng(seed))
            passing.set_placement_prior(S)
            passing._update_weight_sums(1.0)
            np.testing.assert_allclose(passing.weight_beliefs(), W + to_W, atol=1e-3)
            assert to_S.min() < -1
            assert to_W.min() < -1


@ANY_LAYER
def test_with_ink_everywhere_it_is_the_dense_engine(name):
    layer, _, evidence, prior, weights = problem(name, 3)
    everything = np.ones_like(evidence, bool)
    got = BeliefPassing(layer, everything, evidence, prior, weights, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    start = layer, everything, evidence, prior, weights
    wanted = ReadyEngine("dense").start(*start, rng)
    for one in (got, wanted):
        order = np.random.default_rng(2)
        for _ in range(3):
            one.sweep(Schedule(), order)
    np.testing.assert_allclose(got.weight_beliefs(), wanted.weight_beliefs(), atol=1e-3)
    np.testing.assert_allclose(got.up(), wanted.up(), atol=1e-3)
    np.testing.assert_allclose(got.down(), wanted.down(), atol=1e-3)


def test_a_prior_of_minus_infinity_hides_no_sums():
    """All placements are impossible at first, in a network."""
    layer, ink, evidence, _, weights = problem("large features", 4)
    passing = BeliefPassing(layer, ink, evidence, -HUGE, weights, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    passing.sweep(Schedule(), rng)
    up = passing.up()
    assert passing._sums_without_ink[1].min() < -1
    assert np.abs(up).max() < 1e4
    prior = np.full(up.shape, -1.0, np.float32)
    passing.set_placement_prior(prior)
    np.testing.assert_allclose(passing.placement_beliefs(), up - 1, atol=1e-3)


def test_pixels_without_ink_hear_nothing():
    start = problem("small images", 1)
    passing = BeliefPassing(*start, np.random.default_rng(0))
    passing.sweep(Schedule(), np.random.default_rng(0))
    down = passing.down()
    assert (down[~start[1]] == np.float32(-HUGE)).all()
    assert (np.abs(down[start[1]]) < 1e4).all()


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
@pytest.mark.parametrize("n_trees", [0, 1, 7, 400, 1003])
def test_blocks_hold_every_tree_once_and_about_as_many_each(schedule, n_trees):
    owners = np.sort(np.arange(n_trees, dtype=np.int32) % 5)
    plan = Schedule(schedule, block_size=20)
    batches = plan.batches(owners, np.random.default_rng(0))
    found = list(in_blocks(batches, n_trees))
    trees = np.concatenate([batch.order for _, batch in found] or [np.empty(0, int)])
    np.testing.assert_array_equal(np.sort(trees), np.arange(n_trees))
    numbers = [k for k, _ in found if k is not None]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) <= max(BLOCKS, 1)
    if n_trees >= 400:
        assert len(numbers) == BLOCKS
    same = list(plan.batches(owners, np.random.default_rng(0)))
    if n_trees and schedule != "sequential":
        assert len(found) == len(same)


@pytest.mark.parametrize("name", ["page", "large features"])
@pytest.mark.parametrize("schedule", ["sequential", "per-image", "blocks"])
def test_the_number_of_threads_does_not_matter(name, schedule, monkeypatch):
    monkeypatch.setattr(near_ink, "_WORK", 1)

    def run():
        passing = BeliefPassing(*problem(name, 4), np.random.default_rng(0))
        rng = np.random.default_rng(0)
        for _ in range(4):
            passing.sweep(Schedule(schedule, rounds=3), rng)
        return passing.weight_beliefs(), passing.placement_beliefs()

    found = with_one_thread_and_several(run)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.ptp(one) > 1


@pytest.mark.parametrize(
    ("layer", "n"),
    [
        (FeatureLayer(8, 1, (10, 10), (90, 90)), 1),
        (FeatureLayer(16, 4, (22, 22), (24, 24), "valid"), 10),
    ],
    ids=["page", "digits"],
)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_memory_is_known_before_a_run(layer, n, missing):
    rng = np.random.default_rng(0)
    shape = (n, layer.n_channels, *layer.image_size)
    evidence = np.where(rng.random(shape) < 0.1, K, -K).astype(np.float32)
    evidence[rng.random(shape) < missing] = 0
    shape = (layer.n_channels, layer.n_features, *layer.feature_size)
    weights = rng.uniform(-0.6, -0.4, shape).astype(np.float32)

    def run():
        start = layer, evidence > 0, evidence, -2 * K, weights
        passing = BeliefPassing(*start, np.random.default_rng(0))
        for _ in range(2):
            passing.sweep(Schedule(), np.random.default_rng(0))
            passing.set_evidence(evidence)

    peak = memory_peak(run)
    promised = belief_memory(layer, n, int((evidence > 0).sum()))
    assert 0.7 * promised < peak < promised


def test_only_a_layer_whose_ink_is_known_stores_its_messages_alone(monkeypatch):
    layer, ink, evidence, prior, weights = problem("page", 0)
    start = layer, np.ones_like(ink), evidence, prior, weights
    rng = np.random.default_rng(0)
    assert isinstance(ReadyEngine("beliefs").start(*start, rng, ink=ink), BeliefPassing)
    found = ReadyEngine("beliefs").start(*start, rng)
    assert isinstance(found, DensePassing)
    assert not isinstance(found, BeliefPassing)
    page = FeatureLayer(16, 1, (12, 12), (200, 200))
    sizes = [ReadyEngine(x).memory(page, 1, 40_000, 4_000) for x in ("dense", "beliefs")]
    assert sizes[1] < sizes[0] / 5
    monkeypatch.setattr(ReadyEngine, "keeps_active_set", lambda *size: True)
    assert isinstance(ReadyEngine("beliefs").start(*start, rng), ActivePassing)
