"""What is compared between float32 and float64: plain functions of whichever `hcnet` is imported.

The library in float64 works in a process of its own, whose main program is `answer`.
"""

import pickle
import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from benchmarks.paper_images import PAPER_IMAGES
from benchmarks.shape_models import network
from hcnet import BooleanMatrixFactorization, Engine, FeatureLearner, TemplateClassifier
from hcnet.datasets import boolean_matrix, deconvolution, shapes, two_bars
from hcnet.engine import engines
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.grid import on_grid
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of

# From a random start every rounding is another throw of the dice about which feature becomes which
# part, as every seed is.  A hint which is which leaves the rest to the data, and to the numbers.
HINT = 1.0


@dataclass(frozen=True, eq=False)
class Learned:
    """What a user gets from a fit."""

    features: np.ndarray
    reconstruction: np.ndarray
    ratio: float


def learn(name, seed, algorithm="refined", damping=1.0):
    """One of the benchmarks' fits, as `benchmarks/table1.py` and `benchmarks/deconvolution.py`."""
    if name == "deconvolution":
        data, size, n = deconvolution(random_state=seed), (6, 6), 5
    else:
        image = PAPER_IMAGES[name]
        data, n = image.make(random_state=seed), None
        if algorithm == "mpmp":
            n = image.n_features
        size = image.feature_size(data)
    options = {"algorithm": algorithm, "engine": Engine(damping=damping), "random_state": seed}
    model = FeatureLearner(n, size, **options).fit(data.images)
    clean = model.inverse_transform(model.transform(data.images))
    return Learned(model.features_, clean, model.compression_ratio_)


# What a network learns from, and how: (data, share of labels, options of the estimator).
NETWORKS = {
    "clusters": ({}, 0.0, {}),
    "labels": ({}, 1.0, {}),
    "few labels": ({}, 0.1, {}),
    "noisy": ({"noise": 0.1}, 1.0, {}),
    "stream": ({"n_images": 400}, 0.0, {}),
    "templates": ({}, 1.0, {}),
    **{name: ({}, 0.0, {"engine": Engine(schedule=name)}) for name in SCHEDULE_NAMES},
    "active set": ({}, 0.0, {}),
}


SMALL = engines.SMALL


def learn_network(kind, size, seed):
    """The weights of a network of two layers, as most benchmarks of networks learn it.

    These are `shapes`, `semisupervised`, `noise` and `online`.
    """
    given, labelled, options = NETWORKS[kind]
    engines.SMALL = 0 if kind == "active set" else SMALL  # these images are few
    data = shapes(feature_size=size, random_state=seed, **given)
    model = network(size, labelled > 0, random_state=seed, **options)
    if kind == "templates":
        model = TemplateClassifier(4, size, 2, random_state=seed)
    if kind == "stream":
        return model.fit_stream(data.images, epochs=1).weights_
    if not labelled:
        return model.fit(data.images).weights_
    known = np.arange(len(data.labels)) < labelled * len(data.labels)
    return model.fit(data.images, np.where(known, data.labels, -1)).weights_


def factorize(rank, flips, mode, seed):
    """The factors of a table, and their product, as `benchmarks/bmf.py`."""
    data = boolean_matrix(rank=rank, flips=flips, random_state=seed)
    model = BooleanMatrixFactorization(
        None if mode == "automatic rank" else rank,
        algorithm="mpmp" if mode == "mpmp" else "refined",
        random_state=seed,
    ).fit(data.table, mask=data.mask)
    return model.components_, model.codes_


def hinted(data, n_images, seed):
    """The arguments of `start_messages` for images whose parts are hinted at."""
    pixels, truth = data.images[:n_images], np.swapaxes(data.features, 0, 1)
    images = Images(pixels, np.ones(pixels.shape, bool))
    size, n = data.feature_size, len(data.features)
    layer = FeatureLayer(n, pixels.shape[1], size, images.size, "full")
    rng = np.random.default_rng(seed)
    prior = logit(rng.uniform(0.27, 0.3, truth.shape)) + HINT * (2 * truth - 1)
    trees = trees_of(images.observed, rng)
    numbers = images.evidence(Noise(1e-4, 1e-4)), logit(1e-4), prior
    return layer, trees, *(on_grid(x) for x in numbers)


def bars_beliefs(seed, damping, sweeps):
    """Beliefs of the weights of the noisy bars after every sweep."""
    messages = start_messages(*hinted(two_bars(random_state=seed), 1, seed))
    return _after_sweeps(CPUEngine(), messages, "sequential", damping, sweeps)


def pattern_beliefs(engine, schedule, sweeps):
    """Beliefs of the weights of a few images by an engine: "dense" or "reference"."""
    messages = start_messages(*hinted(deconvolution(random_state=0), 3, 0))
    return _after_sweeps(
        ReferenceEngine() if engine == "reference" else CPUEngine(), messages, schedule, 0.5, sweeps
    )


def _after_sweeps(engine, messages, schedule, damping, sweeps):
    rng, found = np.random.default_rng(1), []
    for _ in range(sweeps):
        for batch in Schedule(schedule).batches(messages.images, rng):
            engine.update(messages, batch, damping)
        found.append(messages.weight_beliefs().copy())
    return np.array(found)


def answer():
    """Answer calls from standard input until there are no more."""
    while True:
        try:
            called, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(globals()[called](*arguments), sys.stdout.buffer)
        sys.stdout.buffer.flush()
