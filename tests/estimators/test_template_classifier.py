"""`TemplateClassifier`, and matching by `HCN`, on scikit-learn's handwritten digits."""

import numba
import numpy as np
import pytest
from sklearn.datasets import load_digits

import hcnet
from hcnet import HCN, Deformations, Layer, TemplateClassifier
from hcnet.preprocessing import OrientedEdges

LAYERS = [Layer(24, 7, pool_border="same"), Layer(pool=5, pool_border="same")]


@pytest.fixture(scope="module")
def digits():
    grey, y = load_digits(return_X_y=True)
    grey = np.kron(grey.reshape(-1, 8, 8) / 16, np.ones((1, 2, 2)))  # 16×16
    edges = OrientedEdges(8).transform(grey)
    return edges[:200], y[:200], edges[200:500], y[200:500]


def make(**options):
    given = {"n_parts": 24, "templates_per_class": 12, "random_state": 0}
    return TemplateClassifier(**(given | options))


@pytest.fixture(scope="module")
def model(digits):
    X, y, _, _ = digits
    return make().fit(X, y)


def test_digits_are_recognised(model, digits):
    X, y, test, labels = digits
    assert model.score(test, labels) > 0.85
    assert model.score(X, y) > 0.97
    assert model.predict_proba(test).sum(axis=1) == pytest.approx(1)
    assert np.array_equal(
        model.classes_[model.predict_proba(test).argmax(axis=1)], model.predict(test)
    )
    # What the forward pass alone makes of the same weights is worse.
    network = HCN(LAYERS, templates_per_class=12, inference="forward")
    network.set_weights(model.weights_, (16, 16))
    assert network.score(test, labels) < model.score(test, labels)
    # Both estimators match by the same code; only the pools that were learned differ.
    assert network.set_params(inference="match").score(test, labels) > 0.75


def test_templates_are_used_and_are_of_their_class(model, digits):
    X, y, _, _ = digits
    templates = model.cluster(X)
    assert len(np.unique(templates)) > 100
    assert np.mean(model.template_classes_[templates] == y) > 0.97
    assert model.weights_[1].any(axis=(1, 2, 3)).all()


def test_same_seed_same_weights(model, digits):
    X, y, _, _ = digits
    again = make().fit(X, y)
    assert all(map(np.array_equal, model.weights_, again.weights_))
    other = make(random_state=1).fit(X, y)
    assert not np.array_equal(model.weights_[0], other.weights_[0])


def test_files_keep_pools_and_inference(model, digits, tmp_path):
    path = model.save(tmp_path / "digits.hcn")
    loaded = hcnet.load(path)
    assert isinstance(loaded, TemplateClassifier)
    assert loaded.cost_ == model.cost_
    _, _, test, _ = digits
    assert np.array_equal(loaded.predict_proba(test), model.predict_proba(test))
    assert path.stat().st_size < 60_000


def test_few_labels_go_a_long_way(digits):
    X, y, test, labels = digits
    some = np.where(np.arange(len(y)) < 60, y, -1)
    few = make().fit(X, some)
    assert few.score(test, labels) > 0.75


def test_without_labels_clusters(digits):
    X, y, _, _ = digits
    clusters = make(n_classes=20, templates_per_class=1).fit(X).cluster(X)
    # Images of a cluster are mostly of one digit.
    pure = sum(np.bincount(y[clusters == k]).max() for k in np.unique(clusters))
    assert pure / len(y) > 0.7


def test_missing_pixels_are_filled_in(model, digits):
    _, _, test, labels = digits
    mask = np.zeros(test[:60].shape, bool)
    mask[:, :, 8:] = True
    filled = model.inpaint(test[:60], mask)
    assert np.array_equal(filled[~mask], test[:60][~mask])
    assert filled[mask].any()
    # Half of each digit is enough more often than not.
    assert model.score(test[:60], labels[:60], mask) > 0.5


def test_the_history_is_of_the_matching_cost(model):
    assert {record.figure for record in model.history_} == {"minus the matching cost"}
    assert model.cost_ == -max(record.objective for record in model.history_)
    assert model.n_iter_ == len(model.history_) > 0


def test_parts_of_another_model_are_taken_as_they_are(model, few, digits):
    _, _, test, labels = digits
    given = make(templates_per_class=5).fit(*few, parts=model.weights_[0])
    assert np.array_equal(given.weights_[0], model.weights_[0])
    assert given.n_iter_ == 1
    assert given.score(test, labels) > 0.75
    with pytest.raises(ValueError, match="parts must be booleans of shape"):
        make(part_size=5).fit(*few, parts=model.weights_[0])


@pytest.fixture(scope="module")
def few(digits):
    """Five digits of each class."""
    X, y, _, _ = digits
    some = np.concatenate([np.flatnonzero(y == k)[:5] for k in range(10)])
    return X[some], y[some]


@pytest.fixture(scope="module")
def varied(few):
    return make(variants=30).fit(*few)


def test_variants_make_up_for_few_examples(few, varied, digits):
    _, _, test, labels = digits
    assert varied.score(test, labels) > make(templates_per_class=5).fit(*few).score(test, labels)
    assert varied.score(test, labels) > 0.8
    assert varied.predict_proba(test).sum(axis=1) == pytest.approx(1)
    # Templates say what is where, but not which class it is.
    predicted = varied.predict(test[:50])
    assert np.array_equal(varied.template_classes_[varied.cluster(test[:50])], predicted)


def test_variants_are_the_same_in_files_and_with_any_number_of_threads(
    few, varied, digits, tmp_path
):
    _, _, test, _ = digits
    scores = varied.predict_proba(test)
    loaded = hcnet.load(varied.save(tmp_path / "digits.hcn"))
    assert np.array_equal(loaded.predict_proba(test), scores)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(make(variants=30).fit(*few).predict_proba(test), scores)
    finally:
        numba.set_num_threads(before)


def test_deformations_are_kept_in_files(few, tmp_path):
    how = Deformations(rotation=5, directions=False)
    model = make(variants=2, deformations=how, max_iter=1).fit(*few)
    assert hcnet.load(model.save(tmp_path / "digits.hcn")).deformations == how


def test_with_placement_an_object_is_found_wherever_it_is(few, varied, digits):
    _, _, test, labels = digits
    moved = np.zeros_like(test[:100])
    moved[:, :, 4:] = test[:100, :, :-4]
    staying = make(variants=30, placement=0).fit(*few)
    assert varied.score(moved, labels[:100]) > staying.score(moved, labels[:100]) + 0.2
    assert varied.score(test[:100], labels[:100]) > staying.score(test[:100], labels[:100]) - 0.03


def test_missing_pixels_count_for_nothing_among_variants(varied, digits):
    _, _, test, labels = digits
    mask = np.zeros(test[:60].shape, bool)
    mask[:, :, 10:] = True
    assert varied.score(test[:60], labels[:60], mask) > 0.5


def test_variants_need_labels_of_all_classes(digits):
    X, _, _, _ = digits
    with pytest.raises(ValueError, match="variants need an example with a label for every class"):
        make(variants=2, n_classes=3).fit(X[:20])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_parts": 0}, "n_parts must be a whole number of at least 1"),
        ({"part_size": 99}, "The layer of parts does not fit"),
        ({"template_pool": "wide"}, "template_pool must be"),
        ({"pool_border": "wide"}, "pool_border must be"),
        ({"templates_per_class": 0}, "templates_per_class must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"variants": -1}, "variants must be"),
        ({"placement": 0.5}, "placement must be"),
        ({"deformations": 3}, "deformations must be hcnet.Deformations"),
        ({"deformations": Deformations(rotation=-1)}, "rotation must be"),
        ({"deformations": Deformations(smoothness=0)}, "smoothness must be"),
        ({"max_memory": 1000}, "max_memory allows"),
    ],
)
def test_what_does_not_work_says_so(digits, options, message):
    X, y, _, _ = digits
    with pytest.raises((TypeError, ValueError, MemoryError), match=message):
        make(**options).fit(X[:40], y[:40])
