"""The state of a random generator, for files."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.archive.fields import named

_KIND = "PCG64"


def saveable(rng: np.random.Generator) -> np.random.Generator:
    """The same generator, or one of NumPy's default kind seeded by it: models save only those."""
    if rng.bit_generator.state["bit_generator"] == _KIND:
        return rng
    return np.random.default_rng(rng.integers(2**32))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """What a generator of any kind needs to go on, as plain numbers."""
    plain: dict[str, Any] = _plain(rng.bit_generator.state)
    return plain


def restore_generator(rng: np.random.Generator, state: Any) -> None:
    """Let a generator go on where another of its kind stopped."""
    own = rng.bit_generator.state
    if named("generator", state).get("bit_generator") != own["bit_generator"]:
        raise ValueError("its generator is of another kind")
    rng.bit_generator.state = _like(own, state)


def restored_generator(state: Any) -> np.random.Generator:
    """A generator that goes on where another stopped."""
    rng = np.random.Generator(np.random.PCG64(0))
    restore_generator(rng, state)
    return rng


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _like(own: Any, value: Any) -> Any:
    """A state from a file, which must look like the one that the generator has."""
    if isinstance(own, dict):
        return {key: _like(each, named("generator", value)[key]) for key, each in own.items()}
    if isinstance(own, np.ndarray):
        array = np.asarray(value, own.dtype)
        if array.shape != own.shape:
            raise ValueError("its generator is incomplete")
        return array
    whole_ = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**128
    if not (value == own if isinstance(own, str) else whole_):
        raise ValueError("its generator is none")
    return value
