"""The networks that the paper compares with: their form is that of the HCN, and they learn."""

import math
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.baselines.cnn import CNN, Pool, Weights, fifths, pooled, windows
from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.engine.cpu_pools import max_pool
from hcnet.layers import PoolLayer

NETWORKS = {
    # layers, channels, size of the image, classes, templates per class
    "shapes": ([Layer(4, size=9), Layer()], 1, (13, 13), 2, 2),
    "channels": ([Layer(5, size=(4, 3), pool=(2, 3)), Layer(pool=2)], 3, (8, 9), 3, 1),
    "small features": ([Layer(6, size=2, pool=2), Layer(pool=3)], 2, (9, 8), 2, 3),
    "three layers": ([Layer(3, size=3), Layer(4, size=2, pool=2), Layer(pool=2)], 2, (9, 9), 2, 2),
}


def as_cnn(model, layers, n_classes, templates_per_class):
    """The CNN that computes what the fast pass does: weights as they are, biases that follow.

    An element of a feature hears k0, or k1 if there is an on pixel in its pool, less the log of
    the number of pixels there.
    """
    k1, k0 = np.log((1 - model.p01) / model.p10), np.log(model.p01 / (1 - model.p10))
    weights = []
    for k, (W, layer) in enumerate(zip(model.weights_, layers, strict=True)):
        members = np.prod(np.broadcast_to(layer.pool, 2))
        own, offset = (k1 - k0, k0) if k == 0 else (1.0, 0.0)
        bias = (offset - np.log(members)) * W.sum(axis=(1, 2, 3))
        weights.append(Weights(np.float32(own) * W, bias.astype(np.float32)))
    return CNN(layers, templates_per_class).set_weights(weights, n_classes)


@pytest.mark.parametrize("name", NETWORKS)
def test_with_the_weights_of_an_hcn_it_is_the_fast_pass(name):
    layers, channels, size, n_classes, per_class = NETWORKS[name]
    rng = np.random.default_rng(0)
    X = rng.random((60, channels, *size)) < 0.05
    model = HCN(layers, n_classes, templates_per_class=per_class, inference="forward")
    probe = CNN(layers, per_class)
    shapes_of_W = probe._prepare(X, np.arange(60) % n_classes)
    # As many elements in each feature, so that no class is ahead in all images.
    W = [np.argsort(np.argsort(rng.random((s[0], math.prod(s[1:]))))) for s in shapes_of_W]
    W = [(w < 0.4 * w.shape[1]).reshape(s) for w, s in zip(W, shapes_of_W, strict=True)]
    model.set_weights(W, size)
    scores = as_cnn(model, layers, n_classes, per_class).scores(X)
    assert scores.shape == (60, n_classes)
    order = np.sort(scores, axis=1)
    clear = order[:, -1] - order[:, -2] > 1e-2  # not tied
    assert clear.sum() > 20
    assert len(set(scores[clear].argmax(axis=1))) > 1
    np.testing.assert_array_equal(scores.argmax(axis=1)[clear], model.predict(X)[clear])


@pytest.mark.parametrize("size", [(2, 2), (4, 5), (1, 1), (5, 6)])
def test_windows_are_what_a_feature_sees(size):
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype(np.float32)
    seen = np.asarray(windows(x, size))
    for i, j in np.ndindex(seen.shape[1:3]):
        wanted = x[:, :, i : i + size[0], j : j + size[1]].reshape(2, -1)
        np.testing.assert_array_equal(seen[:, i, j], wanted)


@pytest.mark.parametrize("same", [False, True])
def test_pooled_is_the_maximum_of_every_window(same):
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype(np.float32)
    layer = PoolLayer(3, (2, 3), (5, 6), "same" if same else "full")
    wanted = max_pool(layer, np.zeros((*layer.size, 6), np.float32), x)
    np.testing.assert_array_equal(pooled(x, Pool((2, 3), same)), wanted)


def easy(n, seed):
    """A dot somewhere on the left, or on the right; in the second of two channels."""
    rng = np.random.default_rng(seed)
    X, y = np.zeros((n, 2, 8, 9), bool), np.arange(n) % 2
    X[np.arange(n), 1, rng.integers(1, 7, n), np.where(y, 6, 2)] = True
    return X, np.where(y, "right", "left")


def test_digits_have_as_many_weights_as_the_paper_says():
    """16 directions of 28×28, pools that keep the size, 64 features of 26×26, 10 × 32 templates."""
    layers = [Layer(64, size=26, pool_border="same"), Layer()]
    shapes_of_W = CNN(layers, 32)._prepare(np.zeros((10, 16, 28, 28), bool), np.arange(10))
    assert shapes_of_W == ((64, 16, 26, 26), (320, 64, 1, 1))


FORMS = {"same form": {"templates_per_class": 2}, "ReLU": {"relu": True}}
ANY_FORM = pytest.mark.parametrize("form", FORMS)


def small(form, **more):
    layers = [Layer(3, size=(6, 5), pool=2), Layer(pool=2)]
    return CNN(layers, restarts=2, steps=150, **{"l2": (1e-3, 1e-2), **FORMS[form], **more})


@ANY_FORM
def test_learning_lowers_the_loss_and_separates_an_easy_task(form):
    model = small(form).fit(*easy(40, 0), held_out=easy(40, 1))
    assert model.losses_[-1] < 0.5 * model.losses_[0]
    X, y = easy(200, 2)
    assert (model.predict(X) == y).all()
    assert model.l2_ in np.float32([1e-3, 1e-2])


@ANY_FORM
def test_the_same_seed_gives_the_same_network(form):
    data, others = easy(40, 0), easy(40, 1)
    X = np.random.default_rng(3).random((20, 2, 8, 9)) < 0.3
    first, again, other = (
        small(form, random_state=k).fit(*data, others).scores(X) for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_the_best_on_held_out_images_is_kept():
    """Held-out labels that are all wrong choose another network than those that are right."""
    X, y = easy(40, 0)
    others, truth = easy(40, 1)
    wrong = np.where(truth == "left", "right", "left")
    strong = small("same form", l2=(1e-3, 1e3))
    assert strong.fit(X, y, (others, truth)).l2_ == np.float32(1e-3)
    assert strong.fit(X, y, (others, wrong)).l2_ == np.float32(1e3)


def test_a_fifth_of_every_class_is_held_out():
    y = np.array([0] * 10 + [1] * 5 + [2] * 4)
    assert np.bincount(y[fifths(y)], minlength=3).tolist() == [2, 1, 0]


def test_it_learns_the_shapes():
    train, test, others = (
        shapes(n_images=n, feature_size=21, random_state=k)
        for n, k in ((100, 0), (300, 1), (300, 2))
    )
    model = CNN([Layer(4, size=21), Layer()], templates_per_class=2, restarts=4)
    model.fit(train.images, train.labels, (others.images, others.labels))
    assert (model.predict(test.images) != test.labels).mean() < 0.03


def test_without_jax_it_ends_in_one_sentence():
    code = "import sys; sys.modules['jax'] = None; import benchmarks.baselines.cnn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "This benchmark needs JAX and optax: install them with pip install 'hcnet[bench]'."
    )
