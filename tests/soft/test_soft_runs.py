"""Soft parts in processes of their own: threads, compiled code, and Ctrl-C."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
import numpy as np
from hcnet import FeatureLearner
from hcnet.datasets import scanned_text

page = scanned_text(size=(300, 600), random_state=0).images
model = FeatureLearner(algorithm="soft", random_state=0).fit(page)
mask = np.zeros(page.shape, bool)
mask[..., 100:120, 100:120] = True
arrays = model.feature_probabilities_, model.placements_, model.placements(page)
arrays += model.denoise(page), model.inpaint(page, mask), model._model.cost
for array in arrays:
    print(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16])
print(model.log_joint_.hex(), model.score(page).hex(), model._bits_saved(page, None).sum().hex())
"""

CTRL_C = """
import signal, sys
from hcnet import FeatureLearner
from hcnet.datasets import scanned_text

signal.signal(signal.SIGINT, signal.default_int_handler)
page = scanned_text(size=(300, 600), random_state=0).images

def ready(step):
    print("step", flush=True)
    if sys.stdin.readline() != "on\\n":
        signal.raise_signal(signal.SIGINT)

model = FeatureLearner(algorithm=sys.argv[1], random_state=0, callback=ready).fit(page)
print(model.status_, model.algorithm_, len(model.features_) > 3, model.denoise(page).shape)
"""


def run(**environment):
    command = [sys.executable, "-c", SCRIPT]
    given = os.environ | environment
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    return done.stdout


def test_any_number_of_threads_gives_the_same():
    alone = run(NUMBA_NUM_THREADS="1")
    assert len(alone.splitlines()) == 7
    assert run(NUMBA_NUM_THREADS="3", OPENBLAS_NUM_THREADS="1") == alone


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_process_that_compiles_gives_what_one_that_loads_gives(tmp_path):
    compiled = run(NUMBA_CACHE_DIR=str(tmp_path))
    code = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert run(NUMBA_CACHE_DIR=str(tmp_path)) == compiled == run()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == code != {}


@pytest.mark.parametrize(("algorithm", "steps"), [("soft", 1), ("soft", 6), ("auto", 3)])
def test_ctrl_c_leaves_a_usable_model(algorithm, steps):
    command = [sys.executable, "-c", CTRL_C, algorithm]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        for _ in range(steps):
            assert process.stdout.readline() == "step\n"
            process.stdin.write("on\n")
            process.stdin.flush()
        assert process.stdout.readline() == "step\n"
        process.stdin.write("stop\n")
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.startswith("Interrupted from the keyboard")
    assert out.endswith("soft True (1, 1, 300, 600)\n")
