"""`ShapeClassifier` on scikit-learn's handwritten digits and on shapes that are drawn here."""

import numba
import numpy as np
import pytest
from scipy import ndimage
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from hcnet import ShapeClassifier
from hcnet.datasets.glyphs import available_sizes, load_glyphs
from hcnet.preprocessing import OrientedEdges
from hcnet.templates.shape_kernels import _solve
from hcnet.templates.shapes import costs_of_templates, enlarge, shapes_of

LETTERS = "ABCEHKLRSTXZ"


@pytest.fixture(scope="module")
def letters():
    """Grey letters, twelve of them."""
    found = np.zeros((len(LETTERS), 40, 40))
    size = max(k for k in available_sizes() if k <= 32)
    for image, one in zip(found, load_glyphs(LETTERS, size), strict=True):
        height, width = one.bitmap.shape
        image[4 : 4 + height, 4 : 4 + width] = one.bitmap
    return ndimage.gaussian_filter(found, (0, 0.5, 0.5))


def bent(image, angle=0.2, shear=0.2, scale=1.2, wave=1.5):
    """The image turned, sheared, scaled and warped."""
    cos, sin = np.cos(angle), np.sin(angle)
    row, column = np.indices(image.shape) - 19.5
    rows = (cos * row - sin * column) / scale + wave * np.sin(column / 8)
    columns = (sin * row + cos * column) / scale + shear * row
    return ndimage.map_coordinates(image, [rows + 14, columns + 13], order=1)


def test_digits_are_recognised_from_one_example_each():
    grey, labels = load_digits(return_X_y=True)
    grey = np.kron(grey.reshape(-1, 8, 8) / 16, np.ones((1, 3, 3)))
    examples = [np.flatnonzero(labels == k)[0] for k in range(10)]
    model = ShapeClassifier().fit(grey[examples], labels[examples])
    test, truth = grey[800:900], labels[800:900]
    nearest = KNeighborsClassifier(1).fit(grey[examples].reshape(10, -1), labels[examples])
    plain = nearest.score(test.reshape(len(test), -1), truth)
    assert model.score(test, truth) > plain + 0.05


def test_letters_are_recognised_bent_elsewhere_and_in_another_size(letters):
    model = ShapeClassifier().fit(letters, list(LETTERS))
    changed = np.array([bent(image) for image in letters])
    assert model.score(changed, list(LETTERS)) == 1
    large = np.pad(ndimage.zoom(changed, (1, 2, 2), order=1), ((0, 0), (30, 0), (0, 50)))
    assert model.score(large, list(LETTERS)) == 1


def test_an_example_explains_itself_and_deformations_explain_more(letters):
    edges = OrientedEdges(16).transform(np.stack([enlarge(image, 1.0) for image in letters]))
    own = shapes_of(edges, 60)
    # Deformed to each other, none is worse than before by more than the deformation settles.
    costs = costs_of_templates(own, own, len(letters), 2.0)
    assert np.diagonal(costs).max() < 0.01
    others = costs[~np.eye(len(letters), dtype=bool)]
    assert others.min() > 0.05
    stiff = costs_of_templates(own, own, len(letters), 1e6)
    assert others.mean() < stiff[~np.eye(len(letters), dtype=bool)].mean()


def test_only_candidates_are_deformed_and_the_others_are_never_better(letters):
    changed = np.array([bent(image) for image in letters])
    all_, few = (
        ShapeClassifier(candidates=k).fit(letters, list(LETTERS)).decision_function(changed)
        for k in (len(LETTERS), 3)
    )
    # The three that were deformed have the same score as before.
    assert (np.isclose(few, all_).sum(axis=1) >= 3).all()
    assert (few.max(axis=1) <= all_.max(axis=1) + 1e-12).all()


def test_results_do_not_depend_on_the_type_of_the_images_or_on_threads(letters):
    ink = letters > 0.5
    model = ShapeClassifier().fit(ink, list(LETTERS))
    scores = model.decision_function(ink)
    np.testing.assert_array_equal(model.decision_function(255 * ink.astype(np.uint8)), scores)
    np.testing.assert_array_equal(model.decision_function(ink[:, None].astype(float)), scores)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(model.decision_function(ink), scores)
    finally:
        numba.set_num_threads(threads)


def test_an_empty_image_has_a_class_and_an_empty_example_is_no_better_than_others(letters):
    blank = np.zeros((1, 40, 40))
    model = ShapeClassifier().fit(np.concatenate([letters, blank]), [*LETTERS, "blank"])
    assert model.predict(letters).tolist() == list(LETTERS)
    assert model.predict(blank).shape == (1,)


def test_equations_are_solved():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(7, 7))
    A, B = root @ root.T + np.eye(7), rng.normal(size=(7, 2))
    expected = np.linalg.solve(A, B)
    found = B.copy()
    _solve(A.copy(), found)
    np.testing.assert_allclose(found, expected)


def test_an_enlarged_image_has_the_ink_in_the_middle():
    image = np.zeros((30, 50), np.uint8)
    image[3:9, 20:32] = 200
    found = enlarge(image, 255.0)
    rows, columns = np.nonzero(found > 0.5)
    assert found.max() == 1
    assert abs(rows.mean() - (len(found) - 1) / 2) < 1
    assert abs(columns.mean() - (len(found) - 1) / 2) < 1
    assert np.ptp(columns) > 1.5 * np.ptp(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_points": 1}, "n_points must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"stiffness": 0}, "stiffness must be"),
    ],
)
def test_parameters_out_of_range_are_refused(letters, options, message):
    with pytest.raises(ValueError, match=message):
        ShapeClassifier(**options).fit(letters, list(LETTERS))


def test_labels_must_fit_the_images(letters):
    with pytest.raises(ValueError, match="a label for each of the 12 images"):
        ShapeClassifier().fit(letters, [1, 2])


def test_a_clone_has_the_same_parameters():
    assert clone(ShapeClassifier(30, candidates=4)).get_params() == {
        "n_points": 30,
        "candidates": 4,
        "stiffness": 2.0,
    }
