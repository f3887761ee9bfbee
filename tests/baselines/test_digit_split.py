"""The benchmark of digits never tests on digits that were used to learn or to choose settings."""

import numpy as np
import pytest

from benchmarks.mnist_digits import MOST_PER_CLASS, N_HELD_OUT, N_VALIDATION, Split
from hcnet.datasets import MnistData


def numbered(n_train=4500, n_test=50):
    """Images that hold nothing but their number, so that they can be told apart."""
    numbers = np.arange(n_train + n_test)
    images = np.stack([numbers // 256, numbers % 256], axis=1).astype(np.uint8)[:, :, None]
    labels = np.random.default_rng(0).integers(10, size=len(images))
    return MnistData(images[:n_train], labels[:n_train], images[n_train:], labels[n_train:])


def test_no_digit_serves_two_purposes():
    split = Split(numbered())
    groups = [split.learning(MOST_PER_CLASS), split.held_out, split.validation, split.test]
    sizes = [10 * MOST_PER_CLASS, N_HELD_OUT, N_VALIDATION, 50]
    numbers = [256 * g.images[:, 0, 0].astype(int) + g.images[:, 1, 0] for g in groups]
    assert [len(set(group.tolist())) for group in numbers] == sizes
    assert len(set(np.concatenate(numbers).tolist())) == sum(sizes)
    with pytest.raises(ValueError, match="at most 100 digits of each class, got 101"):
        split.learning(MOST_PER_CLASS + 1)
