"""The same numbers whoever compiles: this process or one before it, for this machine or another."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import hashlib
import numpy as np
from hcnet.engine.dense import rebuild
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of

rng = np.random.default_rng(0)
shape = (20, 1, 21, 21)
images = Images(rng.random(shape) < 0.4, np.ones(shape, bool))
layer = FeatureLayer(4, 1, (5, 5), (21, 21), "full")
prior = np.full((1, 4, 5, 5), -1, np.float32)
engine = CPUEngine()
for name in SCHEDULE_NAMES:
    pixels = trees_of(images.observed, rng)
    messages = start_messages(layer, pixels, images.evidence(Noise(1e-3, 1e-3)), -1.0, prior)
    for array in (messages.to_field, messages.to_kernel):
        array[:] = rng.normal(0, 3, array.shape)
    messages.quiet[:] = 0
    rebuild(engine, messages)
    for _ in range(3):
        for batch in Schedule(name).batches(messages.images, rng):
            engine.update(messages, batch, 0.7)
    arrays = messages.field, messages.kernel, messages.to_field, messages.to_kernel
    print(name, *(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays))
"""


# What all learners do, down to the last bit of what they decide by.
FITS = """
import hashlib
import numpy as np
from hcnet import BooleanMatrixFactorization, Engine, FeatureLearner
from hcnet.datasets import boolean_matrix, letters, shapes
from benchmarks.shape_models import network

data = shapes(feature_size=15, random_state=1)
net = network(15, False, random_state=1, max_iter=16).fit(data.images)
page = letters(size=(80, 80), n_placements=25, noise=0.03, random_state=0)
parts = FeatureLearner(feature_size=12, random_state=0, n_init=2).fit(page.images)
engine = Engine(schedule="blocks", damping=0.7)
blocks = FeatureLearner(4, 5, algorithm="mpmp", engine=engine, random_state=0)
blocks.fit(page.images[:, :, :30, :30])
table = boolean_matrix(shape=(60, 40), rank=4, flips=0.02, observed=0.8, random_state=0)
bmf = BooleanMatrixFactorization(4, random_state=0).fit(table.table, mask=table.mask)
arrays = [*net.weights_, net.cluster(data.images), parts.features_, parts.placements_]
arrays += [blocks.features_]
arrays += [bmf.components_, bmf.codes_, parts.denoise(page.images), net.predict(data.images)]
for array in arrays:
    print(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16])
for number in (net.log_joint_, parts.log_joint_, blocks.log_joint_, bmf.log_joint_):
    print(f"{number:.9g}")
"""

# Machines that this one can stand in for, by the instructions that compilers, NumPy and BLAS may
# use: one of 2003, and one with fused multiplication but without AVX-512.
DISPATCHED = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
AVX512 = [name for name in DISPATCHED if name.startswith("AVX512") or name == "X86_V4"]
MACHINES = {
    "sse": {
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": "+sse2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
        "OPENBLAS_CORETYPE": "Prescott",
    },
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",
        "NPY_DISABLE_CPU_FEATURES": " ".join(AVX512),
        "OPENBLAS_CORETYPE": "Haswell",
    },
}


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    return done.stdout


def test_a_process_that_compiles_gives_the_messages_of_one_that_does_not(tmp_path):
    compiled = run(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path))
    code = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert run(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path)) == compiled
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == code != {}


x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86-64")


@x86
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("script", [SCRIPT, FITS], ids=["messages", "fits"])
def test_another_machine_gives_the_same(machine, script):
    assert run(script, **MACHINES[machine]) == run(script)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_first_fit_after_an_installation_gives_what_later_ones_give(tmp_path):
    first = run(FITS, NUMBA_CACHE_DIR=str(tmp_path))
    assert run(FITS, NUMBA_CACHE_DIR=str(tmp_path)) == first
    assert run(FITS, NUMBA_NUM_THREADS="1") == first
    assert run(FITS, NUMBA_NUM_THREADS="4", OPENBLAS_NUM_THREADS="1") == first
