"""Fits of every kind, small enough to be broken off after each step.

As a program: ``python fits.py NAME CHECKPOINT EVERY RESULT [BYTES]`` runs one of them, and writes
what was learned to a file; with BYTES no file may become larger, as if the disk were full.
"""

import hashlib
import resource
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

from hcnet import HCN, BooleanMatrixFactorization, Engine, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import scanned_text, shapes
from hcnet.engine import engines
from hcnet.soft import soft_search


def _images(n=10):
    data = shapes(feature_size=7, jitter=1, n_images=n, random_state=0)
    return data.images, data.labels


def _pages(n, side=24):
    """Images that are made of three parts."""
    rng = np.random.default_rng(0)
    images = np.zeros((n, side, side), bool)
    part = rng.random((3, 5, 5)) < 0.5
    for image in images:
        for k in range(9):
            r, c = rng.integers(side - 5, size=2)
            image[r : r + 5, c : c + 5] |= part[k % 3]
    return images


def _table():
    rng = np.random.default_rng(0)
    return (rng.random((30, 3)) < 0.4) @ (rng.random((3, 20)) < 0.3)


def _parts(*arguments, **options):
    return FeatureLearner(*arguments, random_state=0, **options)


def _messages(**options):
    return _parts(3, 5, algorithm="mpmp", **options)


def _active(**options):
    """As on a page that is too large for all its messages."""
    before, engines.SMALL = engines.SMALL, 0
    try:
        return _messages(max_iter=12, p_W=0.4).fit(_pages(2), **options)
    finally:
        engines.SMALL = before


def _soft(**options):
    """In small steps, so that some end in the middle of a stage."""
    before = dict(soft_search.CHUNKS)
    soft_search.CHUNKS.update(dict.fromkeys(before, 25))
    try:
        page = scanned_text(size=(300, 500), random_state=0).images
        return _parts(algorithm="soft").fit(page, **options)
    finally:
        soft_search.CHUNKS.update(before)


def _network(**options):
    layers = [Layer(4, size=4, pool=2, perturbation=0.2), Layer()]
    return HCN(layers, templates_per_class=2, random_state=0, **options)


def _network_stream(**options):
    X, y = _images(12)
    pairs = list(zip(X, y, strict=True))
    return _network(max_iter=2).fit_stream(pairs, classes=np.unique(y), batch_size=3, **options)


FITS = {
    "parts": lambda **o: _parts(4, 5, n_init=2).fit(_pages(2), **o),
    "parts_messages": lambda **o: _messages(engine=Engine(schedule="per-image"), max_iter=6).fit(
        _pages(3), **o
    ),
    "parts_active": _active,
    "parts_beliefs": lambda **o: _messages(engine="beliefs", max_iter=12, p_W=0.4).fit(
        _pages(2), **o
    ),
    "parts_soft": _soft,
    "parts_stream": lambda **o: _parts(3, 5).fit_stream(iter(_pages(8)), batch_size=2, **o),
    "parts_epochs": lambda **o: _messages().fit_stream(_pages(8), batch_size=3, epochs=2, **o),
    "network": lambda **o: _network(max_iter=6, n_init=3).fit(*_images(), **o),
    "network_beliefs": lambda **o: _network(max_iter=6, n_init=2, engine="beliefs").fit(
        *_images(), **o
    ),
    "network_stream": _network_stream,
    # Parts that change in every round.
    "templates": lambda **o: TemplateClassifier(
        6, 4, 2, pool=2, template_pool=3, random_state=0
    ).fit(*_images(40), **o),
    "table": lambda **o: BooleanMatrixFactorization(2, n_init=2, random_state=0).fit(_table(), **o),
    "table_rank": lambda **o: BooleanMatrixFactorization(max_components=3, random_state=0).fit(
        _table(), **o
    ),
}


def learned(model):
    """A fingerprint of everything that was learned, to the last bit."""
    digest = hashlib.sha256()
    for array in getattr(model, "weights_", None) or [
        getattr(model, "features_", None) if hasattr(model, "features_") else model.components_
    ]:
        digest.update(f"{array.shape}".encode() + array.tobytes())
    facts = [getattr(model, name, None) for name in ("log_joint_", "cost_", "n_iter_", "status_")]
    priors = [getattr(model, name, None) for name in ("p_S_", "p_W_", "p01_", "p10_")]
    steps = [(r.iteration, r.objective, r.changed_weights) for r in model.history_]
    return digest.hexdigest(), *map(repr, (facts, priors, steps))


if __name__ == "__main__":
    name, checkpoint, every, result, *room = sys.argv[1:]
    if room:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write then fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room[0]), resource.RLIM_INFINITY))
        warnings.simplefilter("always")
    print("begun", flush=True)
    found = FITS[name](checkpoint=checkpoint, every=float(every))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    Path(result).write_text("\n".join(learned(found)))
