"""FeatureLearner finds the parts and uses them."""

import numba
import numpy as np
import pytest
from scenes import BLOCK, RING, TRUE_PARTS, learner, scene
from scipy import sparse

from hcnet import Engine, FeatureLearner
from hcnet.datasets import deconvolution, letters, symbols, two_bars
from hcnet.engine.driver import Status
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.metrics import matched_iou, true_explanation
from hcnet.objective import image_bits
from hcnet.refine.search import Search
from hcnet.solutions.explanation import Canvas
from hcnet.solutions.improver import Improver
from hcnet.validation.images import check_images

# --- recovery -------------------------------------------------------------------------------


RECOVERY = pytest.mark.parametrize(
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
            lambda seed: letters(size=(130, 130), n_placements=80, random_state=seed),
            {"feature_size": 14, "n_init": 2},
        ),
    ],
    ids=["two bars", "deconvolution", "noisy deconvolution, valid", "letters"],
)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))]
)
@RECOVERY
def test_all_parts_are_recovered(data, options, seed):
    truth = data(seed)
    found = FeatureLearner(**options, random_state=seed).fit(truth.images)
    assert len(found.features_) == len(truth.features)
    assert matched_iou(found.features_, truth.features).min() == 1
    assert found.compression_ratio_ < 0.8
    assert found.status_ == Status.FINISHED.value


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 12))
@RECOVERY
def test_parts_are_as_good_as_the_true_ones_or_better(data, options, seed):
    """With noise, or where parts touch, a part with a pixel more can be the more probable one.

    So a search that starts at the truth says which parts there are to be found.
    """
    truth = data(seed)
    found = FeatureLearner(**options, random_state=seed).fit(truth.images)
    size = options["feature_size"], options["feature_size"]
    improver, start = true_explanation(truth, size, options.get("border", "full"))
    search = Search(improver, start, np.random.default_rng(0), options.get("n_features"))
    while search.step():
        pass
    best = search.now.bits / image_bits(improver.canvas.images)
    assert found.compression_ratio_ <= best * (1 + 1e-9)
    if found.compression_ratio_ > best * (1 - 1e-9):
        assert len(found.features_) == len(search.now.features)
        assert matched_iou(found.features_, search.now.weights()).min() == 1


@pytest.mark.parametrize("border", ["full", "valid"])
def test_placements_are_those_of_the_truth(border):
    images, truth = scene()
    found = learner(border=border).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    names = [int((feature == RING).all()) for feature in found.features_[:, 0]]
    placed = [(n, names[f], r, c) for n, f, r, c in found.placements_]
    assert sorted(placed) == sorted(map(tuple, truth))


def test_the_same_parts_are_the_same_array_whatever_the_seed():
    """In the middle of their windows, and those used equally often in an order of their own."""
    data = symbols(random_state=0)
    one, other = (
        FeatureLearner(feature_size=(21, 20), n_init=1, random_state=seed).fit(data.images)
        for seed in (0, 1)
    )
    assert matched_iou(one.features_, data.features).min() == 1
    np.testing.assert_array_equal(one.features_, other.features_)
    assert {tuple(row) for row in one.placements_} == {tuple(row) for row in other.placements_}
    for part in one.features_[:, 0]:
        for axis, size in enumerate(part.shape):
            inked = np.flatnonzero(part.any(axis=1 - axis))
            assert inked[0] - (size - 1 - inked[-1]) in (0, -1)


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


@pytest.mark.parametrize(
    ("hide", "engine"), [("mask", "active"), ("NaN", "active"), ("mask", "beliefs")]
)
def test_parts_are_recovered_though_pixels_are_missing(hide, engine):
    images, _ = scene(n=10)
    mask = np.random.default_rng(1).random(images.shape) < 0.15
    mask[3] = True  # one image is missing altogether
    data = np.where(mask, np.nan, images)
    options = {"n_init": 2, "engine": engine}
    if hide == "mask":
        found = learner(**options).fit(np.where(mask, ~images, images), mask=mask)
    else:
        with pytest.warns(UserWarning, match="NaN is taken as missing"):
            found = learner(**options).fit(data)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1
    assert not (found.placements_[:, 0] == 3).any()
    same = learner(**options).fit(data, mask=mask)
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


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_number_of_threads_changes_nothing(schedule):
    images, _ = scene()
    results = []
    before = numba.get_num_threads()
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            options = {"algorithm": "mpmp", "n_features": 4, "max_iter": 8}
            results.append(
                learner(**options, engine=Engine(schedule=schedule, damping=0.7)).fit(images)
            )
    finally:
        numba.set_num_threads(before)
    one, two = results
    assert [r.objective for r in one.history_] == [r.objective for r in two.history_]
    np.testing.assert_array_equal(one.features_, two.features_)
    np.testing.assert_array_equal(one.placements_, two.placements_)


@pytest.mark.parametrize("engine", ["active", "beliefs"])
@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_every_schedule_learns(schedule, engine):
    images, _ = scene(n=10)
    found = learner(engine=Engine(engine, schedule=schedule)).fit(images)
    assert matched_iou(found.features_, TRUE_PARTS).min() == 1


def test_the_engines_learn_the_same():
    images, _ = scene(n=2, size=10)
    fast, slow = (
        learner(engine=engine, max_iter=2, n_features=2).fit(images)
        for engine in ("dense", "reference")
    )
    np.testing.assert_array_equal(fast.features_, slow.features_)


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


@pytest.mark.parametrize("border", ["full", "valid"])
def test_a_placement_saves_what_the_code_is_shorter_with_it(border):
    X = two_bars(size=(24, 30), length=6, n_placements=14, random_state=0).images
    mask = np.random.default_rng(0).random(X.shape) < 0.1
    model = FeatureLearner(feature_size=7, border=border, n_init=1, random_state=0)
    saved = model.fit(X, mask=mask)._bits_saved(X, mask)
    images = check_images(X, mask).images
    improver = Improver(Canvas(model._model.layer((24, 30)), images), model._model.priors)
    features = [improver.feature(one) for one in model.features_]
    placed = model.placements_ + np.array([0, 0, *model._model.layer((24, 30)).overhang])
    whole = improver.evaluate(features, placed, prune=False).bits
    for k in range(len(placed)):
        without = improver.evaluate(features, np.delete(placed, k, axis=0), prune=False).bits
        assert saved[k] == pytest.approx(without - whole, abs=1e-3)


def test_fit_transform_hides_the_mask_from_both():
    images, _ = scene()
    mask = np.zeros(images.shape, bool)
    mask[:, :, :8] = True
    codes = learner().fit_transform(np.ones_like(images) * mask | images, mask=mask)
    wanted = learner().fit(images, mask=mask).transform(images, mask=mask)
    assert (codes != wanted).nnz == 0


def test_history_tells_every_step_and_parts_are_sorted_by_use(fitted):
    found, _ = fitted
    used = np.bincount(found.placements_[:, 1])
    assert len(used) == len(found.features_)
    assert (np.diff(used) <= 0).all()
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

VALID = {"border": "valid"}


def dots(shape, share=0.3):
    return np.random.default_rng(0).random(shape) < share


EDGES = {
    "blank": (np.zeros((2, 9, 9)), {}),
    "one blank pixel": (np.zeros((1, 1)), {"feature_size": 1}),
    "one pixel": (np.ones((1, 1)), {"feature_size": 1}),
    "all on": (np.ones((1, 12, 12)), {}),
    "noise": (dots((2, 9, 9)), {}),
    "one row": (dots((4, 1, 20)), {"feature_size": (1, 4)}),
    "one column, valid": (dots((4, 20, 1)), {"feature_size": (4, 1), **VALID}),
    "flat window": (dots((20, 20), 0.2), {"feature_size": (1, 20)}),
    "window as the image": (dots((4, 6, 6)), {"feature_size": 6}),
    "window as the image, valid": (dots((4, 6, 6)), {"feature_size": 6, **VALID}),
    "window as high as the image, valid": (dots((4, 6, 12)), {"feature_size": (6, 3), **VALID}),
    "hardly any noise": (dots((9, 9), 0.1), {"p01": 1e-100, "p10": 1e-100}),
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


def test_blank_images_have_no_parts_and_full_ones_are_covered():
    found = learner().fit(EDGES["blank"][0])
    assert found.features_.shape == (0, 1, 3, 3)
    assert found.placements_.shape == (0, 4)
    assert found.compression_ratio_ == 1
    assert found.transform(np.ones((5, 5))).shape == (1, 0)
    assert not found.denoise(np.ones((5, 5))).any()
    assert learner().fit(EDGES["all on"][0]).denoise(np.ones((12, 12))).all()
