"""A fit that is broken off or killed anywhere goes on and comes to the same end; full disks."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fits import FITS, learned
from handmade import ENVIRONMENT, change, header, members, put

import hcnet
from hcnet import HCN, FeatureLearner, Layer, TemplateClassifier, checkpoint
from hcnet.archive.files import Reader, write
from hcnet.engine.driver import Status

IMAGE = np.kron(np.eye(4), np.ones((3, 3)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


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
    often = {
        "parts": 15,
        "parts_soft": 3,
        "parts_stream": 5,
        "network": 2,
        "table": 99,
        "table_rank": 251,
    }
    steps = often.get(name, 0)
    found, cuts = with_power_cuts(FITS[name], tmp_path / "fit.ckpt", monkeypatch, steps)
    assert cuts >= 4
    assert learned(found) == whole
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]


def test_a_fit_that_is_over_returns_at_once(path, monkeypatch):
    first = FITS["parts"](checkpoint=path)

    def no_step(self):
        raise AssertionError

    monkeypatch.setattr(hcnet.refine.search.Search, "step", no_step)
    monkeypatch.setattr(hcnet.learning.message_passing.MessagePassing, "step", no_step)
    assert learned(FITS["parts"](checkpoint=path)) == learned(first)
    assert path.stat().st_size < 50_000  # no messages are left in it


def fit(random_state=0, n_init=1, X=IMAGE, callback=None, **options):
    learner = FeatureLearner(3, 3, n_init=n_init, random_state=random_state, callback=callback)
    return learner.fit(X, **options)


def test_an_open_seed_is_kept(path, monkeypatch):
    found, cuts = with_power_cuts(lambda **keep: fit(None, **keep), path, monkeypatch, 5)
    assert cuts > 2
    seed = header(path)["contents"]["seed"]
    assert learned(fit(np.random.default_rng(seed))) == learned(found)


def test_generators_of_other_kinds_go_on(path, monkeypatch):
    def other(**options):
        return fit(np.random.Generator(np.random.MT19937(5)), **options)

    assert learned(with_power_cuts(other, path, monkeypatch, 5)[0]) == learned(other())


def test_a_fit_that_could_not_begin_is_in_nobodys_way(path):
    with pytest.raises(ValueError, match="damping must be larger than 0"):
        FeatureLearner(3, 3, engine=hcnet.Engine(damping=7)).fit(IMAGE, checkpoint=path)
    with pytest.raises(ValueError, match="feature_size 30×30 is larger than the images"):
        FeatureLearner(3, 30).fit(IMAGE, checkpoint=path)
    assert not path.exists()


def test_a_fit_that_fails_leaves_what_it_came_to_or_nothing(path):
    steps = []

    def fail(step):
        steps.append(step)
        if len(steps) % 5 == 0:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fit(callback=fail, checkpoint=path)
    assert not path.exists()
    with pytest.raises(ArithmeticError):
        fit(callback=fail, checkpoint=path, every=0)
    assert header(path)["contents"]["stages"][0]["outcome"]["n_iter"] == 4
    assert learned(fit(checkpoint=path)) == learned(fit())


@pytest.mark.parametrize("templates", [False, True])
def test_a_time_limit_is_no_end(templates, path):
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


SAME = {"n_init": 1, "random_state": 0}
OTHER = [
    (partial(fit, X=1 - IMAGE), "of other data; pass"),
    (
        partial(FeatureLearner(4, 3, engine=hcnet.Engine(damping=0.5), **SAME).fit, IMAGE),
        "of a fit with another engine, another n_features; set back",
    ),
    (partial(fit, 1), "another random_state;"),
    (partial(fit, np.random.default_rng(0)), "random_state"),
    (
        partial(FeatureLearner(3, 3, **SAME).fit_stream, IMAGE),
        r"is a checkpoint of FeatureLearner\.fit, not of FeatureLearner\.fit_stream",
    ),
    (
        partial(HCN([Layer()], random_state=0).fit, IMAGE),
        r"is a checkpoint of FeatureLearner\.fit, not of HCN\.fit",
    ),
]


def test_another_fit_is_refused_and_the_file_stays_but_limits_may_change(path):
    first = fit(checkpoint=path)
    before = path.read_bytes()
    for other, message in OTHER:
        with pytest.raises(ValueError, match=message) as caught:
            other(checkpoint=path)
        assert "move the file away to start anew" in str(caught.value)
        assert path.read_bytes() == before
    limits = {"max_seconds": 60, "max_memory": 2**40}
    assert learned(FeatureLearner(3, 3, **SAME, **limits).fit(IMAGE, checkpoint=path)) == learned(
        first
    )


def test_another_stream_is_refused(path):
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


def test_a_checkpoint_is_no_model_and_of_one_version(path):
    learner = FeatureLearner(3, 3, random_state=0).fit(IMAGE, checkpoint=path)
    with pytest.raises(ValueError, match="is a checkpoint of a fit and not a model; call that fit"):
        hcnet.load(path)
    change(path, put("library", value="0.0.9"))
    with pytest.raises(ValueError, match=r"of hcnet 0\.0\.9, and this is hcnet .* go on with that"):
        learner.fit(IMAGE, checkpoint=path)


def test_damaged_checkpoints_are_refused(path, monkeypatch):
    files = []

    def keep(*arguments, **options):
        files.append(write(*arguments, **options).read_bytes())

    monkeypatch.setattr(checkpoint, "write", keep)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    FITS["parts"](checkpoint=path, every=0)
    rng = np.random.default_rng(0)
    for content in files[1::9]:
        damaged = bytearray(content)
        damaged[int(rng.integers(len(damaged)))] ^= 0xFF
        path.write_bytes(damaged)
        try:
            FITS["parts"](checkpoint=path)
        except ValueError as error:
            assert "not a checkpoint of hcnet, or is damaged" in str(error)  # noqa: PT017


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


def test_ctrl_c_writes_a_checkpoint_and_the_fit_goes_on(path):
    command = [sys.executable, "-c", CTRL_C, str(path), "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        for _ in range(25):
            assert process.stdout.readline() == "step\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1] == Status.INTERRUPTED.value
    assert any(name.startswith("stages-0-") for name in members(path))
    learner = FeatureLearner(3, 3, n_init=300, max_seconds=1e-3, random_state=0)
    on = learner.fit(IMAGE, checkpoint=path)
    assert on.status_ == Status.TIME_LIMIT.value


# --- killed processes and full disks ----------------------------------------------------------


def start(name, folder, every=0.0, room=()):
    """Run a fit in a process of its own; returns when it begins."""
    arguments = [name, folder / "fit.ckpt", every, folder / "result", *room]
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("fits.py"), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


def finish(process):
    """Wait for a process; what it said on the way."""
    _, said = process.communicate(timeout=250)
    assert process.returncode == 0, said
    return said


def kill_again_and_again(name, folder, times, seed):
    """Kill a fit so many times, each at a random moment; how often it came to its end.

    Whenever it does, what it has learned is compared, and it starts anew.
    """
    rng = np.random.default_rng(seed)
    whole, path, result = folder / "whole", folder / "fit.ckpt", folder / "result"
    whole.mkdir()
    process = start(name, whole)
    began = time.perf_counter()
    finish(process)
    seconds = time.perf_counter() - began
    kills = ends = 0
    ended = False
    while kills < times or not ended:
        result.unlink(missing_ok=True)
        with start(name, folder) as process:
            began = time.perf_counter()
            try:
                wait = float(rng.uniform(0, seconds / 2)) if kills < times else 250
                _, said = process.communicate(timeout=wait)
                seconds = min(seconds, time.perf_counter() - began)  # the first had to compile
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate(timeout=60)
        assert process.returncode <= 0, said
        kills += process.returncode < 0
        if path.exists():  # whole, whenever it was
            reader = Reader(path)
            with reader:
                assert reader.kind == "checkpoint"
        ended = process.returncode == 0
        if ended:
            ends += 1
            assert result.read_text() == (whole / "result").read_text()
            assert {file.name for file in folder.iterdir()} == {"fit.ckpt", "result", "whole"}
            path.unlink()
    return ends


@pytest.mark.parametrize("name", ["parts", "parts_soft"])
def test_a_killed_fit_comes_to_the_same_end(name, tmp_path):
    assert kill_again_and_again(name, tmp_path, 3, seed=0) >= 1


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_is_killed_many_times_comes_to_the_same_end(name, tmp_path):
    assert kill_again_and_again(name, tmp_path, 6, seed=1) >= 1  # twelve fits: 72 kills


def test_a_full_disk_is_said_and_does_not_stop_the_fit(tmp_path):
    whole = learned(FITS["network"]())  # also compiles, which would need room
    said = finish(start("network", tmp_path, room=[5000]))
    assert "RuntimeWarning: The checkpoint" in said
    assert "could not be written ([Errno 27] File too large" in said
    assert "learning goes on, but can only be resumed from the last checkpoint" in said
    assert "Traceback" not in said
    assert (tmp_path / "result").read_text() == "\n".join(whole)
    assert {file.name for file in tmp_path.iterdir()} == {"fit.ckpt", "result"}
    # What was written before is still there, and the next fit goes on from it.
    assert learned(FITS["network"](checkpoint=tmp_path / "fit.ckpt")) == whole


def test_a_disk_that_is_full_from_the_beginning_stops_the_fit_at_once(tmp_path):
    process = start("parts", tmp_path, room=[100])
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "OSError: [Errno 27] File too large" in said
    assert list(tmp_path.iterdir()) == []
