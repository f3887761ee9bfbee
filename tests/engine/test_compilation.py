"""The same numbers whoever compiles: this process or one before it, for this machine or another."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hcnet

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


KERNEL = """
import numpy as np
from hcnet.hierarchy.convolution import bconv
ones = np.ones((1, 1, 2, 2), bool)
print(bconv(ones, ones).sum(), bconv(ones, ones).sum())
"""
# And whatever is compiled elsewhere.
ALL_KERNELS = f"{KERNEL}import hcnet.codec, hcnet.preprocessing, hcnet.estimators.hcn"


def results(script=KERNEL, before="", **environment):
    """What a script prints, and the lines of warnings."""
    command = ["sh", "-c", f'{before} exec "$0" -c "$1"', sys.executable, script]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [line for line in done.stderr.splitlines() if "Warning" in line]


def test_an_installation_that_cannot_be_written_to_compiles_without_a_cache(tmp_path):
    """Also for the administrator, who may write into every folder, but not into a file."""
    package = Path(hcnet.__file__).parent
    shutil.copytree(
        package, tmp_path / "hcnet", ignore=lambda folder, names: {"__pycache__"} & {*names}
    )
    for folder in [*(tmp_path / "hcnet").rglob("*"), tmp_path / "hcnet"]:
        if folder.is_dir():
            (folder / "__pycache__").touch()
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": f"{os.devnull}/cache"}
    found, warned = results(
        ALL_KERNELS, "unset NUMBA_CACHE_DIR;", PYTHONPATH=str(tmp_path), **nowhere
    )
    assert found == ["9", "9"]
    assert len(warned) == 1
    assert "Compiled code cannot be kept (neither hcnet's folder nor" in warned[0]
    assert "set NUMBA_CACHE_DIR to a folder" in warned[0]
    kept = str(tmp_path / "kept")
    assert results(PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=kept, **nowhere) == (["9", "9"], [])


def test_a_damaged_cache_is_compiled_anew(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert results(**cache) == (["9", "9"], [])
    whole = {path.name: path.stat().st_size for path in tmp_path.rglob("*.nbc")}
    index, *_ = tmp_path.rglob("*.nbi")
    index.write_bytes(index.read_bytes()[:20])
    assert results(**cache) == (["9", "9"], [])
    assert {path.name: path.stat().st_size for path in tmp_path.rglob("*.nbc")} == whole != {}
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:20])
    assert results(**cache) == (["9", "9"], [])
    assert {path.name: path.stat().st_size for path in tmp_path.rglob("*.nbc")} == whole


def test_a_full_disk_only_costs_the_cache(tmp_path):
    full = "trap '' XFSZ; ulimit -f 1;"  # no file may have more than a block
    found, warned = results(before=full, NUMBA_CACHE_DIR=str(tmp_path))
    assert found == ["9", "9"]
    assert len(warned) == 1
    assert "cannot be kept ([Errno 27] File too large): every process" in warned[0]


def test_without_compiled_code_there_is_a_sentence():
    command = [sys.executable, "-c", "import hcnet; hcnet.FeatureLearner"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    last = "ImportError: hcnet runs compiled code, and NUMBA_DISABLE_JIT forbids it; unset it."
    assert done.stderr.splitlines()[-1] == last
