"""A model goes through JSON and comes back the same."""

import json
import time

import numpy as np
import pytest

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Inference, Layer
from hcnet.datasets import deconvolution, shapes
from hcnet.export import from_dict, to_dict
from hcnet.reading import name_parts


@pytest.fixture(scope="module")
def learner():
    data = deconvolution(n_images=40, random_state=0)
    return FeatureLearner(6, (5, 5), random_state=0).fit(data.images), data.images


@pytest.fixture(scope="module")
def network():
    data = shapes(random_state=0, feature_size=11, n_images=40)
    layers = [Layer(4, size=11, perturbation=0.3), Layer(pool_border="same", p_W=0.3)]
    way = Inference(candidates=3)
    model = HCN(layers, templates_per_class=2, p01=0.01, p10=1e-3, inference=way, random_state=0)
    second = np.broadcast_to(data.template_weights, (4, 4, 1, 1))
    second = np.pad(second, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return model.set_weights([data.features, second], (15, 15), classes=["even", "odd"]), data


def through_json(model):
    return from_dict(json.loads(json.dumps(to_dict(model))))


def test_parts_come_back_exactly(learner):
    model, images = learner
    back = through_json(model)
    assert (back.features_ == model.features_).all()
    assert back.features_.dtype == bool
    priors = ("p_S_", "p_W_", "p01_", "p10_")
    assert [getattr(back, p) for p in priors] == [getattr(model, p) for p in priors]
    assert (back.placements(images) == model.placements(images)).all()
    assert to_dict(back) == to_dict(model)
    assert "part_names" not in to_dict(model)
    name_parts(back, {1: "é"})
    assert through_json(back).part_names_.tolist() == ["", "é", *[""] * (len(model.features_) - 2)]
    ring = ["#####", "#...#", "#...#", "#...#", "#####"]
    assert [ring] in to_dict(model)["arrays"]["features"]  # people can read it
    with pytest.raises(ValueError, match="update hcnet"):
        from_dict(to_dict(model) | {"version": 99})


def test_a_network_comes_back_exactly(network):
    model, data = network
    back = through_json(model)
    for ours, theirs in zip(model.weights_, back.weights_, strict=True):
        assert (ours == theirs).all()
    for ours, theirs in zip(model._model.network.levels, back._model.network.levels, strict=True):
        assert (ours.window == theirs.window).all()
        assert ours.p_W == theirs.p_W
    assert back.inference == model.inference
    assert back.classes_.tolist() == ["even", "odd"]
    assert (back.predict(data.images) == model.predict(data.images)).all()
    assert (back.predict_proba(data.images) == model.predict_proba(data.images)).all()
    assert to_dict(back) == to_dict(model)


def test_another_class_layer_comes_back(network):
    several = network[0].with_class_layer(p_on=0.001, image_size=(20, 30))
    back = through_json(several)
    assert back._model.network.classes == several._model.network.classes
    assert back._model.network.image_size == (20, 30)


def test_a_file_and_a_dictionary_hold_the_same(network, tmp_path):
    model, _ = network
    loaded = HCN.load(model.save(tmp_path / "model.hcn"))
    assert to_dict(loaded) == to_dict(model)
    assert through_json(model).get_params() == loaded.get_params()


def test_no_parts_at_all_come_back():
    nothing = FeatureLearner(2, 3).fit(np.zeros((8, 8)))
    assert through_json(nothing).features_.shape == (0, 1, 3, 3)


def nested(depth, key=None):
    found = []
    for _ in range(depth):
        found = [found] if key is None else {key: found}
    return found


def ring(n):
    found = []
    found += [found] * n
    return found


def laughs():
    found = [0]
    for _ in range(15):
        found = [found] * 30
    return found


DAMAGE = {
    "nothing": lambda d: {},
    "a list": lambda d: [1, 2],
    "another estimator": lambda d: d | {"estimator": "PCA"},
    "no weights": lambda d: d | {"arrays": {}},
    "a letter in a row": lambda d: d | {"arrays": d["arrays"] | {"levels-0-weights": [[["#x."]]]}},
    "a row too short": lambda d: (
        d | {"arrays": d["arrays"] | {"levels-0-weights": [[["#"], ["##"]]] * 4}}
    ),
    "another shape": lambda d: d | {"arrays": d["arrays"] | {"levels-1-weights": [[["##"]]]}},
    "no probability": lambda d: d | {"noise": [0, 2]},
    "an infinite version": lambda d: d | {"version": float("inf")},
    "a version of many digits": lambda d: d | {"version": 10**5000},
    "a version of no number": lambda d: d | {"version": "1"},
    "a long format": lambda d: d | {"format": "x" * 100_000},
    "a long row": lambda d: d | {"arrays": d["arrays"] | {"levels-0-weights": ["x" * 100_000]}},
    "lists in lists": lambda d: d | {"noise": nested(5000)},
    "dictionaries in dictionaries": lambda d: d | {"parameters": nested(5000, "a")},
    "a list in itself": lambda d: d | {"noise": ring(1)},
    "a list in itself, often": lambda d: d | {"noise": ring(1000)},
    "lists that hold each other often": lambda d: d | {"noise": laughs()},
    "names that are numbers": lambda d: d | {1: 2},
    "arrays in a list": lambda d: d | {"arrays": []},
    "something strange": lambda d: d | {"noise": object()},
    "another border": lambda d: d | {"levels": [d["levels"][0] | {"pool_border": "round"}]},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_dictionary_gets_a_sentence(damage, network):
    about = DAMAGE[damage](to_dict(network[0]))
    began = time.perf_counter()
    with pytest.raises(ValueError, match="to_dict made was expected") as caught:
        from_dict(about)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert time.perf_counter() - began < 2


def test_a_table_comes_back_too():
    table = np.kron(np.eye(2), np.ones((4, 3))) > 0
    model = BooleanMatrixFactorization(2, n_init=1, random_state=0).fit(table)
    np.testing.assert_array_equal(through_json(model).components_, model.components_)
