"""The measurements of `hcnet bench`, each a row of plain values."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hcnet.benchmark.paper_images import PAPER_IMAGES
from hcnet.benchmark.shape_models import network, test_set, true_network
from hcnet.benchmark.sweeps import SHAPES, sweep_cost
from hcnet.datasets import shapes, two_bars
from hcnet.engine.driver import Measurement, Status
from hcnet.engine.schedules import Schedule
from hcnet.estimators.feature_learner import FeatureLearner
from hcnet.metrics import matched_iou, true_compression
from hcnet.progress import Progress

Row = dict[str, Any]
KINDS = ("parts", "network", "speed")
# What takes more than a few seconds each.
LONG = ("noisy letters", "text")
# Of the shapes: the paper's size, its test error with labels, and how long it took.
SHAPE_SIZE = 21
PAPER_ERROR, PAPER_MINUTES = 0.0007, 7
TEST_IMAGES = 1000
# Sweeps of which the fastest counts.
TIMES = 5


def measure_all(
    kinds: Sequence[str], quick: bool, seed: int, progress: Progress
) -> dict[str, list[Row]]:
    """Rows of every kind that is asked for; `quick` leaves out what takes long.

    Raises:
        KeyboardInterrupt: on Ctrl-C, also while something is learned.

    """
    work = [(kind, *each) for kind in kinds for each in _work(kind, quick, seed)]
    found: dict[str, list[Row]] = {kind: [] for kind in kinds}
    progress.stage("Compiling at first use", 1)
    try:
        _compile(kinds)
        progress.step(Measurement(np.nan), dict)
        progress.stage("Measuring", len(work))
        for kind, name, measure in work:
            row = measure()
            found[kind].append(row)
            progress.step(Measurement(np.nan, note=name), partial(dict, row))
    finally:
        progress.close()
    return found


def _work(kind: str, quick: bool, seed: int) -> list[tuple[str, Callable[[], Row]]]:
    """What there is to measure of a kind: a name, and what makes its row."""
    if kind == "parts":
        names = [name for name in PAPER_IMAGES if not (quick and name in LONG)]
        return [(name, partial(_learned_parts, name, seed)) for name in names]
    if kind == "network":
        return [("shapes", partial(_learned_network, seed))]
    return [(name, partial(_sweep, name)) for name in list(SHAPES)[: 1 if quick else None]]


def _learned_parts(name: str, seed: int) -> Row:
    """The parts of one of the paper's images, beside the true ones."""
    image = PAPER_IMAGES[name]
    data = image.make(random_state=seed)
    size = image.feature_size(data)
    learner, seconds = _fit(FeatureLearner(feature_size=size, random_state=seed), data.images)
    return {
        "data": name,
        "seed": seed,
        "ratio": learner.compression_ratio_,
        "ratio_true": true_compression(data, size),
        "ratio_paper": image.ratio,
        "parts": len(learner.features_),
        "parts_true": len(data.features),
        "parts_exact": int((matched_iou(learner.features_, data.features) == 1).sum()),
        "seconds": seconds,
        "seconds_paper": 60 * image.minutes,
    }


def _learned_network(seed: int) -> Row:
    """Two layers from a hundred labelled images, beside the network that made them."""
    data = shapes(feature_size=SHAPE_SIZE, random_state=seed)
    test = test_set(SHAPE_SIZE, TEST_IMAGES, seed)
    learned = network(SHAPE_SIZE, True, random_state=seed)
    model, seconds = _fit(learned, data.images, data.labels)
    return {
        "data": "shapes",
        "seed": seed,
        "images": len(data.images),
        "test_images": TEST_IMAGES,
        "error": 1 - model.score(test.images, test.labels),
        "error_true": 1 - true_network(test, True).score(test.images, test.labels),
        "error_paper": PAPER_ERROR,
        "seconds": seconds,
        "seconds_paper": 60 * PAPER_MINUTES,
    }


def _sweep(name: str) -> Row:
    cost = sweep_cost(SHAPES[name], Schedule("sequential"), TIMES)
    return {
        "shape": name,
        "ands": cost.ands,
        "seconds_sweep": cost.seconds,
        "seconds_copy": cost.copy_seconds,
        "ratio_to_copy": cost.seconds / cost.copy_seconds,
    }


def _fit(model: Any, *data: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    model.fit(*data)
    seconds = time.perf_counter() - began
    if model.status_ == Status.INTERRUPTED.value:  # learning itself ends well on Ctrl-C
        raise KeyboardInterrupt
    return model, seconds


def _compile(kinds: Sequence[str]) -> None:
    """Something small of each kind, so that no figure holds time for compiling."""
    if "parts" in kinds:
        # Not anything smaller: there other code would run, which stores all messages.
        bars = two_bars(random_state=0)
        short = FeatureLearner(feature_size=bars.feature_size, n_init=1, max_iter=2)
        _fit(short.set_params(random_state=0), bars.images)
    if "network" in kinds:
        data = shapes(n_images=4, feature_size=9, random_state=0)
        _fit(network(9, True, max_iter=2, random_state=0), data.images, data.labels)
