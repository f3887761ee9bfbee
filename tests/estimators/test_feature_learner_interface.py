"""FeatureLearner keeps limits, explains bad input, and is saved."""

import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from scenes import learner, scene
from scipy import sparse

from hcnet import HCN, Engine, FeatureLearner, Layer
from hcnet.engine.driver import Status
from hcnet.memory import NotEnoughMemoryError

# --- limits ---------------------------------------------------------------------------------


def test_the_time_limit_is_kept(fitted):
    _, images = fitted  # so that nothing is left to compile
    began = time.perf_counter()
    found = learner(n_init=10**5, max_seconds=2.0).fit(images)
    assert 2 <= time.perf_counter() - began < 30  # one step more, on a busy machine
    assert found.status_ == Status.TIME_LIMIT.value
    assert found.compression_ratio_ < 1


def test_too_little_memory_names_the_ways_out():
    images, _ = scene()
    with pytest.raises(NotEnoughMemoryError) as caught:
        learner(n_features=7, max_memory=100_000).fit(images)
    for way in (
        "n_features (now 7)",
        "feature_size (now 3×3)",
        "images per fit (now 6 of 16×16)",
        "raise max_memory",
        "max_iter=0",
    ):
        assert way in str(caught.value)
    with pytest.raises(MemoryError, match="max_memory") as caught:
        learner(algorithm="mpmp", max_memory=100_000).fit(images)
    assert "max_iter=0" not in str(caught.value)


def test_memory_and_the_iteration_limit_are_told(fitted):
    assert fitted[0].memory_ > 6 * 16 * 16 * 9 * 16 * 8
    learner(max_memory=fitted[0].memory_, max_iter=1).fit(fitted[1])
    found = learner(algorithm="mpmp", max_iter=1).fit(fitted[1])
    assert found.status_ == Status.ITERATION_LIMIT.value


# --- bad input ------------------------------------------------------------------------------

ONE = np.eye(6)
BAD_DATA = {
    "empty": (np.zeros((0, 6, 6)), ValueError, "0 sample.* minimum of 1 is required"),
    "no pixels": (np.zeros((3, 0)), ValueError, "at least one pixel"),
    "not binary": (ONE * 7, ValueError, r"only 0 and 1, got .*7 \(6 of 36.*X > 3.5"),
    "bytes": (np.uint8([[10, 250]]), ValueError, r"X > 130 if what is rarer here is on"),
    "dark ink": (np.uint8([[9, 250, 251]]), ValueError, "X < 130 if .* else X > 130, .*binarise"),
    "a path": ("page.png", TypeError, r"got the path 'page.png'; .*read_images\(X\)\.X"),
    "paths": ([Path("a.png"), Path("b.png")], TypeError, "got paths of files; read"),
    "colours": (
        np.full((2, 9, 9, 3), 200),
        ValueError,
        r"binarise first.*if the 3 of the last axis are colours.*np\.moveaxis\(X, -1, -3\)",
    ),
    "infinite": (np.full((6, 6), np.inf), ValueError, "inf"),
    "rank 1": (np.zeros(6), ValueError, r"\(height, width\).*got 1 dim.*Reshape your data"),
    "rank 5": (np.zeros((1,) * 5), ValueError, "got 5 dimensions"),
    "objects": (np.array([[0, None]]), TypeError, "got dtype object"),
    "strings": (np.array([["a"]]), TypeError, "numbers or booleans, got dtype <U1"),
    "ragged": ([np.zeros((6, 6)), np.zeros((6, 5))], ValueError, "to the same size"),
    "complex": (ONE * 1j, ValueError, "Complex data not supported"),
    "sparse": (sparse.csr_array(ONE), TypeError, "Sparse input is not supported"),
    "too small": (np.ones((2, 2)), ValueError, "feature_size 3×3 is larger than the images, 2×2"),
}


@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_is_explained(kind, fitted):
    data, error, message = BAD_DATA[kind]
    with pytest.raises(error, match=message):
        learner().fit(data)
    with pytest.raises(error, match=message):
        fitted[0].transform(data)


def test_colours_that_come_last_are_told_from_a_window_that_is_too_large():
    colours = np.eye(9)[None, :, :, None] * np.ones(3)
    hint = r"if the 3 of the last axis are colours.*np\.moveaxis\(X, -1, -3\)"
    with pytest.raises(ValueError, match=f"4×4 is larger than the images, 9×3; .*{hint}"):
        learner(feature_size=4).fit(colours)
    with pytest.raises(ValueError, match=hint):
        HCN([Layer(2, size=4), Layer()]).fit(colours)
    moved = np.moveaxis(colours, -1, -3)
    assert learner(feature_size=4, max_iter=1).fit(moved).features_.shape[1] == 3


def test_nan_without_a_mask_warns_once(fitted):
    data = np.where(np.eye(16, dtype=bool), np.nan, fitted[1][0, 0])
    for call in (fitted[0].transform, fitted[0].denoise, fitted[0].score, learner().fit):
        with pytest.warns(UserWarning, match=r"16 NaN and no mask was given.*np\.isnan") as seen:
            call(data)
        assert len(seen) == 1


BAD_MASKS = {
    "everything": (np.ones((6, 6), bool), "Every entry of X is missing"),
    "another shape": (np.zeros((6, 5), bool), r"shape of X, \(6, 6\), got \(6, 5\)"),
    "numbers": (np.full((6, 6), 0.5), "must hold booleans"),
    "rows of different lengths": ([[1], [0, 1]], "mask must be one array, but its rows differ"),
    "dates": (np.zeros(0, "M8[s]"), r"must hold booleans .*got dtype datetime64\[s\]"),
}


@pytest.mark.parametrize("kind", BAD_MASKS)
def test_a_bad_mask_is_explained(kind):
    mask, message = BAD_MASKS[kind]
    with pytest.raises(ValueError, match=message):
        learner().fit(ONE, mask=mask)


BAD_OPTIONS = [
    ({"feature_size": 0}, "feature_size must be one positive whole number or two"),
    ({"feature_size": 2.5}, "feature_size must be"),
    ({"feature_size": (3, 7)}, "3×7 is larger than the images, 6×6"),
    ({"border": "round"}, "border must be one of 'full', 'valid', got 'round'"),
    ({"n_features": 0}, "n_features must be a whole number of at least 1, or None"),
    ({"n_features": True}, "n_features must be"),
    ({"p_S": 0.0}, "p_S must lie strictly between 0 and 0.5"),
    ({"p_W": -0.1}, "p_W must lie strictly"),
    ({"p_W": float("nan")}, "p_W must lie strictly"),
    ({"p01": 0.7, "p10": 0.1}, "p01 must lie strictly.*no information"),
    ({"p01": 0.1, "p10": "x"}, "p10 must lie strictly"),
    ({"p01": 0.1}, "p01 and p10 must be given together"),
    (
        {"algorithm": "magic"},
        "algorithm must be one of 'auto', 'refined', 'mpmp', 'soft', got 'magic'",
    ),
    ({"engine": Engine(schedule="never")}, "engine.schedule must be one of 'sequential'"),
    ({"engine": "steam"}, "engine must be one of 'active', 'beliefs', 'dense', 'reference'"),
    ({"engine": Engine(damping=0.0)}, "engine.damping must be larger than 0 and at most 1"),
    ({"n_init": 0}, "n_init must be a whole number of at least 1"),
    ({"max_iter": -1}, "max_iter must be a whole number of at least 0"),
    ({"max_seconds": 0}, "max_seconds must be a positive number, or None"),
    ({"max_memory": 0}, "max_memory must be a whole number of at least 1"),
    ({"random_state": -1}, "random_state must be None, a whole number"),
    ({"random_state": "seed"}, "random_state must be"),
]


@pytest.mark.parametrize(
    ("options", "message"), BAD_OPTIONS, ids=lambda x: re.sub(r"\W+", "-", str(x))
)
def test_a_bad_option_is_explained(options, message):
    with pytest.raises(ValueError, match=message):
        learner(**options).fit(ONE)


@pytest.mark.filterwarnings("ignore:No part was found")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p_W": 1e-7}, r"Nothing can be learned with p_W=1e-07.*raise p_W or lower p10"),
        ({"p_S": 1e-90}, r"Nothing can be learned with p_S=1e-90.*all its 9 pixels.*raise p_S"),
    ],
)
def test_a_dead_start_warns_and_a_small_window_is_none(options, message):
    with pytest.warns(UserWarning, match=message):
        learner(**options).fit(ONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "No part was found")
        for size in (1, (1, 2), 2):
            learner(feature_size=size, algorithm="mpmp").fit(ONE)


def test_other_channels_are_refused(fitted):
    with pytest.raises(ValueError, match=r"X has 2 channels.*learned with 1"):
        fitted[0].transform(np.zeros((1, 2, 9, 9)))


# --- files ----------------------------------------------------------------------------------


def test_save_and_load(fitted, tmp_path):
    found, images = fitted
    loaded = FeatureLearner.load(found.save(tmp_path / "parts.hcn"))
    np.testing.assert_array_equal(loaded.features_, found.features_)
    assert (loaded.transform(images) != found.transform(images)).nnz == 0
    assert loaded.score(images) == found.score(images)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        found.save(tmp_path / "parts.hcn")
    # It can learn again, though the estimated density of tight parts is not one to be given.
    assert found.p_W_ >= 0.5
    loaded.fit(images)


def test_a_window_in_the_place_of_the_number_of_parts_is_explained():
    with pytest.raises(ValueError, match=r"pass feature_size=\(12, 12\)"):
        FeatureLearner((12, 12)).fit(np.eye(30))


def test_text_is_not_advised_to_become_true():
    with pytest.raises(TypeError, match="say which values are on, for example with X == 'yes'"):
        FeatureLearner().fit(np.array([["y", "n"], ["n", "y"]]))
