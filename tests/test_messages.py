"""Where variables lie in memory, how much of it a run takes, and which pixels have trees."""

import numpy as np
import pytest

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import Batch
from hcnet.factors import HUGE
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, _permutation, start_messages, trees_of

# features, channels, feature size, image size, border, is W the kernel?
LAYERS = {
    "full": (3, 2, (2, 3), (6, 5), "full", True),
    "valid": (3, 2, (2, 3), (6, 7), "valid", True),
    "few placements": (3, 2, (5, 6), (6, 7), "valid", False),
    "window as large as the image": (2, 1, (4, 5), (4, 5), "valid", False),
    "full window": (2, 1, (4, 5), (4, 5), "full", True),
    "matrix": (4, 5, (1, 1), (1, 1), "valid", True),
    "one row": (2, 1, (1, 3), (1, 9), "valid", True),
}
N_IMAGES = 3


def make(name):
    *sizes, kernel_is_weights = LAYERS[name]
    layout = Layout(FeatureLayer(*sizes), N_IMAGES)
    assert layout.kernel_is_weights == kernel_is_weights
    layer = layout.layer
    S = (N_IMAGES, layer.n_features, *layer.placement_size)
    W = (layer.n_channels, layer.n_features, *layer.feature_size)
    return layout, *((S, W) if kernel_is_weights else (W, S))


@pytest.mark.parametrize("name", LAYERS)
def test_beliefs_come_back_from_where_they_lie(name):
    layout, *shapes = make(name)
    values, other = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in shapes)
    field, kernel = layout.to_field(values, fill=-HUGE), layout.to_kernel(other)
    assert (field.shape, kernel.shape) == (layout.field_shape, layout.kernel_shape)
    np.testing.assert_array_equal(layout.from_field(field), values)
    np.testing.assert_array_equal(layout.from_kernel(kernel), other)
    # All that is not padding is a value, once.
    assert np.count_nonzero(field != np.float32(-HUGE)) == values.size
    np.testing.assert_array_equal(np.sort(kernel, axis=None), np.sort(other, axis=None))


def start(name, observed=None, noise=0.02, seed=0):
    layout, *_ = make(name)
    layer = layout.layer
    rng = np.random.default_rng(seed)
    pixels = rng.random((N_IMAGES, layer.n_channels, *layer.image_size)) < 0.4
    if observed is None:
        observed = rng.random(pixels.shape) < 0.7
    images = Images(pixels, observed)
    shape = (layer.n_channels, layer.n_features, *layer.feature_size)
    prior = rng.normal(-0.5, 0.3, shape).astype(np.float32)
    pixels, evidence = trees_of(images.observed, rng), images.evidence(Noise(noise, noise))
    return start_messages(layer, pixels, evidence, -2.0, prior)


def nbytes(messages):
    return sum(x.nbytes for x in vars(messages).values() if isinstance(x, np.ndarray))


def test_memory_estimate_is_that_of_the_arrays():
    layer = FeatureLayer(8, 1, (6, 6), (40, 40), "full")
    images = Images(np.zeros((4, 1, 40, 40), bool), np.ones((4, 1, 40, 40), bool))
    prior = np.zeros((1, 8, 6, 6), np.float32)
    pixels = trees_of(images.observed, np.random.default_rng(0))
    messages = start_messages(layer, pixels, images.evidence(Noise(0.1, 0.1)), -1.0, prior)
    estimate = messages.layout.memory(messages.n_trees)
    assert nbytes(messages) <= estimate <= 1.05 * nbytes(messages)


@pytest.mark.parametrize("name", LAYERS)
def test_memory_estimate_is_enough(name):
    messages = start(name)
    assert nbytes(messages) <= messages.layout.memory(messages.n_trees)


def test_only_observed_pixels_have_trees():
    observed = np.random.default_rng(3).random((N_IMAGES, 2, 6, 5)) < 0.5
    observed[1] = False
    messages = start("full", observed)
    n, a, r, c = messages.trees.T
    assert {tuple(x) for x in zip(n, a, r, c, strict=True)} == {
        tuple(x) for x in np.argwhere(observed)
    }
    assert messages.n_trees == observed.sum()
    assert set(messages.images) == {0, 2}


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 70_000])
def test_trees_are_shuffled_in_pieces_as_numpy_does(n, monkeypatch):
    """Also where the generator holds half a number of the last call."""
    monkeypatch.setattr("hcnet.messages.LARGE", 0)
    for seed in range(20):
        ours, wanted = np.random.default_rng(seed), np.random.default_rng(seed)
        if seed % 2:
            assert ours.integers(9, dtype=np.uint32) == wanted.integers(9, dtype=np.uint32)
        np.testing.assert_array_equal(_permutation(n, ours), wanted.permutation(n))
        assert ours.bit_generator.state == wanted.bit_generator.state


@pytest.mark.parametrize("name", ["full", "few placements"])
def test_unobserved_pixels_say_nothing(name):
    """Trees with no evidence, updated among the others, change no belief."""
    with_all = start(name, observed=np.ones((N_IMAGES, 2, *LAYERS[name][3]), bool))
    hidden = np.random.default_rng(5).random(with_all.n_trees) < 0.3
    with_all.evidence[hidden] = 0.0
    without = start(name, observed=np.ones((N_IMAGES, 2, *LAYERS[name][3]), bool))
    order = np.random.default_rng(6).permutation(with_all.n_trees)
    seen = order[~hidden[order]]
    for _ in range(3):
        CPUEngine().update(with_all, Batch(order, np.array([0, len(order)])), 1.0)
        CPUEngine().update(without, Batch(seen, np.array([0, len(seen)])), 1.0)
    assert np.abs(without.to_kernel).max() > 0.1
    np.testing.assert_array_equal(with_all.field, without.field)
    np.testing.assert_array_equal(with_all.kernel, without.kernel)
