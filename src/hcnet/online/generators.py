"""The state of a random generator, for files."""

from __future__ import annotations

from typing import Any

import numpy as np

_KIND = "PCG64"


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """What a generator of NumPy's default kind needs to go on."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    if state["bit_generator"] != _KIND:
        raise ValueError(
            f"A stream can be saved only with NumPy's default generator, {_KIND}, got "
            f"{state['bit_generator']}; pass a whole number or np.random.default_rng(seed) as "
            f"random_state."
        )
    return state


def restored_generator(state: dict[str, Any]) -> np.random.Generator:
    """A generator that goes on where another stopped."""
    if state["bit_generator"] != _KIND:
        raise ValueError(f"its generator is {state['bit_generator']!r}")
    rng = np.random.Generator(np.random.PCG64(0))
    rng.bit_generator.state = state
    return rng
