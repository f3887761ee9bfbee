"""`TemplateClassifier` and `Inference`, whatever they are given: a right answer, or a sentence."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import about, alike, anything, images, masks, odd_parameters, outcome, pixels

from hcnet import HCN, Inference, Layer, TemplateClassifier

NAME = "hcnet.TemplateClassifier"
SIDE = 6
X = np.zeros((4, SIDE, SIDE), bool)
X[:2, 1, 1:4] = X[2:, 1:5, 2] = True
METHODS = ("predict", "predict_proba", "cluster", "placements", "denoise", "inpaint")


def make(**options):
    return TemplateClassifier(**{"n_parts": 2, "part_size": 3, "random_state": 0, **options})


@pytest.fixture(scope="session")
def fitted():
    return make(templates_per_class=2).fit(X, ["a", "a", "b", "b"])


@given(st.data())
@about(*(f"{NAME}.{method}" for method in METHODS), f"{NAME}.score", examples=15)
def test_answers_do_not_depend_on_how_the_same_images_come(fitted, data):
    shapes = [(SIDE, SIDE), (3, SIDE, SIDE), (2, 1, SIDE, SIDE)]
    pictures = data.draw(st.sampled_from(shapes).flatmap(pixels))
    mask = data.draw(masks(pictures.shape))
    given_X = data.draw(alike(pictures))
    for method in METHODS:
        if method == "inpaint" and mask is None:
            continue
        a, b = (outcome(getattr(fitted, method), one, mask=mask) for one in (given_X, pictures))
        assert (a is None) == (b is None)
        if a is None:
            return  # everything is masked
        np.testing.assert_array_equal(a, b)
    found = fitted.predict(pictures, mask)
    assert fitted.score(pictures, found, mask) == 1
    np.testing.assert_allclose(fitted.predict_proba(pictures, mask).sum(axis=1), 1)


@given(st.sampled_from([*METHODS, "score"]), anything(), st.one_of(st.none(), anything()))
@about(f"{NAME}.score", examples=60)
def test_any_images(fitted, method, pictures, other):
    use, unfitted = getattr(fitted, method), getattr(make(), method)
    more = {"y": other} if method == "score" else {"mask": other}
    outcome(use, pictures, **more)
    assert outcome(unfitted, pictures, **more) is None


@given(st.one_of(images(side=5), anything()), st.one_of(st.none(), anything()))
@about(f"{NAME}.fit", examples=30)
def test_learning_from_anything(pictures, y):
    model = make()
    if outcome(model.fit, pictures, y) is not None:
        assert set(model.predict(pictures)) <= set(model.classes_)


PARAMETERS = tuple(make().get_params())


@given(st.sampled_from(PARAMETERS), odd_parameters())
@about(f"{NAME}.set_params", examples=60)
def test_any_value_of_a_parameter(name, value):
    assume(name != "verbose" or (np.ndim(value) == 0 and value in (None, False, 0)))
    assume(name != "max_iter" or not isinstance(value, int) or value < 100)
    model = make(max_iter=1).set_params(**{name: value})
    if outcome(model.fit, X) is not None:
        assert set(model.predict(X)) <= set(model.classes_)


@given(odd_parameters(), st.sampled_from(["a", "b", "c", None, 1]), odd_parameters())
@about(f"{NAME}.sample", examples=40)
def test_any_sample(fitted, n, label, seed):
    assume(not (isinstance(n, int | float) and n > 1e6))
    answer = outcome(fitted.sample, n, label, random_state=seed)
    assert answer is None or answer[0].shape == (n, 1, SIDE, SIDE)


@given(st.integers(0, 3))
@about(f"{NAME}.save", f"{NAME}.load", examples=4)
def test_what_is_saved_answers_the_same(fitted, tmp_path_factory, seed):
    path = fitted.save(tmp_path_factory.mktemp("model") / "model.hcn")
    pictures = np.random.default_rng(seed).random((3, SIDE, SIDE)) < 0.3
    loaded = TemplateClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(pictures), fitted.predict_proba(pictures))
    assert outcome(make().save, path) is None


@given(st.sampled_from(["name", "candidates", "n_passes"]), odd_parameters())
@about("hcnet.Inference", examples=20)
def test_any_inference(name, value):
    assume(name == "name" or not (isinstance(value, int) and 100 < value < 2000))
    way = Inference(**{"name": "passing" if name == "n_passes" else "explain", name: value})
    model = HCN([Layer(pool=1)], 2, inference=way, n_init=1, max_iter=1, random_state=0)
    if outcome(model.fit, X) is not None:
        assert set(model.predict(X)) <= {0, 1}
