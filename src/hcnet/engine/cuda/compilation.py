"""Numba's compiler for GPUs: the decorators, and the factor functions compiled with them.

Without a GPU the same code runs in Numba's CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types
from numba.cuda.core import config

from hcnet.engine.compilation import compile_factors
from hcnet.factors import HUGE

SIMULATED = bool(config.ENABLE_CUDASIM)
# Threads per block where threads do not cooperate.  The simulator starts a real thread for each.
THREADS = 1 if SIMULATED else 256
# Blocks that keep a whole GPU busy; further work is shared among them.
MOST_BLOCKS = 2 if SIMULATED else 4096
# Threads that run in lockstep.
WARP = 32

# With few images there are few blocks, and Numba would warn at every launch.
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

# A multiprocessor has so many registers, of which a thread can use so many.
_REGISTERS, _MOST_REGISTERS = 2**16, 248

Number = types.float32

kernel: Any = cuda.jit  # launched from Python
inlined: Any = cuda.jit(device=True, **({} if SIMULATED else {"forceinline": True}))


def kernel_for(threads: int) -> Any:
    """The decorator of a kernel of which a multiprocessor runs so many threads at a time."""
    if SIMULATED:
        return kernel
    return cuda.jit(max_registers=min(_REGISTERS // threads // 8 * 8, _MOST_REGISTERS))


def _instructions() -> dict[str, Any]:
    """Single instructions for `larger` and `smaller`; the simulator has none."""
    if SIMULATED:
        return {}
    from numba.cuda import libdevice

    @inlined
    def larger(a, b):
        return libdevice.fmaxf(a, b)

    @inlined
    def smaller(a, b):
        return libdevice.fminf(a, b)

    return {"larger": larger, "smaller": smaller}


compiled = compile_factors(inlined, np.float32, minus_infinity=-HUGE, primitives=_instructions())


def multiprocessors() -> int:
    """Multiprocessors of the GPU."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def blocks_for(n: int, threads: int = THREADS) -> int:
    """Number of blocks for a loop over n elements with a stride of all threads."""
    return max(min(-(-n // threads), MOST_BLOCKS), 1)
