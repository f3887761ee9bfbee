"""HCN is a scikit-learn estimator."""

import pickle

import joblib
import numpy as np
import pytest
from joblib import parallel_config
from scikit_learn_checks import NOT_BINARY, WITHOUT_BINARY_DATA, assert_passes_all_but, is_table
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from small_networks import known, small, tiny

from hcnet import HCN, Inference, Layer, TemplateClassifier
from hcnet.hierarchy.pool_decisions import _decide


def test_an_unfitted_network_says_so():
    model, X = HCN([Layer()]), np.eye(6)
    for use in ("predict", "predict_proba", "cluster", "placements", "denoise"):
        with pytest.raises(NotFittedError):
            getattr(model, use)(X)
    for call in (
        lambda: model.score(X),
        lambda: model.inpaint(X, X > 0),
        lambda: model.sample(),
        lambda: model.with_class_layer(),
        lambda: model.save("nowhere.hcn"),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_clone_and_set_params(data):
    model = known(data, p01=0.01, inference=Inference(candidates=3))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.layers == model.layers
    assert not hasattr(copy, "weights_")
    assert copy.set_params(n_classes=4, layers=[Layer()]).n_classes == 4
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(n_class=4)
    assert is_classifier(copy)
    assert HCN([Layer()], 4, 2).get_params()["templates_per_class"] == 2


def test_pickle(data):
    images = small()
    for model, X in (
        (tiny().fit(images.images, images.labels), images.images),
        (known(data).with_class_layer(p_on=0.01), data.images),
    ):
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.score(X) == model.score(X)
        assert getattr(copy, "status_", None) == getattr(model, "status_", None)


def test_a_model_that_is_mapped_into_memory_needs_no_compiling_of_its_own(data, tmp_path):
    model = known(data)
    before = model.predict(data.images)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert isinstance(mapped.weights_[0], np.memmap)
    compiled = len(_decide.__wrapped__.signatures)
    np.testing.assert_array_equal(mapped.predict(data.images), before)
    assert len(_decide.__wrapped__.signatures) == compiled


def test_in_a_pipeline():
    images = small()
    binary = FunctionTransformer(lambda x: x > 127)
    X, y = images.images * np.uint8(135), np.array(["a", "b"])[images.labels]
    pipeline = Pipeline([("binary", binary), ("network", tiny(templates_per_class=2))])
    assert pipeline.fit(X, y).score(X, y) > 0.9
    assert pipeline.predict_proba(X).shape == (24, 2)
    assert pipeline.set_params(network__p01=0.01)[-1].p01 == 0.01


def test_cross_validation_and_grid_search():
    """Two templates per class are needed: each class is of two patterns that share no part."""
    images = small(32)
    scores = cross_val_score(tiny(templates_per_class=2), images.images, images.labels, cv=2)
    assert scores.mean() > 0.85
    for backend in ("loky", "threading"):
        with parallel_config(backend=backend):
            search = GridSearchCV(tiny(), {"templates_per_class": [1, 2]}, cv=2, n_jobs=2)
            search.fit(images.images, images.labels)
        assert search.best_params_ == {"templates_per_class": 2}
        assert search.score(images.images, images.labels) > 0.9
    # Without labels the joint log-probability decides.
    clusters = GridSearchCV(tiny(), {"n_classes": [1, 4]}, cv=2).fit(images.images)
    assert clusters.best_params_ == {"n_classes": 4}


class OfRows:
    """Rows of any numbers as images of one row, so that scikit-learn's checks can feed them."""

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


class NetworkOfRows(OfRows, HCN):
    def partial_fit(self, X, y=None, mask=None, classes=None):
        return super().partial_fit(self.images(X), y, mask, classes=classes)


class TemplatesOfRows(OfRows, TemplateClassifier):
    pass


NO_COUNT = "an image has channels, a height and a width, not a number of features"
UNKNOWN = "-1 and NaN mark images without a label"
OF_A_CLASSIFIER = dict.fromkeys(
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
)
WITH_BINARY_DATA = {
    "check_n_features_in": NO_COUNT,
    "check_n_features_in_after_fitting": NO_COUNT,
    "check_classifiers_classes": UNKNOWN,
    "check_supervised_y_no_nan": UNKNOWN,
}


AS_IT_IS = OF_A_CLASSIFIER | {
    name: why for name, why in WITHOUT_BINARY_DATA.items() if "transformer" not in name
}
TINY = {"check_classifiers_train": "images of 4×2 pixels have no parts to tell them apart by"}
ONLINE = {"check_estimators_partial_fit_n_features": NOT_BINARY}
NETWORK = {"p01": 0.1, "p10": 0.1, "n_init": 1, "max_iter": 4, "random_state": 0}
TEMPLATES = {"part_size": 1, "pool": 1, "template_pool": 1, "random_state": 0}


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own accord
@pytest.mark.parametrize(
    ("estimator", "exceptions"),
    [
        (HCN([Layer(pool=1)], **NETWORK), AS_IT_IS | ONLINE),
        (NetworkOfRows([Layer(pool=1)], **NETWORK), WITH_BINARY_DATA),
        (TemplateClassifier(8, **TEMPLATES), AS_IT_IS),
        (TemplatesOfRows(8, **TEMPLATES), WITH_BINARY_DATA | TINY),
    ],
    ids=["network", "network of binary rows", "templates", "templates of binary rows"],
)
def test_it_is_a_scikit_learn_estimator(estimator, exceptions):
    assert_passes_all_but(estimator, exceptions)
