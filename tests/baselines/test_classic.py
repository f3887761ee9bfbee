"""Classic classifiers: settings are chosen on held-out images, and pixels may be pooled."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.baselines.classic import Chosen, RadialSVM, logistic_regression, neighbours, svm
from hcnet.datasets import shapes


def test_the_setting_with_fewest_errors_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 1, 4, 4)) < 0.5, np.arange(60) % 2
    chosen = Chosen([KNeighborsClassifier(9), KNeighborsClassifier(1)]).fit(X, y, (X, y))
    assert chosen.best_.n_neighbors == 1  # the nearest image is the image itself


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


def test_the_svm_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = (rng.random((300, 50)) < 0.3).astype(np.float32), rng.integers(4, size=300)
    own = RadialSVM(10, "scale").fit(X[:200], y[:200]).predict(X[200:])
    np.testing.assert_array_equal(own, SVC(C=10).fit(X[:200], y[:200]).predict(X[200:]))
