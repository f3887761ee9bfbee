"""Processes that are killed in the middle of a fit, also while they write, and full disks."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fits import FITS, learned

import hcnet
from hcnet.archive.files import Reader

HERE = Path(__file__).parent


def start(name, folder, every=0.0, room=()):
    """Run a fit in a process of its own; returns when it begins."""
    paths = [str(Path(hcnet.__file__).parents[1]), str(HERE)]
    arguments = [name, folder / "fit.ckpt", every, folder / "result", *room]
    process = subprocess.Popen(
        [sys.executable, str(HERE / "fits.py"), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


def finish(process):
    """Wait for a process; what it said on the way."""
    _, said = process.communicate(timeout=250)
    assert process.returncode == 0, said
    return said


def kill_again_and_again(name, folder, times, seed):
    """Kill a fit so many times, each at a random moment; how often it came to its end.

    Whenever it does, what it has learned is compared, and it starts anew.
    """
    rng = np.random.default_rng(seed)
    whole, path, result = folder / "whole", folder / "fit.ckpt", folder / "result"
    whole.mkdir()
    process = start(name, whole)
    began = time.perf_counter()
    finish(process)
    seconds = time.perf_counter() - began
    kills = ends = 0
    ended = False
    while kills < times or not ended:
        result.unlink(missing_ok=True)
        with start(name, folder) as process:
            began = time.perf_counter()
            try:
                wait = float(rng.uniform(0, seconds / 2)) if kills < times else 250
                _, said = process.communicate(timeout=wait)
                seconds = min(seconds, time.perf_counter() - began)  # the first had to compile
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate(timeout=60)
        assert process.returncode <= 0, said
        kills += process.returncode < 0
        if path.exists():  # whole, whenever it was
            reader = Reader(path)
            with reader:
                assert reader.kind == "checkpoint"
        ended = process.returncode == 0
        if ended:
            ends += 1
            assert result.read_text() == (whole / "result").read_text()
            assert {file.name for file in folder.iterdir()} == {"fit.ckpt", "result", "whole"}
            path.unlink()
    return ends


def test_a_killed_fit_comes_to_the_same_end(tmp_path):
    assert kill_again_and_again("parts", tmp_path, 3, seed=0) >= 1


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_is_killed_many_times_comes_to_the_same_end(name, tmp_path):
    assert kill_again_and_again(name, tmp_path, 6, seed=1) >= 1  # twelve fits: 72 kills


def test_a_full_disk_is_said_and_does_not_stop_the_fit(tmp_path):
    said = finish(start("network", tmp_path, room=[5000]))
    assert "RuntimeWarning: The checkpoint" in said
    assert "could not be written ([Errno 27] File too large); learning goes on" in said
    assert "Traceback" not in said
    whole = learned(FITS["network"]())
    assert (tmp_path / "result").read_text() == "\n".join(whole)
    assert {file.name for file in tmp_path.iterdir()} == {"fit.ckpt", "result"}
    # What was written before is still there, and the next fit goes on from it.
    assert learned(FITS["network"](checkpoint=tmp_path / "fit.ckpt")) == whole


def test_a_disk_that_is_full_from_the_beginning_stops_the_fit_at_once(tmp_path):
    process = start("parts", tmp_path, room=[100])
    _, said = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "OSError: [Errno 27] File too large" in said
    assert list(tmp_path.iterdir()) == []
