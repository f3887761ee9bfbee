"""The benchmark of digits: who sees which of them, and a run over files written here."""

import gzip
import json

import numpy as np
import pytest
from scipy import ndimage
from sklearn.datasets import load_digits

from benchmarks import mnist as benchmark
from benchmarks.mnist_digits import MOST_PER_CLASS, N_HELD_OUT, N_VALIDATION, SETS, Split, corrupted
from hcnet.datasets import LabelledDigits, MnistData
from hcnet.datasets.corruptions import CORRUPTIONS


def numbered(n_train=4500, n_test=50):
    """Images that hold nothing but their number, so that they can be told apart."""
    rng = np.random.default_rng(0)
    numbers = np.arange(n_train + n_test)
    images = np.stack([numbers // 256, numbers % 256], axis=1).astype(np.uint8)[:, :, None]
    labels = rng.integers(10, size=len(images))
    return MnistData(images[:n_train], labels[:n_train], images[n_train:], labels[n_train:])


def numbers_of(digits):
    return set((256 * digits.images[:, 0, 0].astype(int) + digits.images[:, 1, 0]).tolist())


def test_no_digit_serves_two_purposes():
    split = Split(numbered())
    parts = [split.learning(MOST_PER_CLASS), split.held_out, split.validation, split.test]
    sizes = [10 * MOST_PER_CLASS, N_HELD_OUT, N_VALIDATION, 50]
    assert [len(part.labels) for part in parts] == sizes
    assert len(set.union(*map(numbers_of, parts))) == sum(sizes)
    assert numbers_of(split.test) == set(range(4500, 4550))
    for k in (1, 5, 40):
        assert numbers_of(split.learning(k)) < numbers_of(parts[0])


def test_nobody_learns_from_digits_that_settings_are_chosen_by():
    with pytest.raises(ValueError, match="at most 100 digits of each class, got 101"):
        Split(numbered()).learning(MOST_PER_CLASS + 1)


def test_every_corruption_is_applied_with_the_seed():
    digits = LabelledDigits(np.full((3, 28, 28), 200, np.uint8), np.arange(3))
    found = dict(corrupted(digits, SETS, seed=5))
    assert set(found) == {"clean", *CORRUPTIONS} == set(benchmark.PAPER)
    np.testing.assert_array_equal(found["clean"].images, digits.images)
    for name, corrupt in CORRUPTIONS.items():
        np.testing.assert_array_equal(found[name].images, corrupt(digits.images, random_state=5))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Digits of scikit-learn, enlarged and shifted, in the files of MNIST."""
    folder = tmp_path_factory.mktemp("mnist")
    data = load_digits()
    small = np.concatenate([data.images] * 3)
    labels = np.concatenate([data.target] * 3)
    large = ndimage.zoom(small / 16, (1, 2.5, 2.5), order=1, grid_mode=True, mode="nearest")
    images = np.zeros((len(large), 28, 28), np.uint8)
    for k, shift in enumerate((3, 4, 5)):
        own = slice(k * len(data.images), (k + 1) * len(data.images))
        images[own, shift : shift + 20, shift : shift + 20] = 255 * large[own].clip(0, 1)
    for name, part in (("train", slice(100, None)), ("t10k", slice(100))):
        for kind, array in (("images-idx3", images[part]), ("labels-idx1", labels[part])):
            sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
            content = bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content, 1))
    return folder


def test_a_quick_run_stores_and_shows_what_it_found(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HCNET_DATA", str(files))
    file = tmp_path / "rows.json"
    bench = benchmark.main(["--quick", "--only", "k-nn,lines removed: k-nn", "--json", str(file)])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == len(bench.rows) == 3 * len(SETS)
    assert {(r["on"], r["per_class"], r["tested"]) for r in rows} == {("validation", 10, 300)}
    errors = {(r["method"], r["corruption"]): r["wrong"] for r in rows}
    for method in ("k-NN, pixels", "k-NN, pooled edges"):
        assert errors[method, "clean"] < 0.5
        assert errors[method, "clean"] < errors[method, "deletion"]
    removed = "lines removed: k-NN, pixels"
    for name in SETS:
        assert errors[removed, name] <= errors["k-NN, pixels", name] + 0.02
    assert errors[removed, "grid"] < errors["k-NN, pixels", "grid"]
    shown = capsys.readouterr().out
    wrong = 100 * errors["k-NN, pixels", "grid"]
    line = next(line for line in shown.splitlines() if line.startswith("| grid"))
    assert "68.52" in line
    assert f"{wrong:.2f} ({wrong:.2f}–{wrong:.2f})" in line


def test_more_numbers_of_digits_make_a_second_table(files, monkeypatch):
    monkeypatch.setenv("HCNET_DATA", str(files))
    arguments = ["--only", "k-nn", "--seeds", "1", "--examples-per-class", "1,20"]
    rows = benchmark.main(arguments).rows
    assert {(r["on"], r["tested"], r["corruption"]) for r in rows} == {("test", 100, "clean")}
    assert len(rows) == 4
    second = benchmark.report(rows).split("\n\n")[1].splitlines()
    assert [line.split("|")[1].strip() for line in second[2:]] == ["1", "20"]
    wrong = {r["per_class"]: r["wrong"] for r in rows if r["method"] == "k-NN, pixels"}
    assert wrong[20] < wrong[1]


def test_without_data_the_benchmark_says_so_and_has_no_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HCNET_DATA", str(tmp_path))
    assert benchmark.main(["--quick"]).rows == []
    assert "must hold the four files of MNIST" in capsys.readouterr().out
