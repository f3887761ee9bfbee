"""`TemplateClassifier` and `Inference`, whatever they are given: a right answer, or a sentence."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import about, alike, anything, masks, odd_parameters, outcome, pixels, same_answers

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
    if not same_answers(fitted, METHODS, pictures, given_X, mask):
        return  # everything is masked
    found = fitted.predict(pictures, mask)
    assert fitted.score(pictures, found, mask) == 1
    np.testing.assert_allclose(fitted.predict_proba(pictures, mask).sum(axis=1), 1)


@given(anything(), st.one_of(st.none(), anything()))
@about(f"{NAME}.score", examples=30)
def test_any_labels(fitted, pictures, y):
    outcome(fitted.score, pictures, y)
    outcome(make().fit, X, y)


@given(odd_parameters(), st.sampled_from(["a", "b", "c", None, 1]), odd_parameters())
@about(f"{NAME}.sample", examples=40)
def test_any_sample(fitted, n, label, seed):
    assume(not (isinstance(n, int | float) and n > 1e6))
    answer = outcome(fitted.sample, n, label, random_state=seed)
    assert answer is None or answer[0].shape == (n, 1, SIDE, SIDE)


@given(st.sampled_from(["name", "candidates", "n_passes"]), odd_parameters())
@about("hcnet.Inference", examples=20)
def test_any_inference(name, value):
    assume(name == "name" or not (isinstance(value, int) and 100 < value < 2000))
    way = Inference(**{"name": "passing" if name == "n_passes" else "explain", name: value})
    model = HCN([Layer(pool=1)], 2, inference=way, n_init=1, max_iter=1, random_state=0)
    if outcome(model.fit, X) is not None:
        assert set(model.predict(X)) <= {0, 1}
