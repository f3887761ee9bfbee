"""The model file: whole or not at all, and nothing in it that could run."""

import json
import zipfile

import numpy as np
import pytest

from hcnet.archive import Reader, write
from hcnet.model import FORMAT, VERSION, PartsModel
from hcnet.objective import Priors


def save(model, path, overwrite=False):
    return write(path, model.contents(), overwrite)


def load(path):
    with Reader(path, FORMAT, VERSION) as file:
        return PartsModel.read(file)


def make(n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    return PartsModel(
        features=rng.random((n_features, 2, 3, 5)) < 0.5,
        priors=Priors(0.001, 0.4, 0.01, 0.02),
        border="valid",
        image_size=(20, 30),
    )


def rewrite(path, **members):
    """The same archive with other members."""
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    kept.update({name.replace("_", "."): value for name, value in members.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in kept.items():
            if value is not None:
                archive.writestr(name, value)


def header(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


@pytest.mark.parametrize("n_features", [3, 0])
def test_what_is_saved_is_loaded(tmp_path, n_features):
    model = make(n_features)
    path = save(model, tmp_path / "parts.hcn")
    loaded = load(path)
    np.testing.assert_array_equal(loaded.features, model.features)
    assert loaded.features.dtype == bool
    assert loaded.features.shape == model.features.shape
    assert (loaded.priors, loaded.border, loaded.image_size) == (
        model.priors,
        model.border,
        model.image_size,
    )


def test_a_file_is_not_overwritten_unless_told(tmp_path):
    path = save(make(), tmp_path / "parts.hcn")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(make(seed=1), path)
    assert path.read_bytes() == before
    save(make(seed=1), path, overwrite=True)
    np.testing.assert_array_equal(load(path).features, make(seed=1).features)


def test_there_is_no_pickle_inside(tmp_path):
    path = save(make(), tmp_path / "parts.hcn")
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["features.npy", "header.json"]
        with archive.open("features.npy") as file:
            assert np.lib.format.read_array(file, allow_pickle=False).dtype == np.uint8
    # An array of objects would need pickle to be read: it is refused.
    with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": "hcnet-parts", "version": 1}))
        with archive.open("features.npy", "w") as member:
            np.lib.format.write_array(member, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a model file"):
        load(path)


DAMAGE = {
    "not a zip": lambda path: path.write_bytes(b"hello"),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "no header": lambda path: rewrite(path, header_json=None),
    "no features": lambda path: rewrite(path, features_npy=None),
    "header is no JSON": lambda path: rewrite(path, header_json=b"{"),
    "header is no text": lambda path: rewrite(path, header_json=b"\xff\xfe\xfd"),
    "header is a list": lambda path: rewrite(path, header_json=b"[]"),
    "foreign format": lambda path: change(path, format="something else"),
    "version is a word": lambda path: change(path, version="one"),
    "too few features": lambda path: change(path, feature_shape=[9, 2, 3, 5]),
    "too many features": lambda path: change(path, feature_shape=[1, 2, 3, 5]),
    "shape of three": lambda path: change(path, feature_shape=[3, 2, 3]),
    "image of one number": lambda path: change(path, image_size=[3]),
    "unknown border": lambda path: change(path, border="round"),
    "priors missing": lambda path: change(path, priors={"p_S": 0.1}),
    "priors are words": lambda path: change(path, priors=dict.fromkeys(("p_S", "p_W"), "x")),
    "features are text": lambda path: rewrite(path, features_npy=b"text"),
}


def change(path, **values):
    rewrite(path, header_json=json.dumps({**header(path), **values}).encode())


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_gives_one_sentence(tmp_path, damage):
    path = save(make(), tmp_path / "parts.hcn")
    DAMAGE[damage](path)
    with pytest.raises(ValueError, match="not a model file of hcnet, or is damaged") as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith("pass a file that save() wrote.")
    assert "\n" not in message


def test_a_flipped_byte_is_noticed(tmp_path):
    path = save(make(n_features=200), tmp_path / "parts.hcn")
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("features.npy").header_offset + 200
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        load(path)


def test_a_newer_file_asks_for_an_update(tmp_path):
    path = save(make(), tmp_path / "parts.hcn")
    change(path, version=99)
    with pytest.raises(ValueError, match=r"newer hcnet .*update hcnet"):
        load(path)


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.hcn")


def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch):
    path = save(make(), tmp_path / "parts.hcn")
    before = path.read_bytes()

    def full_disk(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(np.lib.format, "write_array", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save(make(seed=1), path, overwrite=True)
    with pytest.raises(OSError, match="no space left"):
        save(make(seed=1), tmp_path / "other.hcn")
    assert [file.name for file in tmp_path.iterdir()] == ["parts.hcn"]
    assert path.read_bytes() == before
