"""Learning from a stream: the paper's online algorithm, and the parts that it finds."""

import numpy as np
import pytest

from hcnet import FeatureLearner
from hcnet.datasets import image_files, small_letters
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.grid import STEP
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of
from hcnet.metrics import matched_iou
from hcnet.online.forgetting import Beliefs
from hcnet.online.minibatches import Minibatch, grouped, join
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


def state(learner):
    """All numbers that a stream carries."""
    stream = learner._stream
    return [
        *stream.beliefs.initial,
        *stream.beliefs.now,
        stream.tally.use,
        stream.tally.pixels,
        *(single.images.pixels for single in stream.recent),
        np.array([stream.tally.positions, stream.n_images, stream.n_batches]),
        learner.features_,
    ]


def assert_same(one, other):
    for x, y in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(x, y)


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


def test_what_was_seen_n_minibatches_ago_counts_lambda_to_the_n():
    start = [np.array([1.0, -1.0], np.float32)]
    beliefs = Beliefs(start, 0.8)
    np.testing.assert_array_equal(beliefs.prior()[0], start[0])
    change = beliefs.update([np.array([11.0, -1.0], np.float32)])
    assert change == 10
    for n in range(1, 5):
        np.testing.assert_allclose(beliefs.prior()[0], [1 + 10 * 0.8**n, -1], atol=n * STEP)
        beliefs.update(beliefs.prior())


def test_a_stream_is_cut_into_minibatches():
    images = Images(few(7)[:, None], np.ones((7, 1, 9, 8), bool))
    parts = [batch.images for batch in grouped(Minibatch(images).split(), 3)]
    assert [part.n_images for part in parts] == [3, 3, 1]
    together = np.concatenate([part.pixels for part in parts])
    np.testing.assert_array_equal(together, images.pixels)


def test_images_of_different_sizes_are_padded_with_unknown_pixels():
    sizes = [(4, 7), (6, 5)]
    parts = [Images(np.ones((1, 1, *size), bool), np.ones((1, 1, *size), bool)) for size in sizes]
    both = join([Minibatch(part) for part in parts]).images
    assert both.size == (6, 7)
    for k, (height, width) in enumerate(sizes):
        assert both.observed[k].sum() == height * width
        assert both.observed[k, 0, :height, :width].all()
    np.testing.assert_array_equal(both.pixels, both.observed)


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


def test_the_last_minibatch_need_not_be_full():
    learner = FeatureLearner(**SMALL).fit_stream(few(10), batch_size=4)
    assert learner.n_iter_ == 3


def test_all_ways_of_feeding_a_stream_learn_the_same(tmp_path):
    X = few(11)
    wanted = FeatureLearner(**SMALL).fit_stream(X, batch_size=1)
    np.save(tmp_path / "images.npy", X)
    sources = {
        "memory-mapped": np.load(tmp_path / "images.npy", mmap_mode="r"),
        "generator": (image for image in X),
        "batches": [X[:4], X[4:5], X[5:]],
        "numbers": X.astype(float),
        "channels": X[:, None],
    }
    for source in sources.values():
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


def test_memory_of_a_stream_is_that_of_a_minibatch():
    images = few(6, (30, 30))
    learner = FeatureLearner(**SMALL).fit_stream(images, batch_size=2)
    batch = Images(images[:2, None], np.ones((2, 1, 30, 30), bool))
    needed = learner._stream.memory(Minibatch(batch))
    again = FeatureLearner(**SMALL, max_memory=needed)
    again.fit_stream(images, batch_size=2)
    with pytest.raises(MemoryError, match="lower batch_size"):
        again.set_params(max_memory=needed - 1).fit_stream(images, batch_size=2)


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


@pytest.mark.parametrize("options", [{}, {"schedule": "per-image", "damping": 0.7}])
def test_a_saved_stream_goes_on_as_if_nothing_had_happened(tmp_path, options):
    X = few(24)
    whole = FeatureLearner(**SMALL, **options)
    first = FeatureLearner(**SMALL, **options)
    for learner in (whole, first):
        learner.partial_fit(X[:10])
    path = first.save(tmp_path / "stream.hcn")
    second = FeatureLearner.load(path)
    assert_same(second, first)
    assert second.n_images_seen_ == 10
    for learner in (whole, second):
        learner.partial_fit(X[10:])
    assert_same(second, whole)
    assert_same(second.refine(), whole.refine())


def test_refining_leaves_the_stream_as_it_is():
    X = few(20)
    plain = FeatureLearner(**SMALL).partial_fit(X[:10])
    refined = FeatureLearner(**SMALL).partial_fit(X[:10]).refine()
    assert_same(plain.partial_fit(X[10:]), refined.partial_fit(X[10:]))


def test_fit_and_fit_stream_start_anew():
    X = few(10)
    fresh = FeatureLearner(**SMALL).fit_stream(X)
    used = FeatureLearner(**SMALL).partial_fit(few(10, seed=1))
    assert_same(used.fit_stream(X), fresh)
    used.fit(X)
    assert used._stream is None
    assert not hasattr(used, "n_images_seen_")


def test_a_damaged_stream_is_refused(tmp_path):
    learner = FeatureLearner(**SMALL).partial_fit(few())
    learner._stream.beliefs.now[0][0, 0, 0, 0] = np.nan
    path = learner.save(tmp_path / "stream.hcn")
    with pytest.raises(ValueError, match="now-0 holds what is no number"):
        FeatureLearner.load(path)
    learner._stream.beliefs.now[0] = np.zeros((1, 4, 5, 6), np.float32)
    learner.save(path, overwrite=True)
    with pytest.raises(ValueError, match="now-0 is <f4 of shape"):
        FeatureLearner.load(path)


def test_streams_of_other_generators_can_be_saved(tmp_path):
    rng = np.random.Generator(np.random.MT19937(0))
    learner = FeatureLearner(4, 5, random_state=rng).partial_fit(few())
    assert_same(FeatureLearner.load(learner.save(tmp_path / "stream.hcn")), learner)


def test_loading_leaves_parameters_as_they_were(tmp_path):
    learner = FeatureLearner(**SMALL, p_W=0.3).partial_fit(few())
    loaded = FeatureLearner.load(learner.save(tmp_path / "stream.hcn"))
    for name in ("p_W", "p_S", "algorithm", "damping", "n_features"):
        assert getattr(loaded, name) == getattr(learner, name)


def test_a_call_that_fails_leaves_everything_as_it_was():
    learner = FeatureLearner(**SMALL).fit(few(10))
    before = dict(vars(learner))
    for source in ("pages/", [], [np.full((9, 9), 7)]):
        with pytest.raises((TypeError, ValueError)):
            learner.fit_stream(source)
    with pytest.raises(MemoryError):
        learner.set_params(max_memory=1).partial_fit(few())
    learner.set_params(max_memory=None)
    assert vars(learner) == before
    learner.partial_fit(few())
    assert not hasattr(learner, "placements_")
    assert not hasattr(learner, "compression_ratio_")
    stream = learner._stream
    with pytest.raises(TypeError):
        learner.fit_stream(3)
    assert learner._stream is stream


def test_what_was_learned_before_a_bad_item_is_kept():
    learner = FeatureLearner(**SMALL)
    with pytest.raises(ValueError, match="Item 1 of the stream"):
        learner.fit_stream([few(4), np.full((9, 9), 7)], batch_size=2)
    assert learner.n_images_seen_ == 4
    assert "error" in learner.status_
    learner.partial_fit(few(2))
    assert learner.n_images_seen_ == 6


def test_history_counts_on():
    learner = FeatureLearner(**SMALL)
    learner.partial_fit(few(6), batch_size=2).partial_fit(few(4), batch_size=2)
    assert [record.iteration for record in learner.history_] == [1, 2, 3, 4, 5]
    assert (np.diff([record.seconds for record in learner.history_]) >= 0).all()


def test_parameters_may_change_on_the_way_unless_the_parts_depend_on_them():
    learner = FeatureLearner(**SMALL).partial_fit(few())
    learner.set_params(schedule="per-image", damping=0.5).partial_fit(few(), forgetting=0.5)
    assert learner._stream.beliefs.forgetting == 0.5
    assert learner._stream.options.schedule.name == "per-image"
    with pytest.raises(ValueError, match="cannot change within a stream"):
        learner.set_params(feature_size=3).partial_fit(few())


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
        ("pages/", "image_files"),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"forgetting": 1.5}, "forgetting must be a number from 0 to 1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        FeatureLearner(**SMALL).fit_stream(few(), **options)


def test_other_channels_cannot_follow():
    learner = FeatureLearner(**SMALL).partial_fit(few())
    with pytest.raises(ValueError, match="the stream so far had 1"):
        learner.partial_fit(np.zeros((2, 3, 9, 9)))


def test_refine_needs_a_stream():
    learner = FeatureLearner(**SMALL, max_iter=0).fit(few())
    with pytest.raises(ValueError, match="partial_fit or fit_stream first"):
        learner.refine()


# Files.


def write_images(folder, X):
    from PIL import Image

    for k, image in enumerate(X):
        Image.fromarray(np.where(image, 255, 0).astype(np.uint8)).save(folder / f"{k:03}.png")


def test_image_files_come_in_order_and_one_at_a_time(tmp_path):
    X = few(5)
    write_images(tmp_path, X)
    (tmp_path / "notes.txt").write_text("not an image")
    np.testing.assert_array_equal(np.array(list(image_files(tmp_path))), X)
    np.testing.assert_array_equal(np.array(list(image_files(tmp_path, dark=True))), ~X)
    wanted = FeatureLearner(**SMALL).fit_stream(X)
    assert_same(FeatureLearner(**SMALL).fit_stream(image_files(tmp_path)), wanted)


def test_pages_of_one_file_are_images(tmp_path):
    from PIL import Image

    X = few(3)
    pages = [Image.fromarray(image) for image in X]
    pages[0].save(tmp_path / "pages.tiff", save_all=True, append_images=pages[1:])
    np.testing.assert_array_equal(np.array(list(image_files(tmp_path))), X)


def test_files_that_are_no_binary_images_are_named(tmp_path):
    from PIL import Image

    with pytest.raises(FileNotFoundError, match="not a folder"):
        image_files(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="holds no image files"):
        image_files(tmp_path)
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / "grey.png")
    with pytest.raises(ValueError, match=r"grey.png holds 64 shades"):
        list(image_files(tmp_path))
    deep = np.array([[0, 1000], [40000, 0]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    with pytest.raises(ValueError, match=r"deep.png holds 3 shades"):
        list(image_files(tmp_path))
    (tmp_path / "deep.png").unlink()
    (tmp_path / "grey.png").unlink()
    Image.fromarray(np.zeros((4, 4, 4), np.uint8)).save(tmp_path / "clear.png")
    with pytest.raises(ValueError, match=r"clear.png is transparent"):
        list(image_files(tmp_path))
    (tmp_path / "a.png").write_bytes(b"not a png")
    with pytest.raises(ValueError, match=r"a.png cannot be read"):
        list(image_files(tmp_path))
