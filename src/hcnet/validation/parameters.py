"""Checks on the parameters of estimators, the layers of a network, and labels."""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from hcnet.checks import (
    as_array,
    check_choice,
    check_count,
    check_number,
    check_optional_count,
    check_pair,
)
from hcnet.engine.engines import DEFAULT_ENGINE, Engine, ReadyEngine
from hcnet.hierarchy.inference import METHODS, Inference
from hcnet.images import BoolArray, Noise
from hcnet.layers import ClassLayer, equal_classes
from hcnet.learning.learn import LearningOptions
from hcnet.names import DEVICE_NAMES, ENGINE_NAMES, EXACT_ALGORITHMS, SCHEDULE_NAMES
from hcnet.objective import Priors
from hcnet.validation.images import check_binary, colours_hint

UNLABELLED = -1
# More passes than anybody needs: a file that asks for more is meant to keep its reader busy.
MOST_PASSES = 1000
# More starts than anybody waits for: a number like this is a mistake.
MOST_STARTS = 10**6
# More would fill the memory before anything could say how much a network takes.
MOST_TEMPLATES = 2**20
# Characters of the name of a part: a ligature, a word of a logotype.
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Labels:
    """The classes, and the class number of every image (-1: unlabelled)."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]


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


def check_max_memory(value: int | None) -> int | None:
    """Bytes that may be taken, or None."""
    return check_optional_count("max_memory", value, 1, "for no limit")


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


def check_has_parts(model: Any) -> None:
    """Raise an error unless this is a fitted `FeatureLearner`."""
    if is_network(model):
        raise TypeError(
            f"model must have parts without layers, and {type(model).__name__} is a network; pass "
            f"a fitted FeatureLearner."
        )


def check_learning(
    estimator: Any,
    ready: bool,
    damping: float = 1.0,
    least_sweeps: int = 0,
    algorithms: Sequence[str] = EXACT_ALGORITHMS,
) -> LearningOptions:
    """How a single layer is learned; `ready` and `damping` as in `check_engine`."""
    algorithm = check_choice("algorithm", estimator.algorithm, algorithms)
    sweeps = check_optional_count("max_iter", estimator.max_iter, least_sweeps, "for the default")
    return LearningOptions(
        algorithm="mpmp" if algorithm == "mpmp" else "refined",
        engine=check_engine(estimator, ready, damping),
        n_init=check_optional_count("n_init", estimator.n_init, 1, "for the default", MOST_STARTS),
        max_iter=sweeps,
        max_seconds=check_positive("max_seconds", estimator.max_seconds),
        max_memory=check_max_memory(estimator.max_memory),
    )


def check_inference(value: Any) -> Inference:
    """How known weights are used: a name, or an `Inference`."""
    given = value if isinstance(value, Inference) else Inference(value)
    check_choice("inference", given.name, METHODS)
    defaults = Inference()
    users = {"candidates": ("explain", MOST_TEMPLATES), "n_passes": ("passing", MOST_PASSES)}
    for option, (name, most) in users.items():
        check_count(f"inference.{option}", getattr(given, option), most=most)
        if given.name != name and getattr(given, option) != getattr(defaults, option):
            raise ValueError(
                f"inference.{option} belongs to the inference {name!r}, got it with "
                f"{given.name!r}; leave it out."
            )
    return given


def check_noise(p01: float, p10: float) -> Noise:
    """The noise, which a network does not estimate."""
    hint = "pass about the share of pixels that noise flips"
    return Noise(check_rare("p01", p01, hint), check_rare("p10", p10, hint))


def check_labels(y: ArrayLike | None, n_images: int, n_classes: int | None) -> Labels:
    """Labels to learn from, of any type; -1 (or None, or NaN) marks an unlabelled image."""
    if y is None:
        return Labels(np.arange(n_classes or 1), np.full(n_images, UNLABELLED))
    labels, known = _read_labels(y, n_images)
    if not known.any():
        return check_labels(None, n_images, n_classes)
    try:
        classes, codes = np.unique(labels[known], return_inverse=True)
        set(classes.tolist())  # a single one need not be compared, but is looked up, too
    except TypeError:
        raise ValueError(
            f"Labels must be of one type that can be sorted, got values such as "
            f"{labels[known][:3].tolist()!r}; convert them, for example with str."
        ) from None
    names = classes.tolist()
    for name in names:
        if isinstance(name, float) and not name.is_integer():
            raise ValueError(
                f"Unknown label type: y must hold classes, whole numbers or names, got numbers "
                f"such as {name!r}; convert them, for example with str, if they are names."
            )
    _check_class_count("y", names, n_classes)
    if len(names) == 1 and not known.all():
        warn(
            f"y holds only the class {names[0]!r} besides {UNLABELLED}, which marks images "
            f"without a label; if {UNLABELLED} is a class of yours, give it another name.",
            UserWarning,
            stacklevel=3,
        )
    if classes.dtype == object and len({type(name) for name in names}) == 1:
        # None beside the labels made objects of them.
        plain = np.array(names)
        classes = plain if plain.shape == classes.shape else classes
    full = np.full(n_images, UNLABELLED, np.int64)
    full[known] = codes
    return Labels(classes, full)


def check_class_number(n_classes: int | None) -> int | None:
    """Number of classes, or None."""
    return check_optional_count("n_classes", n_classes, 1, "to take it from y", MOST_TEMPLATES)


def check_templates(n_classes: int, templates_per_class: int) -> ClassLayer:
    """The class layer, with as many templates for every class."""
    per_class = check_count("templates_per_class", templates_per_class)
    if n_classes * per_class > MOST_TEMPLATES:
        raise ValueError(
            f"A network has at most {MOST_TEMPLATES} templates, and {n_classes} classes with "
            f"templates_per_class={per_class} would have more; lower templates_per_class."
        )
    return equal_classes(n_classes, per_class)


def check_stream_classes(classes: ArrayLike, n_classes: int | None) -> NDArray[Any]:
    """All classes that a stream may show, sorted."""
    plain = isinstance(classes, Iterable) and not isinstance(classes, str)
    names: list[Any] = list(classes) if plain else []  # type: ignore[arg-type]
    if not names or any(np.ndim(name) for name in names):
        raise ValueError(
            f"classes must be a list of all labels that may come, got {classes!r}; for labels of "
            f"the first images alone leave it None."
        )
    if any(_is_unlabelled(name) for name in names):
        raise ValueError(
            f"classes must not hold {UNLABELLED}, None or NaN, which mark images without a label, "
            f"got {names!r}; leave it out."
        )
    found = check_labels(names, len(names), None).classes
    _check_class_count("classes", found.tolist(), n_classes)
    return found


def _check_class_count(source: str, names: list[Any], n_classes: int | None) -> None:
    if n_classes not in (None, len(names)):
        shown = ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
        raise ValueError(
            f"n_classes is {n_classes}, but {source} holds {len(names)} classes ({shown}); leave "
            f"n_classes None to count them."
        )


def check_known_labels(y: ArrayLike, n_images: int, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Class numbers of labels that a network knows; -1 where there is none."""
    labels, known = _read_labels(y, n_images)
    codes = np.full(n_images, UNLABELLED, np.int64)
    codes[known] = [class_code(label, classes) for label in labels[known].tolist()]
    return codes


def class_code(label: Any, classes: NDArray[Any]) -> int:
    """The number of a class."""
    codes = {name: k for k, name in enumerate(classes.tolist())}
    try:
        return codes[label]
    except (KeyError, TypeError):  # a list or an array cannot be a key
        raise ValueError(
            f"{label!r} is not a class of this network; its classes are "
            f"{', '.join(map(repr, codes))}."
        ) from None


def labelled(y: ArrayLike, n_images: int) -> tuple[NDArray[Any], BoolArray]:
    """Labels to compare with, and for which images there is one."""
    labels, known = _read_labels(y, n_images)
    if not known.any():
        raise ValueError(
            f"y must hold at least one label to compare with, got only {UNLABELLED}, None or NaN; "
            f"leave y out for the mean joint log-probability."
        )
    return labels, known


def _read_labels(y: ArrayLike, n_images: int) -> tuple[NDArray[Any], BoolArray]:
    labels = as_array("y", y)
    if labels.dtype.kind in "US":  # NumPy turns ["a", -1] and ["a", nan] into strings
        labels = np.asarray(y, object)
    if labels.shape == (n_images, 1):
        warn(
            f"A column-vector y was passed when a 1d array was expected: one label per image, "
            f"shape ({n_images},); pass y.ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        labels = labels[:, 0]
    if labels.shape != (n_images,):
        raise ValueError(
            f"y must hold one label per image, shape ({n_images},), got {labels.shape}; use -1 "
            f"for images without a label."
        )
    known = np.array([not _is_unlabelled(label) for label in labels.tolist()], bool)
    return labels, known


def _is_unlabelled(label: Any) -> bool:
    try:
        return label is None or label in (UNLABELLED, str(UNLABELLED)) or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to anything nor not
        return True


def check_class_layer(
    old: ClassLayer,
    names: NDArray[Any],
    categories: ArrayLike | None,
    classes: ArrayLike | None,
    p_on: float | None,
) -> tuple[ClassLayer, NDArray[Any]]:
    """Another class layer over the same templates, and the names of its classes."""
    codes = as_array("categories", old.categories if categories is None else categories)
    used = np.unique(codes) if codes.dtype.kind in "iu" else codes
    if codes.shape != (old.n_templates,) or not np.array_equal(used, np.arange(len(used))):
        raise ValueError(
            f"categories must hold the number of the class of each of the {old.n_templates} "
            f"templates, from 0 and without gaps, got {categories!r}."
        )
    if p_on is not None:
        p_on = check_rare("p_on", p_on, "leave it None for exactly one object per image")
    if classes is None and categories is None:
        classes = names
    layer = ClassLayer(tuple(int(k) for k in codes), p_on)
    return layer, check_class_names(classes, layer.n_classes)


def check_class_names(classes: ArrayLike | None, n_classes: int) -> NDArray[Any]:
    """One name per class; numbers if there are none."""
    if classes is None:
        return np.arange(n_classes)
    names = as_array("classes", classes)
    words = names.tolist() if names.ndim == 1 else []
    different = all(isinstance(name, Hashable) for name in words) and len(set(words)) == n_classes
    if len(words) != n_classes or not different or any(map(_is_unlabelled, words)):
        raise ValueError(
            f"classes must hold {n_classes} different names, one per class and none of them "
            f"{UNLABELLED} (no label), got {classes!r}."
        )
    return names


def check_class_count(n_templates: int, per_class: int, n_classes: int | None) -> int:
    """The number of classes of known templates."""
    count, rest = divmod(n_templates, per_class)
    if rest or n_classes not in (None, count):
        wanted = "a multiple of" if n_classes is None else f"{n_classes} classes ×"
        raise ValueError(
            f"The last of the weights must hold {wanted} templates_per_class = {per_class} "
            f"templates, got {n_templates}; set templates_per_class and n_classes to fit them."
        )
    return count


def check_part_names(names: Any, n_parts: int) -> NDArray[np.object_]:
    """A name for each part, in NFC; "" is none, and white space alone becomes one space.

    Elements are objects, because an array of short texts would cut a longer one off.
    """
    given = names.tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(given, list | tuple) or len(given) != n_parts:
        raise ValueError(
            f"part_names_ must be a list of {n_parts} texts, one for each part, got "
            f'{reprlib.repr(names)}; pass "" for parts without a name.'
        )
    checked = np.empty(n_parts, object)
    for part, name in enumerate(given):
        try:
            checked[part] = check_part_name(name)
        except (TypeError, ValueError) as error:
            raise type(error)(f"The name of part {part} {error}") from None
    return checked


def check_part_name(name: Any) -> str:
    """A name as it is stored; the error is the end of a sentence."""
    if not isinstance(name, str):
        raise TypeError(f"must be a text, got {reprlib.repr(name)}.")
    tidy = unicodedata.normalize("NFC", name.strip() or (name and " "))
    if len(tidy) > LONGEST_NAME:
        raise ValueError(f"has {len(tidy)} characters, and {LONGEST_NAME} are allowed; shorten it.")
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise ValueError(
            f"is {reprlib.repr(name)}, which does not fit on one line of text; leave control "
            f"characters out."
        )
    return tidy


def check_weights(weights: Sequence[ArrayLike]) -> list[BoolArray]:
    """Binary weights of every layer."""
    if isinstance(weights, np.ndarray) and weights.ndim:
        weights = list(weights)
    if not isinstance(weights, Sequence) or not len(weights):
        raise ValueError(
            f"weights must be a list of arrays, one per layer from the image upwards, got "
            f"{weights!r}."
        )
    axes = "features, channels, height, width"
    return [check_binary(f"weights[{k}]", W, axes) for k, W in enumerate(weights)]


def check_weight_shapes(weights: Sequence[BoolArray], shapes: Sequence[tuple[int, ...]]) -> None:
    """Weights that fit the layers."""
    came = [W.shape for W in weights]
    if came != [tuple(shape) for shape in shapes]:
        raise ValueError(
            f"weights must have the shapes {', '.join(map(str, shapes))} to fit the layers, got "
            f"{', '.join(map(str, came))}; change layers, image_size or the weights."
        )
