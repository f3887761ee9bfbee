"""Soft parts from a stream: shared between pages, the same after saving, in bounded memory."""

import numpy as np
import pytest

from hcnet import FeatureLearner
from hcnet.archive import kinds
from hcnet.datasets import letters, scanned_text
from hcnet.online import soft_stream
from hcnet.soft import soft_search


@pytest.fixture(scope="module")
def pages():
    return scanned_text(n_pages=4, size=(330, 600), random_state=0).images


def learner(**options):
    return FeatureLearner(algorithm="soft", random_state=0, **options)


def same(one, other):
    np.testing.assert_array_equal(one.feature_probabilities_, other.feature_probabilities_)
    np.testing.assert_array_equal(one._model.copies, other._model.copies)


@pytest.fixture(scope="module")
def streamed(pages):
    return learner().fit_stream(pages, batch_size=1)


def test_pages_one_by_one_share_their_parts(pages, streamed):
    together, first = learner().fit(pages), learner().fit(pages[:1])
    assert streamed.n_images_seen_ == 4
    assert len(streamed.features_) <= 1.2 * len(together.features_)
    placed = len(streamed.placements(pages))
    assert placed >= 0.97 * len(together.placements_)
    assert streamed.compression_ratio(pages) < 1.05 * together.compression_ratio(pages)
    # The most used part is that of all pages, and counted on all of them.
    assert streamed._model.copies[0] > 2 * first._model.copies[0]
    assert streamed.refine() is streamed


def test_a_letter_of_each_of_two_pages_becomes_a_part(pages):
    two = pages[:2].copy()
    two[:, 0, 150:200, 300:340] = False
    rows, columns = np.indices((24, 24))
    ring = (abs(np.hypot(rows - 11.5, columns - 11.5) - 9) < 2.5) | (abs(rows - columns) < 2)
    two[0, 0, 160:184, 305:329] |= ring
    two[1, 0, 163:187, 308:332] |= ring
    model = learner()
    found = [
        (model.partial_fit(page).features_[:, 0, 1:-1, 1:-1].sum(axis=(1, 2)) == ring.sum()).sum()
        for page in two
    ]
    assert found == [0, 1]


def test_a_saved_stream_continues_to_the_same_parts(tmp_path, pages, streamed):
    begun = learner().partial_fit(pages[:2], batch_size=1)
    loaded = FeatureLearner.load(begun.save(tmp_path / "stream.hcn"))
    for model in (begun, loaded):
        model.partial_fit(pages[2:], batch_size=1)
    same(begun, loaded)
    same(begun, streamed)


def test_a_checkpoint_continues_to_the_same_parts(tmp_path, pages, streamed):
    path = tmp_path / "kept"

    def broken():
        yield from pages[:2]
        raise OSError("no more")

    options = {"batch_size": 1, "checkpoint": path, "every": 0}
    with pytest.raises(OSError, match="no more"):
        learner().fit_stream(broken(), **options)
    assert path.exists()
    same(learner().fit_stream(pages, **options), streamed)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("assigned", lambda known: known.assigned * 0 + len(known.assigned), "unknown parts"),
        ("shift", lambda known: known.shift + 5000, "outside their parts"),
        ("sizes", lambda known: known.sizes + 1, "do not have their sizes"),
    ],
)
def test_a_damaged_stream_is_refused(streamed, name, value, message):
    stored = soft_stream._KnownInFile(streamed._stream.known)
    setattr(stored, name, value(stored))
    contents = soft_stream._KNOWN.write(stored)

    class Arrays:
        def read(self, name, dtype, shape):
            return contents.arrays[name]

        def read_bits(self, name, shape):
            return contents.arrays[name]

    with pytest.raises(ValueError, match=message):
        soft_stream._KNOWN.read(kinds.Node("", contents.header, Arrays()))


def test_memory_and_unused_parts_are_bounded(monkeypatch, pages):
    monkeypatch.setattr(soft_stream, "COPIES", 4)
    model = learner().partial_fit(pages[0])
    assert np.bincount(model._stream.known.assigned).max() == soft_stream.COPIES
    n = len(model.features_)
    blank = np.zeros_like(pages[0])
    assert len(model.partial_fit(blank).features_) > 0.9 * n
    model.partial_fit(blank, forgetting=0.0)
    assert not len(model._stream.known.pieces)
    monkeypatch.setattr(soft_stream, "ROOM", 40_000)
    model.partial_fit(pages[0])
    sides = soft_stream._sides(model._stream.known.pieces)
    assert soft_stream.canvas_of(sides).prod(axis=1).sum() <= 40_000


def test_the_first_images_decide(pages):
    model = FeatureLearner(random_state=0).partial_fit(pages[:1])
    assert model.algorithm_ == "soft"
    model.partial_fit(np.pad(pages[1], ((0, 0), (0, 50), (0, 0))))
    assert model.n_images_seen_ == 2
    with pytest.raises(ValueError, match="cannot continue a stream of soft parts"):
        model.set_params(algorithm="refined").partial_fit(pages[1])
    with pytest.raises(ValueError, match="X has 2 channels, but the stream so far had 1"):
        model.set_params(algorithm="soft").partial_fit(np.repeat(pages[:1], 2, axis=1))
    small = letters(size=(40, 60), n_placements=8, random_state=0).images
    exact = FeatureLearner(random_state=0).partial_fit(small)
    assert exact.algorithm_ == "refined"
    with pytest.raises(ValueError, match="cannot continue a stream of exact parts"):
        exact.set_params(algorithm="soft").partial_fit(small)


def test_blocks_of_pieces_share_their_parts(monkeypatch, pages):
    whole = learner().fit(pages)
    monkeypatch.setattr(soft_search, "BLOCK", 200)
    blocks = learner().fit(pages)
    assert len({stage[1:] for stage in soft_search._plan(len(whole.placements_), True)}) > 2
    assert len(blocks.features_) <= 1.2 * len(whole.features_)
    assert blocks.compression_ratio_ < 1.05 * whole.compression_ratio_
