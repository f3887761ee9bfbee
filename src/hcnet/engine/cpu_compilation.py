"""How Numba compiles for the CPU: the decorators, and the factor functions compiled with them.

Every function that a compiled function calls is inlined into it.  A function left standing
would be compiled once on its own and once more with each of its callers, rounding differently,
and which of the copies a process runs would depend on which of them it loaded first: a run that
compiles would not give the same messages as a run that finds compiled code in Numba's cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

from hcnet.engine.compilation import compile_factors
from hcnet.engine.threads import over_lanes, over_threads, paced
from hcnet.factors import HUGE
from hcnet.grid import FLOAT

# Compilers may assume that no message is "not a number".  They may not assume that infinities are
# absent; and they may not reorder sums or round only once for a product and a sum: which of that
# they do depends on the machine, and on which way through a loop they take.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"nnan", "nsz"},
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
_LINE = 16  # float32 numbers in a line of cache

# Called by compiled functions alone: Python needs no way in.
_INNER: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True}

if nb.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise ImportError("hcnet runs compiled code, and NUMBA_DISABLE_JIT forbids it; unset it.")


class _Cache(FunctionCache):
    """Numba's cache, whose files may be damaged, and whose disk may be full, at any time."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a damaged file may raise anything
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]  # for those that come after
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:
            _tell_uncached(str(error))


def _tell_uncached(why: str) -> None:
    """Say once that there is no cache."""
    global _told
    if not _told:
        _told = True
        warnings.warn(
            f"Compiled code cannot be kept ({why}): every process compiles anew, for up to a few "
            f"minutes; set NUMBA_CACHE_DIR to a folder that can be written to.",
            RuntimeWarning,
            stacklevel=2,
        )


_told = False


def kept(**options: Any) -> Callable[[Any], Any]:
    """A decorator: compile a function, and keep the result for later processes where possible."""

    def decorate(kernel: Any) -> Any:
        compiled = nb.njit(**options)(kernel)
        try:
            compiled._cache = _Cache(kernel)  # type: ignore[no-untyped-call]
        except RuntimeError:  # no folder can be written to
            _tell_uncached("neither hcnet's folder nor the user's cache can be written to")
        return compiled

    return decorate


inlined: Any = nb.njit(forceinline=True, **_INNER)
called: Any = nb.njit(**_INNER)  # by several compiled functions, whose sums it keeps in order
entry: Any = kept(**_OPTIONS)  # called from Python


@inlined
def n_bits(x):  # type: ignore[no-untyped-def]
    """How many bits of a word are on; compilers know this as one instruction."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


def parallel(kernel: Any) -> Any:
    """The same, over threads: the kernel has the first and the last index as its arguments."""
    return over_threads(entry(kernel))


def laned(kernel: Any) -> Any:
    """The same, over lanes of trees; a single lane runs in pieces."""
    return over_lanes(entry(kernel))


def in_pieces(kernel: Any) -> Any:
    """The same, one index after the other: in pieces, between which a run can be ended."""
    return paced(entry(kernel))


def _instruction(name: str) -> Any:
    """A function of two numbers as one instruction that LLVM also recognises in reductions.

    Python's ``a if a > b else b`` compiles to the same instruction, but a running maximum
    written with it is left scalar: LLVM vectorises one only where the operation itself says
    that numbers are never NaN, and Numba does not put that flag on comparisons.
    """

    def build(typing_context: Any, a: Any, b: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = args[0].type
            function = builder.module.declare_intrinsic(
                name, [kind], ir.FunctionType(kind, [kind, kind])
            )
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return a(a, a), emit

    return intrinsic(build)


def _build_fetch(typing_context: Any, array: Any, at: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = args[0]
        if isinstance(signature.args[0], nb.types.Array):
            data = context.make_array(signature.args[0])(context, builder, data).data
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        line = builder.bitcast(builder.gep(data, [args[1]]), address)
        reading, second_level, of_data = number(0), number(2), number(1)
        builder.call(function, [line, reading, second_level, of_data])
        return context.get_dummy_value()

    return nb.void(array, at), emit


def _build_pointer(typing_context: Any, array: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    kind: Any = nb.types.CPointer
    return kind(array.dtype)(array), emit


_fetch_line: Any = intrinsic(_build_fetch)
# Where the numbers of an array are.  Passed on to functions, an array counts references and checks
# for negative indices: where a call has little to do, that takes longer.  Somebody must hold the
# array as long as the pointer is used: an argument of the function that is called from Python.
pointer: Any = intrinsic(_build_pointer)


@inlined
def prefetch(array: Any, at: Any, n: Any) -> None:
    """Have n numbers of an array or behind a pointer brought into cache meanwhile."""
    for j in range(np.uint64(0), n, np.uint64(_LINE)):
        _fetch_line(array, at + j)


larger = _instruction("llvm.maxnum")
compiled = compile_factors(
    inlined,
    FLOAT,
    minus_infinity=-HUGE,
    primitives={"larger": larger, "smaller": _instruction("llvm.minnum")},
)
