"""Standard streams that are closed or full, and machines without a GPU."""

import subprocess
import sys

import pytest
from running import inside, one_sentence

import hcnet


def shell(redirection, *words):
    """Run a command with redirected streams, as a shell does it."""
    command = ["sh", "-c", f'exec "$0" -m hcnet "$@" {redirection}', sys.executable]
    return subprocess.run(
        [*command, *map(str, words)], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", "2>&-"])
def test_a_command_with_closed_streams_does_its_work(redirection, parts, tmp_path):
    """No file gets the number of a closed stream, into which something else may write."""
    path = tmp_path / "named.hcn"
    names = tmp_path / "names.csv"
    names.write_text("part,name\n0,a\n")
    result = shell(redirection, "name", parts[0], names, "-o", path)
    assert (result.returncode, result.stderr) == (0, "")
    assert ("parts have names" in result.stdout) == (">&-" not in redirection.replace("2>&-", ""))
    assert hcnet.load(path).part_names_[0] == "a"
    assert sorted(tmp_path.iterdir()) == [path, names]


@pytest.mark.parametrize(
    "words", [["--help"], ["completion", "--help"], ["nonsense"], ["show", "x"]]
)
def test_what_cannot_be_said_is_not_said_elsewhere(words):
    """An error must not come out of standard output, where a result is expected."""
    result = shell("2>&-", *words)
    assert result.returncode == (0 if "--help" in words else 2 if words == ["nonsense"] else 1)
    assert ("usage" in result.stdout) == ("--help" in words)
    assert result.stderr == ""
    assert shell(">&-", *words).returncode == result.returncode


def test_a_full_disk_behind_standard_output_is_said_once():
    result = shell("> /dev/full", "completion", "bash")
    assert "no space left on device" in one_sentence(result).lower()


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]])
def test_a_reader_that_has_gone_is_no_error(words):
    command = '("$0" -m hcnet "$@"; echo $? >&2) | true'
    result = subprocess.run(
        ["sh", "-c", command, sys.executable, *words], capture_output=True, text=True, check=True
    )
    assert result.stderr.strip() in ("0", "141")  # 0: it was all written before the reader left


def test_a_gpu_that_is_not_there_is_a_sentence(folder, tmp_path):
    if hcnet.engine.engines.why_not_cuda() is None:
        pytest.skip("there is a GPU")
    words = "learn", folder / "bars0.npy", "--feature-size", 7, "-o", tmp_path / "parts.hcn"
    for more in (["--device", "cuda"], ["--device", "cuda", "--engine", "active"]):
        said = one_sentence(inside(*words, *more))
        assert said.startswith("--device cuda cannot be used: ")
        assert said.endswith("; pass --device cpu.")
    layers = "--layer", "n_features=3,size=3", "--layer", "templates"
    said = one_sentence(inside(*words[:2], *layers, *words[4:], "--device", "cuda"))
    assert said.startswith("--device cuda cannot be used: ")
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_compiled_code_is_a_sentence(parts):
    code = "import os, runpy, sys; os.environ['NUMBA_DISABLE_JIT'] = '1'; "
    code += "runpy.run_module('hcnet', run_name='__main__', alter_sys=True)"
    result = subprocess.run(
        [sys.executable, "-c", code, "show", str(parts[0])],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    said = "hcnet runs compiled code, and NUMBA_DISABLE_JIT forbids it; unset it."
    assert one_sentence(result) == said
