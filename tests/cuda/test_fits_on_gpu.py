"""Every estimator learns on a GPU."""

import numpy as np
import pytest

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer
from hcnet.datasets import deconvolution, shapes
from hcnet.engine.cuda.active_set import active_device_memory
from hcnet.layers import FeatureLayer
from hcnet.memory import NotEnoughMemoryError
from hcnet.metrics import matched_iou

PART = np.array([[1, 1, 1], [1, 0, 0]], bool)


def scene():
    X = np.zeros((6, 7), bool)
    for r, c in [(0, 0), (4, 2), (1, 4)]:
        X[r : r + 2, c : c + 3] |= PART
    return X


def learner(**more):
    return FeatureLearner(1, (2, 3), device="cuda", n_init=2, max_iter=1, random_state=0, **more)


def test_a_part_is_found():
    model = learner().fit(scene())
    assert matched_iou(model.features_, PART[None, None])[0] == 1
    assert len(model.placements_) == 3
    assert model.memory_ > active_device_memory(FeatureLayer(1, 1, (2, 3), (6, 7)), 1)


def test_message_passing_alone_and_a_checkpoint(tmp_path):
    wanted = learner(algorithm="mpmp").fit(scene())
    kept = learner(algorithm="mpmp").fit(scene(), checkpoint=tmp_path / "c", every=1e-9)
    np.testing.assert_array_equal(kept.features_, wanted.features_)
    assert kept.log_joint_ == wanted.log_joint_


def test_too_little_memory_is_an_error_before_the_run():
    with pytest.raises(NotEnoughMemoryError, match=r"max_memory allows 1,000 bytes: lower"):
        learner(max_memory=1000).fit(scene())


def test_a_stream():
    X = np.stack([scene(), scene()[::-1]])
    model = FeatureLearner(1, (2, 3), device="cuda", random_state=0).fit_stream(X)
    assert model.n_images_seen_ == 2


def test_a_table():
    X = np.kron(np.eye(2), np.ones((3, 3))) > 0
    model = BooleanMatrixFactorization(
        2, algorithm="mpmp", device="cuda", max_iter=8, random_state=0
    )
    codes = model.fit_transform(X)
    np.testing.assert_array_equal(codes.astype(int) @ model.components_.astype(int) > 0, X)


def test_a_network():
    rng = np.random.default_rng(0)
    X = rng.random((2, 1, 6, 6)) < 0.3
    layers = [Layer(2, size=2, pool=2), Layer(pool=2)]
    options = {"n_classes": 2, "n_init": 1, "max_iter": 2, "random_state": 0}
    model = HCN(layers, device="cuda", **options).fit(X)
    assert len(model.history_) == 2
    assert model.predict_proba(X).shape == (2, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(3))
def test_true_parts_are_recovered(seed):
    data = deconvolution(random_state=seed)
    model = FeatureLearner(5, (6, 6), device="cuda", random_state=seed).fit(data.images)
    assert matched_iou(model.features_, data.features).min() == 1


@pytest.mark.gpu
def test_shapes_are_clustered():
    data = shapes(feature_size=21, random_state=0)
    model = HCN([Layer(4, size=21), Layer()], n_classes=4, device="cuda", random_state=0).fit(
        data.images
    )
    found = model.predict(data.images)
    pairs = {(a, b) for a, b in zip(found, data.templates, strict=True)}
    assert len(pairs) == len(set(data.templates))
