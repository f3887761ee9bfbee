"""What stands beside the HCN on the shapes: networks trained by gradients, and classic methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.baselines.classic import logistic_regression, neighbours, svm
from benchmarks.baselines.cnn import CNN, Labelled
from hcnet import Layer
from hcnet.datasets import shapes

# Labelled images beyond the training set, by which settings and restarts are chosen.  The paper
# chose on the test set, so they are like its images, also where training images are noisier.  The
# HCN does not see them.
N_HELD_OUT = 1000
# Features of the network with ReLU.  Fewer are worse; the HCN and its form have 4, as the data do.
N_RELU = 16


def same_form(feature_size: int, random_state: int, **options: Any) -> CNN:
    """The network that made the data, with real weights."""
    layers = [Layer(4, size=feature_size), Layer()]
    return CNN(layers, templates_per_class=2, random_state=random_state, **options)


def relu(feature_size: int, random_state: int, **options: Any) -> CNN:
    """Pool, convolution, ReLU, pool, dense layer, softmax."""
    layers = [Layer(N_RELU, size=feature_size), Layer()]
    return CNN(layers, relu=True, random_state=random_state, **options)


def relu_on_pixels(feature_size: int, random_state: int, **options: Any) -> CNN:
    """The same without the first pool: what one would take without knowing how the data arise.

    With two restarts, since it takes three times as long: there are 25 positions instead of 9.
    """
    layers = [Layer(N_RELU, size=feature_size, pool=1), Layer()]
    return CNN(layers, relu=True, restarts=2, random_state=random_state, **options)


# By the names in tables; each gives an object with fit(X, y, held_out) and predict(X).
RIVALS: dict[str, Callable[[int, int], Any]] = {
    "CNN, same form": same_form,
    "CNN, ReLU": relu,
    "CNN, ReLU, pixels not pooled": relu_on_pixels,
    "SVM": lambda size, seed: svm(),
    "SVM, pooled pixels": lambda size, seed: svm(pool=3),
    "k-NN": lambda size, seed: neighbours(),
    "k-NN, pooled pixels": lambda size, seed: neighbours(pool=3),
    "logistic regression": lambda size, seed: logistic_regression(),
    "logistic regression, pooled pixels": lambda size, seed: logistic_regression(pool=3),
}


def held_out(feature_size: int, seed: int) -> Labelled:
    """Images like those of the test; no training or test set has this seed."""
    data = shapes(n_images=N_HELD_OUT, feature_size=feature_size, random_state=seed + 2_000_000)
    return data.images, data.labels
