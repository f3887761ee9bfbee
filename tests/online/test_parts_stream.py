"""Learning from a stream: the paper's online algorithm, and the parts that it finds."""

import numpy as np
import pytest
from small_streams import assert_same, state

from hcnet import Engine, FeatureLearner
from hcnet.datasets import small_letters
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.image_files import stream_images, write_images
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of
from hcnet.metrics import matched_iou
from hcnet.online.parts_stream import PartsStream

SMALL = {"n_features": 4, "feature_size": 5, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return small_letters(n_images=60, n_characters=3, random_state=3)


def few(n=6, size=(9, 8), seed=0):
    """Images with two crosses and a corner each."""
    rng = np.random.default_rng(seed)
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
    corner = np.array([[1, 1, 1], [1, 0, 0], [1, 0, 0]], bool)
    images = np.zeros((n, *size), bool)
    for image in images:
        for part in (cross, cross, corner):
            r, c = rng.integers(size[0] - 2), rng.integers(size[1] - 2)
            image[r : r + 3, c : c + 3] |= part
    return images


# One visit to each tree.


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
@pytest.mark.parametrize("engine", [CPUEngine(), ReferenceEngine()], ids=["cpu", "reference"])
def test_dropping_messages_changes_nothing_in_one_sweep(engine, name):
    rng = np.random.default_rng(0)
    pixels = rng.random((3, 2, 6, 7)) < 0.4
    images = Images(pixels, rng.random(pixels.shape) < 0.9)
    layer = FeatureLayer(3, 2, (3, 2), (6, 7), "full")
    prior = rng.normal(-0.5, 0.3, (2, 3, 3, 2)).astype(np.float32)
    trees = trees_of(images.observed, rng)
    beliefs = []
    for keep in (True, False):
        evidence = images.evidence(Noise(0.02, 0.05))
        messages = start_messages(layer, trees, evidence, -2.0, prior, keep=keep)
        assert messages.keeps_messages == keep
        for batch in Schedule(name, rounds=3, block_size=7).batches(
            messages.images, np.random.default_rng(1)
        ):
            engine.update(messages, batch, 0.8)
        beliefs.append((messages.field, messages.kernel))
        assert messages.to_field.size == (len(trees) * messages.layout.leaves if keep else 0)
    for kept, dropped in zip(*beliefs, strict=True):
        np.testing.assert_allclose(dropped, kept, rtol=1e-5, atol=1e-5)
        assert np.abs(kept).max() > 1


# What is learned.


@pytest.mark.timeout(300)
def test_the_letters_of_a_stream_are_found(data):
    learner = FeatureLearner(6, 12, random_state=0)
    many = small_letters(n_images=400, n_characters=3, random_state=3)
    learner.fit_stream(many.images)
    assert matched_iou(learner.features_, data.features).min() > 0.95
    assert learner.n_images_seen_ == 400
    assert learner.n_iter_ == 80
    assert "stream has ended" in learner.status_
    assert learner.compression_ratio(data.images) < 0.8
    assert 0.02 < learner.p01_ < 0.06


def test_epochs_go_through_the_images_again_and_again(data):
    learner = FeatureLearner(6, 12, random_state=0)
    learner.fit_stream(data.images[:30], batch_size=4, epochs=20)
    assert learner.n_images_seen_ == 600
    assert learner.n_iter_ == 150
    assert matched_iou(learner.features_, data.features).min() > 0.9
    assert not hasattr(learner, "placements_")
    assert len(learner.history_) == 150


def test_all_ways_of_feeding_a_stream_learn_the_same(tmp_path):
    X = few(11)
    wanted = FeatureLearner(**SMALL).fit_stream(X, batch_size=1)
    np.save(tmp_path / "images.npy", X)
    write_images(tmp_path / "pages", X)
    sources = [
        np.load(tmp_path / "images.npy", mmap_mode="r"),
        (image for image in X),
        [X[:4], X[4:5], X[5:]],
        X.astype(float),
        X[:, None],
        stream_images(tmp_path / "pages"),
    ]
    for source in sources:
        assert_same(FeatureLearner(**SMALL).fit_stream(source, batch_size=1), wanted)
    step = FeatureLearner(**SMALL)
    for image in X:
        step.partial_fit(image)
    for x, y in zip(state(step)[:-1], state(wanted)[:-1], strict=True):
        np.testing.assert_array_equal(x, y)
    assert_same(step.refine(), wanted)


def test_a_minibatch_may_hold_images_of_different_sizes():
    images = [few(1, size)[0] for size in [(9, 8), (7, 12), (20, 6)]]
    learner = FeatureLearner(**SMALL).fit_stream(images, batch_size=3)
    assert learner.n_iter_ == 1
    assert learner._stream.recent[0].images.pixels.shape == (1, 1, 20, 12)
    learner.transform(few(2))


def test_missing_pixels_of_a_stream_are_nan():
    X = few(6).astype(float)
    X[:, :4] = np.nan
    hidden = FeatureLearner(**SMALL).fit_stream(X)
    other = np.where(np.isnan(X), 1.0, X)
    masked = FeatureLearner(**SMALL).partial_fit(other, mask=np.isnan(X)).refine()
    for x, y in zip(hidden._stream.beliefs.now, masked._stream.beliefs.now, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("seed", range(2))
def test_parts_of_an_old_alphabet_are_replaced(seed):
    old, new = (
        small_letters(n_images=300, n_characters=2, characters=c, random_state=seed)
        for c in ("OX", "TH")
    )
    learner = FeatureLearner(4, 9, random_state=seed)
    learner.partial_fit(old.images, forgetting=0.9)
    assert matched_iou(learner.features_, old.features).min() > 0.9
    learner.partial_fit(new.images, forgetting=0.9)
    # Of eight seeds, three had a pixel or two of a new letter wrong, two before sums were exact.
    assert matched_iou(learner.features_, new.features).min() > 0.8
    assert matched_iou(learner.features_, old.features).max() < 0.6


def test_only_the_last_images_are_kept():
    learner = FeatureLearner(**SMALL)
    for seed in range(4):
        learner.partial_fit(few(10, (50, 60), seed))
    recent = learner._stream.recent
    assert sum(single.images.pixels.size for single in recent) == 30_000
    tall = FeatureLearner(**SMALL).partial_fit(few(1, (5, 900))).partial_fit(few(1, (900, 5)))
    assert len(tall._stream.recent) == 1  # side by side they would be 900×900
    np.testing.assert_array_equal(recent[-1].images.pixels[0, 0], few(10, (50, 60), 3)[-1])
    assert len(FeatureLearner(**SMALL).partial_fit(few(2, (300, 300)))._stream.recent) == 1


# Going on.


def test_refining_leaves_the_stream_as_it_is():
    X = few(20)
    plain = FeatureLearner(**SMALL).partial_fit(X[:10])
    refined = FeatureLearner(**SMALL).partial_fit(X[:10]).refine()
    assert_same(plain.partial_fit(X[10:]), refined.partial_fit(X[10:]))


def test_streams_of_other_generators_can_be_saved(tmp_path):
    rng = np.random.Generator(np.random.MT19937(0))
    learner = FeatureLearner(4, 5, random_state=rng).partial_fit(few())
    assert_same(FeatureLearner.load(learner.save(tmp_path / "stream.hcn")), learner)


def test_parameters_may_change_on_the_way_unless_the_parts_depend_on_them():
    learner = FeatureLearner(**SMALL).partial_fit(few())
    learner.set_params(engine=Engine(schedule="per-image", damping=0.5)).partial_fit(
        few(), forgetting=0.5
    )
    assert learner._stream.beliefs.forgetting == 0.5
    assert learner._stream.options.schedule.name == "per-image"
    with pytest.raises(ValueError, match="the stream so far had 1"):
        learner.partial_fit(np.zeros((2, 3, 9, 9)))
    with pytest.raises(ValueError, match="cannot change within a stream"):
        learner.set_params(feature_size=3).partial_fit(few())
    with pytest.raises(ValueError, match="partial_fit or fit_stream first"):
        FeatureLearner(**SMALL, max_iter=0).fit(few()).refine()


def test_time_that_is_up_leaves_no_time_for_refining(monkeypatch):
    learner = FeatureLearner(**SMALL, max_seconds=1e-6)
    refined = []
    monkeypatch.setattr(PartsStream, "refined", lambda self, *_: refined.append(self))
    learner.fit_stream(few(40))
    assert refined == []
    assert learner.n_iter_ == 1
    assert "time limit" in learner.status_


def test_a_start_that_can_learn_nothing_says_so():
    learner = FeatureLearner(**SMALL, p_W=1e-4, p01=0.1, p10=0.1)
    with pytest.warns(UserWarning, match="Nothing can be learned"):
        learner.partial_fit(few())


# Wrong input.


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("pages/", "stream_images"),
        (3, "got int"),
        (np.array(1), "got ndarray"),
        ([few(2), [[1, 0], [1]]], "Item 1 of the stream: X must be one array"),
        ([], "holds no image"),
        ([few(2), np.full((9, 9), 7)], "Item 1 of the stream: X must hold only 0 and 1"),
        ([few(2), np.zeros((2, 3, 9, 9))], "Item 1 of the stream has 3 channels"),
        ([few(2), np.zeros((4, 9), bool)], "larger than the images"),
    ],
)
def test_a_source_that_cannot_be_read_is_explained(source, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FeatureLearner(**SMALL).fit_stream(source, batch_size=1)
