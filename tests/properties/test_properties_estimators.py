"""Properties of every estimator, whatever it is given: a right answer, or a sentence."""

from typing import NamedTuple

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import about, anything, assert_finite, odd_parameters, outcome

from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Layer, TemplateClassifier

X = np.zeros((4, 6, 6), bool)
X[:2, 1, 1:4] = X[2:, 1:5, 2] = True
CROSSES = np.zeros((6, 8, 8), bool)
for k, image in enumerate(CROSSES):
    image[k % 4, 1:4] = image[k : k + 3, k] = True
QUICK = {"n_init": 1, "max_iter": 2, "random_state": 0}


class Case(NamedTuple):
    """A class, parameters with which it learns fast, data, and its methods."""

    estimator: type
    options: dict
    X: np.ndarray
    learning: tuple
    asking: tuple  # take X and a mask
    other: tuple = ()  # other methods that need what was learned

    def make(self, **options):
        return self.estimator(**{**self.options, **options})


IMAGES = ("denoise", "inpaint", "placements", "score")
CASES = {
    "FeatureLearner": Case(
        FeatureLearner,
        {"feature_size": 3, **QUICK},
        CROSSES,
        ("fit", "fit_transform", "partial_fit", "fit_stream"),
        ("transform", "compression_ratio", *IMAGES),
        ("inverse_transform", "refine", "save"),
    ),
    "HCN": Case(
        HCN,
        {"layers": [Layer(2, size=2, pool=1), Layer(pool=1)], "templates_per_class": 2, **QUICK},
        X,
        ("fit", "partial_fit", "fit_stream"),
        ("predict", "predict_proba", "cluster", *IMAGES),
        ("sample", "with_class_layer", "save"),
    ),
    "TemplateClassifier": Case(
        TemplateClassifier,
        {"n_parts": 2, "part_size": 3, "max_iter": 1, "random_state": 0},
        X,
        ("fit",),
        ("predict", "predict_proba", "cluster", *IMAGES[:-1]),
        ("sample", "save"),
    ),
    "BooleanMatrixFactorization": Case(
        BooleanMatrixFactorization,
        {"n_components": 2, "max_components": 3, **QUICK},
        X[0],
        ("fit", "fit_transform"),
        ("transform", "inpaint", "score"),
        ("inverse_transform", "save"),
    ),
}
FITTED = {}


def fitted(kind):
    """An estimator that has learned from its data, made once."""
    if kind not in FITTED:
        case = CASES[kind]
        FITTED[kind] = case.make().fit(case.X)
    return FITTED[kind]


def names(*groups):
    return (f"hcnet.{k}.{m}" for k, case in CASES.items() for g in groups for m in getattr(case, g))


@given(st.sampled_from([*CASES]), st.data(), odd_parameters())
@about(*(f"hcnet.{kind}.set_params" for kind in CASES), examples=400)
def test_any_value_of_a_parameter(kind, data, value):
    case = CASES[kind]
    name = data.draw(st.sampled_from([*case.make().get_params(deep=False)]))
    # Right values that would fill the screen, or take for ever.
    assume(name != "verbose" or (np.ndim(value) == 0 and value in (None, False, 0)))
    endless = isinstance(value, int | float) and value > 100
    assume(name not in ("n_init", "max_iter") or not endless)
    model = case.make().set_params(**{name: value})
    if outcome(model.fit, case.X) is not None:
        assert_finite(getattr(model, case.asking[0])(case.X))


@given(
    st.sampled_from([k for k in CASES if "engine" in CASES[k].make().get_params()]),
    st.sampled_from(["name", "schedule", "damping"]),
    st.one_of(odd_parameters(), st.sampled_from(["dense", "beliefs", "blocks"])),
)
@about("hcnet.Engine.on", examples=60)
def test_any_engine(kind, name, value):
    case = CASES[kind]
    model = outcome(lambda: case.make(engine=Engine(**{name: value})).fit(case.X))
    if model is not None:
        assert_finite(getattr(model, case.asking[0])(case.X))


@given(st.sampled_from([*CASES]), st.data(), anything())
@about(*names("learning"), examples=300)
def test_learning_from_anything(kind, data, given_X):
    model = CASES[kind].make()
    method = data.draw(st.sampled_from(CASES[kind].learning))
    if outcome(getattr(model, method), given_X) is not None:
        assert_finite([getattr(model, p) for p in ("p_S_", "p_W_", "p01_") if hasattr(model, p)])


@given(st.sampled_from([*CASES]), st.data(), anything(), st.one_of(st.none(), anything()))
@about(*names("asking"), examples=400)
def test_asking_anything(kind, data, given_X, mask):
    method = data.draw(st.sampled_from(CASES[kind].asking))
    answer = outcome(getattr(fitted(kind), method), given_X, mask=mask)
    if answer is not None and method != "compression_ratio":
        assert_finite(answer)


@given(st.sampled_from([k for k in CASES if "inverse_transform" in CASES[k].other]), anything())
@about(
    *(
        f"hcnet.{kind}.inverse_transform"
        for kind in ("FeatureLearner", "BooleanMatrixFactorization")
    ),
    examples=50,
)
def test_any_codes(kind, codes):
    answer = outcome(fitted(kind).inverse_transform, codes)
    assert answer is None or np.asarray(answer).dtype == bool


@given(st.sampled_from([*CASES]), anything())
@about(*names("other"), *(f"hcnet.{kind}.load" for kind in CASES), examples=20)
def test_an_estimator_that_is_not_fitted_says_so(kind, given_X):
    case = CASES[kind]
    for method in case.asking:
        assert outcome(getattr(case.make(), method), given_X, mask=np.zeros((1, 1))) is None
    arguments = {"inverse_transform": [given_X], "save": ["nowhere.hcn"]}
    for method in case.other:
        assert outcome(getattr(case.make(), method), *arguments.get(method, [])) is None
