"""Compiles the factor functions: one source, any decorator, any float type."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from hcnet import factors
from hcnet.engine import planes
from hcnet.grid import to_steps


def compile_factors(
    decorator: Callable[[Any], Any],
    dtype: type[np.floating[Any]],
    minus_infinity: float,
    primitives: dict[str, Any] | None = None,
) -> types.SimpleNamespace:
    """Return the functions of `hcnet.factors` and `engine.planes`, compiled.

    And `TO_STEPS`, which `damped` wants for messages of this type.

    A compiled function can call only compiled functions and would compute in double
    precision with Python's constants.  Each function is therefore given a namespace of its
    own, in which the other functions are the compiled ones and the constants have the
    right type; its code stays the code in its module.  `primitives` are an engine's own
    machine instructions for `larger` and `smaller`.
    """
    namespace: dict[str, Any] = {
        "ZERO": dtype(factors.ZERO),
        "ONE": dtype(factors.ONE),
        "MINUS_INFINITY": dtype(minus_infinity),
        "HUGE": dtype(factors.HUGE),
        "POOL_TO_STEPS": planes.POOL_TO_STEPS,
        "OFF": planes.OFF,
        "UNDECIDED": planes.UNDECIDED,
        "ROUNDS": planes.ROUNDS,
        "np": np,
        "__name__": factors.__name__,
    }
    found = {}
    for module in (factors, planes):
        for name, source in vars(module).items():
            if isinstance(source, types.FunctionType) and source.__module__ == module.__name__:
                copy = types.FunctionType(source.__code__, namespace, name, source.__defaults__)
                found[name] = (primitives or {}).get(name) or decorator(copy)
    namespace |= found
    return types.SimpleNamespace(**found, TO_STEPS=to_steps(dtype))
