"""HCN takes labels of any kind, and explains bad input."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from small_networks import known, small, tiny

from hcnet import HCN, Engine, Inference, Layer

METHODS = ("explain", "forward", "passing")


# --- labels ---------------------------------------------------------------------------------

LABELS = {
    "ints": [3, 7],
    "unsigned": np.array([3, 7], np.uint8),
    "negative": [-3, -2],
    "floats": [1.0, 2.0],
    "strings": ["cat", "dog"],
    "bools": [False, True],
    "objects": np.array(["cat", "dog"], object),
    "numbers as objects": np.array([3, 7], object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_may_be_of_any_type(kind):
    images = small(8)
    names = np.array(LABELS[kind])
    model = tiny(max_iter=2, templates_per_class=2).fit(images.images, names[images.labels])
    assert model.classes_.tolist() == list(LABELS[kind])
    assert 0 <= model.score(images.images, names[images.labels]) <= 1
    found = model.predict(images.images)
    assert found.dtype == model.classes_.dtype
    assert found.dtype != object
    assert type(found.tolist()[0]) is type(names.tolist()[0])
    assert model.sample(1, names[1])[1].tolist() == [LABELS[kind][1]]


UNLABELLED = {
    "-1": [0, 1, -1, 1, 0],
    "a float -1": [0.0, 1.0, -1.0, 1.0, 0.0],
    "NaN": [0, 1, np.nan, 1, 0],
    "None": [0, 1, None, 1, 0],
    "strings and -1": ["0", "1", -1, "1", "0"],
    "the string -1": np.array(["0", "1", "-1", "1", "0"]),
    "strings and None": ["0", "1", None, "1", "0"],
    "strings and NaN": ["0", "1", np.nan, "1", "0"],
    "objects": np.array([0, 1, None, 1, 0], object),
}


class NotAvailable:
    """As pandas.NA: comparing it with anything is neither true nor false."""

    def __eq__(self, other):
        return self

    __ne__ = __eq__
    __hash__ = None

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("kind", [*UNLABELLED, "pandas.NA"])
def test_images_may_be_unlabelled(kind):
    y = UNLABELLED.get(kind, [0, 1, NotAvailable(), 1, 0])
    X = np.eye(5)[:, None]
    model = tiny(max_iter=1).fit(X, y)
    assert [str(int(name)) for name in model.classes_] == ["0", "1"]
    free, given = model.denoise(X), model.denoise(X, y)
    np.testing.assert_array_equal(free[2], given[2])


@pytest.mark.parametrize("y", [None, [-1] * 5, [None] * 5, np.full(5, np.nan), ["-1"] * 5])
def test_without_any_label_classes_are_numbers(y):
    X = np.eye(5)[:, None]
    assert tiny(max_iter=1).fit(X, y).classes_.tolist() == [0]
    assert tiny(max_iter=1, n_classes=3).fit(X, y).classes_.tolist() == [0, 1, 2]


def test_one_class_besides_minus_one_warns():
    X = np.eye(4)[:, None]
    with pytest.warns(UserWarning, match=r"only the class 1 besides -1.*another name") as seen:
        model = tiny(max_iter=1).fit(X, [1, -1, -1, 1])
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert model.classes_.tolist() == [1]
    with warnings.catch_warnings():  # one class and all labelled; labels to use, not to learn from
        warnings.simplefilter("error")
        tiny(max_iter=1).fit(X, [1, 1, 1, 1])
        model.denoise(X, [1, -1, -1, 1])


def test_a_column_of_labels_is_taken_with_a_warning():
    images = small(8)
    with pytest.warns(DataConversionWarning, match=r"column-vector y.*shape \(8,\).*ravel"):
        model = tiny(max_iter=1).fit(images.images, images.labels[:, None])
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 1], {}, r"one label per image, shape \(3,\), got \(2,\); use -1"),
        (5, {}, r"one label per image, shape \(3,\), got \(\)"),
        (np.zeros((3, 2)), {}, r"one label per image, shape \(3,\), got \(3, 2\)"),
        ([[1], [1, 2], [3]], {}, "y must be one array, but its rows differ"),
        ([0, "a", "b"], {}, r"one type that can be sorted, got values such as \[0, 'a'.*str"),
        ([-1, -1, {}], {}, r"one type that can be sorted, got values such as \[\{\}\]"),
        ([0.5, 1, 2], {}, r"Unknown label type: .*classes.* such as 0\.5; convert them"),
        ([0, np.inf, 1], {}, "Unknown label type: .* such as inf"),
        ([0, 1, 1], {"n_classes": 3}, r"n_classes is 3, but y holds 2 classes \(0, 1\); leave"),
        ([0, 1, 2], {"n_classes": 2}, r"n_classes is 2, but y holds 3 classes \(0, 1, 2\)"),
    ],
)
def test_bad_labels_are_explained(y, options, message):
    with pytest.raises(ValueError, match=message):
        tiny(**options).fit(np.eye(3)[:, None], y)


def test_labels_that_the_network_does_not_know_are_explained(data):
    model, X = known(data), data.images[:3]
    unknown = r"'bird' is not a class of this network; its classes are 'alike', 'unlike'\."
    with pytest.raises(ValueError, match=unknown):
        model.denoise(X, ["alike", -1, "bird"])
    with pytest.raises(ValueError, match=unknown):
        model.inpaint(X, np.zeros(X.shape, bool), ["bird"] * 3)
    with pytest.raises(ValueError, match=unknown):
        model.sample(1, "bird")
    for label in (-1, ["alike", "unlike"], np.array(["alike"])):
        with pytest.raises(ValueError, match="is not a class of this network; its classes are"):
            model.sample(1, label)
    with pytest.raises(ValueError, match=r"one label per image, shape \(3,\), got \(1,\)"):
        model.denoise(X, ["alike"])
    with pytest.raises(ValueError, match=r"y must hold at least one label.*leave y out"):
        model.score(X, [-1, None, np.nan])


# --- bad parameters -------------------------------------------------------------------------

BAD_LAYERS = [
    ([], r"layers must be a list of hcnet\.Layer from the image upwards, got \[\]; the last one"),
    (Layer(), "layers must be a list of hcnet.Layer"),
    (None, "layers must be a list of hcnet.Layer"),
    ([Layer(2, size=3), "Layer"], r"layers\[1\] must be an hcnet\.Layer, got 'Layer'"),
    ([Layer(size=3), Layer()], r"layers\[0\]\.n_features must be given; only the last layer"),
    ([Layer(2), Layer()], r"layers\[0\]\.size must be given; only the last layer"),
    ([Layer(0, size=3), Layer()], r"layers\[0\]\.n_features must be a whole number of at least 1"),
    ([Layer(3)], r"layers\[0\]\.n_features must be the number of templates.* = 1, got 3; leave"),
    ([Layer(size=0)], r"layers\[0\]\.size must be one positive whole number or two .*got 0"),
    ([Layer(size=(3, 3, 3))], r"layers\[0\]\.size must be"),
    ([Layer(pool=-1)], r"layers\[0\]\.pool must be one positive whole number or two"),
    (
        [Layer(pool=(1, 32_768), pool_border="same")],
        r"layers\[0\]\.pool must have at most 32767 positions, got 1×32768; choose a smaller",
    ),
    ([Layer(pool_border="round")], r"layers\[0\]\.pool_border must be one of 'full', 'same', got"),
    ([Layer(perturbation=1)], r"layers\[0\]\.perturbation must be at least 0 .* below 1, got 1"),
    ([Layer(p_W=0)], r"layers\[0\]\.p_W must be larger than 0 and at most 0\.5 .*, got 0; leave"),
    ([Layer(p_W=0.6)], r"layers\[0\]\.p_W must be"),
    ([Layer(2, 3, damping=0), Layer()], r"layers\[0\]\.damping must be larger than 0 and at most"),
    ([Layer(size=9)], r"layers\[0\] does not fit: the grid below is 6×6, its pool of 3×3 \('full'"),
    ([Layer(pool=7)], r"leaves 0×0, and its features are 0×0; choose smaller"),
    ([Layer(2, 4), Layer()], r"layers\[1\] does not fit: the grid below is 1×1, its pool of 3×3"),
    ([Layer(variants=2)], r"layers\[0\]\.variants must be 1 in the last layer, .* templates_per_c"),
    (
        [Layer(3, 2, variants=2), Layer()],
        r"n_features must be a multiple of its variants, 2, got 3",
    ),
    (
        [Layer(4, 2, variants=0), Layer()],
        r"layers\[0\]\.variants must be a whole number of at leas",
    ),
    (
        [Layer(4, 2, variants=2), Layer(pool_features=3)],
        r"layers\[1\]\.pool_features must be 1 above a layer with variants, got 3",
    ),
    (
        [Layer(pool_features=2)],
        r"pool_features must be at most 1, the number of channels of the im",
    ),
    ([Layer(2, 2), Layer(pool_features=3)], r"at most 2, the number of features below, got 3"),
    ([Layer(feature_order="heap")], r"feature_order must be one of 'line', 'ring', got 'heap'"),
    ([Layer(pool_prior="odd")], r"pool_prior must be one of 'uniform', 'learned', got 'odd'"),
    ([Layer(pool_prior=[1, 2])], r"broadcasts to \(channels, 1, 3, 3\), got \(1, 2\)\."),
    ([Layer(pool_prior=[[1], [2, 3]])], r"pool_prior must be .* got \(\(1,\), \(2, 3\)\)\."),
    ([Layer(pool_prior=np.zeros((3, 3)))], r"pool_prior must hold numbers above 0 and at most"),
    ([Layer(pool_prior=None)], r"pool_prior must hold numbers above 0 and at most .* got None"),
    ([Layer(2, 2, 1), Layer(pool_prior=np.ones((3, 1, 3, 3)))], r"\(channels, 1, 3, 3\)"),
]

BAD_OPTIONS = [
    ({"n_classes": 0}, "n_classes must be a whole number of at least 1, or None to take it from y"),
    ({"templates_per_class": 0}, "templates_per_class must be a whole number of at least 1, got 0"),
    ({"p01": 0.5}, r"p01 must lie strictly between 0 and 0\.5 .*got 0\.5; pass about the share"),
    ({"p10": 0}, "p10 must lie strictly"),
    (
        {"inference": "magic"},
        "inference must be one of 'explain', 'forward', 'passing', 'match', got 'mag",
    ),
    ({"inference": Inference(candidates=0)}, "candidates must be a whole number of at least 1"),
    (
        {"inference": Inference("match", n_passes=2)},
        r"inference\.n_passes belongs to the inference 'passing', got it with 'match'; leave",
    ),
    ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
    ({"max_iter": 0}, "max_iter must be a whole number of at least 1, or None for the default"),
    ({"max_seconds": 0}, "max_seconds must be a positive number, or None for no limit"),
    ({"max_memory": 0}, "max_memory must be a whole number of at least 1, or None for no limit"),
    ({"engine": Engine(schedule="never")}, "engine.schedule must be one of 'sequential'"),
    ({"engine": "steam"}, "engine must be one of 'active', 'beliefs', 'dense', 'reference'"),
    ({"random_state": -1}, "random_state must be None, a whole number"),
    ({"n_classes": 10**30}, "n_classes must be a whole number of at most 1,048,576, or None"),
    (
        {"templates_per_class": 10**30},
        "templates_per_class must be a whole number of at most 2,147,483,647, got 1",
    ),
]


def refused(call, message, kind=(ValueError, TypeError)):
    """The error of a call: one sentence."""
    with pytest.raises(kind, match=message) as caught:
        call()
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


@pytest.mark.parametrize(
    ("options", "message"),
    [*(({"layers": layers}, message) for layers, message in BAD_LAYERS), *BAD_OPTIONS],
    ids=lambda x: re.sub(r"\W+", "-", str(x))[:60],
)
def test_a_bad_option_is_explained_before_learning(options, message, monkeypatch):
    monkeypatch.setattr("hcnet.estimators.hcn.learn_network", None)
    model = HCN(**{"layers": [Layer()], **options})
    refused(lambda: model.fit(np.eye(6)), message)
    assert not hasattr(model, "weights_")


def test_bad_options_of_use_are_explained(data):
    for options, message in BAD_OPTIONS[4:7]:
        model = known(data).set_params(**options)
        refused(lambda model=model: model.predict(data.images), message)
    refused(lambda: known(data).sample(0), "n must be a whole number of at least 1, got 0")
    refused(lambda: known(data).sample(1.5), "n must be a whole number")
    refused(lambda: known(data).sample(random_state="x"), "random_state must be")


BAD_IMAGES = {
    "empty": (np.zeros((0, 13, 13)), "0 sample.* minimum of 1 is required"),
    "not binary": (np.full((13, 13), 7), "only 0 and 1, got values such as 7"),
    "rank 1": (np.zeros(13), r"\(height, width\).*got 1 dim"),
    "strings": (np.full((13, 13), "a"), "numbers or booleans, got dtype <U1"),
    "sparse": (sparse.csr_array(np.eye(13)), "Sparse input is not supported"),
}
OTHER_IMAGES = {
    "smaller": (np.zeros((3, 12, 13)), r"1 channels of 12×13 pixels.*has 1 of 13×13; pass such"),
    "larger": (np.zeros((13, 14)), r"13×14 pixels.*with_class_layer\(image_size=…\) for larger"),
    "channels": (np.zeros((3, 2, 13, 13)), "X has 2 channels of 13×13"),
}


@pytest.mark.parametrize("kind", [*BAD_IMAGES, *OTHER_IMAGES])
def test_bad_images_are_explained(kind, data):
    X, message = {**BAD_IMAGES, **OTHER_IMAGES}[kind]
    model = known(data)
    for use in ("predict", "predict_proba", "cluster", "placements", "denoise", "score"):
        refused(lambda use=use: getattr(model, use)(X), message)
    refused(lambda: model.inpaint(X, np.zeros(np.shape(X), bool)), message)
    if kind in BAD_IMAGES:
        refused(lambda: tiny().fit(X), message)


def test_bad_masks_are_explained(data):
    model, X = known(data), data.images
    for use in (model.fit, model.predict, model.inpaint, model.placements):
        call = {"mask": np.zeros((13, 12), bool)}
        refused(lambda use=use, call=call: use(X, **call), "mask must have the shape of X")
        call = {"mask": np.ones(X.shape, bool)}
        refused(lambda use=use, call=call: use(X, **call), "Every entry of X is missing")
        call = {"mask": np.full(X.shape, 0.5)}
        refused(lambda use=use, call=call: use(X, **call), "mask must hold booleans")


@pytest.mark.parametrize("method", METHODS)
def test_nan_is_missing_with_a_warning(data, method):
    model = known(data, inference=method)
    mask = np.random.default_rng(0).random(data.images.shape) < 0.05
    X = np.where(mask, np.nan, data.images)
    for use in (model.predict, model.denoise):
        with pytest.warns(UserWarning, match=r"NaN and no mask was given.*np\.isnan") as seen:
            found = use(X)
        assert len(seen) == 1
        # What is under the mask is not looked at, and a mask that is given does not warn.
        np.testing.assert_array_equal(found, use(~data.images ^ ~mask, mask=mask))
        np.testing.assert_array_equal(found, use(X, mask=mask))


def test_a_whole_image_may_be_missing(data):
    model, mask = known(data), np.zeros(data.images.shape, bool)
    mask[4] = True
    np.testing.assert_allclose(model.predict_proba(data.images, mask)[4], 0.5, atol=0.5)
    assert model.inpaint(data.images, mask, ["unlike"] * 10)[4].any()


# --- known weights --------------------------------------------------------------------------


def test_known_weights_need_no_training():
    images = small()
    layers = [Layer(4, size=7, pool=1), Layer(pool=1)]
    model = HCN(layers, n_classes=2, templates_per_class=2)
    weights = [images.features.astype(int), images.template_weights.astype(float)]
    assert model.set_weights(weights, (7, 7)) is model
    assert model.classes_.tolist() == [0, 1]
    assert model.template_classes_.tolist() == [0, 0, 1, 1]
    assert model.score(images.images, images.labels) == 1
    assert all(W.dtype == bool for W in model.weights_)


def test_known_weights_replace_what_was_learned():
    images = small()
    model = tiny(templates_per_class=2).fit(images.images, images.labels)
    model.set_weights([np.zeros((4, 1, 7, 7))], 7)
    assert not hasattr(model, "history_")


W1, W2 = np.zeros((4, 1, 9, 9)), np.zeros((4, 4, 1, 1))
BAD_WEIGHTS = [
    (([], 13), {}, "weights must be a list of arrays, one per layer from the image upwards, got"),
    ((None, 13), {}, "weights must be a list of arrays"),
    (([W1 + 2, W2], 13), {}, r"weights\[0\] must be zeros and ones of shape \(features, channels,"),
    (([W1, W2[0]], 13), {}, r"weights\[1\] must be zeros and ones .*shape \(4, 1, 1\); see"),
    (([W1, W2.astype(str)], 13), {}, r"weights\[1\] must be zeros and ones .*got dtype <U"),
    (([W1, W2 * np.nan], 13), {}, r"weights\[1\] must be zeros and ones"),
    (([W1, [[[1, 0], [1]]]], 13), {}, r"weights\[1\] must be one array, but its rows differ"),
    (([W1], 13), {}, r"must have the shapes .*\(4, 4, 1, 1\) to fit the layers, got \(4, 1, 9"),
    (([W1[:3], W2], 13), {}, r"shapes \(4, 1, 9, 9\), .* got \(3, 1, 9, 9\).*; change layers"),
    (([W1, W2], 12), {}, r"layers\[1\] does not fit"),
    (([W1, W2], 14), {}, r"shapes .*\(4, 4, 2, 2\) to fit the layers"),
    (([W1, W2], 0), {}, "image_size must be one positive whole number or two"),
    (([W1, W2[:3]], 13), {}, r"a multiple of templates_per_class = 2 templates, got 3; set"),
    (([W1, W2], 13), {"n_classes": 3}, r"hold 3 classes × templates_per_class = 2 templates, got"),
    (([W1, W2], 13, ["a"]), {}, r"classes must hold 2 different names, one per class .*got \['a'"),
    (([W1, W2], 13, "ab"), {}, "classes must hold 2 different names"),
    (([W1, W2], 13, [-1, 1]), {}, r"none of them -1 \(no label\), got \[-1, 1\]"),
    (([W1, W2], 13), {"p01": 1}, "p01 must lie strictly between"),
    (([W1, W2], 13), {"layers": [Layer()]}, "must have the shapes"),
]


@pytest.mark.parametrize(("weights", "options", "message"), BAD_WEIGHTS)
def test_bad_weights_are_explained(weights, options, message):
    options = {"layers": [Layer(4, size=9), Layer()], "templates_per_class": 2, **options}
    refused(lambda: HCN(**options).set_weights(*weights), message)


# --- another class layer --------------------------------------------------------------------

BAD_CLASS_LAYERS = [
    ({"categories": [0, 1]}, "number of the class of each of the 4 templates, from 0 and without"),
    ({"categories": [0, 0, 2, 2]}, r"without gaps, got \[0, 0, 2, 2\]"),
    ({"categories": [-1, 0, 0, 0]}, "categories must hold"),
    ({"categories": [0.0, 1.0, 0.0, 1.0]}, "categories must hold"),
    ({"categories": [0, 0, 0, 10**15]}, "categories must hold"),
    ({"categories": [[0], [0, 1]]}, "categories must be one array, but its rows differ"),
    ({"classes": ["a", "b", "c"]}, "classes must hold 2 different names"),
    ({"categories": [0, 1, 2, 2], "classes": ["a", "b"]}, "classes must hold 3 different names"),
    ({"classes": ["a", None]}, "none of them -1"),
    ({"p_on": 0.5}, r"p_on must lie strictly between 0 and 0\.5 .*got 0\.5; leave it None for"),
    ({"image_size": 12}, "image_size must be at least 13×13 to hold a template, got 12×12"),
    ({"image_size": 30.5}, "image_size must be one positive whole number or two"),
]


@pytest.mark.parametrize(("options", "message"), BAD_CLASS_LAYERS)
def test_a_bad_class_layer_is_explained(options, message, data):
    refused(lambda: known(data).with_class_layer(**options), message)


def test_what_needs_one_object_per_image_says_so(data):
    several = known(data).with_class_layer(p_on=0.01)
    for use in ("predict_proba", "cluster"):
        refused(
            lambda use=use: getattr(several, use)(data.images),
            rf"{use} needs exactly one object per image.*use predict .*placements",
        )
    refused(
        lambda: several.score(data.images, data.labels),
        r"y must hold a row per image and a column per class, shape \(10, 2\).* got \(10,\); True",
    )
    several.set_params(inference="passing")
    for use in ("predict", "denoise", "placements", "score"):
        refused(
            lambda use=use: getattr(several, use)(data.images),
            r"inference must be 'explain' or 'forward' .*got 'passing'.*set_params",
        )
