"""The paper's network for digits: what is learned, and what classifies new digits."""

import numpy as np
from sklearn.pipeline import make_pipeline

from benchmarks.mnist_models import (
    CLASSIFYING,
    LEARNING,
    N_FEATURES,
    N_ORIENTATIONS,
    SIZE,
    TEMPLATES_PER_CLASS,
    by_forward_pass,
    for_new_digits,
    mnist_edges,
    mnist_network,
)


def learned():
    """A network as if it had learned two classes."""
    rng = np.random.default_rng(0)
    features = rng.random((N_FEATURES, N_ORIENTATIONS, 26, 26)) < 0.005
    templates = rng.random((2 * TEMPLATES_PER_CLASS, N_FEATURES, 1, 1)) < 0.15
    return mnist_network(0).set_weights([features, templates], SIZE, ["a", "b"])


def test_new_digits_have_their_own_noise():
    before = learned()
    after = for_new_digits(before)
    assert {name: getattr(before, name) for name in LEARNING} == LEARNING
    assert {name: getattr(after, name) for name in CLASSIFYING} == CLASSIFYING
    assert all(map(np.array_equal, after.weights_, before.weights_))
    assert after.classes_.tolist() == ["a", "b"]
    X, y = after.sample(40, random_state=1)
    assert after.score(X, y) > 0.9


def test_the_forward_pass_is_another_use_of_the_same_network():
    fitted = make_pipeline(mnist_edges(), for_new_digits(learned()))
    forward = by_forward_pass(fitted)
    assert (fitted[1].inference, forward[1].inference) == ("match", "forward")
    X, y = fitted[1].sample(40, random_state=2)
    assert forward[1].score(X, y) > 0.9
