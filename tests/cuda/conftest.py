"""Tests of the CUDA engine: on a GPU, or in Numba's simulator (`make test`, `make test-gpu`)."""

import sys

import pytest

from hcnet.engine.cuda.compilation import SIMULATED
from hcnet.engine.devices import why_not_cuda

if SIMULATED:
    # Who waits in the simulator asks again and again; with Python's own interval it takes five
    # times as long.
    sys.setswitchinterval(1e-4)


def pytest_collection_modifyitems(config, items):
    """Without a GPU nothing is skipped in silence; the simulator leaves out what is too large."""
    if not SIMULATED:
        problem = why_not_cuda()
        if problem is not None:
            raise pytest.UsageError(f"{problem}; NUMBA_ENABLE_CUDASIM=1 runs the small tests")
        return
    large = [item for item in items if item.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=large)
    items[:] = [item for item in items if item not in large]
