"""hcnet bench, as a process."""

import json
import signal

import pytest
from running import Terminal, hcnet, inside

from hcnet import __version__
from hcnet.benchmark import measuring
from hcnet.benchmark.paper_images import PAPER_IMAGES
from hcnet.benchmark.sweeps import SHAPES
from hcnet.commands import bench


@pytest.fixture(scope="module")
def quick():
    result = hcnet("bench", "--quick", "--seed", 3, "--json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_learned_parts_are_as_good_as_the_true_ones(quick):
    rows = quick["parts"]
    assert [row["data"] for row in rows] == ["two bars", "symbols", "clean letters"]
    for row in rows:
        assert row["ratio"] <= 1.001 * row["ratio_true"]
        assert row["parts_exact"] == row["parts_true"] == row["parts"]
        assert row["ratio_paper"] == PAPER_IMAGES[row["data"]].ratio
        assert row["seed"] == 3
        assert 0 < row["seconds"] < 200


def test_the_network_makes_no_more_errors_than_the_true_one(quick):
    (row,) = quick["network"]
    assert row["error"] <= row["error_true"] + 0.01
    assert row["test_images"] == 1000


def test_a_sweep_takes_longer_than_a_copy_and_not_much_longer(quick):
    (row,) = quick["speed"]
    assert row["shape"] == next(iter(SHAPES))
    assert row["ands"] == 12 * 200 * 200 * 12 * 12
    assert 1 < row["ratio_to_copy"] < 30
    assert row["ratio_to_copy"] == pytest.approx(row["seconds_sweep"] / row["seconds_copy"])


def test_it_names_the_machine(quick):
    assert quick["environment"]["versions"]["hcnet"] == __version__
    assert quick["environment"]["processor"]


def test_people_get_a_table_of_what_they_ask_for(quick, monkeypatch):
    monkeypatch.setattr(
        measuring, "measure_all", lambda kinds, *how: {kind: quick[kind] for kind in kinds}
    )
    result = inside("bench", "speed", "--quick")
    assert result.returncode == 0, result.stderr
    about, _, title, header, row = result.stdout.splitlines()
    assert about.startswith(f"hcnet {__version__} on ")
    assert title.startswith("Speed: a sweep over all messages")
    assert header.split() == ["messages", "of", "million", "pairs", "sweep", "copy", "ratio"]
    assert "69.1" in row
    assert len(header) == len(row)


def test_every_kind_is_measured_and_has_a_table():
    assert bench.KINDS == measuring.KINDS == tuple(bench._TABLES)
    whole = [name for kind in bench.KINDS for name, _ in measuring._work(kind, False, 0)]
    assert whole == [*PAPER_IMAGES, "shapes", *SHAPES]


def test_what_cannot_be_measured_is_explained():
    result = inside("bench", "luck")
    assert result.returncode == 2
    assert "invalid choice: 'luck' (choose from" in result.stderr
    assert "network" in inside("completion", "words", "--", "bench", "").stdout.split()


def test_an_interrupt_ends_it():
    with Terminal("bench", "parts", listening=True) as terminal:
        terminal.wait_for(b"Measuring")
        terminal.process.send_signal(signal.SIGINT)
        printed, code = terminal.finish()
    assert code == 130
    assert printed == ""
    assert b"Traceback" not in terminal.said
