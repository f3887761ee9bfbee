"""All estimators are scikit-learn estimators."""

import pickle

import joblib
import numpy as np
import pytest
from joblib import parallel_config
from scenes import learner, scene
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from small_networks import known, small, tiny

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import boolean_matrix
from hcnet.hierarchy.decoding import _decide

PAGES, SHAPES = scene()[0], small()
TABLE = boolean_matrix(shape=(60, 50), rank=3, flips=0.05, random_state=0).table
# An estimator, its data, the method to compare, and parameters to search with the best of them.
KINDS = {
    "parts": (learner(), (PAGES,), "transform", {"n_features": [1, 2]}),
    "network": (
        tiny(templates_per_class=2),
        (SHAPES.images, SHAPES.labels),
        "predict_proba",
        {"templates_per_class": [1, 2]},
    ),
    "templates": (
        TemplateClassifier(8, part_size=3, templates_per_class=2, random_state=0),
        (SHAPES.images, SHAPES.labels),
        "predict_proba",
        {"templates_per_class": [1, 2]},
    ),
    "table": (
        BooleanMatrixFactorization(3, n_init=1, random_state=0),
        (TABLE,),
        "transform",
        {"n_components": [1, 3]},
    ),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def dense(found):
    return found.toarray() if hasattr(found, "toarray") else found


@EACH
def test_an_unfitted_estimator_says_so(kind):
    model, (X, *y), _, _ = KINDS[kind]
    arguments = {
        "save": ["nowhere.hcn"],
        "score": [X, *y],
        "inpaint": [X, X > 0],
        "inverse_transform": [np.zeros((1, 3))],
        "render": [np.zeros((1, 4), int)],
        **{name: [] for name in ("refine", "sample", "with_class_layer")},
        **{name: [X] for name in ("placements", "transform", "predict", "cluster", "denoise")},
    }
    for name, given in arguments.items():
        if hasattr(model, name):
            with pytest.raises(NotFittedError):
                getattr(clone(model), name)(*given)


@EACH
def test_clone_and_pickle(kind):
    model, data, method, search = KINDS[kind]
    model = clone(model).fit(*data)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "history_")
    name, values = next(iter(search.items()))
    assert getattr(copy.set_params(**{name: values[0]}), name) == values[0]
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(n_feature=1)
    assert is_classifier(copy) == (len(data) == 2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        dense(getattr(again, method)(data[0])), dense(getattr(model, method)(data[0]))
    )
    assert again.status_ == model.status_


@EACH
def test_in_a_pipeline(kind):
    model, (X, *y), method, _ = KINDS[kind]
    steps = [("binary", FunctionTransformer(lambda x: x > 127)), ("model", clone(model))]
    pipeline = Pipeline(steps).fit(X * np.uint8(255), *y)
    found = getattr(pipeline, method)(X * np.uint8(255))
    alone = getattr(clone(model).fit(X, *y), method)(X)
    np.testing.assert_array_equal(dense(found), dense(alone))
    assert pipeline.set_params(model__max_seconds=9)[-1].max_seconds == 9


@EACH
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_search_over_parameters_in_workers(kind, backend):
    model, data, _, parameters = KINDS[kind]
    with parallel_config(backend=backend):
        found = GridSearchCV(model, parameters, cv=2, n_jobs=2).fit(*data)
    alone = GridSearchCV(model, parameters, cv=2).fit(*data)
    scores = found.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, alone.cv_results_["mean_test_score"])
    assert found.best_params_ == {name: values[-1] for name, values in parameters.items()}


def test_cross_validation_with_labels_and_without():
    """Two templates per class are needed: each class is of two patterns that share no part."""
    images = small(32)
    scores = cross_val_score(tiny(templates_per_class=2), images.images, images.labels, cv=2)
    assert scores.mean() > 0.85
    # Without labels the joint log-probability decides.
    clusters = GridSearchCV(tiny(), {"n_classes": [1, 4]}, cv=2).fit(images.images)
    assert clusters.best_params_ == {"n_classes": 4}


def test_a_model_that_is_mapped_into_memory_needs_no_compiling_of_its_own(data, tmp_path):
    model = known(data)
    before = model.predict(data.images)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert isinstance(mapped.weights_[0], np.memmap)
    compiled = len(_decide.__wrapped__.signatures)
    np.testing.assert_array_equal(mapped.predict(data.images), before)
    assert len(_decide.__wrapped__.signatures) == compiled


# The checks of scikit-learn feed numbers that are not binary; these estimators make them so.


def is_table(X):
    """Whether rows can be made images of; other input of the checks is there to be refused."""
    array = X if sparse.issparse(X) else np.asarray(X)
    return not (
        sparse.issparse(X) or array.ndim != 2 or 0 in array.shape or array.dtype.kind == "c"
    )


class AnyNumbers:
    """An estimator whose input may be of any sign."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


class PartsOfRows(AnyNumbers, FeatureLearner):
    """Rows of any numbers as images of one row."""

    @staticmethod
    def images(X):
        return (np.floor(4 * np.asarray(X).astype(float)) % 2)[:, None] if is_table(X) else X

    def fit(self, X, y=None, mask=None):
        return super().fit(self.images(X), y, mask)

    def partial_fit(self, X, y=None, mask=None):
        return super().partial_fit(self.images(X), y, mask)

    def _explain(self, X, mask):
        return super()._explain(self.images(X), mask)


class SoftPartsOfRows(PartsOfRows):
    """Rows as pages, with a square for each number."""

    @staticmethod
    def images(X):
        squares = np.ones((1, 6, 6))
        return np.kron(PartsOfRows.images(X), squares) if is_table(X) else X


class Levels(AnyNumbers):
    """Rows of any numbers as images with a row for each of four thresholds."""

    @staticmethod
    def images(X):
        if not is_table(X):
            return X
        values = np.asarray(X).astype(float)[:, None]
        levels = (values > np.linspace(-1.2, 1.2, 4)[:, None]).astype(float)
        return np.where(np.isfinite(values), levels, values)

    def fit(self, X, y=None, mask=None):
        return super().fit(self.images(X), y, mask)

    def _check(self, X, mask):
        return super()._check(self.images(X), mask)


class NetworkOfRows(Levels, HCN):
    def partial_fit(self, X, y=None, mask=None, classes=None):
        return super().partial_fit(self.images(X), y, mask, classes=classes)


class TemplatesOfRows(Levels, TemplateClassifier):
    pass


class BinaryTable(BooleanMatrixFactorization):
    """Any numbers as zeros and ones."""

    @staticmethod
    def table(X):
        if sparse.issparse(X):
            return X.astype(bool)
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            return X  # to be refused
        return np.where(np.isfinite(array), np.floor(4 * array.astype(float)) % 2, array)

    def fit(self, X, y=None, mask=None):
        return super().fit(self.table(X), y, mask)

    def transform(self, X, mask=None):
        return super().transform(self.table(X), mask)

    def score(self, X, y=None, mask=None):
        return super().score(self.table(X), y, mask)


ANY_SIZE = "an image has no fixed number of features: images of another size are taken, too"
NO_COUNT = "an image has channels, a height and a width, not a number of features"
UNKNOWN = "-1 and NaN mark images without a label"
BINARY_PARTS = dict.fromkeys(
    ("check_n_features_in", "check_n_features_in_after_fitting", "check_transformer_general"),
    ANY_SIZE,
)
BINARY_CLASSIFIER = {
    "check_n_features_in": NO_COUNT,
    "check_n_features_in_after_fitting": NO_COUNT,
    "check_classifiers_classes": UNKNOWN,
    "check_supervised_y_no_nan": UNKNOWN,
}
BINARY_TABLE = {"check_dtype_object": "arrays of objects are refused: anything may be in them"}
TINY = {"check_classifiers_train": "images of 4×2 pixels have no parts to tell them apart by"}
PARTS = {"feature_size": 1, "n_init": 1, "max_iter": 2, "random_state": 0}
NETWORK = {"p01": 0.1, "p10": 0.1, "n_init": 1, "max_iter": 4, "random_state": 0}
TEMPLATES = {"part_size": 1, "pool": 1, "template_pool": 1, "random_state": 0}
# Estimators, and the checks that they cannot pass.
SOFT = {name: why for name, why in BINARY_PARTS.items() if name != "check_transformer_general"}
CHECKS = {
    "parts": (PartsOfRows(**PARTS), BINARY_PARTS),
    "soft parts": (SoftPartsOfRows(algorithm="soft", random_state=0), SOFT),
    "network": (NetworkOfRows([Layer(pool=1)], **NETWORK), BINARY_CLASSIFIER),
    "templates": (TemplatesOfRows(8, **TEMPLATES), BINARY_CLASSIFIER | TINY),
    "table": (BinaryTable(2, n_init=1, random_state=0), BINARY_TABLE),
}


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own accord
@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_pass(name):
    estimator, exceptions = CHECKS[name]
    results = check_estimator(estimator, expected_failed_checks=exceptions, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    # An exception that is none any more must leave the list.
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(exceptions)
