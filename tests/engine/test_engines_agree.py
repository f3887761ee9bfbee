"""The compiled engine sends the messages of the reference engine, in every schedule."""

import numpy as np
import pytest

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import rebuild
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Batch, Schedule
from hcnet.grid import on_grid, single
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import Messages, start_messages, trees_of
from tests.engine.random_images import with_one_thread_and_several

SHAPES = {
    # images, channels, image size, features, feature size, border
    "over the border": (2, 1, (5, 6), 3, (2, 3), "full"),
    "valid": (3, 1, (6, 5), 2, (3, 2), "valid"),
    "channels": (2, 3, (4, 4), 2, (2, 2), "full"),
    "few placements": (2, 2, (6, 6), 3, (5, 4), "valid"),
    "matrix": (6, 5, (1, 1), 4, (1, 1), "valid"),
}


def make(shape, seed=0, missing=0.2, rounded=on_grid):
    n, channels, size, n_features, feature_size, border = SHAPES[shape]
    rng = np.random.default_rng(seed)
    images = Images(
        rng.random((n, channels, *size)) < 0.4, rng.random((n, channels, *size)) >= missing
    )
    layer = FeatureLayer(n_features, channels, feature_size, size, border)
    prior = rounded(rng.normal(-0.5, 0.3, (channels, n_features, *feature_size)))
    evidence = rounded(images.evidence(Noise(0.02, 0.05)))
    return start_messages(layer, trees_of(images.observed, rng), evidence, -2.0, prior)


def sweep(engine, messages, name, damping=1.0, seed=1, n=2):
    rng = np.random.default_rng(seed)
    schedule = Schedule(name, rounds=3, block_size=7)
    for _ in range(n):
        for batch in schedule.batches(messages.images, rng):
            engine.update(messages, batch, damping)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SCHEDULE_NAMES)
@pytest.mark.parametrize(
    ("damping", "rounded", "tolerance"),
    # Such shares are exact, too; off the grid messages are nearly the same.
    [(1.0, on_grid, 0), (0.625, on_grid, 0), (1.0, single, 2e-5)],
    ids=["exact", "damped", "off the grid"],
)
def test_messages_are_those_of_the_reference(shape, name, damping, rounded, tolerance):
    wanted, got = make(shape, rounded=rounded), make(shape, rounded=rounded)
    sweep(ReferenceEngine(), wanted, name, damping)
    sweep(CPUEngine(), got, name, damping)
    assert np.abs(wanted.to_field).max() > 0.1
    for field in ("to_field", "to_kernel", "field", "kernel"):
        pair = getattr(got, field), getattr(wanted, field)
        np.testing.assert_allclose(*pair, rtol=tolerance, atol=tolerance, err_msg=field)


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
def test_result_does_not_depend_on_the_number_of_threads(name):
    def run():
        messages = make("over the border")
        sweep(CPUEngine(), messages, name, n=4)
        return messages

    one, other = with_one_thread_and_several(run)
    np.testing.assert_array_equal(one.to_field, other.to_field)
    np.testing.assert_array_equal(one.kernel, other.kernel)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("engine", [ReferenceEngine(), CPUEngine()], ids=["reference", "cpu"])
def test_beliefs_are_prior_plus_messages(shape, engine):
    messages = make(shape)
    sweep(engine, messages, "sequential")
    field, kernel = messages.field.copy(), messages.kernel.copy()
    rebuild(engine, messages)
    np.testing.assert_allclose(messages.field, field, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(messages.kernel, kernel, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_hears_the_leaves_that_bconv_pairs(shape):
    """One tree's messages touch exactly S[n, f, i, j] and W[a, f, r-i, c-j]."""
    messages: Messages = make(shape, missing=0.0)
    layer = messages.layout.layer
    before_S, before_W = messages.placement_beliefs().copy(), messages.weight_beliefs().copy()
    k = messages.n_trees // 2
    field, kernel, r, c = messages.trees[k]
    n, a = (field, kernel) if messages.layout.kernel_is_weights else (kernel, field)
    # Strong evidence and open priors, so that every leaf hears something.
    messages.evidence[:] = 3.0
    messages.field[messages.field > -100] = -0.1
    messages.kernel[:] = -0.1
    start_S, start_W = messages.placement_beliefs().copy(), messages.weight_beliefs().copy()
    CPUEngine().update(messages, Batch(np.array([k]), np.array([0, 1])), 1.0)
    touched_S = np.argwhere(messages.placement_beliefs() != start_S)
    touched_W = np.argwhere(messages.weight_beliefs() != start_W)
    oh, ow = layer.overhang
    pairs = {
        (f, i, j, r - (i - oh), c - (j - ow))
        for f in range(layer.n_features)
        for i in range(before_S.shape[2])
        for j in range(before_S.shape[3])
        if 0 <= r - (i - oh) < before_W.shape[2] and 0 <= c - (j - ow) < before_W.shape[3]
    }
    assert {tuple(x) for x in touched_S} == {(n, f, i, j) for f, i, j, _, _ in pairs}
    assert {tuple(x) for x in touched_W} == {(a, f, y, x) for f, _, _, y, x in pairs}
