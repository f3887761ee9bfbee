"""PyBMF in its own environment, and what the benchmark does without it."""

import numpy as np
import pytest

from benchmarks import bmf_tables
from benchmarks.baselines import pybmf
from benchmarks.harness import Benchmark
from benchmarks.own_environment import UnavailableError


@pytest.fixture(scope="module")
def environment():
    """Created at first use, which downloads some 200 MB."""
    try:
        return pybmf.PYBMF.python(create=True)
    except UnavailableError as reason:
        pytest.skip(f"PyBMF is not tested: {reason}")


def blocks():
    X = np.zeros((12, 10))
    X[:4, :4], X[4:7, 4:7], X[7:, 7:] = 1, 1, 1
    return X


@pytest.mark.parametrize("method", pybmf.METHODS)
def test_disjoint_blocks_are_recovered_with_a_component_to_spare(environment, method):
    found = pybmf.pybmf(blocks(), 4, method, seeds=range(1), create=False)
    np.testing.assert_array_equal(found.product, blocks() == 1)
    assert found.seconds > 0


def test_elbmf_sees_no_missing_entry(environment):
    X = blocks()
    X[0, 1] = X[5, 5] = X[9, 8] = np.nan  # as zeros they would be errors of the blocks
    found = pybmf.pybmf(X, 3, "ELBMF", seeds=range(1), create=False)
    np.testing.assert_array_equal(found.product, blocks() == 1)


def test_an_empty_table_has_an_empty_product(environment):
    for method in ("Asso", "GreConD", "MEBF"):
        found = pybmf.pybmf(np.zeros((4, 5)), 2, method, seeds=[0], create=False)
        assert found.product.shape == (4, 5)
        assert not found.product.any()


def test_without_its_environment_the_others_are_still_measured(monkeypatch, tmp_path, capsys):
    def missing(create):
        assert not create  # a quick run downloads nothing
        raise UnavailableError("its environment is not there")

    monkeypatch.setattr(bmf_tables.pybmf, "PYBMF", type("", (), {"python": staticmethod(missing)}))
    np.savetxt(tmp_path / "blocks.txt", blocks(), fmt="%g")
    bench = Benchmark("bmf", "")
    bmf_tables.run_tables(bench, tmp_path, range(1), quick=True, only="error,asso,mebf")
    text = bmf_tables.report_tables(bench.rows)
    assert "PyBMF is not measured: its environment is not there." in capsys.readouterr().out
    assert "Asso, ours" in text
    assert "PyBMF" not in text


def test_a_method_that_does_not_finish_is_told_of_and_left_out(monkeypatch, tmp_path, capsys):
    def late(*arguments, **options):
        raise UnavailableError("it did not finish: time is up")

    monkeypatch.setattr(bmf_tables.pybmf, "pybmf", late)
    monkeypatch.setattr(bmf_tables, "available", lambda methods, create: methods)
    np.savetxt(tmp_path / "blocks.txt", blocks(), fmt="%g")
    bench = Benchmark("bmf", "")
    bmf_tables.run_tables(bench, tmp_path, range(1), quick=True, only="mebf,asso")
    assert {row["method"] for row in bench.rows} == {"Asso, ours"}
    told = capsys.readouterr().out
    assert "MEBF, PyBMF is not measured on blocks, rank 2: it did not finish" in told
