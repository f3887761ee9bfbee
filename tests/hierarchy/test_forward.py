"""The fast forward pass: what message passing sends first, and what the noise changes in it."""

import itertools

import numpy as np
import pytest
from definition import layer, network, placed, random_images, random_weights

from hcnet.engine.engines import Engine
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.factors import HUGE
from hcnet.hierarchy.convolution import bconv, correlate
from hcnet.hierarchy.decoding import forward
from hcnet.hierarchy.inference import Inference, class_scores
from hcnet.hierarchy.network import NetworkModel
from hcnet.hierarchy.network_messages import NetworkPassing
from hcnet.images import Images, Noise

NETWORKS = {
    "one level": network(layer(3, (4, 4), (3, 3)), image_size=(6, 6), categories=(0, 1, 2)),
    "two levels, same": network(
        layer(4, (3, 3), (3, 3), "same"),
        layer(3, (6, 6), (2, 4), "same", 0.2),
        image_size=(8, 8),
        categories=(0, 0, 1),
    ),
    "many positions": network(
        layer(3, (2, 2), (2, 2)), layer(2, (2, 2), (2, 2)), image_size=(7, 8), categories=(0, 1)
    ),
    "three levels": network(
        layer(3, (2, 2), (2, 2)),
        layer(4, (2, 2), (2, 1), "same", 0.3),
        layer(3, (2, 3), (2, 2)),
        image_size=(7, 8),
        channels=2,
        categories=(0, 1, 1),
    ),
}
ANY_NETWORK = pytest.mark.parametrize("name", NETWORKS)
# The forward pass rounds what it adds up to multiples of 2⁻¹⁶, some hundred numbers per template.
ROUNDING = 2e-3


def make(name, seed=0, n=4):
    net, rng = NETWORKS[name], np.random.default_rng(seed)
    weights = [rng.random(level.weight_shape) < 0.4 for level in net.levels]
    return net, weights, random_images(net, n, rng, on=0.15, observed=0.85)


def first_pass(net, weights, images, engine, schedule="sequential"):
    """Message passing with decided weights: one forward pass, undamped, from the start."""
    clamped = [np.where(W, HUGE, -HUGE).astype(np.float32) for W in weights]
    allowed = np.ones((images.n_images, net.classes.n_templates), bool)
    rng = np.random.default_rng(1)
    evidence = images.evidence(net.noise)
    how = Engine(engine, schedule=schedule).on("cpu")
    passing = NetworkPassing(net, evidence, clamped, allowed, how, rng)
    passing.forward([1.0] * len(net.levels))
    return passing.up


@ANY_NETWORK
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_forward_is_the_first_pass_of_messages(name, schedule):
    net, weights, images = make(name)
    got = forward(net, weights, images.evidence(net.noise))
    wanted = first_pass(net, weights, images, "dense", schedule)
    assert len(got) == len(net.levels)
    for x, y, level in zip(got, wanted, net.levels, strict=True):
        assert x.shape == (4, level.features.n_features, *level.features.placement_size)
        assert np.ptp(x) > 1
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=ROUNDING)


SIZES = {
    # images, features, channels, size of W, size of S
    "large features": (3, 4, 2, (4, 3), (2, 2)),
    "large grid": (3, 4, 2, (2, 2), (4, 5)),
    "one position": (2, 3, 3, (3, 4), (1, 1)),
    "one weight": (2, 3, 3, (1, 1), (3, 4)),
    "one row": (2, 3, 1, (1, 4), (1, 3)),
}


@pytest.mark.parametrize("name", SIZES)
def test_correlate_sums_what_a_placement_covers(name):
    n, F, channels, (h, w), (hs, ws) = SIZES[name]
    rng = np.random.default_rng(0)
    W = rng.random((F, channels, h, w)) < 0.5
    R = rng.normal(0, 3, (n, channels, hs + h - 1, ws + w - 1)).astype(np.float32)
    got = correlate(R, W)
    assert got.shape == (n, F, hs, ws)
    for k, f, i, j in np.ndindex(got.shape):
        wanted = sum(float(R[k, a, i + r, j + c]) for a, r, c in np.argwhere(W[f]))
        assert got[k, f, i, j] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("size", [(9, 9), (3, 3)])
def test_correlate_does_not_depend_on_the_order_of_the_sum(size):
    """Nor on the images beside: positions that are tied stay tied."""
    rng = np.random.default_rng(0)
    W = rng.random((5, 40, *size)) < 0.5
    R = rng.normal(0, 3, (30, 40, 10, 10)).astype(np.float32)
    wanted = correlate(R, W)
    order = rng.permutation(40)
    np.testing.assert_array_equal(correlate(R[:, order], W[:, order]), wanted)
    np.testing.assert_array_equal(correlate(R[7:8], W), wanted[7:8])


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("density", [0.0, 0.2, 0.7])
def test_bconv_is_the_or_of_placed_features(name, density):
    n, F, channels, size, positions = SIZES[name]
    rng = np.random.default_rng(0)
    W = rng.random((F, channels, *size)) < 0.5
    S = rng.random((n, F, *positions)) < density
    got = bconv(S, W)
    assert got.dtype == bool
    for k in range(n):
        np.testing.assert_array_equal(got[k], placed(S[k], W))


# "The selected category does not change" with the noise, the paper says of a single forward pass.
# With evidence (k1 - k0)·X + k0, a template's score is (k1 - k0)·count + n·(k0 - log M): the order
# of the counts, if all templates are made of n elements.  Otherwise n weighs more or less.

NOISES = [Noise(*p) for p in itertools.product((1e-6, 1e-3, 0.02, 0.1, 0.3, 0.49), repeat=2)]
EQUAL = {
    "one level": ((6,), NETWORKS["one level"]),
    "three levels": (
        (3, 3, 2),
        network(
            layer(3, (2, 2), (2, 2)),
            layer(4, (2, 2), (2, 1)),
            layer(4, (2, 2), (2, 2)),
            image_size=(7, 7),
            channels=2,
            categories=(0, 0, 1, 1),
        ),
    ),
}


def with_noise(net, noise):
    return type(net)(net.levels, net.classes, noise)


def scores(net, weights, images, noise):
    """Per class, by the single forward pass."""
    model = NetworkModel(with_noise(net, noise), weights, np.arange(net.classes.n_classes))
    return class_scores(model, images, Inference("forward"))


def counts(net, weights, images):
    """On pixels that every class can account for: whole numbers, by plain loops."""
    result = np.zeros((images.n_images, net.classes.n_classes), int)
    for k, X in enumerate(images.pixels):
        below = X.astype(int)
        for level, W in zip(net.levels, weights, strict=True):
            (h, w), size = level.pool.window, level.pool.size
            R = np.array(
                [
                    [
                        [plane[r : r + h, c : c + w].max() for c in range(size[1])]
                        for r in range(size[0])
                    ]
                    for plane in below
                ]
            )
            shape = (len(W), *level.features.placement_size)
            below = np.zeros(shape, int)
            for f, i, j in np.ndindex(shape):
                below[f, i, j] = sum(R[a, i + r, j + c] for a, r, c in np.argwhere(W[f]))
        for t, own in enumerate(net.classes.categories):
            result[k, own] = max(result[k, own], below[t].max())
    return result


@pytest.mark.parametrize("name", EQUAL)
def test_noise_does_not_change_the_class_among_templates_of_equal_size(name):
    on, net = EQUAL[name]
    rng = np.random.default_rng(0)
    weights = random_weights(net, rng, on)
    images = random_images(net, 60, rng, on=0.08)
    count = counts(net, weights, images)
    best = count == count.max(axis=1, keepdims=True)
    assert len(set(count.argmax(axis=1).tolist())) > 1
    assert (best.sum(axis=1) == 1).mean() > 0.3  # a class that is alone at the top
    for noise in NOISES:
        chosen = scores(net, weights, images, noise).argmax(axis=1)
        # Where classes are tied, rounding may choose any of them.
        assert best[np.arange(len(chosen)), chosen].all(), noise


def test_noise_changes_the_class_among_templates_of_unequal_size():
    """The limit of the paper's claim: p01 and p10 weigh on and off pixels, which then differ."""
    W = np.zeros((2, 1, 1, 4), bool)
    W[0, 0, 0, 0] = W[1, 0, 0, 1:] = True
    net = network(layer(2, (1, 4), (1, 1)), image_size=(1, 4), categories=(0, 1))
    X = np.array([1, 1, 1, 0], bool).reshape(1, 1, 1, 4)  # k1 against 2·k1 + k0
    for p01, p10, wanted in ((0.2, 0.1, 1), (0.1, 0.2, 0), (1e-3, 1e-6, 1), (1e-6, 1e-3, 0)):
        found = scores(net, [W], Images(X, np.ones_like(X)), Noise(p01, p10))
        assert found.argmax() == wanted
