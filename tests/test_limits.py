"""Memory is known before a run starts; neither it nor threads grow with the number of runs."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import boolean_matrix, letters, shapes
from hcnet.engine.placements import placement_memory
from hcnet.hierarchy import network
from hcnet.images import Images
from hcnet.memory import NotEnoughMemoryError, check_memory
from hcnet.solutions.explanation import Canvas
from hcnet.solutions.improver import Improver
from tests.memory_peak import memory_peak

PAGE = letters(noise=0.03, size=(90, 90), n_placements=30, random_state=0).images
PRIORS = {"p_S": 1e-9, "p_W": 0.3, "p01": 1e-4, "p10": 1e-4}
# Beside the messages: the data and what is decided, in bytes per observed pixel.
BESIDE = 80


@pytest.mark.parametrize("schedule", ["sequential", "per-image", "blocks"])
@pytest.mark.parametrize("engine", ["active", "dense"])
def test_a_fit_takes_the_memory_that_it_says(engine, schedule):
    model = FeatureLearner(12, 10, algorithm="mpmp", max_iter=2, random_state=0, **PRIORS)
    model.set_params(engine=Engine(engine, schedule=schedule))
    used = memory_peak(lambda: model.fit(PAGE))
    assert used <= 1.1 * model.memory_ + BESIDE * PAGE.size
    with pytest.raises(NotEnoughMemoryError, match="raise max_memory"):
        model.set_params(max_memory=model.memory_ - 1).fit(PAGE)


def test_a_network_takes_the_memory_that_it_says():
    data = shapes(feature_size=15, random_state=0)
    model = HCN([Layer(4, size=15), Layer()], 4, max_iter=2, n_init=1, random_state=0)
    used = memory_peak(lambda: model.fit(data.images))
    assert used <= 1.1 * model.memory_ + BESIDE * data.images.size


@pytest.mark.parametrize("batch", [500, 16])
def test_templates_take_the_memory_that_is_said(batch, monkeypatch):
    """Also where parts and templates are far more than the pixels."""
    monkeypatch.setattr(network, "BATCH", batch)
    data = shapes(feature_size=15, n_images=60, random_state=0)
    model = TemplateClassifier(24, 7, 1, n_classes=10, random_state=0)
    used = memory_peak(lambda: model.fit(data.images))
    assert used <= 1.1 * model.memory_ + BESIDE * data.images.size
    with pytest.raises(NotEnoughMemoryError, match="raise max_memory"):
        model.set_params(max_memory=model.memory_ - 1).fit(data.images)


def test_a_factorization_takes_the_memory_that_it_says():
    table = boolean_matrix(shape=(300, 200), random_state=0).table
    model = BooleanMatrixFactorization(5, algorithm="mpmp", max_iter=2, random_state=0)
    used = memory_peak(lambda: model.fit(table))
    limit = int((used - BESIDE * table.size) / 1.1)
    model.set_params(max_memory=limit)
    with pytest.raises(NotEnoughMemoryError, match="lower n_components"):
        model.fit(table)


def test_finding_parts_has_a_limit_too():
    model = FeatureLearner(4, 6, max_iter=0, n_init=1, random_state=0).fit(PAGE[:, :, :40, :40])
    worst = np.ones((1, 1, 24, 24), bool)  # everything fits everywhere
    images = Images(worst, worst)
    improver = Improver(Canvas(model._model.layer(images.size), images), model._model.priors)
    needed = placement_memory([improver.feature(W) for W in model.features_])
    model.set_params(max_memory=needed)
    assert memory_peak(lambda: model.denoise(worst)) <= 1.1 * needed + BESIDE * worst.size
    model.set_params(max_memory=1000)  # less than a tile of one window
    for method in (model.transform, model.placements, model.denoise, model.score):
        with pytest.raises(NotEnoughMemoryError, match="learn fewer or smaller parts"):
            method(worst)


def test_finding_parts_in_tiles_takes_the_memory_of_a_tile(monkeypatch):
    model = FeatureLearner(4, 6, max_iter=0, n_init=1, random_state=0).fit(PAGE[:, :, :40, :40])
    worst = np.ones((1, 1, 150, 150), bool)  # everything fits everywhere
    at_once = memory_peak(lambda: model.denoise(worst))
    monkeypatch.setattr("hcnet.model.TILE_BYTES", 2**20)
    assert memory_peak(lambda: model.denoise(worst)) < at_once / 4


def test_more_than_the_machine_has_is_refused():
    with pytest.raises(NotEnoughMemoryError, match=r"this machine has .* MiB: sell it\."):
        check_memory("A run", 2**60, None, "sell it")
    model = FeatureLearner(10**9, 12, max_iter=1)
    with pytest.raises(NotEnoughMemoryError, match="and this machine has"):
        model.fit(PAGE)
    assert check_memory("A run", 1, None, "") == 1


def test_nothing_is_left_behind_by_a_fit_that_fails():
    class BrokenError(Exception):
        pass

    def images():
        yield PAGE[0, 0]
        raise BrokenError

    model = FeatureLearner(feature_size=10, max_iter=1, engine=Engine(schedule="per-image"))
    before = set(threading.enumerate())
    with pytest.raises(BrokenError):
        model.fit_stream(images(), batch_size=1)
    for thread in set(threading.enumerate()) - before:
        assert thread.name.startswith("hcnet")  # idle, and kept for the next loop


LOOP = """
import resource
import sys
import warnings
import numpy as np
from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Layer, TemplateClassifier

warnings.simplefilter("ignore")
X = np.zeros((2, 6, 6), bool)
X[:, 1, 1:4] = X[1, 3:5, 2] = True
engine = Engine(schedule="per-image")
parts = FeatureLearner(2, 3, n_init=1, max_iter=1, engine=engine, random_state=0)
network = HCN([Layer(2, size=2, pool=1), Layer(pool=1)], 1, n_init=1, max_iter=1, random_state=0)
table = BooleanMatrixFactorization(1, algorithm="mpmp", max_iter=1, random_state=0)


def fits(n):
    for _ in range(n):
        parts.fit(X).denoise(X)
        network.fit(X).predict(X)
        table.fit(X[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


first = fits(int(sys.argv[1]))
print((fits(int(sys.argv[2])) - first) / 1024)
"""


def growth(warm, n):
    """MiB by which a process grows over n more rounds of fits."""
    command = [sys.executable, "-c", LOOP, str(warm), str(n)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_memory_does_not_grow_with_fits():
    gc.collect()
    assert growth(10, 40) < 4


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_memory_does_not_grow_with_ten_thousand_fits():
    assert growth(200, 10_000) < 8
