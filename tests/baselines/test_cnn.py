"""The networks that the paper compares with: their form is that of the HCN, and they learn."""

import math

import numpy as np
import pytest

from hcnet import HCN, Layer

pytest.importorskip("jax", reason="the benchmarks need JAX")

from benchmarks.baselines.cnn import CNN, Weights

NETWORKS = {
    # layers, channels, size of the image, classes, templates per class
    "shapes": ([Layer(4, size=9), Layer()], 1, (13, 13), 2, 2),
    "channels": ([Layer(5, size=(4, 3), pool=(2, 3)), Layer(pool=2)], 3, (8, 9), 3, 1),
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


def easy(n, seed):
    """A dot somewhere on the left, or on the right; in the second of two channels."""
    rng = np.random.default_rng(seed)
    X, y = np.zeros((n, 2, 8, 9), bool), np.arange(n) % 2
    X[np.arange(n), 1, rng.integers(1, 7, n), np.where(y, 6, 2)] = True
    return X, np.where(y, "right", "left")


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
