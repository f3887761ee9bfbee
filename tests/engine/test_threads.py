"""Loops over threads: every index once, no thread at work afterwards, in any process and thread."""

import os
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

from hcnet.engine import threads
from hcnet.engine.threads import over_lanes, over_threads, paced

# Fits in forked children after the parent has used its threads, and at the same time in threads.
FITS = """
import hashlib
import os
import sys
import threading

import numpy as np

from hcnet import HCN, Engine, FeatureLearner, Layer

PER_IMAGE = Engine(schedule="per-image")

rng = np.random.default_rng(0)
images = np.zeros((6, 9, 9), np.uint8)
for image in images:
    for part in (np.eye(3, dtype=np.uint8), np.ones((1, 3), np.uint8)):
        i, j = rng.integers(0, 7, 2)
        image[i : i + part.shape[0], j : j + part.shape[1]] |= part


def fit(_=None):
    network = HCN([Layer(3, size=3), Layer()], 2, max_iter=2, engine=PER_IMAGE, random_state=0)
    network.fit(images)
    blocks = Engine(schedule="blocks")
    parts = FeatureLearner(3, 3, max_iter=2, n_init=1, engine=blocks, random_state=0)
    parts.fit(images)
    priors = {"p_S": 1e-9, "p_W": 0.3, "p01": 1e-4, "p10": 1e-4}
    page = FeatureLearner(3, 12, algorithm="mpmp", max_iter=2, engine=PER_IMAGE, **priors)
    page.set_params(random_state=0).fit(np.tile(images[:2], (1, 12, 12)))  # has an active set
    arrays = *network.weights_, parts.features_, page.features_
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def in_threads(n):
    found = [None] * n

    def one(k):
        found[k] = fit()

    threads = [threading.Thread(target=one, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found

"""


# What one process can show one after the other, since a new one has to import everything first.
IN_TURN = """
import joblib
import multiprocessing


def tell(about, *words):
    print(about, *words, sep=",", flush=True)  # or a forked child would print it, too


first = fit()
tell("names", *(thread.name for thread in threading.enumerate()))
tell("alone", first)
tell("threads", *in_threads(4))
jobs = (joblib.delayed(fit)() for _ in range(2))
tell("joblib", *joblib.Parallel(n_jobs=2, backend="threading")(jobs))
with multiprocessing.get_context("fork").Pool(2) as pool:  # threads are running now
    tell("forked", *pool.map(fit, range(2)))
busy = threading.Thread(target=fit)
busy.start()
child = os.fork()
if child == 0:
    os._exit(0 if fit() == first else 1)
tell("forked meanwhile", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
busy.join()


def late():
    threading.main_thread().join()
    tell("late", fit())


threading.Thread(target=late).start()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a script with all that is above; workers can import it."""
    folder = tmp_path_factory.mktemp("fits")
    (folder / "fits.py").write_text(FITS)
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(script):
        command = [sys.executable, "-c", f"from fits import *\n{script}"]
        environment = os.environ | {"PYTHONPATH": paths}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stderr
        return [line.split(",") for line in done.stdout.splitlines()]

    return run


@pytest.fixture(scope="module")
def shown(run):
    return {about: words for about, *words in run(IN_TURN)}


def test_every_index_is_visited_once():
    visits = np.zeros(1000, np.int64)

    @over_threads
    def count(first, last, visits):
        visits[first:last] += 1

    for n in (0, 1, 2, 7, 1000):
        visits[:] = 0
        count(n, visits)
        assert (visits[:n] == 1).all()
        assert (visits[n:] == 0).all()


def test_an_error_in_one_piece_is_raised_when_no_thread_works_any_more():
    at_work = []

    @over_threads
    def fail(first, last):
        at_work.append(first)
        time.sleep(0.01)
        at_work.remove(first)
        raise ArithmeticError("no")

    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        with pytest.raises(ArithmeticError, match="no"):
            fail(100)
    finally:
        numba.set_num_threads(before)
    assert at_work == []


# Other libraries that a test may have loaded warn of any fork.
@pytest.mark.filterwarnings("ignore")
def test_a_loop_of_a_forked_child_does_not_wait_for_the_parents_threads():
    @over_threads
    def square(first, last, values):
        for k in range(first, last):
            values[k] **= 2

    values = np.arange(100)
    square(100, values)
    child = os.fork()
    if child == 0:
        try:
            again = np.arange(100)
            square(100, again)
            os._exit(0 if (again == np.arange(100) ** 2).all() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("how", ["threads", "forked", "joblib", "late"])
def test_fits_are_those_of_the_main_thread(shown, how):
    """In several threads at once, in forked processes, and after the main thread has ended."""
    assert set(shown[how]) == set(shown["alone"])
    assert len(shown[how]) == {"threads": 4, "late": 1}.get(how, 2)


def test_a_child_that_is_forked_while_another_thread_fits_can_fit(shown):
    assert shown["forked meanwhile"] == ["0"]


def test_only_threads_of_the_pool_stay_after_a_fit(shown):
    names = shown["names"]
    assert names[0] == "MainThread"
    assert all(name.startswith("hcnet") for name in names[1:])
    assert len(names) <= int(os.environ["NUMBA_NUM_THREADS"])


SPAWN = """
import multiprocessing
with multiprocessing.get_context("spawn").Pool(2) as pool:
    print(*pool.map(fit, range(2)), sep=",")
"""
JOBLIB = """
import joblib
jobs = (joblib.delayed(fit)() for _ in range(2))
print(*joblib.Parallel(n_jobs=2, backend="loky")(jobs), sep=",")
"""


@pytest.mark.parametrize("script", [SPAWN, pytest.param(JOBLIB, marks=pytest.mark.long)])
def test_fits_in_new_processes_are_those_of_the_parent(run, shown, script):
    assert run(script) == [2 * shown["alone"]]


@pytest.mark.parametrize("kind", [paced, over_threads])
def test_a_loop_in_pieces_has_every_index_once_and_looks_between_two(kind, monkeypatch):
    monkeypatch.setattr(threads, "_SECONDS", 1e-4)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 1)
    looks = []
    monkeypatch.setattr(threads, "look", lambda: looks.append(1))
    done = []

    def work(first, last):
        time.sleep(1e-4 * (last - first))
        done.append((first, last))

    loop = kind(work)
    for _ in range(2):
        done.clear()
        loop(300)
        assert [k for first, last in done for k in range(first, last)] == list(range(300))
        assert len(done) > 3
    assert len(looks) > 6


def test_a_loop_in_pieces_ends_early():
    done = []
    paced(lambda first, last: done.append(last) or last > 1000)(sys.maxsize)
    assert 1000 < done[-1] < 10**6


def test_a_lane_alone_runs_in_pieces():
    done = []
    lane = over_lanes(lambda first, last, order, lanes: done.extend(order[slice(*lanes)]))
    lane(1, np.arange(500), np.array([0, 500]))
    assert done == list(range(500))
