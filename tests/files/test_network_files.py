"""Files of HCN: what is loaded answers as what was saved; damage gives a sentence."""

import numpy as np
import pytest
from handmade import change, put

from hcnet import HCN, Inference, Layer, TemplateClassifier
from hcnet.datasets import shapes


@pytest.fixture(scope="module")
def data():
    return shapes(feature_size=9, n_images=8, random_state=0)


def known(data, **options):
    """The network that made the data; two templates per class."""
    options = {"templates_per_class": 2, **options}
    model = HCN([Layer(4, size=9), Layer()], **options)
    return model.set_weights([data.features, data.template_weights], 13, ["alike", "unlike"])


def answers(model, X):
    """All that can be asked of a model."""
    mask = np.zeros(X.shape, bool)
    mask[..., :5] = True
    label = model.classes_.tolist()[0]
    several = model._model.network.classes.p_on is not None
    one_object = () if several else (model.predict_proba(X), model.cluster(X))
    return [
        model.predict(X),
        *one_object,
        model.placements(X),
        model.denoise(X),
        model.inpaint(X, mask, np.full(len(X), label)),
        model.score(X),
        *model.sample(3, label, random_state=0),
        *model.weights_,
        model.classes_,
        model.template_classes_,
    ]


SAVED = {
    "as it is": lambda data: known(data),
    "forward": lambda data: known(data, inference="forward"),
    "passing": lambda data: known(data, inference=Inference("passing", n_passes=2), p01=0.01),
    "regrouped": lambda data: known(data).with_class_layer([0, 1, 1, 0], [True, False]),
    "several": lambda data: known(data).with_class_layer(p_on=0.01),
    "names of two types": lambda data: known(data).with_class_layer(
        classes=np.array(["a", 1], object)
    ),
    "perturbed": lambda data: HCN(
        [Layer(4, size=9, perturbation=0.3), Layer(perturbation=0.3)], random_state=0
    ).set_weights([data.features, data.template_weights], 13),
}


@pytest.mark.parametrize("kind", SAVED)
def test_what_is_saved_answers_the_same(kind, data, tmp_path):
    model = SAVED[kind](data)
    loaded = HCN.load(model.save(tmp_path / "shapes.hcn"))
    X = data.images
    for one, other in zip(answers(model, X), answers(loaded, X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.get_params() == model.get_params()
    again = HCN.load(loaded.save(tmp_path / "again.hcn"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("supervised", [True, False])
def test_what_is_loaded_can_learn_again(supervised, tmp_path):
    data = shapes(feature_size=7, jitter=1, n_images=12, random_state=0)
    options = {"templates_per_class": 2} if supervised else {"n_classes": 4}
    y = data.labels if supervised else None
    model = HCN([Layer(pool=1)], max_iter=2, n_init=1, **options).fit(data.images, y)
    loaded = HCN.load(model.save(tmp_path / "small.hcn"))
    loaded.set_params(max_iter=2, n_init=1).fit(data.images, y)
    assert loaded.weights_[0].shape == (4, 1, 7, 7)


def test_saved_templates_answer_the_same(tmp_path):
    data = shapes(feature_size=7, jitter=1, n_images=12, random_state=0)
    model = TemplateClassifier(4, 3, random_state=0).fit(data.images, data.labels)
    path = model.save(tmp_path / "digits.hcn")
    with pytest.raises(ValueError, match="a file of 'TemplateClassifier', not of HCN"):
        HCN.load(path)
    loaded = TemplateClassifier.load(path)
    assert loaded.get_params() == model.get_params()
    for ours, theirs in zip(model._model.network.levels, loaded._model.network.levels, strict=True):
        np.testing.assert_array_equal(ours.window, theirs.window)
    np.testing.assert_array_equal(loaded.predict(data.images), model.predict(data.images))


def test_a_file_is_as_readable_as_any_other(data, tmp_path):
    (tmp_path / "other").write_text("")
    path = known(data).save(tmp_path / "shapes.hcn")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_names_that_no_file_can_hold_are_explained(data, tmp_path):
    model = known(data).with_class_layer(classes=np.array(["a", ("b",)], object))
    message = r"Class names must be numbers or strings to be saved, got \('b',\).*with_class_layer"
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "shapes.hcn")
    assert list(tmp_path.iterdir()) == []


def model(**values):
    return lambda about: about["contents"]["model"].update(values)


def level(k, **values):
    return lambda about: about["contents"]["model"]["levels"][k].update(values)


def parameter(**values):
    return lambda about: about["contents"]["parameters"].update(values)


DAMAGE = {
    "unknown format": put("format", value="hcnet-mystery"),
    "format is a list": put("format", value=[]),
    "version is a word": put("version", value="two"),
    "no layers": model(levels=[], channels=4),
    "layers are words": model(levels=["a", "b"]),
    "too few categories": model(categories=[0, 0, 1]),
    "too few names": model(classes=["a"]),
    "too many names": model(classes=["a", "b", "c"]),
    "the same name twice": model(classes=["a", "a"]),
    "names in rows": model(classes=[["a"], ["b"]]),
    "a class without templates": model(categories=[0, 0, 2, 2], classes=["a", "b", "c"]),
    "a class of too large a number": model(categories=[0, 0, 1, 2**40]),
    "no noise": model(noise=[0, 0.1]),
    "one noise": model(noise=[0.1]),
    "p_on is a word": model(p_on="often"),
    "p_on is two": model(p_on=2),
    "small image": model(image_size=[5, 5]),
    "huge image": model(image_size=[2**19, 2**19]),
    "more features": level(0, weights=[5, 1, 9, 9]),
    "no features": level(0, weights=[0, 1, 9, 9]),
    "half a feature": level(0, weights=[4.5, 1, 9, 9]),
    "features too large": level(0, weights=[4, 1, 20, 20]),
    "features without size": level(0, weights=[4, 1, 0, 9]),
    "no weights": level(0, weights=None),
    "unknown border": level(1, pool_border="round"),
    "p_W is zero": level(0, p_W=0),
    "no parameters": put("contents", "parameters", value=None),
    "a strange parameter": parameter(color="red"),
    "unknown inference": parameter(inference="guess"),
    "no passes": parameter(inference={"name": "passing", "n_passes": 0}),
    "a strange way": parameter(inference={"name": "passing", "speed": 2}),
    "layers without end": parameter(layers=[]),
    "layers of numbers": parameter(layers=[1, 2]),
    "a layer of its own": parameter(layers=[{"height": 3}]),
    "an unknown status": put("contents", "training", value={"status": "HAPPY"}),
    "a strange story": put("contents", "training", value={"weather": 3}),
    "endless learning": put("contents", "training", value={"seconds": 1e999}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_makes_no_sense_gives_one_sentence(damage, data, tmp_path):
    """The checksums are right: somebody wants us to read it."""
    path = known(data).save(tmp_path / "shapes.hcn")
    change(path, DAMAGE[damage])
    with pytest.raises(ValueError, match="not a model file of hcnet, or is damaged") as caught:
        HCN.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith("pass a file that save() wrote.")
    assert "\n" not in str(caught.value)
