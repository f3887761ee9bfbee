"""How Numba compiles for a GPU: the decorators, and the factor functions compiled with them.

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
# Threads of a block that has nothing to do together; the simulator starts a real one for each.
THREADS = 1 if SIMULATED else 256
# Blocks that keep all of a GPU busy; work beyond that is shared out among them.
MOST_BLOCKS = 2 if SIMULATED else 4096

# Blocks are few where there are few images, and Numba would say so every time.
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

# Threads that work in step; a processor has so many partitions for them, each with so many
# registers, of which a thread can have so many.
WARP = 32
_PARTITIONS, _REGISTERS, _MOST_REGISTERS = 4, 2**14, 248

Number = types.float32
_OPTIONS: dict[str, Any] = {} if SIMULATED else {"forceinline": True}

kernel: Any = cuda.jit  # started from Python


def kernel_for(threads: int) -> Any:
    """The same, for blocks of so many threads, which have to share the registers."""
    if SIMULATED:
        return kernel
    warps = -(-threads // (WARP * _PARTITIONS))
    each = _REGISTERS // (warps * WARP) // 8 * 8
    return cuda.jit(max_registers=min(each, _MOST_REGISTERS))


inlined: Any = cuda.jit(device=True, **_OPTIONS)  # called by kernels


def _instructions() -> dict[str, Any]:
    """One instruction for the larger and the smaller of two numbers; the simulator has none."""
    if SIMULATED:
        return {}
    from numba.cuda import libdevice

    @inlined
    def larger(a: Any, b: Any) -> Any:
        return libdevice.fmaxf(a, b)

    @inlined
    def smaller(a: Any, b: Any) -> Any:
        return libdevice.fminf(a, b)

    return {"larger": larger, "smaller": smaller}


compiled = compile_factors(inlined, np.float32, minus_infinity=-HUGE, primitives=_instructions())


def resident_blocks() -> int:
    """Blocks that can work at the same time, and so wait for each other."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def blocks_for(n: int, threads: int = THREADS) -> int:
    """Blocks for a loop over n numbers, of which each thread takes every so many."""
    return max(min(-(-n // threads), MOST_BLOCKS), 1)
