"""Model files: whole or not at all, open to other tools; loaded models answer as saved ones."""

import errno
import hashlib
import os
import shutil
import subprocess
import zipfile

import numpy as np
import pytest
from handmade import change, forge, header, known_network, known_parts, put
from sklearn.exceptions import NotFittedError

import hcnet
from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Inference, Layer
from hcnet.datasets import shapes


@pytest.fixture(scope="module")
def data():
    return shapes(feature_size=9, n_images=8, random_state=0)


@pytest.fixture
def path(tmp_path):
    return known_parts().save(tmp_path / "parts.hcn")


@pytest.mark.parametrize("n_features", [3, 0])
def test_what_is_saved_is_loaded(tmp_path, n_features):
    learner = known_parts((n_features, 2, 3, 5), random_state=np.random.default_rng(0))
    loaded = hcnet.load(learner.save(tmp_path / "parts.hcn"))
    assert isinstance(loaded, FeatureLearner)
    assert loaded.features_.dtype == bool
    np.testing.assert_array_equal(loaded.features_, learner.features_)
    assert loaded._model.priors == learner._model.priors
    assert (loaded._model.border, loaded._model.image_size) == ("valid", (200, 300))
    assert loaded.random_state is None  # a generator is no value that a file keeps


def test_parameters_and_how_it_was_learned_are_in_the_file(tmp_path):
    image = np.kron(np.eye(4), np.ones((3, 3)))
    engine = Engine(damping=0.9)
    learner = FeatureLearner(2, 3, engine=engine, max_seconds=np.inf, random_state=3).fit(image)
    loaded = FeatureLearner.load(learner.save(tmp_path / "parts.hcn"))
    assert loaded.get_params() == learner.get_params() | {"max_seconds": None}
    for name in ("n_iter_", "seconds_", "status_", "log_joint_", "compression_ratio_", "memory_"):
        assert getattr(loaded, name) == getattr(learner, name)
    assert not hasattr(loaded, "placements_")
    about = header(tmp_path / "parts.hcn")
    assert about["library"] == hcnet.__version__
    assert about["contents"]["training"]["status"] == "FINISHED"
    loaded.fit(image)
    np.testing.assert_array_equal(loaded.features_, learner.features_)


def test_parameters_that_no_fit_would_take_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="damping must be larger than 0"):
        known_parts(engine=Engine(damping=7)).save(tmp_path / "parts.hcn")
    with pytest.raises(NotFittedError):
        BooleanMatrixFactorization().save(tmp_path / "parts.hcn")
    assert list(tmp_path.iterdir()) == []


def test_subclasses_load_as_what_they_are(path, tmp_path):
    class Mine(FeatureLearner):
        """With a method of its own."""

    assert type(Mine.load(path)) is Mine
    assert type(Mine.load(Mine.load(path).save(tmp_path / "mine.hcn"))) is Mine


def test_a_file_is_overwritten_only_on_request_and_the_same_model_makes_the_same(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        known_parts(seed=1).save(path)
    assert path.read_bytes() == before
    known_parts(seed=1).save(path, overwrite=True)
    np.testing.assert_array_equal(hcnet.load(path).features_, known_parts(seed=1).features_)
    assert known_parts().save(path, overwrite=True).read_bytes() == before
    with pytest.raises(FileNotFoundError, match="is not a folder; create it"):
        known_parts().save(tmp_path / "nowhere" / "parts.hcn")
    (tmp_path / "other").write_text("")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode  # readable as any other


def test_other_tools_can_read_and_check_a_file(path, tmp_path):
    features = known_parts().features_
    with np.load(path, allow_pickle=False) as arrays:
        packed = arrays["model-features"]
    bits = np.unpackbits(packed, count=features.size)
    np.testing.assert_array_equal(bits.reshape(features.shape), features)
    folder = tmp_path / "parts"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    # In the form that sha256sum reads: a digest, two spaces, a name.
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    sums = dict(line.split("  ", 1)[::-1] for line in lines)
    others = [file for file in folder.iterdir() if file.name != "SHA256SUMS"]
    assert sums == {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in others}
    if shutil.which("sha256sum"):
        command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def test_every_flipped_bit_of_the_contents_is_noticed(path):
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        # From the first byte of the first member to the last of the last but one.
        start, end = (archive.infolist()[k].header_offset for k in (0, -1))
    for at in range(start + 30 + len("header.json"), end, 7):
        for bit in (0, 7):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                loaded = hcnet.load(path)
            except ValueError as error:
                assert "damaged" in str(error)  # noqa: PT017
            else:  # a time stamp, or the like
                np.testing.assert_array_equal(loaded.features_, known_parts().features_)


def test_a_newer_file_asks_for_an_update_and_an_older_one_for_learning_again(path):
    change(path, put("version", value=99))
    with pytest.raises(ValueError, match=r"newer hcnet \(file version 99.*update hcnet\.$"):
        hcnet.load(path)
    forge(path, {"header.json": b'{"format": "hcnet-parts", "version": 1}'}, repair=False)
    with pytest.raises(ValueError, match=r"before hcnet 0\.1\.0.*learn the model again"):
        hcnet.load(path)


def test_what_is_no_file_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        hcnet.load(tmp_path / "nothing.hcn")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="is not a file; pass a file that"):
            hcnet.load(path)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(path, tmp_path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        known_parts(seed=1).save(path, overwrite=True)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["parts.hcn"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    sync, link = os.fsync, type(tmp_path).hardlink_to

    def remember(descriptor):
        done.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def named(self, target):
        done.append("named")
        return link(self, target)

    monkeypatch.setattr(os, "fsync", remember)
    monkeypatch.setattr(type(tmp_path), "hardlink_to", named)
    known_parts().save(tmp_path / "parts.hcn")
    assert done[0].endswith(".part")
    assert done[1:] == ["named", os.path.realpath(tmp_path)]


# --- networks ---------------------------------------------------------------------------------


def answers(model, X):
    """All that can be asked of a model."""
    mask = np.zeros(X.shape, bool)
    mask[..., :5] = True
    label = model.classes_.tolist()[0]
    several = model._model.network.classes.p_on is not None
    methods = ("predict", "placements", "denoise", "score", "predict_proba", "cluster")
    return [
        *(getattr(model, method)(X) for method in methods[: 4 if several else None]),
        model.inpaint(X, mask, np.full(len(X), label)),
        *model.sample(3, label, random_state=0),
        *model.weights_,
        model.classes_,
        model.template_classes_,
    ]


NAMES = np.array(["a", 1], object)
SAVED = {
    "as it is": lambda known: known(),
    "forward": lambda known: known(inference="forward"),
    "passing": lambda known: known(inference=Inference("passing", n_passes=2), p01=0.01),
    "regrouped": lambda known: known().with_class_layer([0, 1, 1, 0], [True, False]),
    "several": lambda known: known().with_class_layer(p_on=0.01),
    "names of two types": lambda known: known().with_class_layer(classes=NAMES),
    "perturbed": lambda known: known(
        layers=[Layer(4, size=9, perturbation=0.3), Layer(perturbation=0.3)], random_state=0
    ),
}


@pytest.mark.parametrize("kind", SAVED)
def test_what_is_saved_answers_the_same(kind, data, tmp_path):
    model = SAVED[kind](lambda **options: known_network(data, **options))
    loaded = HCN.load(model.save(tmp_path / "shapes.hcn"))
    X = data.images
    for one, other in zip(answers(model, X), answers(loaded, X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.get_params() == model.get_params()
    again = HCN.load(loaded.save(tmp_path / "again.hcn"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_templates_and_boolean_matrices_have_files_too(data, tmp_path):
    X = data.images
    table = (np.arange(24) % 3 < 2).reshape(6, 4) & (np.arange(4) > 0)
    templates = hcnet.TemplateClassifier(4, 3, random_state=0).fit(X, data.labels)
    factors = BooleanMatrixFactorization(2, n_init=1, random_state=0).fit(table)
    for model, method, given in ((templates, "predict", X), (factors, "transform", table)):
        path = model.save(tmp_path / f"{method}.hcn")
        name = type(model).__name__
        with pytest.raises(ValueError, match=rf"a file of '{name}', not of HCN; .*hcnet\.load"):
            HCN.load(path)
        loaded = hcnet.load(path)
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        np.testing.assert_array_equal(*(getattr(one, method)(given) for one in (loaded, model)))
        assert (loaded.status_, loaded.seconds_) == (model.status_, model.seconds_)


def test_names_that_no_file_can_hold_are_explained(data, tmp_path):
    model = known_network(data).with_class_layer(classes=np.array(["a", ("b",)], object))
    message = r"Class names must be numbers or strings to be saved, got \('b',\).*with_class_layer"
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "shapes.hcn")
    assert list(tmp_path.iterdir()) == []
