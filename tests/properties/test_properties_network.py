"""`HCN` and `Layer`, whatever they are given: a right answer, or a sentence."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import (
    about,
    alike,
    anything,
    images,
    masks,
    odd_parameters,
    outcome,
    pixels,
    same_answers,
)

from hcnet import HCN, Layer

NAME = "hcnet.HCN"
QUICK = {"n_init": 1, "max_iter": 2, "random_state": 0}
SIDE = 7
WEIGHTS = [
    np.array([np.eye(3), np.eye(3)[::-1]], bool)[:, None],
    np.array([[1, 0], [0, 1], [1, 1], [1, 0]], bool)[:, :, None, None],
]
CLASSES = ["ab", "cd"]


@pytest.fixture(scope="session")
def network():
    model = HCN([Layer(2, size=3), Layer(size=1)], templates_per_class=2, random_state=0)
    return model.set_weights(WEIGHTS, SIDE, classes=CLASSES)


def inputs(channels=1):
    shapes = st.sampled_from([(SIDE, SIDE), (1, SIDE, SIDE), (3, SIDE, SIDE), (2, 1, SIDE, SIDE)])
    return shapes.flatmap(pixels)


METHODS = (
    "predict",
    "predict_proba",
    "cluster",
    "placements",
    "denoise",
    "inpaint",
    "score",
)


@given(st.data())
@about(*(f"{NAME}.{method}" for method in METHODS), examples=15)
def test_inference_does_not_depend_on_how_the_same_images_come(network, data):
    X = data.draw(inputs())
    mask = data.draw(masks(X.shape))
    given_X = data.draw(alike(X))
    how = data.draw(st.sampled_from(["explain", "forward", "passing"]))
    network.set_params(inference=how)
    n = 1 if X.ndim == 2 else len(X)
    if not same_answers(network, METHODS, X, given_X, mask):
        return  # everything is masked
    assert set(network.predict(X, mask)) <= set(CLASSES)
    p = network.predict_proba(X, mask)
    assert p.shape == (n, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert ((network.cluster(X, mask) >= 0) & (network.cluster(X, mask) < 4)).all()
    clean = network.denoise(X, mask=mask)
    assert clean.shape == X.shape
    assert clean.dtype == bool
    assert network.score(X, mask=mask) < 0
    if mask is not None:
        filled = network.inpaint(X, mask)
        np.testing.assert_array_equal(filled[~mask], X[~mask])


LABELS = [-1, None, float("nan"), "ab", "cd", "ef", 0, 1, 2.5, True, [1], {}, b"ab", 10**30, np.nan]


@given(
    st.sampled_from(["score", "denoise", "inpaint", "fit", "partial_fit"]),
    st.one_of(st.lists(st.sampled_from(LABELS), min_size=2, max_size=3), anything()),
)
@about(f"{NAME}.fit", f"{NAME}.partial_fit", f"{NAME}.score", examples=120)
def test_any_labels(network, method, y):
    network.set_params(inference="explain")
    X = np.zeros((3, SIDE, SIDE), bool)
    X[:, 2, 2:5] = True
    if method in ("fit", "partial_fit"):
        model = HCN([Layer(2, size=3), Layer(size=1)], **QUICK)
        if outcome(getattr(model, method), X, y) is not None:
            known = model.classes_.tolist()
            assert set(model.predict(X).tolist()) <= set(known)
            assert all(np.isin(W, (0, 1)).all() for W in model.weights_)
        return
    options = {"mask": np.zeros(X.shape, bool)} if method == "inpaint" else {}
    answer = outcome(getattr(network, method), X, y=y, **options)
    assert answer is None or np.isfinite(np.asarray(answer)).all()


@given(images(side=5), st.sampled_from(["explain", "forward"]))
@about(f"{NAME}.fit", f"{NAME}.fit_stream", examples=20)
def test_fit_learns_weights_or_says_why_not(X, how):
    model = HCN([Layer(2, size=2, pool=2), Layer(pool=1)], 2, inference=how, **QUICK)
    if outcome(model.fit, X) is None:
        return
    assert all(W.dtype == bool for W in model.weights_)
    stream = outcome(model.fit_stream, [X])
    assert stream is None or stream.n_images_seen_ == (1 if X.ndim == 2 else len(X))
    np.testing.assert_array_equal(model.fit(X.astype(float)).predict(X), model.fit(X).predict(X))


@given(st.sampled_from(tuple(Layer.__dataclass_fields__)), odd_parameters())
@about("hcnet.Layer", examples=100)
def test_any_value_of_a_layer(name, value):
    X = np.zeros((2, 4, 4), bool)
    X[:, 1, 1:3] = True
    layer = Layer(**{"n_features": 2, "size": 2, "pool": 1, name: value})
    model = HCN([layer, Layer(pool=1)], 2, **QUICK)
    if outcome(model.fit, X) is not None:
        assert np.isfinite(model.log_joint_)


@given(
    st.one_of(st.lists(anything(), max_size=2), anything(), st.just(WEIGHTS)),
    st.one_of(odd_parameters(), st.just(SIDE)),
    st.one_of(st.none(), st.lists(st.sampled_from(LABELS), max_size=3), anything()),
)
@about(f"{NAME}.set_weights", examples=80)
def test_any_weights(weights, size, classes):
    model = HCN([Layer(2, size=3), Layer(size=1)], templates_per_class=2)
    if outcome(model.set_weights, weights, size, classes) is not None:
        X, y = model.sample(2, random_state=0)
        assert set(y.tolist()) <= set(model.classes_.tolist())
        assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())


@given(odd_parameters(), st.sampled_from(LABELS), odd_parameters())
@about(f"{NAME}.sample", examples=60)
def test_any_sample(network, n, label, seed):
    assume(not (isinstance(n, int | float) and n > 1e6))
    answer = outcome(network.sample, n, label, random_state=seed)
    if answer is not None:
        X, y = answer
        assert X.shape == (n, 1, SIDE, SIDE)
        assert X.dtype == bool
        assert set(y) <= ({label} if label is not None else set(CLASSES))


@given(
    st.one_of(st.none(), st.lists(st.integers(-1, 4), max_size=5), anything()),
    st.one_of(st.none(), st.lists(st.sampled_from(LABELS), max_size=4)),
    odd_parameters(),
    st.one_of(st.none(), odd_parameters(), st.just(8)),
)
@about(f"{NAME}.with_class_layer", examples=60)
def test_any_class_layer(network, categories, classes, p_on, size):
    assume(not (isinstance(size, int | float) and size > 1e6))
    network.set_params(inference="explain")
    other = outcome(network.with_class_layer, categories, classes, p_on, size)
    if other is not None:
        X, y = other.sample(1, random_state=0)
        assert len(other.predict(X)) == len(y) == 1
