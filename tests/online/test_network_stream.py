"""A network learned from a stream."""

import numpy as np
import pytest
from small_streams import assert_same, few

from hcnet import HCN, Layer
from hcnet.datasets import shapes

SMALL = [Layer(3, size=4, pool=2), Layer(pool=2)]
QUICK = {"max_iter": 6, "random_state": 0}
FOUR = {"batch_size": 4}


@pytest.mark.timeout(300)
def test_patterns_are_clustered_from_a_stream():
    data = shapes(n_images=600, feature_size=19, random_state=1)
    model = HCN([Layer(4, size=19), Layer()], n_classes=4, random_state=1)
    model.fit_stream(data.images)
    assert model.n_images_seen_ == 600
    assert model.n_iter_ == 12
    fresh = shapes(n_images=200, feature_size=19, random_state=2)
    found = model.predict(fresh.images)
    table = np.zeros((4, 4), int)
    np.add.at(table, (found, fresh.templates), 1)
    assert table.max(axis=0).sum() >= 198
    assert len(set(table.argmax(axis=0))) == 4


@pytest.mark.timeout(300)
def test_classes_are_learned_from_a_stream_of_pairs():
    data = shapes(n_images=600, feature_size=19, random_state=1)
    names = np.array(["even", "odd"])[data.labels]
    pairs = ((data.images[k : k + 30], names[k : k + 30]) for k in range(0, 600, 30))
    model = HCN([Layer(4, size=19), Layer()], templates_per_class=2, random_state=1)
    model.fit_stream(pairs, classes=["odd", "even"])
    assert model.classes_.tolist() == ["even", "odd"]
    fresh = shapes(n_images=200, feature_size=19, random_state=2)
    right = np.array(["even", "odd"])[fresh.labels]
    assert np.mean(model.predict(fresh.images) == right) > 0.98


def test_all_ways_of_feeding_a_stream_learn_the_same():
    X, y = few(), np.arange(12) % 2
    wanted = HCN(SMALL, **QUICK).fit_stream([(X, y)], **FOUR)
    pieces = [(X[:5], y[:5]), (X[5:], y[5:])]
    assert_same(HCN(SMALL, **QUICK).fit_stream(iter(pieces), **FOUR), wanted)
    pairs = [(image, int(label)) for image, label in zip(X, y, strict=True)]
    assert_same(HCN(SMALL, **QUICK).fit_stream(pairs, classes=[0, 1], **FOUR), wanted)
    step = HCN(SMALL, **QUICK)
    for k in range(0, 12, 4):
        step.partial_fit(X[k : k + 4], y[k : k + 4])
    assert_same(step, wanted)
    plain = HCN(SMALL, 2, **QUICK).fit_stream(X, **FOUR)
    assert_same(HCN(SMALL, 2, **QUICK).partial_fit(X, **FOUR), plain)
    unlabelled = [(X, np.full(12, -1))]
    assert_same(HCN(SMALL, 2, **QUICK).fit_stream(unlabelled, **FOUR), plain)


def test_weights_are_those_of_most_minibatches():
    model = HCN(SMALL, 2, **QUICK)
    for seed in range(5):
        model.partial_fit(few(seed=seed), **FOUR)
    voters = model._stream.voters
    assert len(voters) == 15
    for k, W in enumerate(model.weights_):
        np.testing.assert_array_equal(W, np.mean([voter[k] for voter in voters], axis=0) > 0.5)
    model.partial_fit(few(4, seed=9))
    assert len(model._stream.voters) == 15


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "holds no image"),
        ([few(2), np.zeros((2, 9, 9))], "the stream so far had 1 of 8×8"),
        ([(few(2), [0, 1]), (few(2), [0, 7])], "Item 1 of the stream: 7 is not a class"),
    ],
)
def test_a_source_that_cannot_be_read_is_explained(source, message):
    with pytest.raises(ValueError, match=message):
        HCN(SMALL, 2, **QUICK).fit_stream(source)


def test_classes_may_come_later():
    X = few(8)
    model = HCN(SMALL, **QUICK)
    model.partial_fit(X, np.zeros(8, int), classes=[0, 1, 2])
    model.partial_fit(X, np.ones(8, int))
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="3 is not a class"):
        model.partial_fit(X, np.full(8, 3))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "list of all labels"),
        ("ab", "list of all labels"),
        ([[0, 1]], "list of all labels"),
        ([-1, 0, 1], "must not hold -1"),
        (["a", None], "must not hold -1"),
        ([0, 1, 2], "n_classes is 2"),
    ],
)
def test_classes_are_checked(classes, message):
    with pytest.raises(ValueError, match=message):
        HCN(SMALL, 2, **QUICK).partial_fit(few(), classes=classes)


def test_labels_and_parameters_that_do_not_fit_the_stream_are_refused():
    X, y = few(), np.arange(12) % 2
    model = HCN(SMALL, **QUICK)
    with pytest.raises(ValueError, match="7 is not a class"):
        model.partial_fit(X, np.where(y == 1, 7, 0), classes=[0, 1])
    assert model._stream is None
    model.partial_fit(X, y * 7, classes=[0, 7])
    with pytest.raises(ValueError, match="began with the classes"):
        model.partial_fit(X, y * 7, classes=[0, 1])
    with pytest.raises(ValueError, match="cannot change within a stream"):
        model.set_params(p01=0.01).partial_fit(X, y * 7)
