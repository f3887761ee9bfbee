"""Compiles the factor functions: one source, any decorator, any float type."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from hcnet import factors
from hcnet.engine import choices, planes
from hcnet.grid import to_steps

# Those that others call come first.
_FACTORS = (
    "larger",
    "smaller",
    "and_down",
    "and_up",
    "or_cap",
    "or_share",
    "or_up",
    "or_message",
    "second_largest",
    "merged_second",
    "or_answers",
    "or_messages",
    "or_outcome",
    "or_down",
    "or_merged",
    "tree_messages",
    "tree_down",
    "damped",
    "pool_up",
    "pool_down",
)
_PLANES = ("or_to_U", "pool_to_R", "max_pool", "pool_to_U", "or_to_S", "class_to_S")
_CHOICES = (
    "position",
    "gain",
    "good_positions",
    "leave",
    "move",
    "settle_plane",
    "choices_log_prior",
)
_NAMES = {factors: _FACTORS, planes: _PLANES, choices: _CHOICES}


def compile_factors(
    decorator: Callable[[Any], Any],
    dtype: type[np.floating[Any]],
    minus_infinity: float,
    primitives: dict[str, Any] | None = None,
) -> types.SimpleNamespace:
    """Return the functions of `hcnet.factors`, `engine.planes` and `engine.choices`, compiled.

    And `TO_STEPS`, which `damped` wants for messages of this type.


    A compiled function can call only compiled functions and would compute in double
    precision with Python's constants.  Each function is therefore given a namespace of its
    own, in which the functions before it are the compiled ones and the constants have the
    right type; its code stays the code in its module.  `primitives` are an engine's own
    machine instructions for `larger` and `smaller`.
    """
    namespace: dict[str, Any] = {
        "ZERO": dtype(factors.ZERO),
        "ONE": dtype(factors.ONE),
        "MINUS_INFINITY": dtype(minus_infinity),
        "HUGE": dtype(factors.HUGE),
        "POOL_TO_STEPS": planes.POOL_TO_STEPS,
        "OFF": choices.OFF,
        "UNDECIDED": choices.UNDECIDED,
        "ROUNDS": choices.ROUNDS,
        "np": np,
        "__name__": factors.__name__,
    }
    found = {}
    for module, names in _NAMES.items():
        for name in names:
            source = getattr(module, name)
            copy = types.FunctionType(source.__code__, namespace, name, source.__defaults__)
            found[name] = namespace[name] = (primitives or {}).get(name) or decorator(copy)
    return types.SimpleNamespace(**found, TO_STEPS=to_steps(dtype))
