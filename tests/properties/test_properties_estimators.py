"""Properties of every estimator, whatever it is given: a right answer, or a sentence."""

from functools import cache
from typing import NamedTuple

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from strategies import (
    about,
    alike,
    anything,
    assert_finite,
    images,
    masks,
    odd_parameters,
    outcome,
    pixels,
    same_answers,
    untouched,
)

from hcnet import (
    HCN,
    BooleanMatrixFactorization,
    Deformations,
    Engine,
    FeatureLearner,
    Inference,
    Layer,
    ShapeClassifier,
    TemplateClassifier,
)
from hcnet.names import ALGORITHMS, SCHEDULE_NAMES

SIDE = 7
X = np.zeros((4, SIDE, SIDE), bool)
X[:2, 1, 1:4] = X[2:, 1:5, 2] = True
CROSSES = np.zeros((6, 8, 8), bool)
for k, image in enumerate(CROSSES):
    image[k % 4, 1:4] = image[k : k + 3, k] = True
WEIGHTS = [
    np.array([np.eye(3), np.eye(3)[::-1]], bool)[:, None],
    np.array([[1, 0], [0, 1], [1, 1], [1, 0]], bool)[:, :, None, None],
]
CLASSES = ["ab", "cd"]
QUICK = {"n_init": 1, "max_iter": 2, "random_state": 0}
IMAGES = ("denoise", "inpaint", "placements", "score")
NUMBERS = ("p_S_", "p_W_", "p01_", "p10_", "log_joint_")


class Case(NamedTuple):
    """A class, parameters with which it learns fast, data, and its methods."""

    estimator: type
    options: dict
    X: np.ndarray
    inputs: st.SearchStrategy  # for a fitted one
    learning: tuple
    asking: tuple  # take X and a mask
    other: tuple = ()  # other methods that need what was learned

    def make(self, **options):
        return self.estimator(**{**self.options, **options})


SAME_SIZE = st.sampled_from([(SIDE, SIDE), (3, SIDE, SIDE), (2, 1, SIDE, SIDE)]).flatmap(pixels)
CASES = {
    "FeatureLearner": Case(
        FeatureLearner,
        {"feature_size": 3, **QUICK},
        CROSSES,
        images(side=9).filter(lambda x: min(x.shape[-2:]) >= 3),
        ("fit", "fit_transform", "partial_fit", "fit_stream"),
        ("transform", "compression_ratio", *IMAGES),
        ("inverse_transform", "refine", "save"),
    ),
    "HCN": Case(
        HCN,
        {"layers": [Layer(2, size=3), Layer(size=1)], "templates_per_class": 2, **QUICK},
        X,
        SAME_SIZE,
        ("fit", "partial_fit", "fit_stream"),
        ("predict", "predict_proba", "cluster", *IMAGES),
        ("sample", "with_class_layer", "save"),
    ),
    "TemplateClassifier": Case(
        TemplateClassifier,
        {"n_parts": 2, "part_size": 3, "max_iter": 1, "random_state": 0},
        X,
        SAME_SIZE,
        ("fit",),
        ("predict", "predict_proba", "cluster", *IMAGES[:-1]),
        ("sample", "save"),
    ),
    "BooleanMatrixFactorization": Case(
        BooleanMatrixFactorization,
        {"n_components": 2, "max_components": 3, **QUICK},
        X[0],
        st.integers(1, 4).flatmap(lambda n: pixels((n, SIDE))),
        ("fit", "fit_transform"),
        ("transform", "inpaint", "score"),
        ("inverse_transform", "save"),
    ),
}
KINDS = st.sampled_from([*CASES])
CLASSIFIERS = st.sampled_from(["HCN", "TemplateClassifier"])


@cache
def fitted(kind):
    """An estimator that has learned from its data, made once."""
    case = CASES[kind]
    if kind == "HCN":
        return case.make().set_weights(WEIGHTS, SIDE, classes=CLASSES)
    if kind == "TemplateClassifier":
        return case.make(templates_per_class=2).fit(X, np.repeat(CLASSES, 2))
    return case.make().fit(case.X)


def names(*groups):
    return (f"hcnet.{k}.{m}" for k, case in CASES.items() for g in groups for m in getattr(case, g))


def forms(kind, array):
    """The same data in other types, layouts and containers."""
    if kind != "BooleanMatrixFactorization":
        return alike(array)
    return st.one_of(
        alike(array), st.sampled_from([sparse.csr_array(array), sparse.csc_array(array)])
    )


# --- the same data in another form ------------------------------------------------------------

OPTIONS = {
    "FeatureLearner": {
        "feature_size": [1, 2, 3, (1, 3), (2, 1)],
        "n_features": [None, 1, 5],
        "border": ["full", "valid"],
        "algorithm": ALGORITHMS,
        "engine": [Engine(schedule=name) for name in SCHEDULE_NAMES],
    },
    "HCN": {"layers": [[Layer(2, size=2, pool=2), Layer(pool=1)]], "inference": ["explain"]},
    "BooleanMatrixFactorization": {
        "n_components": [None, 1, 2, 9],
        "algorithm": ALGORITHMS,
        "objective": ["probability", "error"],
    },
}


@given(st.sampled_from([*OPTIONS]), st.data())
@about(examples=75)
def test_learning_does_not_depend_on_how_the_same_data_come(kind, data):
    matrix = kind == "BooleanMatrixFactorization"
    tables = st.tuples(st.integers(1, 6), st.integers(1, 5)).flatmap(pixels)
    given_X = data.draw(tables if matrix else images())
    mask, form = data.draw(masks(given_X.shape)), data.draw(forms(kind, given_X))
    same = untouched(form.toarray() if sparse.issparse(form) else form)
    options = {name: data.draw(st.sampled_from(some)) for name, some in OPTIONS[kind].items()}
    model = CASES[kind].make(**options)
    found = outcome(model.fit, form, mask=mask)
    same()
    if found is None:
        return
    assert found is model
    plain = CASES[kind].make(**options)
    outcome(plain.fit, given_X, mask=mask)
    for ours, theirs in zip(weights(model), weights(plain), strict=True):
        assert ours.dtype == bool
        np.testing.assert_array_equal(ours, theirs)
    assert_finite([getattr(model, name) for name in NUMBERS if hasattr(model, name)])
    if matrix:
        check_factors(model, given_X, mask, options["n_components"])
    elif kind == "FeatureLearner":
        check_parts(model, given_X, mask)


def weights(model):
    return getattr(model, "weights_", None) or [
        model.features_ if hasattr(model, "features_") else model.components_
    ]


def check_parts(model, given_X, mask):
    n, channels = (1, 1) if given_X.ndim == 2 else (len(given_X), 1)
    channels = given_X.shape[1] if given_X.ndim == 4 else channels
    assert model.features_.shape[1] == channels
    assert model.features_.any(axis=(1, 2, 3)).all()  # no part is empty
    assert (model.placements_[:, 0] < n).all()
    assert set(model.placements_[:, 1]) == set(range(len(model.features_)))  # nor unused
    assert model.compression_ratio_ >= 0
    assert all(0 < getattr(model, p) < 1 for p in NUMBERS[:4])
    assert outcome(model.fit_transform, given_X, mask=mask).shape[0] == n


def check_factors(model, given_X, mask, rank):
    codes = outcome(model.fit_transform, given_X, mask=mask)
    assert codes.shape == (len(given_X), len(model.components_))
    assert model.components_.shape[1] == given_X.shape[1]
    assert rank is None or len(model.components_) == rank
    product = (codes.astype(int) @ model.components_.astype(int)) > 0
    np.testing.assert_array_equal(model.inverse_transform(codes), product)


@given(KINDS, st.data())
@about(*names("asking"), "hcnet.TemplateClassifier.score", examples=110)
def test_answers_do_not_depend_on_how_the_same_data_come(kind, data):
    case, model = CASES[kind], fitted(kind)
    given_X = data.draw(case.inputs)
    mask = data.draw(masks(given_X.shape))
    if kind == "HCN":
        model.set_params(inference=data.draw(st.sampled_from(["explain", "forward", "passing"])))
    form = data.draw(forms(kind, given_X))
    if not same_answers(model, case.asking, given_X, form, mask):
        return  # everything is masked
    if mask is not None:
        filled = model.inpaint(given_X, mask)
        np.testing.assert_array_equal(filled[~mask], given_X[~mask])
    if "denoise" in case.asking:
        clean = model.denoise(given_X, mask=mask)
        assert (clean.shape, clean.dtype) == (given_X.shape, bool)
    if kind == "FeatureLearner":
        codes = model.transform(given_X, mask=mask)
        again = model.inverse_transform(codes, image_size=given_X.shape[-2:])
        np.testing.assert_array_equal(again.reshape(given_X.shape), clean)
        assert codes.nnz == len(model.placements(given_X, mask=mask))
    elif "predict" in case.asking:
        found = model.predict(given_X, mask)
        assert set(found) <= set(CLASSES)
        assert model.score(given_X, found, mask) == 1
        p = model.predict_proba(given_X, mask)
        assert p.shape == (len(found), 2)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.isin(model.cluster(given_X, mask), range(4)).all()


EXAMPLES = np.array([np.eye(6), np.fliplr(np.eye(6)) + np.eye(6)])


@given(
    st.one_of(anything(), images()),
    anything(),
    odd_parameters(),
    odd_parameters(),
    odd_parameters(),
)
@about(
    "hcnet.ShapeClassifier.decision_function",
    *(f"hcnet.ShapeClassifier.{name}" for name in ("fit", "predict", "score", "set_params")),
    examples=60,
)
def test_shapes_of_anything_are_compared_or_refused(given_X, y, n_points, candidates, stiffness):
    options = {"n_points": n_points, "candidates": candidates, "stiffness": stiffness}
    outcome(ShapeClassifier().set_params(**options).fit, EXAMPLES, [0, 1])
    outcome(ShapeClassifier().fit, given_X, y)
    model = ShapeClassifier(10).fit(EXAMPLES, CLASSES)
    found = outcome(model.predict, given_X)
    if found is not None:
        assert set(found) <= set(CLASSES)
        assert model.score(given_X, found) == 1
        assert (model.decision_function(given_X) <= 0).all()


@given(
    st.sampled_from(["FeatureLearner", "HCN"]),
    st.lists(images(side=5), min_size=1, max_size=4),
    st.sampled_from([{}, {"epochs": 2}]),
)
@about(examples=25)
def test_a_stream_is_learned_from_or_the_wrong_item_is_named(kind, items, how):
    small = {"feature_size": 2} if kind == "FeatureLearner" else {"layers": [Layer(2, size=2)] * 2}
    model = CASES[kind].make(**small)
    if outcome(model.fit_stream, iter(items), batch_size=2, **how) is None:
        return
    n_images = sum(1 if x.ndim == 2 else len(x) for x in items)
    assert model.n_images_seen_ == n_images * how.get("epochs", 1)
    if kind == "FeatureLearner":
        outcome(model.refine)
        assert model.features_.any(axis=(1, 2, 3)).all()


# --- anything ---------------------------------------------------------------------------------


@given(KINDS, st.data(), odd_parameters())
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


@given(st.sampled_from(tuple(Layer.__dataclass_fields__)), odd_parameters())
@about("hcnet.Layer", examples=100)
def test_any_value_of_a_layer(name, value):
    layer = Layer(**{"n_features": 2, "size": 2, "pool": 1, name: value})
    model = HCN([layer, Layer(pool=1)], 2, **QUICK)
    if outcome(model.fit, X[:2, :4, :4]) is not None:
        assert np.isfinite(model.log_joint_)


@given(st.sampled_from(tuple(Deformations.__dataclass_fields__)), odd_parameters())
@about("hcnet.Deformations", examples=30)
def test_any_value_of_a_deformation(name, value):
    how = Deformations(**{name: value})
    model = CASES["TemplateClassifier"].make(variants=2, deformations=how)
    if outcome(model.fit, X, np.repeat(CLASSES, 2)) is not None:
        assert set(model.predict(X)) <= set(CLASSES)


@given(st.sampled_from(["name", "candidates", "n_passes"]), odd_parameters())
@about("hcnet.Inference", examples=20)
def test_any_inference(name, value):
    assume(name == "name" or not (isinstance(value, int) and 100 < value < 2000))
    way = Inference(**{"name": "passing" if name == "n_passes" else "explain", name: value})
    model = HCN([Layer(pool=1)], 2, inference=way, n_init=1, max_iter=1, random_state=0)
    if outcome(model.fit, X) is not None:
        assert set(model.predict(X)) <= {0, 1}


@given(KINDS, st.data(), anything())
@about(*names("learning"), examples=300)
def test_learning_from_anything(kind, data, given_X):
    model = CASES[kind].make()
    method = data.draw(st.sampled_from(CASES[kind].learning))
    if outcome(getattr(model, method), given_X) is not None:
        assert_finite([getattr(model, p) for p in NUMBERS[:3] if hasattr(model, p)])


@given(KINDS, st.data(), anything(), st.one_of(st.none(), anything()))
@about(*names("asking"), examples=400)
def test_asking_anything(kind, data, given_X, mask):
    method = data.draw(st.sampled_from(CASES[kind].asking))
    answer = outcome(getattr(fitted(kind), method), given_X, mask=mask)
    if answer is not None and method != "compression_ratio":
        assert_finite(answer)


@given(st.sampled_from([k for k in CASES if "inverse_transform" in CASES[k].other]), anything())
@about(examples=50)
def test_any_codes(kind, codes):
    answer = outcome(fitted(kind).inverse_transform, codes)
    assert answer is None or np.asarray(answer).dtype == bool


@given(KINDS, anything())
@about(*names("other"), *(f"hcnet.{kind}.load" for kind in CASES), examples=20)
def test_an_estimator_that_is_not_fitted_says_so(kind, given_X):
    case = CASES[kind]
    for method in case.asking:
        assert outcome(getattr(case.make(), method), given_X, mask=np.zeros((1, 1))) is None
    arguments = {"inverse_transform": [given_X], "save": ["nowhere.hcn"]}
    for method in case.other:
        assert outcome(getattr(case.make(), method), *arguments.get(method, [])) is None


# --- classes ----------------------------------------------------------------------------------

LABELS = [-1, None, float("nan"), "ab", "cd", "ef", 0, 1, 2.5, True, [1], {}, b"ab", 10**30, np.nan]


@given(
    CLASSIFIERS,
    st.sampled_from(["score", "denoise", "inpaint", "fit", "partial_fit"]),
    st.one_of(st.lists(st.sampled_from(LABELS), min_size=3, max_size=4), anything()),
)
@about(examples=150)
def test_any_labels(kind, method, y):
    assume(kind == "HCN" or method in ("score", "fit"))
    model = fitted(kind)
    if method in ("fit", "partial_fit"):
        model = CASES[kind].make()
        if outcome(getattr(model, method), X, y) is not None:
            assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
        return
    if kind == "HCN":
        model.set_params(inference="explain")
    options = {"mask": np.zeros(X.shape, bool)} if method == "inpaint" else {}
    answer = outcome(getattr(model, method), X, y=y, **options)
    assert answer is None or np.isfinite(np.asarray(answer)).all()


@given(CLASSIFIERS, odd_parameters(), st.sampled_from(LABELS), odd_parameters())
@about(examples=80)
def test_any_sample(kind, n, label, seed):
    assume(not (isinstance(n, int | float) and n > 1e6))
    answer = outcome(fitted(kind).sample, n, label, random_state=seed)
    if answer is not None:
        drawn, y = answer
        assert (drawn.shape, drawn.dtype) == ((n, 1, SIDE, SIDE), bool)
        assert set(y) <= ({label} if label is not None else set(CLASSES))


@given(
    st.one_of(st.lists(anything(), max_size=2), anything(), st.just(WEIGHTS)),
    st.one_of(odd_parameters(), st.just(SIDE)),
    st.one_of(st.none(), st.lists(st.sampled_from(LABELS), max_size=3), anything()),
)
@about("hcnet.HCN.set_weights", examples=80)
def test_any_weights(given_weights, size, classes):
    model = CASES["HCN"].make()
    if outcome(model.set_weights, given_weights, size, classes) is not None:
        drawn, y = model.sample(2, random_state=0)
        assert {*y.tolist(), *model.predict(drawn).tolist()} <= set(model.classes_.tolist())


@given(
    st.one_of(st.none(), st.lists(st.integers(-1, 4), max_size=5), anything()),
    st.one_of(st.none(), st.lists(st.sampled_from(LABELS), max_size=4)),
    odd_parameters(),
    st.one_of(st.none(), odd_parameters(), st.just(8)),
)
@about(examples=60)
def test_any_class_layer(categories, classes, p_on, size):
    assume(not (isinstance(size, int | float) and size > 1e6))
    network = fitted("HCN").set_params(inference="explain")
    other = outcome(network.with_class_layer, categories, classes, p_on, size)
    if other is not None:
        drawn, y = other.sample(1, random_state=0)
        assert len(other.predict(drawn)) == len(y) == 1
