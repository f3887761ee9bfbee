"""Limits hold from the first instruction to the last: also while something is set up or finished.

Lateness is measured in the time of the processor, so that tests beside these do not count, and
several times where something has to be compiled.
"""

import math
import os
import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer, TemplateClassifier, codec
from hcnet.datasets import boolean_matrix, letters, scanned_text, shapes
from hcnet.engine.driver import FINISH, GRACE, Interrupt, Status, bounded, interruptible, look
from hcnet.messages import trees_of

# Seconds of a fit beyond its limit; half of it is granted to a step under way.
LATE = 2.0
ATTEMPTS = 5
# Nothing can be learned in so little time.
NO_TIME = 1e-6


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C raises, also if the tests run in the background."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def busy(seconds=math.inf):
    """Work for so long, and look at the limits."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        look()


def test_work_outside_of_runs_ends_with_the_time():
    began = time.perf_counter()
    with bounded(began + 0.1) as bound:
        busy()
    assert bound.status is Status.TIME_LIMIT
    assert 0.1 + GRACE <= time.perf_counter() - began < 0.1 + GRACE + 0.5
    with bounded(time.perf_counter() + 0.1) as bound:
        busy(0.2)  # it may come to its end
    assert bound.status is None
    with bounded(None) as bound:
        busy(0.1)
    assert bound.status is None


def test_a_result_is_put_together_in_a_second_after_the_time():
    began = time.perf_counter()
    with bounded(began - 100) as bound:
        busy(FINISH / 2)
    assert bound.status is None
    with bounded(began - 100) as bound:
        busy()
    assert bound.status is Status.TIME_LIMIT
    assert time.perf_counter() - began < FINISH / 2 + FINISH + 0.5


def test_work_outside_of_runs_ends_by_ctrl_c():
    with interruptible() as interrupt:
        with bounded(None) as bound:
            os.kill(os.getpid(), signal.SIGINT)
            busy()
        assert bound.status is Status.INTERRUPTED
        assert isinstance(interrupt, Interrupt)
        assert interrupt.is_set()
        began = time.perf_counter()
        with bounded(None) as bound:
            busy()
        assert bound.status is Status.INTERRUPTED
        assert time.perf_counter() - began < FINISH + 0.5


def test_trees_are_listed_once_in_the_order_of_the_permutation():
    which = np.random.default_rng(0).random((2, 3, 40, 50)) < 0.3
    pixels = np.argwhere(which)
    order = np.random.default_rng(1).permutation(len(pixels))
    np.testing.assert_array_equal(trees_of(which, np.random.default_rng(1)), pixels[order])


NOISE = np.random.default_rng(0).random((900, 900)) < 0.3
TABLE = boolean_matrix(shape=(1200, 800), rank=8, flips=0.05, random_state=0).table
LETTERS = letters(size=(300, 300), noise=0.05, n_placements=200, random_state=0).images
TEXT = scanned_text(size=(1600, 1700), random_state=0).images
SHAPES = shapes(n_images=600, random_state=0)
PAGES = np.random.default_rng(0).random((3, 1, 400, 1400)) < 0.1
SMALL = np.kron(np.eye(8), np.ones((3, 3)))
LABELLED = SHAPES.images, SHAPES.labels
FITS = {
    "many starts": (FeatureLearner(3, 3, n_init=10**6), SMALL),
    "many starts of messages": (FeatureLearner(3, 3, n_init=10**6, algorithm="mpmp"), SMALL),
    "parts": (FeatureLearner(feature_size=20), LETTERS),
    "parts of noise": (FeatureLearner(feature_size=16), NOISE),
    "soft parts": (FeatureLearner(algorithm="soft"), TEXT),
    "soft parts of noise": (FeatureLearner(algorithm="soft"), NOISE),
    "network": (HCN([Layer(8, size=21), Layer()], templates_per_class=4), *LABELLED),
    "network of pages": (HCN([Layer(8, size=21), Layer()]), PAGES),
    "network by beliefs": (
        HCN([Layer(8, size=21), Layer()], engine="beliefs"),
        PAGES[:1, :, :200, :600],
    ),
    "parts by the reference": (FeatureLearner(8, 8, engine="reference"), LETTERS),
    "network by the reference": (
        HCN([Layer(4, size=21), Layer()], engine="reference"),
        *(one[:20] for one in LABELLED),
    ),
    "many starts of networks": (HCN([Layer(4, size=21), Layer()], n_init=10**6), *LABELLED),
    "templates": (TemplateClassifier(16, 7, 20), *LABELLED),
    "table": (BooleanMatrixFactorization(8), TABLE),
    "many starts of tables": (BooleanMatrixFactorization(2, n_init=10**6), TABLE[:60, :40]),
    "table by messages": (BooleanMatrixFactorization(8, algorithm="mpmp"), TABLE),
    "table of open rank": (BooleanMatrixFactorization(max_components=30), TABLE),
}


def fitted(name, seconds):
    """A model of something that takes longer than the tests wait."""
    model, *data = FITS[name]
    return clone(model).set_params(max_seconds=seconds, random_state=0).fit(*data)


@pytest.mark.filterwarnings("ignore:No part was found")
@pytest.mark.parametrize("seconds", [NO_TIME, 0.5])
@pytest.mark.parametrize("name", FITS)
def test_a_fit_ends_within_two_seconds_of_its_limit(name, seconds):
    for _ in range(ATTEMPTS):
        began = time.thread_time()
        model = fitted(name, seconds)
        late = time.thread_time() - began - seconds
        if late < LATE:
            break
    assert late < LATE
    assert model.status_ == Status.TIME_LIMIT.value
    check_is_fitted(model)


@pytest.mark.parametrize("n_init", [10**6 + 1, 10**8, 10**30])
def test_absurd_numbers_of_starts_are_refused(n_init):
    for model in (
        FeatureLearner(3, 3, n_init=n_init),
        HCN([Layer()], n_init=n_init),
        BooleanMatrixFactorization(2, n_init=n_init),
    ):
        X = SMALL if isinstance(model, BooleanMatrixFactorization) else SMALL[None]
        with pytest.raises(ValueError, match=r"n_init must be a whole number of at most 1,000,000"):
            model.fit(X)


@pytest.mark.parametrize("moment", [0.05, 0.6])
@pytest.mark.parametrize("name", [name for name in FITS if "many" not in name])
def test_a_fit_ends_within_two_seconds_of_ctrl_c(name, moment):
    """Also where it is set up; what there is so far is the result."""

    def fit():
        assert fitted(name, None).status_ == Status.INTERRUPTED.value

    assert lateness(fit, moment) < LATE


def lateness(work, moment):
    """Seconds that work takes after Ctrl-C is pressed at a moment."""
    late = math.inf
    for _ in range(ATTEMPTS):
        began = []

        def press(number, frame, began=began):
            began.append(time.thread_time())
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGALRM, press)
        signal.setitimer(signal.ITIMER_REAL, moment)
        try:
            work()
        except KeyboardInterrupt:  # before or after learning
            assert began
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        late = time.thread_time() - began[0] if began else 0.0
        if late < LATE:
            break
    return late


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("moment", [0.05, 0.5, 1.0])
def test_compression_ends_within_two_seconds_of_ctrl_c(fast, moment):
    assert lateness(lambda: codec.compress([TEXT[0, 0], NOISE], fast=fast), moment) < LATE


def test_a_stream_that_has_no_time_for_a_minibatch_says_so():
    with pytest.raises(ValueError, match="The first minibatch was not learned within max_seconds"):
        FeatureLearner(feature_size=20, max_seconds=NO_TIME).fit_stream(NOISE[None])
