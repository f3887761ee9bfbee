"""Random commands on random files: no traceback, nothing lost, no rubbish, memory flat."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def soak(folder, seconds, seed):
    """The figures of a soak in a process of its own."""
    words = [sys.executable, Path(__file__).with_name("soak.py"), folder, str(seconds), str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 900, check=False)
    *_, figures = f"\n{done.stdout}".partition("\n{")
    assert figures, done.stdout + done.stderr
    return json.loads("{" + figures)


def test_random_commands_leave_nothing_behind(tmp_path):
    figures = soak(tmp_path, 15, seed=0)
    assert figures["problems"] == []
    assert figures["counts"]["commands"] > 3


@pytest.mark.long
@pytest.mark.timeout(9000)
def test_two_hours_of_random_commands_leave_nothing_behind(tmp_path):
    figures = soak(tmp_path, 7200, seed=1)
    assert figures["problems"] == []
    samples = figures["seconds, MiB, compiled functions, modules"]
    _, before, functions, _ = samples[len(samples) // 4]
    _, after, more, _ = samples[-1]
    # Compiled code is loaded when it is first needed, with half a megabyte or one each.
    assert after < before + 24 + 2 * (more - functions)
