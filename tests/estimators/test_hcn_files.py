"""Files of HCN: what is loaded answers as what was saved; damage gives a sentence."""

import json
import zipfile

import numpy as np
import pytest

from hcnet import HCN, FeatureLearner, Layer, archive
from hcnet.datasets import shapes
from hcnet.model import PartsModel
from hcnet.objective import Priors


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
        *model.sparsifications(X),
        model.transform(X).toarray(),
        model.denoise(X),
        model.inpaint(X, mask, np.full(len(X), label)),
        model.joint_log_probability(X),
        model.score(X),
        *model.sample(3, label, random_state=0),
        *model.weights_,
        model.classes_,
        model.template_classes_,
    ]


SAVED = {
    "as it is": lambda data: known(data),
    "forward": lambda data: known(data, inference="forward"),
    "passing": lambda data: known(data, inference="passing", n_passes=np.int64(2), p01=0.01),
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
    assert (loaded.p01, loaded.inference) == (model.p01, model.inference)
    again = HCN.load(loaded.save(tmp_path / "again.hcn"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("supervised", [True, False])
def test_what_is_loaded_can_learn_again(supervised, tmp_path):
    data = shapes(feature_size=7, jitter=1, n_images=12, random_state=0)
    options = {"templates_per_class": 2} if supervised else {"n_classes": 4}
    y = data.labels if supervised else None
    model = HCN([Layer(pool=1)], max_iter=2, n_init=1, **options).fit(data.images, y)
    loaded = HCN.load(model.save(tmp_path / "small.hcn"))
    assert not hasattr(loaded, "templates_")
    loaded.set_params(max_iter=2, n_init=1).fit(data.images, y)
    assert loaded.weights_[0].shape == (4, 1, 7, 7)


def test_nothing_is_overwritten_unless_told(data, tmp_path):
    path = known(data).save(tmp_path / "shapes.hcn")
    before = path.read_bytes()
    other = known(data).with_class_layer(classes=["x", "y"])
    with pytest.raises(FileExistsError, match="overwrite=True"):
        other.save(path)
    assert path.read_bytes() == before
    other.save(str(path), overwrite=True)
    assert HCN.load(path).classes_.tolist() == ["x", "y"]
    assert [file.name for file in tmp_path.iterdir()] == ["shapes.hcn"]
    with pytest.raises(FileNotFoundError, match="is not a folder; create it"):
        other.save(tmp_path / "nowhere" / "shapes.hcn")


def test_a_file_is_as_readable_as_any_other(data, tmp_path):
    (tmp_path / "other").write_text("")
    path = known(data).save(tmp_path / "shapes.hcn")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_there_is_no_pickle_inside(data, tmp_path):
    path = known(data).save(tmp_path / "shapes.hcn")
    with zipfile.ZipFile(path) as archive:
        names = ["header.json", *(f"{k}-{n}.npy" for n in (0, 1) for k in ("weights", "pool"))]
        assert sorted(archive.namelist()) == sorted(names)
        for name in names[1:]:
            with archive.open(name) as file:
                assert np.lib.format.read_array(file, allow_pickle=False).dtype.kind in "uf"


def test_names_that_no_file_can_hold_are_explained(data, tmp_path):
    model = known(data).with_class_layer(classes=np.array(["a", ("b",)], object))
    message = r"Class names must be numbers or strings to be saved, got \('b',\).*with_class_layer"
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "shapes.hcn")
    assert list(tmp_path.iterdir()) == []


def rewrite(path, name, change):
    """The same archive with one member changed."""
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in members.items():
            if content is not None:
                archive.writestr(each, content)


def header(**values):
    def change(path):
        rewrite(path, "header.json", lambda old: json.dumps({**json.loads(old), **values}))

    return change


def level(k, **values):
    def change(path):
        def edit(old):
            about = json.loads(old)
            about["levels"][k].update(values)
            return json.dumps(about)

        rewrite(path, "header.json", edit)

    return change


DAMAGE = {
    "not a zip": lambda path: path.write_bytes(b"hello"),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "weights are missing": lambda path: rewrite(path, "weights-1.npy", lambda _: None),
    "weights are text": lambda path: rewrite(path, "weights-0.npy", lambda _: b"text"),
    "pools are missing": lambda path: rewrite(path, "pool-0.npy", lambda _: None),
    "header is a list": lambda path: rewrite(path, "header.json", lambda _: b"[]"),
    "unknown format": header(format="hcnet-mystery"),
    "format is a list": header(format=[]),
    "no layers": header(levels=[], channels=4),
    "layers are words": header(levels=["a", "b"]),
    "too few categories": header(categories=[0, 0, 1]),
    "too few names": header(classes=["a"]),
    "too many names": header(classes=["a", "b", "c"]),
    "names in rows": header(classes=[["a"], ["b"]]),
    "a class without templates": header(categories=[0, 0, 2, 2], classes=["a", "b", "c"]),
    "no noise": header(noise=[0, 0.1]),
    "one noise": header(noise=[0.1]),
    "p_on is a word": header(p_on="often"),
    "p_on is two": header(p_on=2),
    "infinite image": header(image_size=[float("inf"), 13]),
    "small image": header(image_size=[5, 5]),
    "no settings": header(settings=None),
    "more features": level(0, features=5),
    "no features": level(0, features=0),
    "features too large": level(0, size=[20, 20]),
    "features without size": level(0, size=[0, 9]),
    "another pool": level(0, pool=[2, 2]),
    "unknown border": level(1, pool_border="round"),
    "p_W is zero": level(0, p_W=0),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_gives_one_sentence(damage, data, tmp_path):
    path = known(data).save(tmp_path / "shapes.hcn")
    DAMAGE[damage](path)
    with pytest.raises(ValueError, match="not a model file of hcnet, or is damaged") as caught:
        HCN.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith("pass a file that save() wrote.")


def test_a_newer_file_asks_for_an_update(data, tmp_path):
    path = known(data).save(tmp_path / "shapes.hcn")
    header(version=99)(path)
    with pytest.raises(ValueError, match=r"newer hcnet .*file version 99.*update hcnet"):
        HCN.load(path)
    with pytest.raises(FileNotFoundError):
        HCN.load(tmp_path / "nothing.hcn")


def test_the_file_of_another_estimator_names_it(data, tmp_path):
    network = known(data).save(tmp_path / "network.hcn")
    made = PartsModel(np.ones((1, 1, 2, 2), bool), Priors(0.1, 0.1, 0.1, 0.1), "full", (6, 6))
    parts = archive.write(tmp_path / "parts.hcn", made.contents(), overwrite=False)
    assert len(FeatureLearner.load(parts).features_) == 1
    message = r"parts\.hcn is a file of FeatureLearner, not of HCN; read it with FeatureLearner\.lo"
    with pytest.raises(ValueError, match=message):
        HCN.load(parts)
    message = r"network\.hcn is a file of HCN, not of FeatureLearner; read it with HCN\.load"
    with pytest.raises(ValueError, match=message):
        FeatureLearner.load(network)
