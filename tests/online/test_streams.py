"""Streams of parts and of networks: what holds for both."""

import numpy as np
import pytest
from small_streams import assert_same, few, network, parts

from hcnet import Engine
from hcnet.hierarchy.explaining import all_allowed
from hcnet.images import Images
from hcnet.online.stream import Beliefs, Minibatch, grouped, join

STEP = {"batch_size": 4}


BOTH = pytest.mark.parametrize("make", [parts, network])


def test_beliefs_of_n_minibatches_ago_count_lambda_to_the_n():
    start = [np.array([1.0, -1.0], np.float32)]
    beliefs = Beliefs(start, 0.8)
    np.testing.assert_array_equal(beliefs.prior()[0], start[0])
    assert beliefs.update([np.array([11.0, -1.0], np.float32)]) == 10
    for n in range(1, 5):
        np.testing.assert_allclose(beliefs.prior()[0], [1 + 10 * 0.8**n, -1], atol=n * 2**-12)
        beliefs.update(beliefs.prior())


def test_a_stream_is_cut_into_minibatches():
    images = Images(few(7)[:, None], np.ones((7, 1, 8, 8), bool))
    batches = [batch.images for batch in grouped(Minibatch(images).split(), 3)]
    assert [batch.n_images for batch in batches] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate([b.pixels for b in batches]), images.pixels)


def test_images_of_different_sizes_are_padded_with_unobserved_pixels():
    sizes = [(4, 7), (6, 5)]
    full = [np.ones((1, 1, *size), bool) for size in sizes]
    both = join([Minibatch(Images(pixels, pixels)) for pixels in full]).images
    assert both.size == (6, 7)
    for k, (height, width) in enumerate(sizes):
        assert both.observed[k].sum() == height * width
        assert both.observed[k, 0, :height, :width].all()
    np.testing.assert_array_equal(both.pixels, both.observed)


@BOTH
def test_epochs_go_through_all_images_in_random_order(make):
    model = make().fit_stream(few(10), epochs=3, **STEP)
    assert (model.n_images_seen_, model.n_iter_, len(model.history_)) == (30, 8, 8)
    assert not hasattr(model, "placements_")
    assert not hasattr(model, "log_joint_")
    other = make().fit_stream(np.concatenate([few(10)] * 3), **STEP)
    assert not np.array_equal(model._stream.beliefs.now[0], other._stream.beliefs.now[0])
    assert_same(
        model.fit_stream(few(10), epochs=3, **STEP), make().fit_stream(few(10), epochs=3, **STEP)
    )
    model.fit(few())
    assert model._stream is None
    assert not hasattr(model, "n_images_seen_")


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (parts, {}),
        (parts, {"engine": Engine(schedule="per-image", damping=0.7)}),
        (network, {}),
        (network, {"vote": False, "engine": Engine(schedule="per-image")}),
    ],
)
def test_a_saved_stream_continues_as_if_nothing_had_happened(tmp_path, make, options):
    X, names = few(24), np.array(["a", "b"])[np.arange(24) % 2]
    whole, first = (make(**options).partial_fit(X[:10], names[:10]) for _ in range(2))
    second = type(first).load(first.save(tmp_path / "stream.hcn"))
    assert second.get_params() == first.get_params()
    assert second.n_images_seen_ == 10
    assert_same(second, first)
    for model in (whole, second):
        model.partial_fit(X[10:], names[10:])
    assert_same(second, whole)
    if make is parts:
        assert_same(second.refine(), whole.refine())


@BOTH
def test_memory_of_a_stream_is_that_of_a_minibatch(make):
    model = make().fit_stream(few(), **STEP)
    images = Images(few(4)[:, None], np.ones((4, 1, 8, 8), bool))
    allowed = all_allowed(model._model.network, 4) if make is network else None
    needed = model._stream.memory(Minibatch(images, allowed))
    model.set_params(max_memory=needed).fit_stream(few(), **STEP)
    with pytest.raises(MemoryError, match="lower batch_size"):
        model.set_params(max_memory=needed - 1).fit_stream(few(), **STEP)


@BOTH
def test_learning_before_a_bad_item_is_kept(make):
    model = make()
    with pytest.raises(ValueError, match="Item 1 of the stream"):
        model.fit_stream([few(8), np.full((8, 8), 7)], **STEP)
    assert model.n_images_seen_ == 8
    assert "error" in model.status_
    assert model.partial_fit(few(2)).n_images_seen_ == 10


@BOTH
def test_a_call_that_fails_changes_nothing(make):
    model = make().fit(few())
    before = dict(vars(model))
    for source in ("pages/", [], [np.full((8, 8), 7)], 3):
        with pytest.raises((TypeError, ValueError)):
            model.fit_stream(source)
    with pytest.raises(MemoryError):
        model.set_params(max_memory=1).partial_fit(few())
    model.set_params(max_memory=None)
    assert vars(model) == before
    stream = model.partial_fit(few())._stream
    assert not hasattr(model, "log_joint_")
    with pytest.raises(TypeError):
        model.fit_stream(3)
    assert model._stream is stream


@BOTH
def test_a_history_continues(make):
    model = make().partial_fit(few(6), batch_size=2).partial_fit(few(4), batch_size=2)
    assert [record.iteration for record in model.history_] == [1, 2, 3, 4, 5]
    assert (np.diff([record.seconds for record in model.history_]) >= 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"forgetting": 1.5}, "forgetting must be a number from 0 to 1"),
    ],
)
@BOTH
def test_arguments_are_checked(make, options, message):
    with pytest.raises(ValueError, match=message):
        make().fit_stream(few(), **options)
