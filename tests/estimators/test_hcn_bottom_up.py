"""`HCN` with algorithm="bottom-up" and inference="match", on scikit-learn's handwritten digits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from hcnet import HCN, Layer
from hcnet.preprocessing import OrientedEdges

LAYERS = [Layer(24, 7, pool_border="same"), Layer(pool=5, pool_border="same")]


@pytest.fixture(scope="module")
def digits():
    grey, y = load_digits(return_X_y=True)
    grey = np.kron(grey.reshape(-1, 8, 8) / 16, np.ones((1, 2, 2)))  # 16×16
    edges = OrientedEdges(8).transform(grey)
    return edges[:200], y[:200], edges[200:500], y[200:500]


def make(**options):
    given = {"templates_per_class": 12, "algorithm": "bottom-up", "random_state": 0}
    return HCN(LAYERS, **(given | options))


@pytest.fixture(scope="module")
def model(digits):
    X, y, _, _ = digits
    return make().fit(X, y)


def test_digits_are_recognised(model, digits):
    X, y, test, labels = digits
    assert model.score(test, labels) > 0.85
    assert model.score(X, y) > 0.97
    assert model.predict_proba(test).sum(axis=1) == pytest.approx(1)
    assert np.array_equal(
        model.classes_[model.predict_proba(test).argmax(axis=1)], model.predict(test)
    )
    # What the forward pass alone makes of the same weights is worse.
    forward = make(inference="forward").set_weights(model.weights_, (16, 16))
    assert forward.score(test, labels) < model.score(test, labels)


def test_templates_are_used_and_are_of_their_class(model, digits):
    _, y, _, _ = digits
    assert len(np.unique(model.templates_)) > 100
    assert np.array_equal(model.template_classes_[model.templates_], y)
    assert model.weights_[1].any(axis=(1, 2, 3)).all()


def test_same_seed_same_weights(model, digits):
    X, y, _, _ = digits
    again = make().fit(X, y)
    assert all(map(np.array_equal, model.weights_, again.weights_))
    other = make(random_state=1).fit(X, y)
    assert not np.array_equal(model.weights_[0], other.weights_[0])


def test_files_keep_pools_and_inference(model, digits, tmp_path):
    path = model.save(tmp_path / "digits.hcn")
    loaded = HCN.load(path)
    _, _, test, _ = digits
    assert np.array_equal(loaded.predict_proba(test), model.predict_proba(test))
    assert path.stat().st_size < 60_000


def test_few_labels_go_a_long_way(digits):
    X, y, test, labels = digits
    some = np.where(np.arange(len(y)) < 60, y, -1)
    few = make().fit(X, some)
    assert few.score(test, labels) > 0.75


def test_without_labels_clusters(digits):
    X, y, _, _ = digits
    clusters = make(n_classes=20, templates_per_class=1).fit(X).cluster(X)
    # Images of a cluster are mostly of one digit.
    pure = sum(np.bincount(y[clusters == k]).max() for k in np.unique(clusters))
    assert pure / len(y) > 0.7


def test_missing_pixels_are_filled_in(model, digits):
    _, _, test, labels = digits
    mask = np.zeros(test[:60].shape, bool)
    mask[:, :, 8:] = True
    filled = model.inpaint(test[:60], mask)
    assert np.array_equal(filled[~mask], test[:60][~mask])
    assert filled[mask].any()
    # Half of each digit is enough more often than not.
    assert model.score(test[:60], labels[:60], mask) > 0.5


def test_one_layer_of_examples(digits):
    X, y, test, labels = digits
    single = HCN(
        [Layer(pool_border="same")], templates_per_class=15, algorithm="bottom-up", random_state=0
    ).fit(X, y)
    assert single.score(test, labels) > 0.8
    assert single.n_iter_ == 0


def test_three_layers_are_for_message_passing(digits):
    X, y, _, _ = digits
    layers = [LAYERS[0], Layer(16, 4, pool_border="same"), Layer(pool_border="same")]
    with pytest.raises(ValueError, match="one or two layers, got 3"):
        HCN(layers, algorithm="bottom-up").fit(X, y)


def test_clone_and_pipeline(digits):
    grey, y = load_digits(return_X_y=True)
    images = np.kron(grey[:100].reshape(-1, 8, 8) / 16, np.ones((1, 2, 2)))
    pipeline = clone(make_pipeline(OrientedEdges(8), make(templates_per_class=3)))
    assert pipeline.fit(images, y[:100]).score(images, y[:100]) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "upwards"}, "algorithm must be one of"),
        ({"max_memory": 1000}, "max_memory allows"),
    ],
)
def test_what_does_not_work_says_so(digits, options, message):
    X, y, _, _ = digits
    with pytest.raises((ValueError, MemoryError), match=message):
        make(**options).fit(X[:40], y[:40])
    with pytest.raises(ValueError, match="Only algorithm='mpmp' learns from a stream"):
        make().fit_stream([(X[:40], y[:40])])


def test_several_objects_are_not_matched(model, digits):
    several = model.with_class_layer(p_on=1e-3)
    with pytest.raises(ValueError, match="got 'match'"):
        several.predict(digits[2])
