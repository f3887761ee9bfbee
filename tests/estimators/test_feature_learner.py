"""FeatureLearner: finds the parts, uses them, and says what is wrong with its input."""

import pickle
import re
import time
import warnings

import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from hcnet import FeatureLearner
from hcnet.datasets import deconvolution, letters, two_bars
from hcnet.engine.driver import Status
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.learning.learn import NotEnoughMemoryError
from hcnet.metrics import matched_iou

BLOCK = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1]], bool)
RING = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], bool)


def scene(seed=0, n=6, size=16, parts=(BLOCK, RING), channels=1):
    """Images of two small parts on a grid of places, and where they are."""
    rng = np.random.default_rng(seed)
    images = np.zeros((n, channels, size, size), bool)
    placed = []
    for k, r, c in np.ndindex(n, size // 5, size // 5):
        f = int(rng.integers(len(parts) + 1))
        if f < len(parts):
            row, column = 5 * r + int(rng.integers(3)), 5 * c + int(rng.integers(3))
            part = np.broadcast_to(parts[f], (channels, 3, 3))
            images[k, :, row : row + 3, column : column + 3] |= part
            placed.append((k, f, row, column))
    return images, np.array(placed)


TRUE_PARTS = np.stack([BLOCK, RING])[:, None]


@pytest.fixture(scope="module")
def fitted():
    images, _ = scene()
    return FeatureLearner(feature_size=3, n_init=2, random_state=0).fit(images), images


def learner(**options):
    return FeatureLearner(**{"feature_size": 3, "n_init": 1, "random_state": 0, **options})


# --- recovery -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (
            lambda seed: two_bars(size=(40, 40), length=9, n_placements=14, random_state=seed),
            {"feature_size": 9},
        ),
        (lambda seed: deconvolution(n_images=40, random_state=seed), {"feature_size": 5}),
        (
            lambda seed: deconvolution(n_images=40, noise=0.02, random_state=seed),
            {"feature_size": 5, "border": "valid", "n_features": 4},
        ),
        (
            lambda seed: letters(size=(90, 90), n_placements=36, random_state=seed),
            {"feature_size": 14, "n_init": 2},
        ),
    ],
    ids=["two bars", "deconvolution", "noisy deconvolution, valid", "letters"],
)
def test_all_parts_are_recovered(data, options, seed):
    truth = data(seed)
    found = FeatureLearner(**options, random_state=seed).fit(truth.images)
    assert len(found.features_) == len(truth.features)
    assert matched_iou(found.features_, truth.features).min() == 1
    assert found.compression_ratio_ < 0.8
    assert found.status_ == Status.FINISHED.value


@pytest.mark.parametrize("border", ["full", "valid"])
def test_placements_are_those_of_the_truth(border):
    images, truth = scene()
    found = learner(border=border).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    names = [int((feature == RING).all()) for feature in found.features_[:, 0]]
    placed = [(n, names[f], r, c) for n, f, r, c in found.placements_]
    assert sorted(placed) == sorted(map(tuple, truth))


def test_parts_are_sorted_by_use(fitted):
    used = np.bincount(fitted[0].placements_[:, 1])
    assert len(used) == len(fitted[0].features_)
    assert (np.diff(used) <= 0).all()


def test_the_paper_alone_learns_the_parts():
    images, _ = scene(n=20)
    found = learner(algorithm="mpmp", n_features=4).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    assert found.moves_ == {}


def test_refinement_learns_from_an_empty_start():
    images, _ = scene()
    found = learner(max_iter=0, max_memory=1).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    assert found.memory_ == 0


@pytest.mark.parametrize("hide", ["mask", "NaN"])
def test_parts_are_recovered_though_pixels_are_missing(hide):
    images, _ = scene(n=10)
    mask = np.random.default_rng(1).random(images.shape) < 0.15
    mask[3] = True  # one image is missing altogether
    data = np.where(mask, np.nan, images)
    if hide == "mask":
        found = learner(n_init=2).fit(np.where(mask, ~images, images), mask=mask)
    else:
        with pytest.warns(UserWarning, match="NaN is taken as missing"):
            found = learner(n_init=2).fit(data)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    assert not (found.placements_[:, 0] == 3).any()
    same = learner(n_init=2).fit(data, mask=mask)
    np.testing.assert_array_equal(found.features_, same.features_)


def test_channels_are_learned_together():
    two = np.stack([BLOCK, RING])
    images, truth = scene(parts=(two,), channels=2)
    found = learner().fit(images)
    np.testing.assert_array_equal(found.features_, two[None])
    np.testing.assert_array_equal(found.denoise(images), images)
    assert len(found.placements_) == len(truth)


def test_n_features_is_an_upper_bound():
    images, _ = scene()
    assert len(learner(n_features=1).fit(images).features_) == 1
    assert len(learner(n_features=9).fit(images).features_) == 2


def test_given_priors_are_kept():
    images, _ = scene()
    given = {"p_S": 0.01, "p_W": 0.3, "p01": 0.002, "p10": 0.004}
    found = learner(**given).fit(images)
    assert {name: getattr(found, f"{name}_") for name in given} == given
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    # So improbable a placement that none pays for itself.
    with pytest.warns(UserWarning, match="No part was found that shortens the description"):
        found = learner(p_S=1e-8, p01=0.1, p10=0.1).fit(images)
    assert len(found.placements_) == 0


def test_open_priors_are_estimated(fitted):
    found, images = fitted
    positions = len(found.features_) * len(images) * 18 * 18
    assert found.p_S_ == pytest.approx((len(found.placements_) + 1) / (positions + 2))
    assert found.p_W_ == 0.6  # 13 of 18 weights are on; a denser prior would not be sparse
    assert 0 < found.p01_ == found.p10_ < 0.01


# --- determinism ----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["refined", "mpmp"])
def test_the_same_seed_gives_the_same_result(algorithm):
    images, _ = scene()
    first, second = (learner(algorithm=algorithm).fit(images) for _ in range(2))
    np.testing.assert_array_equal(first.features_, second.features_)
    np.testing.assert_array_equal(first.placements_, second.placements_)
    assert first.log_joint_ == second.log_joint_
    generator = learner(algorithm=algorithm, random_state=np.random.default_rng(0)).fit(images)
    np.testing.assert_array_equal(first.placements_, generator.placements_)


@pytest.mark.filterwarnings("ignore:No part was found")  # undamped flooding learns nothing
@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_number_of_threads_changes_nothing(schedule):
    images, _ = scene()
    results = []
    before = numba.get_num_threads()
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            options = {"schedule": schedule, "algorithm": "mpmp", "n_features": 4, "max_iter": 8}
            results.append(learner(**options, damping=0.7).fit(images))
    finally:
        numba.set_num_threads(before)
    one, two = results
    assert [r.log_joint for r in one.history_] == [r.log_joint for r in two.history_]
    np.testing.assert_array_equal(one.features_, two.features_)
    np.testing.assert_array_equal(one.placements_, two.placements_)


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_every_schedule_learns(schedule):
    images, _ = scene(n=10)
    damping = 0.3 if schedule == "flooding" else 1.0
    found = learner(schedule=schedule, damping=damping).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1


def test_the_engines_learn_the_same():
    images, _ = scene(n=2, size=10)
    fast, slow = (
        learner(engine=engine, max_iter=2, n_features=2).fit(images)
        for engine in ("cpu", "reference")
    )
    np.testing.assert_array_equal(fast.features_, slow.features_)


def test_transform_always_gives_the_same(fitted):
    found, images = fitted
    assert (found.transform(images) != found.transform(images)).nnz == 0


# --- use ------------------------------------------------------------------------------------


@pytest.mark.parametrize("border", ["full", "valid"])
def test_codes_rebuild_the_images(border):
    images, _ = scene()
    found = learner(border=border).fit(images)
    codes = found.transform(images)
    assert sparse.issparse(codes)
    assert codes.shape[0] == len(images)
    assert codes.sum() == len(found.placements_)
    np.testing.assert_array_equal(found.inverse_transform(codes), images)
    np.testing.assert_array_equal(found.inverse_transform(codes.toarray()), images)


def test_placements_of_new_images_of_another_size(fitted):
    found, _ = fitted
    images, truth = scene(seed=7, n=2, size=21)
    placed = found.placements(images)
    assert sorted(map(tuple, placed[:, [0, 2, 3]])) == sorted(map(tuple, truth[:, [0, 2, 3]]))
    codes = found.transform(images)
    np.testing.assert_array_equal(found.inverse_transform(codes, image_size=(21, 21)), images)
    with pytest.raises(ValueError, match=r"648 columns .*pass image_size"):
        found.inverse_transform(codes)
    with pytest.raises(ValueError, match="a row per image"):
        found.inverse_transform(np.zeros(648))


def test_inpainting_restores_hidden_pixels(fitted):
    found, _ = fitted
    images, _ = scene(seed=8)
    mask = np.random.default_rng(0).random(images.shape) < 0.2
    broken = np.where(mask, ~images, images)
    filled = found.inpaint(broken, mask)
    assert np.mean(filled[mask] == images[mask]) > 0.97
    assert np.mean(images[mask]) < 0.8  # better than all off
    np.testing.assert_array_equal(filled[~mask], images[~mask])


def test_denoising_removes_flipped_pixels(fitted):
    found, _ = fitted
    images, _ = scene(seed=9)
    flipped = np.random.default_rng(0).random(images.shape) < 0.01
    errors = np.count_nonzero(found.denoise(images ^ flipped) != images)
    assert errors < 0.3 * flipped.sum()


@pytest.mark.parametrize("shape", [(16, 16), (6, 16, 16), (6, 1, 16, 16)])
def test_results_have_the_shape_of_what_came(fitted, shape):
    found, images = fitted
    X = images[0, 0] if len(shape) == 2 else images.reshape(shape)
    assert found.denoise(X).shape == shape
    assert found.inpaint(X, np.zeros(shape, bool)).shape == shape
    assert found.transform(X).shape[0] == (1 if len(shape) == 2 else 6)


def test_score_prefers_images_of_the_parts(fitted):
    found, images = fitted
    noise = np.random.default_rng(0).permutation(images.ravel()).reshape(images.shape)
    assert found.score(images) == pytest.approx(found.log_joint_)
    assert found.score(noise) < found.score(images)


def test_compression_ratio_is_that_of_training(fitted):
    found, images = fitted
    assert found.compression_ratio(images) == pytest.approx(found.compression_ratio_)
    given = learner(p_S=0.01, p_W=0.3, p01=0.002, p10=0.004).fit(images)
    assert given.compression_ratio_ == pytest.approx(found.compression_ratio_)


def test_fit_transform_hides_the_mask_from_both():
    images, _ = scene()
    mask = np.zeros(images.shape, bool)
    mask[:, :, :8] = True
    codes = learner().fit_transform(np.ones_like(images) * mask | images, mask=mask)
    wanted = learner().fit(images, mask=mask).transform(images, mask=mask)
    assert (codes != wanted).nnz == 0


def test_history_tells_every_step(fitted):
    found, _ = fitted
    assert len(found.history_) == found.n_iter_
    assert [record.iteration for record in found.history_] == list(range(1, found.n_iter_ + 1))
    seconds = [record.seconds for record in found.history_]
    assert seconds == sorted(seconds)


def test_verbose_shows_progress(capfd):
    images, _ = scene(n=2)
    learner(verbose=True).fit(images)
    shown = capfd.readouterr().err
    assert "Message passing" in shown
    assert "Refining" in shown
    learner().fit(images)
    assert capfd.readouterr() == ("", "")


# --- nothing to learn -----------------------------------------------------------------------

EDGES = {
    "blank": (np.zeros((2, 9, 9)), {}),
    "one blank pixel": (np.zeros((1, 1)), {"feature_size": 1}),
    "one pixel": (np.ones((1, 1)), {"feature_size": 1}),
    "all on": (np.ones((1, 12, 12)), {}),
    "noise": (np.random.default_rng(0).random((2, 9, 9)) < 0.3, {}),
    "one row": (np.random.default_rng(0).random((4, 1, 20)) < 0.3, {"feature_size": (1, 4)}),
    "one column, valid": (
        np.random.default_rng(0).random((4, 20, 1)) < 0.3,
        {"feature_size": (4, 1), "border": "valid"},
    ),
    "flat window": (np.random.default_rng(0).random((20, 20)) < 0.2, {"feature_size": (1, 20)}),
    "window as the image": (np.random.default_rng(0).random((4, 6, 6)) < 0.3, {"feature_size": 6}),
    "window as the image, valid": (
        np.random.default_rng(0).random((4, 6, 6)) < 0.3,
        {"feature_size": 6, "border": "valid"},
    ),
    "window as high as the image, valid": (
        np.random.default_rng(0).random((4, 6, 12)) < 0.3,
        {"feature_size": (6, 3), "border": "valid"},
    ),
    "hardly any noise": (
        np.random.default_rng(0).random((9, 9)) < 0.1,
        {"p01": 1e-100, "p10": 1e-100},
    ),
}


@pytest.mark.filterwarnings("ignore:No part was found")
@pytest.mark.parametrize("algorithm", ["refined", "mpmp"])
@pytest.mark.parametrize("edge", EDGES)
def test_edge_cases_go_through(edge, algorithm, tmp_path):
    images, options = EDGES[edge]
    found = learner(algorithm=algorithm, **options).fit(images)
    assert found.features_.ndim == 4
    assert np.isfinite(found.log_joint_)
    assert np.isfinite(found.score(images))
    assert found.denoise(images).shape == images.shape
    assert found.compression_ratio(images) > 0
    codes = found.transform(images)
    assert codes.shape[0] == (1 if images.ndim == 2 else len(images))
    rebuilt = found.inverse_transform(codes)
    np.testing.assert_array_equal(rebuilt.reshape(images.shape), found.denoise(images))
    again = FeatureLearner.load(found.save(tmp_path / "edge.hcn"))
    np.testing.assert_array_equal(again.denoise(images), found.denoise(images))


def test_blank_images_have_no_parts():
    found = learner().fit(EDGES["blank"][0])
    assert found.features_.shape == (0, 1, 3, 3)
    assert found.placements_.shape == (0, 4)
    assert found.compression_ratio_ == 1
    assert found.transform(np.ones((5, 5))).shape == (1, 0)
    assert not found.denoise(np.ones((5, 5))).any()


def test_full_images_are_covered():
    found = learner().fit(EDGES["all on"][0])
    assert found.denoise(np.ones((12, 12))).all()


# --- limits ---------------------------------------------------------------------------------


def test_the_time_limit_is_kept():
    data = letters(size=(90, 90), n_placements=36, random_state=0)
    began = time.perf_counter()
    found = FeatureLearner(feature_size=14, n_init=1000, max_seconds=6.0, random_state=0)
    found.fit(data.images)
    assert 6 <= time.perf_counter() - began < 30  # one step more, on a busy machine
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


def test_memory_is_told(fitted):
    assert fitted[0].memory_ > 6 * 16 * 16 * 9 * 16 * 8
    learner(max_memory=fitted[0].memory_, max_iter=1).fit(fitted[1])


def test_the_iteration_limit_is_told():
    images, _ = scene()
    found = learner(algorithm="mpmp", max_iter=1, n_init=1).fit(images)
    assert found.status_ == Status.ITERATION_LIMIT.value


# --- bad input ------------------------------------------------------------------------------

ONE = np.eye(6)
BAD_DATA = {
    "empty": (np.zeros((0, 6, 6)), ValueError, "0 sample.* minimum of 1 is required"),
    "no pixels": (np.zeros((3, 0)), ValueError, "at least one pixel"),
    "not binary": (ONE * 7, ValueError, r"only 0 and 1, got .*7 \(6 of 36.*X > 3.5"),
    "bytes": (np.uint8([[10, 250]]), ValueError, r"X > 130\."),
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
}


@pytest.mark.parametrize("kind", BAD_MASKS)
def test_a_bad_mask_is_explained(kind):
    mask, message = BAD_MASKS[kind]
    with pytest.raises(ValueError, match=message):
        learner().fit(ONE, mask=mask)


BAD_OPTIONS = [
    ({"feature_size": 0}, "feature_size must be one positive whole number or two"),
    ({"feature_size": (3, 3, 3)}, "feature_size must be"),
    ({"feature_size": 2.5}, "feature_size must be"),
    ({"feature_size": (3, 7)}, "3×7 is larger than the images, 6×6"),
    ({"border": "round"}, "border must be 'full'.* or 'valid', got 'round'"),
    ({"n_features": 0}, "n_features must be a whole number of at least 1, or None"),
    ({"n_features": 2.5}, "n_features must be"),
    ({"n_features": True}, "n_features must be"),
    ({"p_S": 0.0}, "p_S must lie strictly between 0 and 0.5"),
    ({"p_S": 0.5}, "p_S must lie strictly"),
    ({"p_W": -0.1}, "p_W must lie strictly"),
    ({"p_W": float("nan")}, "p_W must lie strictly"),
    ({"p01": 0.7, "p10": 0.1}, "p01 must lie strictly.*no information"),
    ({"p01": 0.1, "p10": "x"}, "p10 must lie strictly"),
    ({"p01": 0.1}, "p01 and p10 must be given together"),
    ({"p10": 0.1}, "p01 and p10 must be given together"),
    ({"algorithm": "magic"}, "algorithm must be one of 'refined', 'mpmp', got 'magic'"),
    ({"schedule": "never"}, "schedule must be one of 'sequential'"),
    ({"engine": "steam"}, "engine must be one of 'cpu', 'reference'"),
    ({"damping": 0.0}, "damping must be larger than 0 and at most 1"),
    ({"damping": 1.1}, "damping must be"),
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
def test_a_dead_start_warns(options, message):
    with pytest.warns(UserWarning, match=message):
        learner(**options).fit(ONE)


def test_a_small_window_is_no_dead_start():
    images = np.random.default_rng(0).random((5, 5)) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "No part was found")
        for size in (1, (1, 2), 2):
            learner(feature_size=size, algorithm="mpmp", n_init=1).fit(images)


def test_other_channels_are_refused(fitted):
    with pytest.raises(ValueError, match=r"X has 2 channels.*learned with 1"):
        fitted[0].transform(np.zeros((1, 2, 9, 9)))


def test_an_unfitted_learner_says_so():
    for call in ("transform", "denoise", "score", "placements", "compression_ratio"):
        with pytest.raises(NotFittedError):
            getattr(FeatureLearner(), call)(ONE)
    with pytest.raises(NotFittedError):
        FeatureLearner().inpaint(ONE, ONE > 0)
    with pytest.raises(NotFittedError):
        FeatureLearner().save("nowhere.hcn")


# --- a scikit-learn estimator ---------------------------------------------------------------


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


def test_clone_and_set_params(fitted):
    found, images = fitted
    copy = clone(found)
    assert copy.get_params() == found.get_params()
    assert not hasattr(copy, "features_")
    copy.set_params(n_features=1)
    assert len(copy.fit(images).features_) == 1
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(n_feature=1)


def test_pickle(fitted):
    found, images = fitted
    copy = pickle.loads(pickle.dumps(found))
    assert (copy.transform(images) != found.transform(images)).nnz == 0
    assert copy.status_ == found.status_


def test_in_a_pipeline():
    images, _ = scene()
    steps = [("binary", FunctionTransformer(lambda x: x > 127)), ("parts", learner())]
    pipeline = Pipeline(steps)
    codes = pipeline.fit_transform(images * np.uint8(255))
    np.testing.assert_array_equal(pipeline[-1].inverse_transform(codes), images)
    assert pipeline.set_params(parts__n_features=1)[-1].n_features == 1


class Rows(FeatureLearner):
    """Rows of any numbers as images of one row, so that scikit-learn's checks can feed it."""

    @staticmethod
    def images(X):
        array = X if sparse.issparse(X) else np.asarray(X)
        if sparse.issparse(X) or array.ndim != 2 or 0 in array.shape or array.dtype.kind == "c":
            return X  # to be refused
        return (np.floor(4 * array.astype(float)) % 2)[:, None]

    def fit(self, X, y=None, mask=None):
        return super().fit(self.images(X), y, mask)

    def fit_transform(self, X, y=None, mask=None):
        return self.fit(X).transform(X)

    def transform(self, X, mask=None):
        return super().transform(self.images(X), mask)

    def score(self, X, y=None, mask=None):
        return super().score(self.images(X), y, mask)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


NOT_BINARY = "feeds numbers that are neither 0 nor 1, which are refused"
ANY_SIZE = "an image has no fixed number of features: images of another size are transformed, too"
WITHOUT_BINARY_DATA = {
    "check_dtype_object": "arrays of objects are refused: anything may be in them",
    **dict.fromkeys(
        (
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_estimators_dtypes",
            "check_estimators_fit_returns_self",
            "check_estimators_overwrite_params",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_fit_score_takes_y",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_pipeline_consistency",
            "check_positive_only_tag_during_fit",
            "check_readonly_memmap_input",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_n_iter",
        ),
        NOT_BINARY,
    ),
}
WITH_BINARY_DATA = dict.fromkeys(
    ("check_n_features_in", "check_n_features_in_after_fitting", "check_transformer_general"),
    ANY_SIZE,
)


@pytest.mark.filterwarnings("ignore")  # the checks warn of their own accord
@pytest.mark.parametrize(
    ("kind", "exceptions"),
    [(FeatureLearner, WITHOUT_BINARY_DATA), (Rows, WITH_BINARY_DATA)],
    ids=["as it is", "fed with binary rows"],
)
def test_it_is_a_scikit_learn_estimator(kind, exceptions):
    estimator = kind(feature_size=1, n_init=1, max_iter=2, random_state=0)
    results = check_estimator(estimator, expected_failed_checks=exceptions, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    # An exception that is none any more must leave the list.
    excused = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert excused == set(exceptions)
