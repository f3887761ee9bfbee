"""`larger` and `smaller` as single instructions that LLVM also recognises in reductions.

Python's ``a if a > b else b`` compiles to the same instruction, but a running maximum
written with it is left scalar: LLVM vectorises one only where the operation itself says
that numbers are never NaN, and Numba does not put that flag on comparisons.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic


def _instruction(name: str) -> Any:
    def build(typing_context: Any, a: Any, b: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = args[0].type
            function = builder.module.declare_intrinsic(
                name, [kind], ir.FunctionType(kind, [kind, kind])
            )
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return a(a, a), emit

    return intrinsic(build)


PRIMITIVES = {"larger": _instruction("llvm.maxnum"), "smaller": _instruction("llvm.minnum")}
