"""Tests of the CUDA engine: on a GPU, or in Numba's simulator (`make test`, `make test-gpu`)."""

import sys

import pytest

pytest.importorskip("numba_cuda", reason="pip install 'hcnet[cuda]'")

from hcnet.engine.cuda.compilation import SIMULATED
from hcnet.engine.devices import why_not_cuda

if SIMULATED:
    # Who waits in the simulator asks again and again; with Python's own interval it takes five
    # times as long.
    sys.setswitchinterval(1e-4)


def pytest_collection_modifyitems(items):
    problem = None if SIMULATED else why_not_cuda()
    for item in items:
        if "tests/cuda" not in item.path.as_posix():
            continue
        if problem is not None:
            item.add_marker(pytest.mark.skip(reason=problem))
        elif SIMULATED and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="too large for the simulator"))
