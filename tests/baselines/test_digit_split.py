"""The benchmark of digits never tests on digits that were used to learn or to choose settings."""

import numpy as np
import pytest

from benchmarks.mnist_digits import MOST_PER_CLASS, N_HELD_OUT, N_VALIDATION, Split, further_sets
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


def test_further_digits_come_by_the_names_of_their_arrays(tmp_path):
    file, y = tmp_path / "more.npz", np.arange(4)
    sets = {name: np.full((4, 28, 28), k, np.uint8) for k, name in enumerate(("fog", "blur"))}
    np.savez(file, y=y, **sets)
    found = further_sets(file)
    assert list(found) == ["fog", "blur"]
    for name, digits in found.items():
        np.testing.assert_array_equal(digits.images, sets[name])
        np.testing.assert_array_equal(digits.labels, y)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"fog": np.zeros((2, 28, 28), np.uint8)}, "y is missing beside fog"),
        ({"y": np.zeros(2, int)}, "beside nothing else"),
        ({"y": np.zeros(2), "fog": np.zeros((2, 28, 28), np.uint8)}, "y is float64"),
        ({"y": np.zeros(3, int), "fog": np.zeros((2, 28, 28), np.uint8)}, "fog in .* 3 labels"),
        ({"y": np.zeros(2, int), "fog": np.zeros((2, 28, 28))}, "it is float64"),
        ({"y": np.array([None, 1]), "fog": np.zeros((2, 28, 28))}, "cannot be read"),
    ],
)
def test_files_of_further_digits_that_are_no_good_are_refused(tmp_path, arrays, message):
    file = tmp_path / "more.npz"
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match=message):
        further_sets(file)
    file.write_bytes(b"PK")
    with pytest.raises(ValueError, match="cannot be read"):
        further_sets(file)
