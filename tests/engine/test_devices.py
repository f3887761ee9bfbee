"""Where there is no GPU, that is said in a sentence, and "auto" does without."""

import os
import subprocess
import sys

import numpy as np
import pytest

from hcnet import FeatureLearner
from hcnet.engine.engines import Engine, NoDeviceError, ReadyEngine, why_not_cuda
from hcnet.memory import NotEnoughMemoryError, check_memory

NO_GPU = pytest.mark.skipif(why_not_cuda() is None, reason="there is a GPU")
X = np.kron(np.eye(4), np.ones((2, 2))) > 0


@NO_GPU
def test_cuda_without_a_gpu_is_a_sentence():
    with pytest.raises(NoDeviceError, match=r"^device='cuda' cannot be .*; pass device='cpu'"):
        FeatureLearner(2, 2, device="cuda").fit(X)


@NO_GPU
def test_auto_falls_back_and_says_so():
    with pytest.warns(UserWarning, match="The processor is used instead of a GPU: "):
        found = FeatureLearner(2, 2, device="auto", random_state=0).fit(X)
    wanted = FeatureLearner(2, 2, random_state=0).fit(X)
    np.testing.assert_array_equal(found.features_, wanted.features_)
    assert found.log_joint_ == wanted.log_joint_


def test_the_engine_of_the_processor_is_taken_as_it_is():
    assert Engine("dense").on("cpu") == ReadyEngine("dense")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"device": "gpu"}, "device must be one of 'cpu', 'cuda', 'auto', got 'gpu'"),
        ({"device": "cuda", "engine": "reference"}, "engine='reference' works on the processor"),
        ({"device": "cuda", "engine": "beliefs"}, "engine='beliefs' works on the processor alone"),
        ({"device": "cuda", "engine": "dense"}, "engine='dense' works on the processor alone"),
        ({"engine": "belief"}, "engine must be one of 'active', 'beliefs', 'dense', 'reference'"),
        ({"engine": Engine(schedule="random")}, "engine.schedule must be one of"),
    ],
)
def test_bad_parameters(parameters, problem):
    with pytest.raises(ValueError, match=problem):
        FeatureLearner(2, 2, **parameters).fit(X)


def test_memory_of_a_gpu():
    assert check_memory("Learning", 10, None, "learn less", gpu=10) == 10
    with pytest.raises(NotEnoughMemoryError, match=r"20 bytes on the GPU, which has 10 bytes free"):
        check_memory("Learning", 20, None, "learn less", gpu=10)


@NO_GPU
def test_a_model_learned_on_a_gpu_is_used_without_one(tmp_path):
    model = FeatureLearner(2, 2, random_state=0).fit(X).set_params(device="cuda")
    model.save(tmp_path / "model.hcn")
    code = f"import hcnet; print(hcnet.load({str(tmp_path / 'model.hcn')!r}).device)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "cuda"


def test_numba_cuda_that_is_missing_is_named(tmp_path):
    """In a process of its own, in which it cannot be imported."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['numba.cuda'] = None\n", encoding="utf-8"
    )
    code = "from hcnet.engine.engines import why_not_cuda; print(why_not_cuda())"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert "pip install 'hcnet[cuda]'" in done.stdout
