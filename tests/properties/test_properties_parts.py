"""`FeatureLearner`, whatever it is given: a right answer, or a sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import about, alike, images, masks, outcome, same_answers, untouched

from hcnet import Engine, FeatureLearner
from hcnet.engine.schedules import SCHEDULE_NAMES

NAME = "hcnet.FeatureLearner"
QUICK = {"n_init": 1, "max_iter": 2, "random_state": 0}


@pytest.fixture(scope="session")
def fitted():
    rng = np.random.default_rng(0)
    X = np.zeros((6, 8, 8), bool)
    for image in X:
        for part in (np.eye(3, dtype=bool), np.ones((1, 3), bool)):
            i, j = rng.integers(0, 6, 2)
            image[i : i + part.shape[0], j : j + part.shape[1]] |= part
    return FeatureLearner(feature_size=3, **QUICK).fit(X)


def check(model, X):
    """What holds of every fitted model, whatever it was fitted to."""
    n, a = (1, 1) if np.ndim(X) == 2 else (len(X), 1 if np.ndim(X) == 3 else np.shape(X)[1])
    assert model.features_.dtype == bool
    assert model.features_.shape[1] == a
    assert model.features_.any(axis=(1, 2, 3)).all()  # no part is empty
    assert (model.placements_[:, 0] < n).all()
    assert set(model.placements_[:, 1]) == set(range(len(model.features_)))  # nor unused
    numbers = [model.p_S_, model.p_W_, model.p01_, model.p10_, model.log_joint_]
    assert np.isfinite(numbers).all()
    assert model.compression_ratio_ >= 0
    assert all(0 < p < 1 for p in numbers[:4])


@given(st.data())
@about(f"{NAME}.fit", f"{NAME}.fit_transform", f"{NAME}.set_params", examples=30)
def test_fit_learns_parts_or_says_why_not(data):
    X = data.draw(images())
    mask = data.draw(masks(X.shape))
    given_X = data.draw(alike(X))
    same = untouched(given_X)
    options = {
        "feature_size": data.draw(st.sampled_from([1, 2, 3, (1, 3), (2, 1)])),
        "n_features": data.draw(st.sampled_from([None, 1, 5])),
        "border": data.draw(st.sampled_from(["full", "valid"])),
        "algorithm": data.draw(st.sampled_from(["refined", "mpmp"])),
        "engine": Engine(schedule=data.draw(st.sampled_from(SCHEDULE_NAMES))),
    }
    model = FeatureLearner(**QUICK, **options)
    found = outcome(model.fit, given_X, mask=mask)
    same()
    if found is None:
        return
    assert found is model
    check(model, X)
    plain = FeatureLearner(**QUICK, **options)
    outcome(plain.fit, X.astype(bool), mask=mask)
    np.testing.assert_array_equal(plain.features_, model.features_)
    np.testing.assert_array_equal(plain.placements_, model.placements_)
    codes = outcome(model.fit_transform, X, mask=mask)
    assert codes.shape[0] == (1 if X.ndim == 2 else len(X))


METHODS = ("transform", "placements", "denoise", "inpaint", "score", "compression_ratio")


@given(st.data())
@about(*(f"{NAME}.{method}" for method in METHODS), f"{NAME}.inverse_transform", examples=50)
def test_inference_does_not_depend_on_how_the_same_images_come(fitted, data):
    X = data.draw(images(side=9).filter(lambda x: min(x.shape[-2:]) >= 3))
    mask = data.draw(masks(X.shape))
    given_X = data.draw(alike(X))
    same_answers(fitted, METHODS, X, given_X, mask)
    clean = outcome(fitted.denoise, X, mask=mask)
    if clean is None:
        return
    assert clean.shape == X.shape
    assert clean.dtype == bool
    codes = fitted.transform(X, mask=mask)
    again = fitted.inverse_transform(codes, image_size=X.shape[-2:])
    np.testing.assert_array_equal(again.reshape(X.shape), clean)
    assert codes.nnz == len(fitted.placements(X, mask=mask))
    if mask is not None:
        filled = fitted.inpaint(X, mask)
        np.testing.assert_array_equal(filled[~mask], X[~mask])
        np.testing.assert_array_equal(filled[mask], clean[mask])


@given(st.lists(images(), min_size=1, max_size=4), st.sampled_from([{}, {"epochs": 2}]))
@about(f"{NAME}.fit_stream", f"{NAME}.refine", examples=20)
def test_a_stream_gives_parts_or_says_which_item_is_wrong(items, how):
    model = FeatureLearner(feature_size=2, **QUICK)
    if outcome(model.fit_stream, iter(items), batch_size=2, **how) is None:
        return
    n_images = sum(1 if x.ndim == 2 else len(x) for x in items)
    assert model.n_images_seen_ == n_images * how.get("epochs", 1)
    assert np.isfinite([model.p_S_, model.p_W_, model.p01_, model.p10_]).all()
    outcome(model.refine)
    assert model.features_.any(axis=(1, 2, 3)).all()
