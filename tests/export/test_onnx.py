"""An exported graph says, in another runtime, what hcnet says."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from scipy.special import logit

from hcnet import HCN, FeatureLearner, Layer
from hcnet.datasets import deconvolution, shapes
from hcnet.export import to_onnx
from hcnet.hierarchy.convolution import correlate
from hcnet.hierarchy.inference import Inference, class_scores
from hcnet.images import Images
from hcnet.model import PartsModel
from hcnet.objective import Priors

# Scores are sums of up to thousands of float32 numbers of up to about 10.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-3}

# Layers, channels, size of the images, templates per class: one to three layers, one and several
# channels, both borders of pools, even and oblong windows, positions that are not alike.
SAME = {"pool_border": "same"}
NETWORKS = {
    "one layer": ([Layer()], 1, (9, 8), 1),
    "one layer, channels": ([Layer(pool=(2, 3))], 3, (9, 8), 2),
    "one layer, no pool": ([Layer(pool=1)], 2, (6, 6), 1),
    "two layers": ([Layer(5, size=7), Layer()], 1, (15, 14), 2),
    "two layers, channels": ([Layer(5, size=(6, 4)), Layer()], 2, (14, 13), 1),
    "same border": ([Layer(5, size=5, pool=4, **SAME), Layer(**SAME)], 2, (11, 12), 2),
    "perturbed": (
        [Layer(4, size=5, perturbation=0.5), Layer(pool=(2, 3), perturbation=0.3, **SAME)],
        1,
        (12, 12),
        2,
    ),
    "three layers": ([Layer(4, size=4, pool=2), Layer(6, size=5), Layer()], 1, (17, 17), 2),
    "three layers, channels": (
        [Layer(4, size=4, pool=2), Layer(6, size=3, **SAME), Layer(perturbation=0.2)],
        3,
        (13, 12),
        1,
    ),
    "variants": ([Layer(6, size=5, variants=3), Layer()], 1, (14, 13), 2),
    "perturbed variants": (
        [Layer(4, size=5, variants=2), Layer(perturbation=0.3, pool=2)],
        2,
        (12, 12),
        1,
    ),
    "ring": ([Layer(4, size=5, pool_features=3, feature_order="ring"), Layer()], 4, (12, 12), 1),
    "line": (
        [
            Layer(4, size=4, pool=2, pool_features=3),
            Layer(pool_features=2, perturbation=0.4, **SAME),
        ],
        3,
        (9, 9),
        1,
    ),
}


def random_network(layers, channels, size, per_class, seed=0):
    """A network with random weights over three classes, and random images for it."""
    rng = np.random.default_rng(seed)
    options = {"templates_per_class": per_class, "p01": 0.02, "p10": 0.01, "random_state": seed}
    model = HCN(layers, n_classes=3, inference="forward", **options)
    weights, below, grid = [], channels, np.array(size)
    for layer in layers:
        pool = np.broadcast_to(layer.pool, 2)
        grid = grid if layer.pool_border == "same" else grid - pool + 1
        window = grid if layer.size is None else np.broadcast_to(layer.size, 2)
        features = layer.n_features or 3 * per_class
        weights.append(rng.random((features, below, *window)) < 0.4)
        below, grid = features // layer.variants, grid - window + 1
    model.set_weights(weights, size, classes=["ape", "bee", "cat"])
    return model, (rng.random((40, channels, *size)) < 0.4).astype(np.float32)


def run(path, X):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X.astype(np.float32)}), strict=True))


def assert_same(model, path, X):
    out = run(path, X)
    images = Images(np.nan_to_num(X) > 0.5, ~np.isnan(X))
    scores = class_scores(model._model, images, Inference("forward"))
    np.testing.assert_allclose(out["scores"], scores, **TOLERANCE)
    # Classes that tie to the last bit may come in either order; there must be few of those.
    best = np.sort(scores, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-2
    assert clear.mean() > 0.8
    mask = np.isnan(X) if np.isnan(X).any() else None
    assert (out["label"] == model.predict(X, mask))[clear].all()
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X, mask), atol=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_graph_has_the_scores_of_the_forward_pass(name, tmp_path):
    model, X = random_network(*NETWORKS[name])
    assert_same(model, to_onnx(model, tmp_path / "model.onnx"), X)


@pytest.mark.parametrize("name", ["two layers, channels", "three layers, channels"])
def test_missing_pixels_say_nothing_in_a_graph(name, tmp_path):
    model, X = random_network(*NETWORKS[name])
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    assert_same(model, to_onnx(model, tmp_path / "model.onnx"), X)


def test_templates_of_a_graph_may_stand_anywhere(tmp_path):
    model, _ = random_network(*NETWORKS["two layers"])
    larger = model.with_class_layer(image_size=(19, 17)).set_params(inference="forward")
    X = (np.random.default_rng(2).random((20, 1, 19, 17)) < 0.4).astype(np.float32)
    assert_same(larger, to_onnx(larger, tmp_path / "model.onnx"), X)


def test_classes_of_different_sizes_are_compared_fairly(tmp_path):
    model, X = random_network(*NETWORKS["two layers"])
    uneven = model.with_class_layer(categories=[0, 1, 1, 1, 0, 1], classes=[7, 9])
    path = to_onnx(uneven, tmp_path / "model.onnx")
    assert run(path, X)["label"].dtype == np.int64
    assert_same(uneven, path, X)


def test_a_learned_network_classifies_the_same_images_the_same_way(tmp_path):
    train, test = shapes(random_state=0), shapes(n_images=300, random_state=1)
    model = HCN([Layer(4, size=21), Layer()], inference="forward")
    model.set_params(templates_per_class=2).set_weights(
        [train.features, train.template_weights], (25, 25)
    )
    path = to_onnx(model, tmp_path / "shapes.onnx")
    assert (run(path, test.images)["label"] == model.predict(test.images)).all()
    assert_same(model, path, test.images.astype(np.float32))


@pytest.mark.parametrize(
    "names", [[3, 1, 2], [True, False], [0.5, 2.5, 1.5], ["é", "ß", "?"], ["a", 1, 2.5]], ids=str
)
def test_classes_keep_their_names(names, tmp_path):
    model, X = random_network(*NETWORKS["two layers"])
    names = np.array(names, object) if len({type(name) for name in names}) > 1 else np.array(names)
    categories = [0, 1, 1, 0, 0, 1] if len(names) == 2 else [0, 1, 2, 0, 1, 2]
    named = model.with_class_layer(categories=categories, classes=names)
    label = run(to_onnx(named, tmp_path / "model.onnx"), X)["label"].tolist()
    predicted = named.predict(X).tolist()
    assert label == ([str(one) for one in predicted] if names.dtype == object else predicted)


def test_weights_of_a_graph_are_binary(tmp_path):
    model, _ = random_network(*NETWORKS["three layers"])
    graph = onnx.load(to_onnx(model, tmp_path / "model.onnx")).graph
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    for k, W in enumerate(model.weights_, start=1):
        assert (weights[f"W{k}"] == W).all()
    kinds = [node.op_type for node in graph.node]
    assert kinds.count("Conv") == 3
    assert kinds.count("MaxPool") == 3


@pytest.fixture(scope="module")
def learner():
    data = deconvolution(n_images=40, random_state=0)
    return FeatureLearner(6, (5, 5), border="valid", random_state=0).fit(data.images), data


@pytest.mark.parametrize("border", ["valid", "full"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_graph_of_parts_scores_every_position(border, channels, tmp_path):
    rng = np.random.default_rng(channels)
    W = rng.random((4, channels, 5, 3)) < 0.5
    learner = FeatureLearner(4, (5, 3), border=border)
    learner._publish(PartsModel(W, Priors(0.01, 0.4, 0.02, 0.03), border, (12, 14)))
    path = to_onnx(learner, tmp_path / "parts.onnx")
    for size in [(12, 14), (9, 21)]:
        X = (rng.random((3, channels, *size)) < 0.4).astype(np.float32)
        X[0, 0, 3:5] = np.nan
        k1, k0 = np.log(0.98 / 0.03), np.log(0.02 / 0.97)
        evidence = np.where(np.isnan(X), 0, np.where(X > 0.5, k1, k0)).astype(np.float32)
        pad = (4, 2) if border == "full" else (0, 0)
        padded = np.pad(evidence, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
        expected = correlate(padded, W) + logit(0.01)
        np.testing.assert_allclose(run(path, X)["scores"], expected, **TOLERANCE)


def test_placements_that_are_found_score_above_zero(learner, tmp_path):
    model, data = learner
    scores = run(to_onnx(model, tmp_path / "parts.onnx"), data.images)["scores"]
    n, f, r, c = model.placements_.T  # border="valid": rows count from the first position
    assert len(n) > 100
    assert (scores[n, f, r, c] > 0).mean() > 0.95


def test_nothing_is_written_without_onnx_or_over_a_file(learner, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    path = tmp_path / "model.onnx"
    for model in (learner[0], random_network(*NETWORKS["one layer"])[0]):
        with pytest.raises(ImportError, match="pip install onnx"):
            to_onnx(model, path)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        to_onnx(learner[0], path)
    assert path.read_text() == "mine"


def test_several_objects_and_no_parts_cannot_be_exported(tmp_path):
    model, _ = random_network(*NETWORKS["two layers"])
    several = model.with_class_layer(p_on=0.01)
    with pytest.raises(ValueError, match="without p_on"):
        to_onnx(several, tmp_path / "model.onnx")
    to_onnx(several.with_class_layer(), tmp_path / "model.onnx")
    nothing = FeatureLearner(2, 3).fit(np.zeros((8, 8)))
    with pytest.raises(ValueError, match="no parts to export"):
        to_onnx(nothing, tmp_path / "parts.onnx")
