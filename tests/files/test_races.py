"""Several processes and one name: one of them gets it, and none harms what another has written."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from fits import FITS, learned

from hcnet import FeatureLearner, atomic_files
from hcnet.atomic_files import write_atomically

IMAGE = np.kron(np.eye(4), np.ones((3, 3)))

# Each process writes its own number, many times; what it prints are the files that it got.
RACE = """
import sys
from pathlib import Path
from hcnet.atomic_files import write_atomically
number, folder = sys.argv[1], Path(sys.argv[2])
sys.stdin.readline()
for k in range(200):
    try:
        write_atomically(folder / str(k), lambda file: file.write(number.encode() * 9), False)
        print(k)
    except FileExistsError as error:
        assert "exists already; choose another name" in str(error), error
"""


@pytest.mark.skipif(os.name == "nt", reason="processes are not released together")
def test_of_several_processes_that_save_under_one_name_one_succeeds(tmp_path):
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(k), str(tmp_path)], stdin=pipe, stdout=pipe, text=True
        )
        for k in range(4)
    ]
    time.sleep(0.5)  # until all are there
    for one in racers:
        one.stdin.write("\n")
        one.stdin.flush()
    won = {k: one.communicate(timeout=120)[0].split() for k, one in enumerate(racers)}
    assert [one.returncode for one in racers] == [0] * 4
    assert sorted(name for names in won.values() for name in names) == sorted(
        map(str, range(200))
    )  # each once
    for k, names in won.items():
        assert all((tmp_path / name).read_text() == str(k) * 9 for name in names)
    assert {path.name for path in tmp_path.iterdir()} == {*map(str, range(200))}


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "model.hcn"

    def late(file):
        file.write(b"mine")
        path.write_text("theirs")

    with pytest.raises(FileExistsError, match="exists already"):
        write_atomically(path, late, overwrite=False)
    assert path.read_text() == "theirs"
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_system_without_links_has_the_same_rule(tmp_path, monkeypatch):
    def no_links(*arguments, **options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "model.hcn"
    write_atomically(path, lambda file: file.write(b"one"), overwrite=False)
    with pytest.raises(FileExistsError):
        write_atomically(path, lambda file: file.write(b"two"), overwrite=False)
    assert path.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [path]


# --- two fits with one checkpoint -------------------------------------------------------------

IN_USE = "is the checkpoint of another fit that is running; wait for its end, or choose another"

FIT = """
import sys, time
import numpy as np
from hcnet import FeatureLearner, atomic_files

def wait(step):
    print("step", flush=True)
    sys.stdin.readline()

image = np.kron(np.eye(4), np.ones((3, 3)))
learner = FeatureLearner(3, 3, n_init=1, random_state=0, callback=wait)
learner.fit(image, checkpoint=sys.argv[1], every=float(sys.argv[2]))
"""


SLEEP = "time.sleep(0.05)"


def start(path, every=0.0):
    """A fit in another process that has come to its first step, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, str(path), str(every)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "step\n"
    return process


def fit(path=None, callback=None):
    learner = FeatureLearner(3, 3, n_init=1, random_state=0, callback=callback)
    return learner.fit(IMAGE, checkpoint=path, every=0)


@pytest.mark.parametrize("every", [0.0, 1e6])  # with a step in the file, or none
def test_a_second_fit_is_refused_while_the_first_lives(tmp_path, every):
    path = tmp_path / "fit.ckpt"
    with start(path, every) as process:
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "step\n"  # it has replaced its file meanwhile
        before = path.read_bytes()
        with pytest.raises(ValueError, match=IN_USE):
            fit(path)
        assert path.read_bytes() == before
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert learned(fit(path)) == learned(fit())  # a killed process leaves no lock behind
    assert [*tmp_path.iterdir()] == [path]


def test_a_second_fit_in_another_thread_or_within_the_first_is_refused(tmp_path):
    path, told = tmp_path / "fit.ckpt", []

    def again(step):
        try:
            fit(path)
        except ValueError as error:
            told.append(str(error))

    def elsewhere(step):
        thread = threading.Thread(target=again, args=(step,))
        thread.start()
        thread.join()

    for callback in (again, elsewhere):
        told.clear()
        fit(path, callback)
        assert told
        assert all(IN_USE in text for text in told)
        path.unlink()
    fit(path)
    assert learned(fit(path)) == learned(fit())  # one after the other


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_outlives_its_parent_holds_nothing(tmp_path):
    path = tmp_path / "fit.ckpt"
    code = FIT.replace("sys.stdin.readline()", "pass").replace(
        'print("step", flush=True)',
        "import os\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n    os._exit(0)",
    )
    subprocess.run([sys.executable, "-c", code, str(path), "0"], check=True, timeout=120)
    assert learned(fit(path)) == learned(fit())


def test_fits_that_begin_at_the_same_time_do_not_share_a_checkpoint(tmp_path):
    path = tmp_path / "fit.ckpt"
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                FIT.replace("sys.stdin.readline()", "time.sleep(0.5)"),
                path,
                "0",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=240)[1] for process in processes]
    codes = [process.returncode for process in processes]
    assert codes.count(0) >= 1
    assert all((IN_USE in text) == (code != 0) for text, code in zip(said, codes, strict=True))
    assert learned(fit(path)) == learned(fit())


# --- memory is not damage ---------------------------------------------------------------------

LITTLE_MEMORY = """
import resource, sys, warnings
import numpy as np
import hcnet
from hcnet import FeatureLearner, atomic_files
from hcnet.archive import kinds
from hcnet.archive.files import Reader, write
from hcnet.archive.kinds import Contents

checkpoint, model = sys.argv[1:]
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((1, 150, 150)) < 0.2
options = {"algorithm": "mpmp", "engine": "dense", "max_seconds": 1e-6, "random_state": 0}
learner = FeatureLearner(6, 8, **options)

def fit(**more):
    return learner.fit(X, checkpoint=checkpoint, **more)

def fail(step):
    raise ArithmeticError

fit().save(model)
try:
    learner.set_params(callback=fail, max_seconds=None)
    fit(every=0)
except ArithmeticError:
    learner.set_params(callback=None, max_seconds=1e-6)
before = open(checkpoint, "rb").read()
print(len(before) // 2**20, flush=True)
fit()  # loads what is compiled, which also takes memory
open(checkpoint, "wb").write(before)
array = kinds.array(float, (None,))
write(checkpoint + "2", "checkpoint", Contents.of({"numbers": array.write(np.zeros(2**22))}))

def read():
    with Reader(checkpoint + "2") as file:
        array.read(file["numbers"])

for use in (fit, read, lambda: hcnet.load(model)):
    for room in (0, 1, 4, 16, 40, 70, 72, 76, 80, 100, 4000):
        there = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (there + room * 2**20, resource.RLIM_INFINITY))
        try:
            use()
            told = "fine"
        except MemoryError as error:
            told = f"{type(error).__name__}: {error}"
        except ValueError as error:
            told = str(error)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(room, told, flush=True)
        if use is not fit:
            continue
        assert open(checkpoint, "rb").read() == before or told == "fine"
        open(checkpoint, "wb").write(before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_too_little_memory_is_never_called_damage(tmp_path):
    paths = [str(tmp_path / name) for name in ("fit.ckpt", "model.hcn")]
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, *paths],
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    size, *said = done.stdout.splitlines()
    assert int(size) > 50  # MiB, so that it is the messages that find no room
    assert "damage" not in done.stdout
    assert "delete" not in done.stdout
    assert sum("not enough memory to read" in line for line in said) >= 2, said
    assert [line for line in said if line.startswith("4000")] == ["4000 fine"] * 3


def test_an_error_of_the_disk_is_not_called_damage(tmp_path, monkeypatch):
    path = tmp_path / "fit.ckpt"
    fit(path)

    def fail(*arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        fit(path)
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("name", ["parts"])
def test_a_damaged_checkpoint_is_not_to_be_deleted(name, tmp_path):
    """It may be sound for another version, or be repaired."""
    path = tmp_path / "fit.ckpt"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="choose another name, or move the file away to start"):
        FITS[name](checkpoint=path)


# --- Ctrl-C between any two lines -------------------------------------------------------------


def write_and_interrupt(path, overwrite, moment):
    """Write a file, and press Ctrl-C before a line of the module that writes files.

    Whether the line was reached.
    """
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_filename != atomic_files.__file__:
            return None
        lines += event == "line"
        if lines == moment and event == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        write_atomically(path, lambda file: file.write(b"new"), overwrite)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("overwrite", [False, True])
def test_ctrl_c_before_any_line_leaves_old_or_new(tmp_path, monkeypatch, overwrite):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    path, found = tmp_path / "model.hcn", set()
    gc.freeze()  # so that collecting what is new takes no time
    for moment in range(1, 500):
        path.unlink(missing_ok=True)
        if overwrite:
            path.write_bytes(b"old")
        interrupted = write_and_interrupt(path, overwrite, moment)
        gc.collect()  # what was open is closed
        there = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        assert there in ({}, {path.name: b"old"}, {path.name: b"new"}), (moment, there)
        found.add(there.get(path.name))
        if not interrupted:
            break
    gc.unfreeze()
    assert moment > 30
    assert found == ({b"old", b"new"} if overwrite else {None, b"new"})
