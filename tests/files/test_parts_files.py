"""Model files: whole or not at all, open to other tools, and nothing in them that could run."""

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from handmade import change, forge, header, put
from sklearn.exceptions import NotFittedError

import hcnet
from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Layer
from hcnet.model import PartsModel
from hcnet.objective import Priors


def make(n_features=3, seed=0, **options):
    """A learner that knows some parts, without having learned them."""
    rng = np.random.default_rng(seed)
    priors = Priors(0.001, 0.4, 0.01, 0.02)
    learner = FeatureLearner(feature_size=(3, 5), **options)
    features = rng.random((n_features, 2, 3, 5)) < 0.5
    learner._publish(PartsModel(features, priors, "valid", (20, 30)))
    return learner


@pytest.mark.parametrize("n_features", [3, 0])
def test_what_is_saved_is_loaded(tmp_path, n_features):
    learner = make(n_features)
    loaded = hcnet.load(learner.save(tmp_path / "parts.hcn"))
    assert isinstance(loaded, FeatureLearner)
    assert loaded.features_.dtype == bool
    np.testing.assert_array_equal(loaded.features_, learner.features_)
    assert vars(loaded._model).keys() == vars(learner._model).keys()
    assert loaded._model.priors == learner._model.priors
    assert (loaded._model.border, loaded._model.image_size) == ("valid", (20, 30))


def test_parameters_and_how_it_was_learned_are_in_the_file(tmp_path):
    image = np.kron(np.eye(4), np.ones((3, 3)))
    learner = FeatureLearner(
        2, 3, engine=Engine(damping=0.9), max_seconds=np.inf, random_state=3
    ).fit(image)
    loaded = FeatureLearner.load(learner.save(tmp_path / "parts.hcn"))
    expected = learner.get_params() | {"max_seconds": None}
    assert loaded.get_params() == expected
    for name in ("n_iter_", "seconds_", "status_", "log_joint_", "compression_ratio_", "memory_"):
        assert getattr(loaded, name) == getattr(learner, name)
    assert not hasattr(loaded, "placements_")
    about = header(tmp_path / "parts.hcn")
    assert about["library"] == hcnet.__version__
    assert about["contents"]["training"]["status"] == "FINISHED"
    loaded.fit(image)
    np.testing.assert_array_equal(loaded.features_, learner.features_)


def test_a_random_generator_is_not_a_value_that_a_file_keeps(tmp_path):
    learner = make(random_state=np.random.default_rng(0))
    assert hcnet.load(learner.save(tmp_path / "parts.hcn")).random_state is None


def test_parameters_that_no_fit_would_take_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="damping must be larger than 0"):
        make(engine=Engine(damping=7)).save(tmp_path / "parts.hcn")
    with pytest.raises(NotFittedError):
        BooleanMatrixFactorization().save(tmp_path / "parts.hcn")
    assert list(tmp_path.iterdir()) == []


def test_boolean_matrices_have_files_too(tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((30, 2)) < 0.5) @ (rng.random((2, 12)) < 0.4)
    model = BooleanMatrixFactorization(2, n_init=1, random_state=0).fit(X)
    loaded = hcnet.load(model.save(tmp_path / "table.hcn"))
    assert isinstance(loaded, BooleanMatrixFactorization)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.score(X) == model.score(X)
    assert (loaded.status_, loaded.seconds_) == (model.status_, model.seconds_)
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_subclasses_load_as_what_they_are(tmp_path):
    class Mine(FeatureLearner):
        """With a method of its own."""

    path = make().save(tmp_path / "parts.hcn")
    assert type(Mine.load(path)) is Mine
    assert type(Mine.load(Mine.load(path).save(tmp_path / "mine.hcn"))) is Mine


def test_a_file_is_not_overwritten_unless_told(tmp_path):
    path = make().save(tmp_path / "parts.hcn")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        make(seed=1).save(path)
    assert path.read_bytes() == before
    make(seed=1).save(path, overwrite=True)
    np.testing.assert_array_equal(hcnet.load(path).features_, make(seed=1).features_)
    with pytest.raises(FileNotFoundError, match="is not a folder; create it"):
        make().save(tmp_path / "nowhere" / "parts.hcn")


def test_the_same_model_makes_the_same_file(tmp_path):
    one, other = (make().save(tmp_path / name) for name in ("one.hcn", "other.hcn"))
    assert one.read_bytes() == other.read_bytes()


def test_other_tools_can_read_and_check_a_file(tmp_path):
    learner = make(n_features=40)
    path = learner.save(tmp_path / "parts.hcn")
    with np.load(path, allow_pickle=False) as arrays:
        packed = arrays["model-features"]
    assert packed.dtype == np.uint8
    bits = np.unpackbits(packed, count=learner.features_.size)
    np.testing.assert_array_equal(bits.reshape(learner.features_.shape), learner.features_)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "parts")
    # In the form that sha256sum reads: a digest, two spaces, a name.
    sums = (tmp_path / "parts" / "SHA256SUMS").read_text("utf-8").splitlines()
    named = dict(reversed(line.split("  ", 1)) for line in sums)
    others = {path.name for path in (tmp_path / "parts").iterdir()} - {"SHA256SUMS"}
    assert named.keys() == others
    for name, digest in named.items():
        assert hashlib.sha256((tmp_path / "parts" / name).read_bytes()).hexdigest() == digest
    if shutil.which("sha256sum"):
        command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        subprocess.run(command, cwd=tmp_path / "parts", check=True, capture_output=True)


def test_every_flipped_bit_of_the_contents_is_noticed(tmp_path):
    path = make().save(tmp_path / "parts.hcn")
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
                np.testing.assert_array_equal(loaded.features_, make().features_)


def test_a_newer_file_asks_for_an_update_and_an_older_one_for_learning_again(tmp_path):
    path = change(make().save(tmp_path / "parts.hcn"), put("version", value=99))
    with pytest.raises(ValueError, match=r"newer hcnet \(file version 99.*update hcnet\.$"):
        hcnet.load(path)
    forge(path, {"header.json": b'{"format": "hcnet-parts", "version": 1}'}, repair=False)
    with pytest.raises(ValueError, match=r"before hcnet 0\.1\.0.*learn the model again"):
        hcnet.load(path)


def test_the_file_of_another_estimator_names_it(tmp_path):
    parts = make().save(tmp_path / "parts.hcn")
    network = HCN([Layer(pool=1)]).set_weights([np.ones((1, 1, 4, 4))], 4)
    network = network.save(tmp_path / "network.hcn")
    with pytest.raises(ValueError, match=r"parts\.hcn is a file of 'FeatureLearner', not of HCN;"):
        HCN.load(parts)
    message = r"network\.hcn is a file of 'HCN', not of FeatureLearner; read it with hcnet\.load"
    with pytest.raises(ValueError, match=message):
        FeatureLearner.load(network)
    assert isinstance(hcnet.load(network), HCN)


def test_what_is_no_file_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        hcnet.load(tmp_path / "nothing.hcn")
    with pytest.raises(ValueError, match="is not a file; pass a file that"):
        hcnet.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        hcnet.load(tmp_path / "pipe")


FULL = """
import resource, sys
import numpy as np
from hcnet.archive.nodes import Contents
from hcnet.archive.files import write

resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    write(sys.argv[1], "test", Contents({}, {"large": np.zeros(100_000)}), overwrite=True)
except OSError as error:
    print(type(error).__name__)
"""


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = make().save(tmp_path / "parts.hcn")
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(hcnet.__path__[0]).removesuffix("/hcnet")},
    )
    assert done.stdout.strip() == "OSError", done.stderr
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["parts.hcn"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20_000  # only over there


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    sync, rename = os.fsync, type(tmp_path).replace

    def remember(descriptor):
        done.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def renamed(self, target):
        done.append("renamed")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", remember)
    monkeypatch.setattr(type(tmp_path), "replace", renamed)
    make().save(tmp_path / "parts.hcn")
    assert done[0].endswith(".part")
    assert done[1:] == ["renamed", os.path.realpath(tmp_path)]
