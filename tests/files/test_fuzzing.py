"""Thousands of mutated model files: refused with a sentence, or usable; no crash, no hang."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from handmade import ENVIRONMENT

from hcnet import HCN, BooleanMatrixFactorization, FeatureLearner, Layer, TemplateClassifier
from hcnet.datasets import shapes


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A file of every kind."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "mutants").mkdir()
    image = np.kron(np.eye(4), np.ones((3, 3)))
    FeatureLearner(feature_size=3, n_init=1, random_state=0).fit(image).save(folder / "parts.hcn")
    rng = np.random.default_rng(0)
    table = (rng.random((30, 2)) < 0.5) @ (rng.random((2, 12)) < 0.4)
    BooleanMatrixFactorization(2, n_init=1).fit(table).save(folder / "table.hcn")
    data = shapes(feature_size=7, jitter=1, n_images=8, random_state=0)
    stream = FeatureLearner(3, 4, random_state=0).partial_fit(data.images[:4], batch_size=2)
    stream.save(folder / "parts-stream.hcn")
    layers = [Layer(3, size=4, perturbation=0.2), Layer(pool_border="same")]
    network = HCN(layers, 2, random_state=0, max_iter=1)
    network.partial_fit(data.images, data.labels, batch_size=4).save(folder / "network-stream.hcn")
    several = HCN(layers, 2, random_state=0)
    several.set_weights(network.weights_, data.images.shape[-2:], ["a", "b"])
    several.save(folder / "network.hcn")
    several.with_class_layer(p_on=0.01).save(folder / "several.hcn")
    templates = TemplateClassifier(3, 4, 1, random_state=0).fit(data.images, data.labels)
    templates.save(folder / "templates.hcn")
    return folder


def run(folder, count, seed):
    program = Path(__file__).with_name("fuzzing.py")
    command = [sys.executable, program, folder, str(count), str(seed)]
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, "check": False}
    done = subprocess.run(command, timeout=60 + count / 2, **options)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    wrong = {what for what in result["told"] if not what[:4].islower()}
    assert not wrong, done.stderr[-3000:]
    assert result["memory"] <= 1
    print(f"seed {seed}: {result['slowest']:.1f} s at most, {result['memory']:.1%} of the memory")
    return Counter(result["told"])


def test_mutated_files_are_refused_or_usable(models):
    told = run(models, 1000, 0)
    assert told["refused"] > 300
    assert told["used"] > 50  # otherwise only the checksums were tested


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_100_000_mutated_files_are_refused_or_usable(models):
    told = sum((run(models, 10_000, seed) for seed in range(1, 11)), Counter())
    print(dict(told))
    assert sum(told.values()) == 100_000
