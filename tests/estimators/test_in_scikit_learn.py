"""All estimators are scikit-learn estimators."""

import pickle

import joblib
import numpy as np
import pytest
from joblib import parallel_config
from scenes import learner, scene
from scikit_learn_checks import (
    NOT_BINARY,
    WITHOUT_BINARY_DATA,
    BinaryTable,
    NetworkOfRows,
    PartsOfRows,
    TemplatesOfRows,
    assert_passes_all_but,
)
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from small_networks import known, small, tiny

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import boolean_matrix
from hcnet.hierarchy.pool_decisions import _decide

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


ANY_SIZE = "an image has no fixed number of features: images of another size are taken, too"
NO_COUNT = "an image has channels, a height and a width, not a number of features"
UNKNOWN = "-1 and NaN mark images without a label"
CLASSIFIER = {
    **{name: why for name, why in WITHOUT_BINARY_DATA.items() if "transformer" not in name},
    **dict.fromkeys(
        (
            "check_classifier_data_not_an_array",
            "check_classifiers_classes",
            "check_classifiers_one_label",
            "check_classifiers_regression_target",
            "check_classifiers_train",
            "check_non_transformer_estimators_n_iter",
            "check_supervised_y_2d",
        ),
        NOT_BINARY,
    ),
}
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
ONLINE = {"check_estimators_partial_fit_n_features": NOT_BINARY}
PARTS = {"feature_size": 1, "n_init": 1, "max_iter": 2, "random_state": 0}
NETWORK = {"p01": 0.1, "p10": 0.1, "n_init": 1, "max_iter": 4, "random_state": 0}
TEMPLATES = {"part_size": 1, "pool": 1, "template_pool": 1, "random_state": 0}
# Of estimators as they are, and fed with the checks' numbers made binary.
CHECKS = {
    "parts": (FeatureLearner(**PARTS), WITHOUT_BINARY_DATA),
    "binary parts": (PartsOfRows(**PARTS), BINARY_PARTS),
    "network": (HCN([Layer(pool=1)], **NETWORK), CLASSIFIER | ONLINE),
    "binary network": (NetworkOfRows([Layer(pool=1)], **NETWORK), BINARY_CLASSIFIER),
    "templates": (TemplateClassifier(8, **TEMPLATES), CLASSIFIER),
    "binary templates": (TemplatesOfRows(8, **TEMPLATES), BINARY_CLASSIFIER | TINY),
    "binary table": (BinaryTable(2, n_init=1, random_state=0), BINARY_TABLE),
}


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own accord
@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_pass(name):
    assert_passes_all_but(*CHECKS[name])
