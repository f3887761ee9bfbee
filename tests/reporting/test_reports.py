"""Reports say what the model says; tests/browser looks at them as people do."""

import html
import json
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from hcnet import HCN, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import shapes, two_bars
from hcnet.hierarchy.decoding import nodes
from hcnet.hierarchy.inference import configuration
from hcnet.images import part_boxes
from hcnet.reporting import LiveReport, report, summary
from hcnet.reporting.page import runs
from hcnet.reporting.reports import network_content

LAYERS = [Layer(4, size=9), Layer()]
QUICK = {"n_init": 1, "max_iter": 10, "random_state": 0}


def data_of(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found.group(1).replace("<\\/", "</")), text


def unpacked(text, shape):
    values = []
    for letter, length in re.findall(r"([^0-9a-z])([0-9a-z]+)", text):
        values += [ord(letter) - 0x100] * int(length, 36)
    return np.array(values).reshape(shape)


@pytest.fixture(scope="module")
def learned():
    X = two_bars(size=(24, 30), length=6, n_placements=14, random_state=0).images
    return FeatureLearner(feature_size=7, n_init=1, random_state=0).fit(X), X


@pytest.fixture(scope="module")
def network():
    data = shapes(n_images=30, feature_size=9, random_state=0)
    return HCN(LAYERS, templates_per_class=2, **QUICK).fit(data.images, data.labels), data


@pytest.mark.parametrize("top", [2, 300, 40_000])
def test_runs_hold_every_number(top):
    values = np.random.default_rng(0).integers(0, top, (13, 7)).repeat(3, axis=1)
    np.testing.assert_array_equal(unpacked(runs(values), values.shape), values)


def test_a_report_holds_images_parts_places_and_errors(learned, tmp_path):
    learner, X = learned
    data, _ = data_of(report(learner, tmp_path / "r.html", X, names=["page"]))
    (image,) = data["images"]
    np.testing.assert_array_equal(unpacked(image["seen"], (24, 30)), X[0, 0])
    clean = learner.denoise(X)
    np.testing.assert_array_equal(unpacked(image["made"], (24, 30)), clean[0, 0])
    errors = unpacked(image["errors"], (24, 30))
    assert (errors == 1).sum() == (X & ~clean).sum()
    assert (errors == 2).sum() == (clean & ~X).sum()
    placed = learner.placements_
    boxes = part_boxes(learner.features_)
    corners = placed[:, 2:] + boxes[placed[:, 1], :2]
    assert [node[1:4] for node in image["nodes"]] == np.c_[placed[:, 1], corners].tolist()
    for part in data["layers"][0]["parts"]:
        top, left, bottom, right = boxes[part["number"]]
        pixels = unpacked(part["pixels"], part["size"]) > 0
        own = learner.features_[part["number"], 0, top:bottom, left:right]
        np.testing.assert_array_equal(pixels, own)
        assert part["label"] == ""
        assert part["count"] == (placed[:, 1] == part["number"]).sum()


def test_a_report_says_how_well_and_how_to_do_it_again(learned, tmp_path):
    learner, X = learned
    _, text = data_of(report(learner, tmp_path / "r.html", X))
    said = html.unescape(text)
    assert f"{learner.compression_ratio(X):.2%}" in said
    assert f"{(learner.denoise(X) != X).sum():,}" in said
    assert "FeatureLearner(feature_size=7, n_init=1, random_state=0)" in said
    assert "scikit-learn" in said
    assert learner.status_ in said
    assert "<polyline " in text


def test_a_report_names_nothing_outside_itself(learned, network, tmp_path):
    for model, X in (learned, (network[0], network[1].images)):
        _, text = data_of(report(model, tmp_path / "r.html", X, overwrite=True))
        assert not re.search(r"(src|href)=[\"'](?!data:)", text)
        assert "http://" not in text
        assert "https://" not in text
        assert "default-src 'none'" in text


def test_missing_pixels_are_no_errors(learned, tmp_path):
    learner, X = learned
    mask = np.zeros(X.shape, bool)
    mask[..., 5:9, 5:9] = True
    data, _ = data_of(report(learner, tmp_path / "r.html", X, mask=mask))
    image = data["images"][0]
    np.testing.assert_array_equal(unpacked(image["missing"], (24, 30)), mask[0, 0])
    assert not unpacked(image["errors"], (24, 30))[mask[0, 0]].any()


def test_without_images_a_fresh_model_shows_its_reconstruction(learned, tmp_path):
    learner, _ = learned
    data, _ = data_of(report(learner, tmp_path / "r.html"))
    made = unpacked(data["images"][0]["made"], (24, 30))
    np.testing.assert_array_equal(made, learner.render(learner.placements_)[0, 0])


def test_wrong_names_and_existing_files_are_explained(learned, tmp_path):
    learner, X = learned
    with pytest.raises(ValueError, match="names must have an entry per image"):
        report(learner, tmp_path / "r.html", X, names=[])
    (tmp_path / "r.html").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        report(learner, tmp_path / "r.html", X)
    with pytest.raises(FileExistsError, match="exists already"):
        LiveReport(tmp_path / "r.html", X)
    assert (tmp_path / "r.html").read_text() == "mine"


def test_every_pixel_of_an_explanation_belongs_to_features_of_all_layers(network):
    model, data = network
    images = model._check(data.images[:5], None).images
    found = configuration(model._model, images, model._inference())
    for n in range(5):
        by_layer = {1: set(), 2: set()}
        for node in nodes(model._model.network, model.weights_, found, n):
            by_layer[node.level] |= node.pixels
        on = {tuple(at) for at in np.argwhere(found.S[0][n]).tolist()}
        assert by_layer[1] == by_layer[2] == on


def test_a_network_report_has_layers_classes_and_a_confusion_matrix(network, tmp_path):
    model, data = network
    found, text = data_of(report(model, tmp_path / "r.html", data.images, data.labels))
    assert [layer["name"] for layer in found["layers"]] == [
        "Layer 2: templates",
        "Layer 1: features",
    ]
    assert f"{model.score(data.images, data.labels):.2%}" in text
    assert len(found["pictures"]) == 2
    assert found["images"][0]["about"].startswith(f"class {model.predict(data.images[:1])[0]}, ")
    many = np.concatenate([data.images] * 3)
    found, _ = data_of(report(model, tmp_path / "many.html", many))
    assert len(found["images"]) == 60
    assert found["images_note"] == "The first 60 of 90 images."


def test_rendering_is_the_opposite_of_placing(learned):
    learner, X = learned
    clean = learner.denoise(X)
    np.testing.assert_array_equal(learner.render(learner.placements(X)), clean)
    np.testing.assert_array_equal(learner.render([], 2, (9, 9)), np.zeros((2, 1, 9, 9), bool))
    with pytest.raises(ValueError, match="placements must be rows"):
        learner.render([(0, 99, 0, 0)])
    with pytest.raises(ValueError, match="placements must be rows"):
        learner.render([(3, 0, 0, 0)], n_images=2)


def test_summaries_hold_only_what_json_does(learned, network):
    for model in (learned[0], network[0]):
        assert json.loads(json.dumps(summary(model))) == summary(model)


def test_a_live_report_is_written_while_learning_goes_on(learned, tmp_path):
    _, X = learned
    states = []

    class Watched(LiveReport):
        def __call__(self, step):
            super().__call__(step)
            self._next = 0.0  # every step, not only every few seconds
            states.append(data_of(self.path)[0])

    live = Watched(tmp_path / "live.html", X)
    FeatureLearner(feature_size=7, n_init=1, max_iter=3, random_state=0, callback=live).fit(X)
    assert states[0]["live"].startswith("Still learning: message passing, step 1 of about 3")
    assert states[-1]["live"].startswith("Still learning: refining")
    assert all(state["refresh"] for state in states)
    assert len(states[-1]["images"]) == 1


def test_a_live_report_of_a_network_and_of_a_stream(network, learned, tmp_path):
    _, data = network
    live = LiveReport(tmp_path / "network.html", data.images)
    HCN(LAYERS, 4, **QUICK, callback=live).fit(data.images)
    assert "Still learning: start 1 of 1" in data_of(live.path)[0]["live"]
    upwards = LiveReport(tmp_path / "upwards.html", data.images)
    TemplateClassifier(4, 9, 1, n_classes=4, callback=upwards).fit(data.images)
    assert "Still learning: search for parts" in data_of(upwards.path)[0]["live"]
    X = learned[1]
    stream = LiveReport(tmp_path / "stream.html", X)
    learner = FeatureLearner(n_features=4, feature_size=7, random_state=0, callback=stream)
    learner.fit_stream([X[0]] * 7)
    assert "minibatches, step 1" in data_of(stream.path)[0]["live"]


def test_a_live_report_that_cannot_be_written_does_not_end_learning(learned, tmp_path):
    _, X = learned
    folder = tmp_path / "folder"
    folder.mkdir()
    live = LiveReport(folder / "live.html", X)
    assert clone(FeatureLearner(callback=live)).callback is live
    folder.rmdir()
    learner = FeatureLearner(feature_size=7, n_init=1, max_iter=2, random_state=0, callback=live)
    with pytest.warns(UserWarning, match="learning goes on without it"):
        learner.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        learner.fit(X)
    assert len(learner.features_) > 0


def test_a_report_of_the_training_images_counts_the_placements_of_learning(tmp_path, monkeypatch):
    X = two_bars(size=(24, 24), n_placements=12, random_state=0).images
    model = FeatureLearner(feature_size=6, n_init=1, random_state=0).fit(X)
    model.placements_ = model.placements_[:-1]  # inference would find the last one again
    text = report(model, tmp_path / "same.html", X).read_text()
    assert f"{len(model.placements_)} placements in 1 image" in text
    assert "found anew" in report(model, tmp_path / "other.html", X[..., ::-1]).read_text()


def test_variants_stand_side_by_side_and_say_their_group():
    data = shapes(variants=2, feature_size=9, n_images=3, random_state=0)
    layers = [Layer(8, size=9, variants=2), Layer()]
    model = HCN(layers, n_classes=4).set_weights(
        [data.features, data.template_weights], data.images.shape[2:]
    )
    content, _ = network_content(model, data.images, None, None, None)
    templates, parts = content.layers
    assert [part.name for part in parts.parts[:3]] == [
        "feature 0: variant 0 of group 0",
        "feature 1: variant 1 of group 0",
        "feature 2: variant 0 of group 1",
    ]
    assert templates.parts[0].made_of == "features 0|1, 4|5 of layer 1"
    assert content.facts[1][:2] == ("Layer 2", "4 templates")
    assert "3×3 positions × 2 features" in content.facts[1][2]
    assert sum(part.count for part in parts.parts) == 6  # two in every image
