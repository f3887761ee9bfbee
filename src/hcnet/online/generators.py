"""The state of a random generator, for files."""

from __future__ import annotations

from typing import Any

import numpy as np

_KIND = "PCG64"


def saveable(rng: np.random.Generator) -> np.random.Generator:
    """The same generator, or one of NumPy's default kind seeded by it: only those can be saved."""
    if rng.bit_generator.state["bit_generator"] == _KIND:
        return rng
    return np.random.default_rng(rng.integers(2**32))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """What a generator needs to go on."""
    return dict(rng.bit_generator.state)


def restored_generator(state: dict[str, Any]) -> np.random.Generator:
    """A generator that goes on where another stopped."""
    if state["bit_generator"] != _KIND:
        raise ValueError(f"its generator is {state['bit_generator']!r}")
    rng = np.random.Generator(np.random.PCG64(0))
    rng.bit_generator.state = state
    return rng
