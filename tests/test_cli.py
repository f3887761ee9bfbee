"""The command as a person runs it: a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from hcnet import FeatureLearner, __version__

COMMAND = [sys.executable, "-m", "hcnet"]
PICTURES = ["image.png", "parts.png", "placements.png", "reconstruction.png", "overview.png"]


def hcnet(*arguments):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "image.png").write_text("left over from before")
    return hcnet("demo", "--output", folder), folder


def test_demo_finds_every_letter(demo):
    result, _ = demo
    assert result.returncode == 0, result.stderr
    assert "8 of 8" in result.stdout
    rows = [line for line in result.stdout.splitlines() if line.startswith("Wrong pixels")]
    assert rows[0].split()[2] == "0"


def test_demo_shows_progress_beside_the_results(demo):
    result, _ = demo
    assert "Refining" in result.stderr
    assert "Refining" not in result.stdout


def test_demo_writes_pictures_and_model(demo):
    _, folder = demo
    for name in PICTURES:
        with Image.open(folder / name) as picture:
            picture.verify()
    assert FeatureLearner.load(folder / "letters.hcn").features_.shape == (8, 1, 12, 12)


def test_demo_leaves_other_files_alone(demo):
    _, folder = demo
    assert (folder / "notes.txt").read_text() == "mine"
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        [*PICTURES, "letters.hcn", "notes.txt"]
    )


def test_version():
    result = hcnet("--version")
    assert result.stdout.strip() == f"hcnet {__version__}"
    assert result.returncode == 0


def test_command_line_imports_nothing_heavy_by_itself():
    code = (
        "import sys, hcnet; before = set(sys.modules); import hcnet.cli; "
        "print(*(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    added = {name.partition(".")[0] for name in result.stdout.split()}
    assert not added & {"numba", "numpy", "PIL", "scipy", "sklearn", "tqdm"}
    assert "hcnet.demo" not in result.stdout.split()


@pytest.mark.parametrize("below", ["", "folder"])
def test_file_in_the_way_is_one_sentence(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    result = hcnet("demo", "--output", tmp_path / "file" / below)
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert "--output" in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_folder_without_permission_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    # The superuser may write there all the same, but nobody may make files in /proc.
    folder = Path("/proc") if os.access(tmp_path, os.W_OK) else tmp_path
    result = hcnet("demo", "--output", folder)
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["demo"],
        ["demo", "--output", "x", "--seed", "-1"],
        ["demo", "--output", "x", "--seed", "a"],
    ],
)
def test_wrong_arguments_are_explained(arguments):
    result = hcnet(*arguments)
    assert result.returncode == 2
    assert "usage" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_interrupt_is_polite(tmp_path):
    # Tests in the background ignore Ctrl-C, and a child would inherit that.
    listening = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", listening, *COMMAND, "demo", "--output", str(tmp_path)],
        stderr=subprocess.PIPE,
    )
    try:
        said = b""
        while b"Message passing" not in said:
            more = os.read(process.stderr.fileno(), 4096)
            assert more, said
            said += more
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=120)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert said.rstrip().endswith(b"Interrupted.")
    assert list(tmp_path.iterdir()) == []
