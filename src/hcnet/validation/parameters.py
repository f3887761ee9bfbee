"""Checks on estimators: their parameters, and whether they are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hcnet.checks import check_choice, check_number, check_optional_count, check_pair
from hcnet.engine.engines import DEFAULT_ENGINE, DEVICE_NAMES, ENGINE_NAMES, Engine, ReadyEngine
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.learning.options import ALGORITHMS, LearningOptions
from hcnet.objective import Priors


def check_priors(estimator: Any) -> Priors:
    """The four probabilities of an estimator; None leaves one to be estimated."""
    names = ("p_S", "p_W", "p01", "p10")
    given = {name: getattr(estimator, name) for name in names}
    for name, value in given.items():
        if value is not None:
            given[name] = check_rare(name, value, "leave it None to have it estimated")
    if (given["p01"] is None) != (given["p10"] is None):
        raise ValueError(
            f"p01 and p10 must be given together or not at all, got p01={estimator.p01!r} and "
            f"p10={estimator.p10!r}; for symmetric noise pass the same number twice."
        )
    return Priors(**given)


def check_rare(name: str, value: float, hint: str) -> float:
    """The probability of something that is rarer than not, and never impossible."""
    why = "placements and weights are rarer than not"
    if name in ("p01", "p10"):
        why = "noise of one half would carry no information"
    return check_number(name, value, above=0, below=0.5, note=f" ({why})", hint=hint)


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
    """A remedy if the last axis of images seems to hold colours; otherwise nothing."""
    if shape[-1] not in (3, 4):
        return ""
    return (
        f"; if the {shape[-1]} of the last axis are colours, they must come before height and "
        f"width: np.moveaxis(X, -1, -3), and [None] after it for one image"
    )


def check_max_memory(value: int | None) -> int | None:
    """Bytes that may be taken, or None."""
    return check_optional_count("max_memory", value, 1, "for no limit")


def check_share(name: str, value: float) -> float:
    """A number from 0 to 1."""
    return check_number(name, value, least=0, most=1)


def check_waiting(name: str, value: float) -> float:
    """Seconds, 0 among them."""
    return check_number(name, value, least=0, most=1e9, note=" seconds", hint="0: every step")


def check_positive(name: str, value: float | None) -> float | None:
    """A positive number, or None."""
    if value is None:
        return None
    return check_number(name, value, above=0, note=", or None for no limit")


def check_damping(value: float, name: str = "damping") -> float:
    """The share of a new message that is taken: 0 < damping <= 1."""
    return check_number(name, value, above=0, most=1, note=" (1: messages are replaced)")


def check_engine(estimator: Any, ready: bool, damping: float | None = 1.0) -> ReadyEngine:
    """The engine of an estimator, on its device.

    The device is looked for if it is to be `ready`: a model may be loaded where it is missing.
    `damping` is that of an engine given by its name; None: the estimator has its own.
    """
    engine, device = estimator.engine, check_choice("device", estimator.device, DEVICE_NAMES)
    if not isinstance(engine, Engine):
        engine = Engine(check_choice("engine", engine, ENGINE_NAMES), damping=damping or 1.0)
    check_choice("engine.name", engine.name, ENGINE_NAMES)
    check_damping(engine.damping, "engine.damping")
    if engine.schedule is not None:
        check_choice("engine.schedule", engine.schedule, SCHEDULE_NAMES)
    if damping is None and engine.damping != 1.0:
        raise ValueError(
            f"engine.damping must be 1 here, got {engine.damping:g}: each layer has a damping of "
            f"its own; pass Layer(..., damping={engine.damping:g})."
        )
    if engine.name != DEFAULT_ENGINE:
        if device == "cuda":
            raise ValueError(
                f"engine={engine.name!r} works on the processor alone; pass device='cpu', or "
                f"another engine."
            )
        device = "cpu"
    return engine.on(device if ready else "cpu")


def is_network(model: Any) -> bool:
    """Whether a fitted estimator is a network; an error unless it learned from images."""
    check_is_fitted(model)
    if not hasattr(model, "weights_") and not hasattr(model, "features_"):
        raise TypeError(
            f"model must have learned from images, and {type(model).__name__} learns from a table; "
            f"pass a fitted FeatureLearner, HCN or TemplateClassifier."
        )
    return hasattr(model, "weights_")


def check_learning(
    estimator: Any, ready: bool, damping: float = 1.0, least_sweeps: int = 0
) -> LearningOptions:
    """How a single layer is learned; `ready` and `damping` as in `check_engine`."""
    sweeps = check_optional_count("max_iter", estimator.max_iter, least_sweeps, "for the default")
    return LearningOptions(
        algorithm=check_choice("algorithm", estimator.algorithm, ALGORITHMS),  # type: ignore[arg-type]
        engine=check_engine(estimator, ready, damping),
        n_init=check_optional_count("n_init", estimator.n_init, 1, "for the default"),
        max_iter=sweeps,
        max_seconds=check_positive("max_seconds", estimator.max_seconds),
        max_memory=check_max_memory(estimator.max_memory),
    )
