"""The one loop: why it stops, what it keeps, and what Ctrl-C does to it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hcnet
from hcnet import FeatureLearner
from hcnet.engine import driver
from hcnet.engine.driver import Limits, Measurement, Status, interruptible, look, run
from hcnet.engine.placements import PlacementPassing


@pytest.fixture(autouse=True)
def usual_ctrl_c():
    """Ctrl-C raises, even if whoever started the tests had it ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


class Script:
    """A process that plays back joint log-probabilities; its state is the step number."""

    def __init__(self, values, changed=None, change=None, seconds=0.0, on_step=None):
        self.values = list(values)
        self.changed = changed or [1] * len(self.values)
        self.change = change or [None] * len(self.values)
        self.seconds = seconds
        self.on_step = on_step
        self.at = 0

    def step(self):
        time.sleep(self.seconds)
        if self.on_step is not None:
            self.on_step(self.at + 1)
        if self.at + 1 >= len(self.values):
            return False
        self.at += 1
        return True

    def measure(self):
        return Measurement(self.values[self.at], self.changed[self.at], self.change[self.at])

    def state(self):
        return self.at


CHANGES = {"changed": [9, 5, 0, 0, 0], "change": [9.0, 0.0, 1.0, 1e-4, 0.0]}


@pytest.mark.parametrize(
    ("script", "limits", "status", "best", "n_iter"),
    [
        (Script([0.0, 1.0, 2.0]), {}, Status.FINISHED, 2, 3),
        # Step 1 changed weights, step 2 moved beliefs; step 3 did neither.
        (Script([0.0] * 5, **CHANGES), {}, Status.CONVERGED, 0, 3),
        # Without beliefs nothing counts as converged.
        (Script([0.0] * 6, changed=[0] * 6), {"max_iter": 5}, Status.ITERATION_LIMIT, 0, 5),
        # Patience counts steps since the best state.
        (Script([0.0, 1.0, 2.0, 1.0, 2.0, 1.5, 9.0]), {"patience": 3}, Status.STALLED, 2, 5),
        (Script(range(10)), {"max_iter": 4}, Status.ITERATION_LIMIT, 4, 4),
        (Script(range(10)), {"max_iter": 0}, Status.ITERATION_LIMIT, 0, 0),
        # The best state is kept though later ones are worse.
        (Script([-5.0, -1.0, -9.0, -3.0]), {}, Status.FINISHED, 1, 4),
        (Script([-1.0, -5.0, -9.0]), {}, Status.FINISHED, 0, 3),
    ],
)
def test_why_a_run_stops_and_what_it_keeps(script, limits, status, best, n_iter):
    outcome = run(script, Limits(**limits))
    assert (outcome.status, outcome.best, outcome.n_iter) == (status, best, n_iter)
    assert outcome.objective == script.values[best]
    assert len(outcome.history) == n_iter
    assert outcome.status.converged == (status is not Status.ITERATION_LIMIT)
    assert not outcome.status.cut_short


def test_the_time_limit_stops_after_the_step():
    outcome = run(Script([0.0] * 1000, seconds=0.01), Limits(max_seconds=0.05))
    assert outcome.status is Status.TIME_LIMIT
    assert outcome.status.cut_short
    assert 0.05 <= outcome.seconds < 1.0


def test_history_and_report_tell_every_step():
    told = []
    script = Script([0.0, 1.0, 0.5], changed=[0, 7, 3], change=[None, 2.0, 1.0])
    outcome = run(script, Limits(max_iter=2), lambda i, m, s: told.append((i, m.objective)))
    assert told == [(1, 1.0), (2, 0.5)]
    facts = [
        (r.iteration, r.objective, r.changed_weights, r.belief_change) for r in outcome.history
    ]
    assert facts == [(1, 1.0, 7, 2.0), (2, 0.5, 3, 1.0)]
    assert outcome.history[0].seconds <= outcome.history[1].seconds <= outcome.seconds


def test_every_status_is_a_sentence():
    for status in Status:
        assert re.fullmatch(r"[A-Z].*\.", status.value)


def interrupt(step, at=2):
    if step == at:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_the_run_with_the_best_state():
    outcome = run(Script([0.0, 5.0, 4.0, 9.0], on_step=interrupt), Limits())
    assert (outcome.status, outcome.best, outcome.n_iter) == (Status.INTERRUPTED, 1, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_at_once_means_the_same_as_the_first():
    def twice(step):
        interrupt(step)
        interrupt(step)

    outcome = run(Script([0.0, 1.0, 2.0, 3.0], on_step=twice), Limits())
    assert (outcome.status, outcome.best, outcome.n_iter) == (Status.INTERRUPTED, 2, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_later_ctrl_c_ends_a_step_that_does_not_look(monkeypatch):
    monkeypatch.setattr(driver, "SAME_PRESS", 0.0)

    def impatient(step):
        interrupt(step)
        interrupt(step)
        assert step != 2, "the second raises"

    outcome = run(Script([0.0, 1.0, 2.0, 3.0], on_step=impatient), Limits())
    assert (outcome.status, outcome.best, outcome.n_iter) == (Status.INTERRUPTED, 1, 1)
    with pytest.raises(KeyboardInterrupt), interruptible():  # outside a step, nobody catches it
        impatient(2)


def work(step):
    """A long step that looks often, and is given up after some time."""
    while step == 2:
        look()
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("limits", "press", "status"),
    [(Limits(max_seconds=0.1), False, Status.TIME_LIMIT), (Limits(), True, Status.INTERRUPTED)],
)
def test_a_long_step_is_given_up_after_its_grace(monkeypatch, limits, press, status):
    monkeypatch.setattr(driver, "GRACE", 0.1)

    def step(number):
        if press:
            interrupt(number)
        work(number)

    began = time.perf_counter()
    outcome = run(Script([0.0, 5.0, 4.0, 9.0], on_step=step), limits)
    assert (outcome.status, outcome.best, outcome.n_iter) == (status, 1, 1)
    assert time.perf_counter() - began < 2
    look()  # outside a run it does nothing


def test_a_step_is_given_up_together_with_the_step_around_it(monkeypatch):
    monkeypatch.setattr(driver, "GRACE", 0.1)
    inner = []

    def step(number):
        if number == 2:
            inner.append(run(Script(range(9), on_step=work), Limits()))

    outcome = run(Script([0.0, 5.0, 4.0], on_step=step), Limits(max_seconds=0.1))
    assert (outcome.status, outcome.n_iter, inner) == (Status.TIME_LIMIT, 1, [])

    def own_limit(number):
        inner.append(run(Script(range(9), on_step=work), Limits(max_seconds=0.01)).status)

    outcome = run(Script([0.0, 5.0], on_step=own_limit), Limits())
    assert (outcome.status, inner[0]) == (Status.FINISHED, Status.TIME_LIMIT)


def test_ctrl_c_between_two_runs_stops_the_next_one():
    with interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        outcome = run(Script(range(9)), Limits())
    assert (outcome.status, outcome.n_iter) == (Status.INTERRUPTED, 1)


def test_somebody_elses_ctrl_c_handler_is_left_alone():
    pressed = []
    previous = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        outcome = run(Script(range(5), on_step=interrupt), Limits())
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (outcome.status, pressed) == (Status.FINISHED, [1])


def test_a_run_inside_a_thread_works():
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(run(Script([0.0, 3.0]), Limits())))
    thread.start()
    thread.join()
    assert (outcomes[0].status, outcomes[0].best) == (Status.FINISHED, 1)


FIT = """
import signal
from hcnet import FeatureLearner
from hcnet.datasets import two_bars

# A shell may have started us with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def ready(step):
    print("step", flush=True)

image = two_bars(random_state=0).images
learner = FeatureLearner(
    feature_size=15, n_init=10**6, random_state=0, callback=ready
).fit(image)
print(learner.status_)
print(len(learner.features_) > 0, learner.compression_ratio_ < 1)
"""


def start_fit():
    source = str(Path(hcnet.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", FIT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def wait_for_steps(process, n):
    for _ in range(n):
        assert process.stdout.readline() == "step\n", process.stderr.read()


def test_ctrl_c_in_a_fit_returns_the_best_state_so_far():
    with start_fit() as process:
        wait_for_steps(process, 25)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    status, facts = [line for line in out.splitlines() if line != "step"]
    assert status == Status.INTERRUPTED.value
    assert facts == "True True"


def test_two_ctrl_c_in_a_fit_leave_the_best_state_so_far():
    def impatient(step):
        interrupt(2)
        interrupt(2)

    learner = FeatureLearner(feature_size=3, callback=impatient).fit(np.eye(9))
    assert learner.status_ == Status.INTERRUPTED.value
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_transform_is_not_swallowed(monkeypatch):
    """There is no best state so far to give back: what is half done would look like a result."""
    learner = FeatureLearner(feature_size=3, p01=0.01, p10=0.01, p_S=0.05, p_W=0.4, random_state=0)
    image = np.kron(np.eye(4), np.ones((3, 3)))
    learner.fit(image)
    assert len(learner.features_)
    sweep = PlacementPassing.step
    monkeypatch.setattr(PlacementPassing, "step", lambda self: (interrupt(2), sweep(self))[1])
    with pytest.raises(KeyboardInterrupt):
        learner.transform(image)
