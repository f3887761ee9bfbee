"""The benchmark of peers works without them, and says why."""

import subprocess
import sys

import numpy as np
import pytest

from benchmarks import peers, pgmax_environment
from benchmarks.pgmax_environment import UnavailableError, python, solve
from hcnet.datasets import deconvolution


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A folder without an environment."""
    monkeypatch.setattr(pgmax_environment, "ROOT", tmp_path)
    monkeypatch.setattr(pgmax_environment, "FOLDER", tmp_path / "pgmax")
    return tmp_path / "pgmax"


def test_no_environment_is_created_unless_told(nowhere):
    with pytest.raises(UnavailableError, match="not there; without --quick it is created"):
        python(create=False)
    assert not nowhere.exists()


def test_an_environment_that_cannot_be_created_leaves_nothing(nowhere, monkeypatch, capsys):
    def fail(command, seconds):
        raise subprocess.CalledProcessError(1, "pip", stderr="WARNING: x\nERROR: no network\n\n")

    monkeypatch.setattr(pgmax_environment, "_run", fail)
    monkeypatch.setattr("venv.create", lambda folder, with_pip: folder.mkdir())
    with pytest.raises(UnavailableError, match="could not be created: ERROR: no network"):
        python(create=True)
    assert not nowhere.exists()
    assert capsys.readouterr().out.startswith("creating an environment for PGMax in pgmax")


def test_a_worker_that_fails_is_reported():
    """With an interpreter that has no PGMax."""
    with pytest.raises(UnavailableError, match=r"did not finish: .*No module named 'pgmax'"):
        solve(sys.executable, {"images": np.zeros((1, 1, 4, 4), bool)}, 60)


def test_a_peer_that_is_missing_is_in_the_table(capsys):
    text = peers.report([])
    capsys.readouterr()
    assert [line.split("|")[1].strip() for line in text.splitlines()[2:]] == list(peers.METHODS)
    assert text.count("not measured") == 8 * len(peers.METHODS)


@pytest.mark.parametrize("border", ["valid", "full"])
def test_ands_are_counted(border):
    """Pairs of a placement and a weight that meet on a pixel."""
    data = deconvolution(n_images=2, size=(8, 9), random_state=0)
    reach = range(3) if border == "valid" else range(-5, 8)
    across = range(4) if border == "valid" else range(-5, 9)
    wanted = sum(
        0 <= i + r < 8 and 0 <= j + c < 9
        for i in reach
        for j in across
        for r in range(6)
        for c in range(6)
    )
    assert peers.n_ands(data, border) == 2 * 5 * wanted
