"""Classic classifiers: settings are chosen on held-out images, and pixels may be pooled."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.baselines.classic import (
    CHUNK,
    Chosen,
    RadialSVM,
    logistic_regression,
    neighbours,
    svm,
)
from hcnet.datasets import shapes


def test_the_setting_with_fewest_errors_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 1, 4, 4)) < 0.5, np.arange(60) % 2
    chosen = Chosen([KNeighborsClassifier(9), KNeighborsClassifier(1)]).fit(X, y, (X, y))
    assert chosen.best_.n_neighbors == 1  # the nearest image is the image itself
    assert (chosen.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("make", [svm, neighbours, logistic_regression])
def test_pooling_is_what_the_shapes_need(make):
    train, test, others = (
        shapes(n_images=n, feature_size=21, random_state=k)
        for n, k in ((100, 0), (300, 1), (300, 2))
    )
    errors = []
    for pool in (1, 3):
        model = make(pool).fit(train.images, train.labels, (others.images, others.labels))
        errors.append((model.predict(test.images) != test.labels).mean())
    assert errors[0] > 0.25
    assert errors[1] < 0.1


class Remembers:
    """Takes down what it is given."""

    def fit(self, X, y):
        self.seen = X
        return self

    def predict(self, X):
        self.seen = X
        return X[:, 0]


@pytest.mark.parametrize("pool", [1, 2, 5])
def test_classifiers_see_the_maximum_of_every_window(pool):
    images = np.random.default_rng(0).random((7, 3, 9, 8))
    model = Chosen([Remembers()], pool).fit(images, np.zeros(7), (images, np.zeros(7)))
    expected = sliding_window_view(images, (pool, pool), axis=(2, 3)).max(axis=(4, 5))
    np.testing.assert_array_equal(model.best_.seen, expected.reshape(7, -1).astype(np.float32))


def test_many_images_are_classified_in_their_order():
    images = np.arange(2 * CHUNK + 3.0)[:, None, None, None]
    model = Chosen([Remembers()]).fit(images[:5], np.zeros(5), (images[:5], np.zeros(5)))
    np.testing.assert_array_equal(model.predict(images), images.ravel())


@pytest.mark.parametrize("gamma", ["scale", 1e-3, 1e-2])
def test_the_svm_is_that_of_scikit_learn(gamma):
    rng = np.random.default_rng(0)
    X, y = (rng.random((300, 50)) < 0.3).astype(np.float32), rng.integers(4, size=300)
    own = RadialSVM(10, gamma).fit(X[:200], y[:200]).predict(X[200:])
    np.testing.assert_array_equal(
        own, SVC(C=10, gamma=gamma).fit(X[:200], y[:200]).predict(X[200:])
    )
