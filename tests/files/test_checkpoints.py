"""A fit that is broken off anywhere goes on and comes to the same end."""

import os
import re
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from fits import FITS, learned
from handmade import change, header, members, put

import hcnet
from hcnet import HCN, FeatureLearner, Layer, TemplateClassifier, checkpoint
from hcnet.archive.files import write
from hcnet.engine.driver import Status

IMAGE = np.kron(np.eye(4), np.ones((3, 3)))


class PowerCutError(BaseException):
    """Nothing but a file is left."""


def with_power_cuts(fit, path, monkeypatch, steps):
    """Break a fit off right after every so many checkpoints, until it comes to its end."""
    written = [0]

    def cut(path, kind, contents, **options):
        write(path, kind, contents, **options)
        written[0] += bool(contents.header["stages"])  # not where it only begins
        if written[0] == steps + 1:
            written[0] = 0
            raise PowerCutError

    monkeypatch.setattr(checkpoint, "write", cut)
    for cuts in range(300):
        try:
            return fit(checkpoint=path, every=0), cuts
        except PowerCutError:
            continue
    raise AssertionError("it never comes to its end")


LONG = {"table_rank"}
EACH = [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in FITS]


@pytest.mark.parametrize("name", EACH)
def test_a_fit_that_is_broken_off_again_and_again_comes_to_the_same_end(
    name, tmp_path, monkeypatch
):
    """Long fits not after every step: each goes through all that went before."""
    whole = learned(FITS[name]())
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing is really lost here
    steps = {"parts": 7, "parts_stream": 5, "table": 99, "table_rank": 251}.get(name, 0)
    found, cuts = with_power_cuts(FITS[name], tmp_path / "fit.ckpt", monkeypatch, steps)
    assert cuts >= 4
    assert learned(found) == whole
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]


def test_a_fit_that_is_over_returns_at_once(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    first = FITS["parts"](checkpoint=path)

    def no_step(self):
        raise AssertionError

    monkeypatch.setattr(hcnet.refine.search.Search, "step", no_step)
    monkeypatch.setattr(hcnet.learning.message_passing.MessagePassing, "step", no_step)
    assert learned(FITS["parts"](checkpoint=path)) == learned(first)
    assert path.stat().st_size < 50_000  # no messages are left in it


def test_an_open_seed_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"

    def fit(seed=None, **options):
        return FeatureLearner(3, 3, n_init=1, random_state=seed).fit(IMAGE, **options)

    found, cuts = with_power_cuts(fit, path, monkeypatch, 5)
    assert cuts > 2
    seed = header(path)["contents"]["seed"]
    assert learned(fit(np.random.default_rng(seed))) == learned(found)


def test_a_fit_that_could_not_begin_is_in_nobodys_way(tmp_path):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(ValueError, match="damping must be larger than 0"):
        FeatureLearner(3, 3, engine=hcnet.Engine(damping=7)).fit(IMAGE, checkpoint=path)
    with pytest.raises(ValueError, match="feature_size 30×30 is larger than the images"):
        FeatureLearner(3, 30).fit(IMAGE, checkpoint=path)
    assert not path.exists()
    found = FeatureLearner(3, 3, random_state=0).fit(IMAGE, checkpoint=path)
    assert learned(found) == learned(FeatureLearner(3, 3, random_state=0).fit(IMAGE))


def test_a_fit_that_fails_leaves_what_it_came_to_or_nothing(tmp_path):
    path = tmp_path / "fit.ckpt"
    steps = []

    def fail(step):
        steps.append(step)
        if len(steps) == 5:
            raise ArithmeticError

    def fit(callback=None, **options):
        learner = FeatureLearner(3, 3, n_init=1, random_state=0, callback=callback)
        return learner.fit(IMAGE, **options)

    with pytest.raises(ArithmeticError):
        fit(fail, checkpoint=path)
    assert list(tmp_path.iterdir()) == []
    steps.clear()
    with pytest.raises(ArithmeticError):
        fit(fail, checkpoint=path, every=0)
    assert header(path)["contents"]["stages"][0]["outcome"]["n_iter"] == 4
    assert learned(fit(checkpoint=path)) == learned(fit())


def test_generators_of_other_kinds_go_on(tmp_path, monkeypatch):
    def fit(**options):
        rng = np.random.Generator(np.random.MT19937(5))
        return FeatureLearner(3, 3, n_init=1, random_state=rng).fit(IMAGE, **options)

    whole = learned(fit())
    assert learned(with_power_cuts(fit, tmp_path / "fit.ckpt", monkeypatch, 5)[0]) == whole


@pytest.mark.parametrize("templates", [False, True])
def test_a_time_limit_is_no_end(templates, tmp_path):
    path = tmp_path / "fit.ckpt"
    images = np.stack([np.roll(IMAGE, k, 1) for k in range(12)])

    def fit(seconds, **options):
        model = TemplateClassifier(4, 4, 3) if templates else FeatureLearner(3, 3, n_init=1)
        model.set_params(max_seconds=seconds, random_state=0)
        return model.fit(images if templates else IMAGE, **options)

    whole = learned(fit(None))
    runs = 1
    # So short that every run ends after a step, however fast the machine is.
    while (found := fit(1e-6, checkpoint=path)).status_ == Status.TIME_LIMIT.value:
        runs += 1
        assert runs < 1000
    assert runs > 1
    assert learned(found) == whole


def test_it_is_written_only_as_often_as_told(tmp_path, monkeypatch):
    times = []
    monkeypatch.setattr(checkpoint, "write", lambda *a, **k: times.append(1) or write(*a, **k))
    FITS["parts"](checkpoint=tmp_path / "fit.ckpt", every=1000)
    assert len(times) == 2  # at the beginning and at the end


OTHER = {
    "images": (lambda: FeatureLearner(3, 3, random_state=0).fit, 1 - IMAGE, "of other data; pass"),
    "a parameter": (
        lambda: FeatureLearner(4, 3, engine=hcnet.Engine(damping=0.5), random_state=0).fit,
        IMAGE,
        "of a fit with another engine, another n_features; set back",
    ),
    "a seed": (lambda: FeatureLearner(3, 3, random_state=1).fit, IMAGE, "another random_state;"),
    "a generator": (
        lambda: FeatureLearner(3, 3, random_state=np.random.default_rng(0)).fit,
        IMAGE,
        "random_state",
    ),
    "a method": (
        lambda: FeatureLearner(3, 3, random_state=0).fit_stream,
        IMAGE,
        r"is a checkpoint of FeatureLearner\.fit, not of FeatureLearner\.fit_stream",
    ),
    "an estimator": (
        lambda: HCN([Layer()], random_state=0).fit,
        IMAGE,
        r"is a checkpoint of FeatureLearner\.fit, not of HCN\.fit",
    ),
}


@pytest.mark.parametrize("other", OTHER)
def test_another_fit_is_refused_and_the_file_stays(other, tmp_path):
    path = tmp_path / "fit.ckpt"
    FeatureLearner(3, 3, random_state=0).fit(IMAGE, checkpoint=path)
    before = path.read_bytes()
    fit, X, message = OTHER[other]
    with pytest.raises(ValueError, match=message) as caught:
        fit()(X, checkpoint=path)
    assert "delete the file to start anew" in str(caught.value)
    assert path.read_bytes() == before


def test_limits_and_the_bar_may_change(tmp_path):
    path = tmp_path / "fit.ckpt"
    first = FeatureLearner(3, 3, random_state=0).fit(IMAGE, checkpoint=path)
    again = FeatureLearner(3, 3, max_seconds=60, max_memory=2**40, random_state=0)
    assert learned(again.fit(IMAGE, checkpoint=path)) == learned(first)


def test_another_stream_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    images = np.stack([np.roll(IMAGE, k, 0) for k in range(8)])

    def fit(X):
        learner = FeatureLearner(3, 3, algorithm="mpmp", random_state=0)
        return learner.fit_stream(X, batch_size=2, checkpoint=path, every=0)

    fit(images)
    for other in (images[::-1], images[:4], np.concatenate([images[:2], 1 - images[2:]])):
        with pytest.raises(ValueError, match="fit of another stream; pass the same images"):
            fit(other)
    assert fit(images).n_images_seen_ == 8


def test_other_files_are_refused_and_stay(tmp_path):
    learner = FeatureLearner(3, 3, random_state=0).fit(IMAGE)
    path = learner.save(tmp_path / "model.hcn")
    text = tmp_path / "notes.txt"
    text.write_text("mine")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is a model of FeatureLearner and no checkpoint; choose"):
        learner.fit(IMAGE, checkpoint=path)
    with pytest.raises(ValueError, match=r"notes\.txt is not a checkpoint of hcnet.*another name"):
        learner.fit(IMAGE, checkpoint=text)
    assert (path.read_bytes(), text.read_text()) == (before, "mine")
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        learner.fit(IMAGE, checkpoint=tmp_path / "nowhere" / "fit.ckpt")
    with pytest.raises(ValueError, match="is not a file"):
        learner.fit(IMAGE, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="every must be a number from 0"):
        learner.fit(IMAGE, checkpoint=path, every=-1)
    with pytest.raises(TypeError, match="checkpoint must be the path"):
        learner.fit(IMAGE, checkpoint=3)


def test_a_checkpoint_is_no_model_and_of_one_version(tmp_path):
    path = tmp_path / "fit.ckpt"
    learner = FeatureLearner(3, 3, random_state=0).fit(IMAGE, checkpoint=path)
    with pytest.raises(ValueError, match="is a checkpoint of a fit and not a model; call that fit"):
        hcnet.load(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    change(path, put("library", value="0.0.9"))
    with pytest.raises(ValueError, match=r"of hcnet 0\.0\.9, and this is hcnet .* go on with that"):
        learner.fit(IMAGE, checkpoint=path)


def test_damaged_checkpoints_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    written = []

    def cut(*arguments, **options):
        write(*arguments, **options)
        written.append(path.read_bytes())

    monkeypatch.setattr(checkpoint, "write", cut)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    FITS["parts"](checkpoint=path, every=0)
    rng = np.random.default_rng(0)
    for content in written[1::9]:
        damaged = bytearray(content)
        damaged[int(rng.integers(len(damaged)))] ^= 0xFF
        path.write_bytes(damaged)
        try:
            FITS["parts"](checkpoint=path)
        except ValueError as error:
            assert re.search("not a checkpoint of hcnet, or is damaged", str(error))  # noqa: PT017


def source():
    return {**os.environ, "PYTHONPATH": str(hcnet.__path__[0]).removesuffix("/hcnet")}


CTRL_C = """
import signal, sys
import numpy as np
from hcnet import FeatureLearner

signal.signal(signal.SIGINT, signal.default_int_handler)

def ready(step):
    print("step", flush=True)

image = np.kron(np.eye(4), np.ones((3, 3)))
learner = FeatureLearner(3, 3, n_init=int(sys.argv[2]), random_state=0, callback=ready)
learner.fit(image, checkpoint=sys.argv[1], every=1e6)
print(learner.status_)
"""


def test_ctrl_c_writes_a_checkpoint_and_the_fit_goes_on(tmp_path):
    path = tmp_path / "fit.ckpt"
    command = [sys.executable, "-c", CTRL_C, str(path), "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=source()) as process:
        for _ in range(25):
            assert process.stdout.readline() == "step\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1] == Status.INTERRUPTED.value
    assert any(name.startswith("stages-0-") for name in members(path))
    image = np.kron(np.eye(4), np.ones((3, 3)))
    learner = FeatureLearner(3, 3, n_init=300, max_seconds=1e-3, random_state=0)
    on = learner.fit(image, checkpoint=path)
    assert on.status_ == Status.TIME_LIMIT.value
