"""Checks on the parameters of estimators."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hcnet.engine.choice import DEFAULT_ENGINE, ENGINE_NAMES, preset_schedule
from hcnet.engine.devices import DEVICE_NAMES, engine_on
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.learning.options import ALGORITHMS
from hcnet.objective import Priors
from hcnet.whole_files import file_path


def check_priors(estimator: Any) -> Priors:
    """The four probabilities of an estimator, each given or open."""
    names = ("p_S", "p_W", "p01", "p10")
    given = {name: check_probability(name, getattr(estimator, name)) for name in names}
    if (given["p01"] is None) != (given["p10"] is None):
        raise ValueError(
            f"p01 and p10 must be given together or not at all, got p01={estimator.p01!r} and "
            f"p10={estimator.p10!r}; for symmetric noise pass the same number twice."
        )
    return Priors(**given)


def is_number(value: Any) -> bool:
    """A real number, and not a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """A whole number of at least 1."""
    return is_number(value) and isinstance(value, numbers.Integral) and int(value) >= 1


def check_pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """One positive whole number, or two (height, width)."""
    pair: Any = value.tolist() if isinstance(value, np.ndarray) else value
    if is_count(pair):
        pair = (pair, pair)
    if not isinstance(pair, Sequence) or len(pair) != 2 or not all(map(is_count, pair)):
        raise ValueError(
            f"{name} must be one positive whole number or two (height, width), got {value!r}."
        )
    return int(pair[0]), int(pair[1])


def check_feature_size(
    feature_size: int | Sequence[int], image_size: tuple[int, int], border: str
) -> tuple[int, int]:
    """Height and width of the features, not larger than the image."""
    h, w = check_pair("feature_size", feature_size)
    if h > image_size[0] or w > image_size[1]:
        raise ValueError(
            f"feature_size {h}×{w} is larger than the images, {image_size[0]}×{image_size[1]}; "
            f"choose a window at most as large as the image, about the size of one part"
            f"{colours_hint(image_size)}."
        )
    check_choice("border", border, ("full", "valid"))
    return h, w


def colours_hint(shape: Sequence[int]) -> str:
    """What to do if the last axis of images holds colours; nothing where it cannot."""
    if shape[-1] not in (3, 4):
        return ""
    return (
        f"; if the {shape[-1]} of the last axis are colours, they must come before height and "
        f"width: np.moveaxis(X, -1, -3), and [None] after it for one image"
    )


def check_probability(name: str, value: float | None) -> float | None:
    """A probability strictly between 0 and 0.5, or None."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real) or not 0 < value < 0.5:
        hint = "noise of one half would carry no information"
        if name in ("p_S", "p_W"):
            hint = "placements and weights are rarer than not"
        raise ValueError(
            f"{name} must lie strictly between 0 and 0.5 ({hint}), got {value!r}; leave it None "
            f"to have it estimated."
        )
    return float(value)


def check_count(name: str, value: int | None, least: int, or_else: str) -> int | None:
    """A whole number of at least `least`, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(
            f"{name} must be a whole number of at least {least}, or {or_else}, got {value!r}."
        )
    return int(value)


def check_max_memory(value: int | None) -> int | None:
    """Bytes that may be taken, or None."""
    return check_count("max_memory", value, 1, "None for no limit")


def check_needed(name: str, value: int) -> int:
    """A whole number of at least 1."""
    if not is_count(value):
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def check_share(name: str, value: float) -> float:
    """A number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}.")
    return float(value)


def check_waiting(name: str, value: float) -> float:
    """Seconds, 0 among them."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise ValueError(
            f"{name} must be a number of seconds of at least 0 (0: after every step), got "
            f"{value!r}."
        )
    return float(value)


def check_path(name: str, value: Any) -> Path:
    """The path of a file that is there, or can be made."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be the path of a file, or None, got {value!r}.")
    path = file_path(value)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    return path


def check_positive(name: str, value: float | None) -> float | None:
    """A positive number, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not value > 0:
        raise ValueError(f"{name} must be a positive number, or None for no limit, got {value!r}.")
    return float(value)


def check_damping(value: float, name: str = "damping") -> float:
    """The share of a new message that is taken: 0 < damping <= 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value <= 1:
        raise ValueError(
            f"{name} must be larger than 0 and at most 1 (1: messages are replaced), got {value!r}."
        )
    return float(value)


def check_random_state(value: Any) -> np.random.Generator:
    """A random generator from a seed, a generator, or nothing."""
    if isinstance(value, np.random.RandomState):
        value = np.random.Generator(value._bit_generator)
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a whole number of at least 0 or a "
            f"numpy.random.Generator, got {value!r}."
        ) from None


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {words}, got {value!r}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """True or False, or a number that counts as one of them."""
    if not isinstance(value, bool | np.bool_ | numbers.Integral):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_algorithm(value: str) -> str:
    """A learning algorithm."""
    return check_choice("algorithm", value, ALGORITHMS)


def check_engine(estimator: Any, ready: bool, engine: str = DEFAULT_ENGINE) -> tuple[str, Schedule]:
    """What passes the messages of an estimator, and in which order.

    The device is looked for if it is to be `ready`: a model may be loaded where it is missing.
    """
    engine = check_choice("engine", getattr(estimator, "engine", engine), ENGINE_NAMES)
    device = check_choice("device", estimator.device, DEVICE_NAMES)
    deterministic = check_flag("deterministic", estimator.deterministic)
    if engine != DEFAULT_ENGINE:
        if device == "cuda":
            raise ValueError(
                f"engine={engine!r} works on the processor alone; pass device='cpu', or another "
                f"engine."
            )
        device = "cpu"
    schedule = estimator.schedule
    if schedule is not None:
        check_choice("schedule", schedule, SCHEDULE_NAMES)
    if ready:
        engine = engine_on(device, engine, deterministic)
    return engine, preset_schedule(engine) if schedule is None else Schedule(schedule)
