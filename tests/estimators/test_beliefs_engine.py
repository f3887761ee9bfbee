"""engine="beliefs" on the estimators."""

import numba
import numpy as np
import pytest
from scenes import TRUE_PARTS, learner, scene

import hcnet
from hcnet import HCN, FeatureLearner, Layer
from hcnet.datasets import deconvolution, shapes
from hcnet.memory import NotEnoughMemoryError
from hcnet.metrics import matched_iou


@pytest.mark.parametrize("border", ["full", "valid"])
def test_message_passing_alone_explains_as_much_as_the_dense_engine(border):
    bits = {"dense": [], "beliefs": []}
    for seed in range(2):
        data = deconvolution(n_images=40, random_state=seed)
        for engine, found in bits.items():
            how = {"algorithm": "mpmp", "n_init": 1, "border": border, "engine": engine}
            fit = FeatureLearner(5, 6, **how, random_state=seed).fit(data.images)
            found.append(fit.compression_ratio_)
    assert np.mean(bits["beliefs"]) < 1.1 * np.mean(bits["dense"])


def test_too_little_memory_is_said_before_the_start_and_more_ink_needs_more():
    images, _ = scene(n=10)
    needed = [
        learner(engine="beliefs", max_iter=2, n_features=2).fit(x).memory_
        for x in (images, images | scene(seed=1, n=10)[0])
    ]
    assert needed[0] < needed[1]
    with pytest.raises(NotEnoughMemoryError, match=r"n_features.*raise max_memory"):
        learner(engine="beliefs", max_memory=10_000).fit(images)
    data = shapes(feature_size=9, n_images=10, random_state=0)
    model = HCN([Layer(4, size=9), Layer()], n_classes=4, engine="beliefs", max_memory=10_000)
    with pytest.raises(NotEnoughMemoryError, match=r"n_features.*raise max_memory"):
        model.fit(data.images)


def test_the_same_seed_gives_the_same_network_with_any_number_of_threads(tmp_path):
    data = shapes(feature_size=9, n_images=20, random_state=0)
    before = numba.get_num_threads()
    found = []
    for threads in (1, before):
        numba.set_num_threads(threads)
        try:
            model = HCN([Layer(4, size=9), Layer()], n_classes=4, engine="beliefs", max_iter=6)
            found.append(model.set_params(random_state=0).fit(data.images))
        finally:
            numba.set_num_threads(before)
    for one, two in zip(found[0].weights_, found[1].weights_, strict=True):
        np.testing.assert_array_equal(one, two)
    assert found[0].log_joint_ == found[1].log_joint_
    found[0].save(tmp_path / "model.hcn")
    assert hcnet.load(tmp_path / "model.hcn").engine == "beliefs"


def test_shapes_are_learned():
    data = shapes(feature_size=21, random_state=0)
    model = HCN([Layer(4, size=21), Layer()], templates_per_class=2, random_state=0, n_init=1)
    model.set_params(engine="beliefs", max_iter=40).fit(data.images, data.labels)
    fresh = shapes(feature_size=21, n_images=60, random_state=1)
    assert model.score(fresh.images, fresh.labels) > 0.95


def test_a_stream_is_learned():
    data = shapes(feature_size=9, n_images=40, random_state=0)
    model = HCN([Layer(4, size=9), Layer()], engine="beliefs", random_state=0)
    model.set_params(templates_per_class=2, max_iter=20)
    pairs = zip(data.images, data.labels, strict=True)
    model.fit_stream(pairs, classes=np.unique(data.labels), batch_size=20)
    assert all(W.sum() > 8 for W in model.weights_)
    images, _ = scene(n=12)
    parts = learner(engine="beliefs", n_features=4).fit_stream(iter(images), batch_size=4)
    assert matched_iou(parts.features_, TRUE_PARTS).min() == 1
