"""The command line, whatever is typed: an exit code and a line, never a traceback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import about

from hcnet.cli import main

WORDS = ["demo", "demos", "--seed", "--seed=-1", "--seed=1e3", "0", "-1", "x", "--bogus", "-h"]


@given(st.lists(st.sampled_from([*WORDS, "--version", "--output", "--output=a file"]), max_size=5))
@about(examples=60)
def test_any_words(tmp_path, capsys, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("mine")
    # The folder that a demonstration would write to is a file in every case.
    (tmp_path / "x").write_text("mine")
    (tmp_path / "0").write_text("mine")
    (tmp_path / "demo").write_text("mine")
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    shown = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in shown.out + shown.err
    if code:
        assert "error:" in shown.err
        assert len(shown.err.strip().splitlines()) <= 4
    assert (tmp_path / "a file").read_text() == "mine"


@pytest.mark.parametrize("folder", ["a file", "a file/b"])
def test_a_file_in_the_way_is_left_alone(tmp_path, capsys, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("mine")
    assert main(["demo", "--output", folder]) == 1
    assert "choose another" in capsys.readouterr().err
    assert (tmp_path / "a file").read_text() == "mine"
