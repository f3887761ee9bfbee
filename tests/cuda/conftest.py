"""Tests of the CUDA engine: on a GPU, or in Numba's simulator (`make test`, `make test-gpu`)."""

import gc
import sys
import threading
import warnings

import pytest

with warnings.catch_warnings():  # with NumPy 2.5, importing numba-cuda raises one
    warnings.simplefilter("ignore", DeprecationWarning)
    from hcnet.engine.cuda.compilation import SIMULATED
    from hcnet.engine.engines import why_not_cuda

if SIMULATED:
    # Who waits in the simulator asks again and again; with Python's own interval it takes five
    # times as long.
    sys.setswitchinterval(1e-4)

    from numba.cuda.simulator import kernelapi

    class Allocations(dict):
        """Shared arrays of a block: who finds none is alone until there is one.

        In the simulator's own dictionary two threads that ask at once may get an array each.
        """

        def __init__(self):
            super().__init__()
            self._lock = threading.Lock()

        def get(self, caller):
            self._lock.acquire()
            found = super().get(caller)
            if found is not None:
                self._lock.release()
            return found

        def __setitem__(self, caller, array):
            super().__setitem__(caller, array)
            self._lock.release()

    class Shared(kernelapi.FakeCUDAShared):
        """The simulator's shared arrays, one for all threads."""

        def __init__(self, size):
            super().__init__(size)
            self._allocations = Allocations()

    kernelapi.FakeCUDAShared = Shared


def pytest_configure(config):
    """Deprecations inside Numba are not ours to mend."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:numba.*")


@pytest.fixture
def free_memory():
    """Asks how many bytes of the card are free, once what nobody can reach any more is given back.

    Else it would be given back while something else is measured.
    """
    from numba import cuda

    def ask():
        gc.collect()
        context = cuda.current_context()
        context.deallocations.clear()
        return context.get_memory_info().free

    return ask


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
