"""Rivals of the digits: what they compute, and that they are left out in a sentence."""

import numpy as np
import pytest

from benchmarks import mnist
from benchmarks.baselines import rcn, scattering
from benchmarks.other_corruptions import OTHERS
from benchmarks.own_environment import OwnEnvironment, UnavailableError


def test_the_nearest_subspace_is_that_of_the_class(monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 50, (60, 28, 28)).astype(np.uint8)
    labels = np.arange(60) % 3
    for k in range(3):
        images[labels == k, 5 * k : 5 * k + 5] += 150

    def plain(images, scales, create):
        return images.reshape(len(images), -1).astype(np.float32) * scales

    monkeypatch.setattr(scattering, "coefficients", plain)
    model = scattering.Scattering().fit(images[:30], labels[:30], (images[30:40], labels[30:40]))
    assert (model.predict(images[40:]) == labels[40:]).all()


def test_distances_from_a_subspace_are_those_of_geometry():
    space = np.array([1.0, 0, 0], np.float32), np.array([[0, 1.0, 0]], np.float32)
    seen = np.array([[1, 5, 2], [4, 7, 0]], np.float32)
    np.testing.assert_allclose(scattering._distances(seen, [space], 1), [[4], [9]])
    np.testing.assert_allclose(scattering._distances(seen, [space], 0), [[29], [58]])


def test_a_rival_whose_code_is_not_there_says_what_to_do(monkeypatch):
    monkeypatch.delenv(rcn.VARIABLE, raising=False)
    with pytest.raises(UnavailableError, match="SCIENCE_RCN must name the folder"):
        rcn.RCN().fit(np.zeros((1, 28, 28), np.uint8), np.zeros(1), None)


def test_an_environment_is_not_created_unless_asked():
    missing = OwnEnvironment("nothing of this name", (), "", "none.py")
    with pytest.raises(UnavailableError, match="is not there"):
        missing.python(create=False)


def test_every_other_corruption_changes_a_digit_and_keeps_it_in_range():
    image = np.zeros((28, 28))
    image[6:22, 12:16] = 1
    for name, change in OTHERS.items():
        changed = change(image, np.random.default_rng(0))
        assert changed.shape == image.shape, name
        assert changed.min() >= 0, name
        assert changed.max() <= 1, name
        assert np.abs(changed - image).max() > 0.1, name


def test_slow_rivals_are_methods_of_the_benchmark():
    assert set(mnist.SLOW) | set(mnist.FEW) <= set(mnist.METHODS)
