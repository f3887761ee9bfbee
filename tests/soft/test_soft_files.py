"""Files of soft models: the same model again, and a sentence for what somebody made up."""

import numpy as np
import pytest

import hcnet
from hcnet.archive import kinds
from hcnet.soft import coding
from hcnet.soft.coding import TEMPLATE
from hcnet.soft.soft_model import SoftModel

pytestmark = pytest.mark.filterwarnings("ignore:The parts explain")


@pytest.fixture
def saved(soft, tmp_path):
    return soft.save(tmp_path / "soft.hcn")


def test_a_file_holds_the_same_model(soft, saved, scan):
    again = hcnet.load(saved)
    assert again.algorithm_ == "soft"
    for name in ("features_", "feature_probabilities_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(soft, name))
    np.testing.assert_array_equal(again.placements(scan.images), soft.placements(scan.images))
    np.testing.assert_array_equal(again.denoise(scan.images), soft.denoise(scan.images))
    assert again.score(scan.images) == soft.score(scan.images)
    assert again.compression_ratio_ == soft.compression_ratio_
    assert again.get_params() == soft.get_params()
    assert saved.stat().st_size < 1_300_000  # 0.9 MB of them are the table of the channel


def small(**changes):
    """A model of two parts, of 3×2 and 1×4 pixels, with some changes."""
    made = {
        "counts": np.array([3, 0, 2, 3, 1, 0, 5, 5, 0, 4], np.int32),
        "sizes": np.array([[3, 2], [1, 4]]),
        "copies": np.array([3, 5]),
        "alone": np.array([20.0, 12.5]),
        "total": 900.0,
        "levels": np.array([[-7, 2], [0, 0]]),
        "chance": np.full(coding.TABLE[::2], 0.5, np.float32),
        "chance_alone": np.full(1 << len(TEMPLATE), 0.25, np.float32),
        "image_size": (20, 30),
    }
    return SoftModel(**made | changes)


def learner(**changes):
    return hcnet.FeatureLearner(algorithm="soft")._publish(small(**changes))


def filled(name, n, value, dtype):
    return {name: np.full(n, value, dtype)}


SIDE, MANY = kinds.LARGEST_SIDE, 2**16
BAD = {
    "nothing to place": {"sizes": np.zeros((2, 2), np.int64)},
    "negative sizes": {"sizes": np.array([[-3, -2], [1, 4]])},
    "one part less": {"copies": np.array([3])},
    "one price more": {"alone": np.array([1.0, 2.0, 3.0])},
    "fewer counts": {"counts": np.zeros(9, np.int32)},
    "more counts": {"counts": np.zeros(11, np.int32)},
    "sizes of another table": {"sizes": np.array([[3, 2, 1], [1, 4, 1]])},
    "larger than the images": {"image_size": (2, 30)},
    "counts above the copies": {"copies": np.array([2, 5])},
    "negative counts": {"counts": np.full(10, -1, np.int32)},
    "no copies": {"copies": np.array([0, 5])},
    "no number": {"alone": np.array([np.nan, 1.0])},
    "no price": {"alone": np.array([np.inf, 1.0])},
    "levels of other parts": {"levels": np.zeros((3, 2), np.int64)},
    "fewer than no copies in lines": {"levels": np.array([[0, 1], [0, -1]])},
    "no total": {"total": 0.0},
    "chances above one": filled("chance", coding.TABLE[::2], 1.5, np.float32),
    "chances that are no numbers": filled("chance_alone", 1 << len(TEMPLATE), np.nan, np.float32),
    "too few chances": filled("chance", 9, 0.5, np.float32),
    # The product is 2**64, which is 0 for 64 bits.
    "sizes that overflow": {"sizes": np.full((2, 2), 2**32), "image_size": (2**20, 2**20)},
    # The sum of all products is that of the counts, modulo 2**64.
    "sizes whose sum overflows": {
        "sizes": np.concatenate([np.full((MANY, 2), SIDE), [[3, 2], [1, 4]]]),
        "copies": np.full(MANY + 2, 5),
        "alone": np.ones(MANY + 2),
        "image_size": (SIDE, SIDE),
    },
    # Windows for all parts would be 2**40 pixels each.
    "a long and a wide part": {
        "sizes": np.array([[2**16, 1], [1, 2**16]]),
        "counts": np.zeros(2**17, np.int32),
        "image_size": (SIDE, SIDE),
    },
    "many windows for one long part": {
        "sizes": np.concatenate([[[2**16, 1]], np.full((2**12, 2), [1, 2])]),
        "counts": np.zeros(2**16 + 2**13, np.int32),
        "copies": np.full(2**12 + 1, 2),
        "alone": np.ones(2**12 + 1),
        "image_size": (SIDE, SIDE),
    },
}


@pytest.mark.parametrize("name", BAD)
def test_made_up_models_are_refused(name, tmp_path):
    made = learner()
    made._model = small(**BAD[name])
    path = made.save(tmp_path / "bad.hcn")
    with pytest.raises(ValueError, match="not a model file of hcnet, or is damaged") as caught:
        hcnet.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


EDGE = {
    "as it is": {},
    "no parts": {
        "counts": np.zeros(0, np.int32),
        "sizes": np.zeros((0, 2), np.int64),
        "copies": np.zeros(0, np.int64),
        "alone": np.zeros(0),
        "levels": np.zeros((0, 2), np.int64),
    },
    "parts without ink": {"counts": np.zeros(10, np.int32)},
    "as large as the images": {"image_size": (3, 4)},
    "many copies": {"copies": np.full(2, kinds.LARGEST_COUNT)},
    "the largest total": {"total": float(kinds.LARGEST_COUNT)},
    "the smallest total": {"total": 1.0},
    "sure chances": filled("chance", coding.TABLE[::2], 1, np.float32),
    "impossible chances": filled("chance_alone", 1 << len(TEMPLATE), 0, np.float32),
    "expensive parts": {"alone": np.full(2, 1e12)},
}


@pytest.mark.parametrize("name", EDGE)
def test_models_at_the_edge_are_usable(name, tmp_path):
    found = hcnet.load(learner(**EDGE[name]).save(tmp_path / "edge.hcn"))
    X = np.random.default_rng(0).random((2, *found._model.image_size)) < 0.4
    mask = np.zeros(X.shape, bool)
    mask[:, :2, :2] = True
    with np.errstate(all="raise"):
        assert found.denoise(X, mask).shape == X.shape
        assert found.inpaint(X, mask).shape == X.shape
        assert np.isfinite(found.score(X))
        found.transform(X)
        assert np.isfinite(found.compression_ratio(X))
        assert 0 < found.p_S_ <= 0.5
