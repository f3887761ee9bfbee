"""Checks on the layers of a network, and on labels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.hierarchy.specification import P_W, P_W_TEMPLATES, CheckedLayer, Layer
from hcnet.images import BoolArray
from hcnet.layers import ClassLayer
from hcnet.validation.parameters import (
    check_choice,
    check_count,
    check_damping,
    check_probability,
)

UNLABELLED = -1


@dataclass(frozen=True, slots=True)
class Labels:
    """The classes, and the class number of every image (-1: unlabelled)."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]


def check_layers(
    layers: Sequence[Layer], n_templates: int, image_size: tuple[int, int]
) -> list[CheckedLayer]:
    """Layers that fit on each other and on the image."""
    if isinstance(layers, Layer) or not isinstance(layers, Sequence) or not len(layers):
        raise ValueError(
            f"layers must be a list of hcnet.Layer from the image upwards, got {layers!r}; the "
            f"last one holds the templates, for example [Layer(16, size=9), Layer()]."
        )
    checked = []
    for k, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            raise TypeError(f"layers[{k}] must be an hcnet.Layer, got {layer!r}.")
        last = k == len(layers) - 1
        checked.append(_check_layer(layer, f"layers[{k}]", n_templates if last else None))
        image_size = _fit(checked[-1], f"layers[{k}]", image_size)
    return checked


def _check_layer(layer: Layer, name: str, n_templates: int | None) -> CheckedLayer:
    """One layer by itself; `n_templates` is given for the last."""
    n_features = check_count(f"{name}.n_features", layer.n_features, 1, "None in the last layer")
    if n_templates is None and n_features is None:
        raise ValueError(f"{name}.n_features must be given; only the last layer leaves it open.")
    if n_templates is not None and n_features not in (None, n_templates):
        raise ValueError(
            f"{name}.n_features must be the number of templates, n_classes × templates_per_class "
            f"= {n_templates}, got {n_features}; leave it None in the last layer."
        )
    size = None
    if layer.size is not None:
        size = check_pair(f"{name}.size", layer.size)
    elif n_templates is None:
        raise ValueError(f"{name}.size must be given; only the last layer leaves it open.")
    perturbation = layer.perturbation
    if not isinstance(perturbation, numbers.Real) or not 0 <= perturbation < 1:
        raise ValueError(
            f"{name}.perturbation must be at least 0 (all positions alike) and below 1, got "
            f"{perturbation!r}."
        )
    p_W = layer.p_W
    if p_W is None:
        p_W = P_W if n_templates is None else P_W_TEMPLATES
    if isinstance(p_W, bool) or not isinstance(p_W, numbers.Real) or not 0 < p_W <= 0.5:
        raise ValueError(
            f"{name}.p_W must be larger than 0 and at most 0.5 (weights are rarer than not), got "
            f"{p_W!r}; leave it None for the default."
        )
    border: Any = check_choice(f"{name}.pool_border", layer.pool_border, ("full", "same"))
    return CheckedLayer(
        n_features=n_templates or n_features or 0,
        size=size,
        pool=check_pair(f"{name}.pool", layer.pool),
        pool_border=border,
        perturbation=float(perturbation),
        p_W=float(p_W),
        damping=check_damping(layer.damping),
    )


def _fit(layer: CheckedLayer, name: str, below: tuple[int, int]) -> tuple[int, int]:
    """The grid of placements of a layer on the grid below it."""
    grid = below
    if layer.pool_border == "full":
        grid = below[0] - layer.pool[0] + 1, below[1] - layer.pool[1] + 1
    size = layer.size or grid
    if min(grid) < 1 or size[0] > grid[0] or size[1] > grid[1]:
        raise ValueError(
            f"{name} does not fit: the grid below is {below[0]}×{below[1]}, its pool of "
            f"{layer.pool[0]}×{layer.pool[1]} ({layer.pool_border!r}) leaves "
            f"{max(grid[0], 0)}×{max(grid[1], 0)}, and its features are {size[0]}×{size[1]}; "
            f"choose smaller features, smaller pools, pool_border='same', or larger images."
        )
    return grid[0] - size[0] + 1, grid[1] - size[1] + 1


def check_pair(name: str, value: int | Sequence[int]) -> tuple[int, int]:
    """One positive whole number, or two (height, width)."""
    pair: Any = (value, value) if isinstance(value, numbers.Integral) else value
    if (
        not isinstance(pair, Sequence | np.ndarray)
        or len(pair) != 2
        or not all(isinstance(k, numbers.Integral) and int(k) >= 1 for k in pair)
    ):
        raise ValueError(
            f"{name} must be one positive whole number or two (height, width), got {value!r}."
        )
    return int(pair[0]), int(pair[1])


def check_labels(y: ArrayLike | None, n_images: int, n_classes: int | None) -> Labels:
    """Labels of any type; -1 (or None, or NaN) marks an unlabelled image."""
    if y is None:
        return Labels(np.arange(n_classes or 1), np.full(n_images, UNLABELLED))
    labels = np.asarray(y)
    if labels.shape != (n_images,):
        raise ValueError(
            f"y must hold one label per image, shape ({n_images},), got {labels.shape}; use -1 "
            f"for images without a label."
        )
    known = np.array([not _is_unlabelled(label) for label in labels.tolist()], bool)
    if not known.any():
        return check_labels(None, n_images, n_classes)
    try:
        classes, codes = np.unique(labels[known], return_inverse=True)
    except TypeError:
        raise ValueError(
            f"Labels must be of one type that can be sorted, got a mixture such as "
            f"{labels[known][:3].tolist()!r}; convert them, for example with str."
        ) from None
    if n_classes is not None and n_classes != len(classes):
        raise ValueError(
            f"n_classes is {n_classes}, but y holds {len(classes)} classes, "
            f"{', '.join(map(str, classes[:5].tolist()))} …; leave n_classes None to count them."
        )
    if len(classes) == 1 and not known.all():
        warn(
            f"y holds only the class {classes[0]!r} besides {UNLABELLED}, which marks images "
            f"without a label; if {UNLABELLED} is a class of yours, give it another name.",
            UserWarning,
            stacklevel=3,
        )
    if classes.dtype == object and all(isinstance(label, str) for label in classes):
        classes = classes.astype(str)
    full = np.full(n_images, UNLABELLED, np.int64)
    full[known] = codes
    return Labels(classes, full)


def _is_unlabelled(label: Any) -> bool:
    # NumPy turns ["a", -1] into strings.
    return label is None or label in (UNLABELLED, str(UNLABELLED)) or label != label


def check_class_layer(
    old: ClassLayer,
    names: NDArray[Any],
    categories: ArrayLike | None,
    classes: ArrayLike | None,
    p_on: float | None,
) -> tuple[ClassLayer, NDArray[Any]]:
    """Another class layer over the same templates, and the names of its classes."""
    numbers_of = np.asarray(old.categories if categories is None else categories)
    if (
        numbers_of.shape != (old.n_templates,)
        or numbers_of.dtype.kind not in "iu"
        or numbers_of.min() < 0
    ):
        raise ValueError(
            f"categories must hold the number of the class, from 0, of each of the "
            f"{old.n_templates} templates, got {categories!r}."
        )
    n_classes = int(numbers_of.max()) + 1
    if classes is None:
        called = names if categories is None else np.arange(n_classes)
    else:
        called = np.asarray(classes)
    if called.shape != (n_classes,) or len(set(called.tolist())) != n_classes:
        raise ValueError(
            f"classes must hold {n_classes} different names, one per class, got {classes!r}."
        )
    p = check_probability("p_on", p_on)
    return ClassLayer(tuple(int(k) for k in numbers_of), p), called


def check_weights(weights: Sequence[ArrayLike]) -> list[BoolArray]:
    """Binary weights of every layer."""
    known = [np.asarray(W) for W in weights]
    for k, W in enumerate(known):
        if W.ndim != 4 or W.size == 0 or not np.isin(W, (0, 1)).all():
            raise ValueError(
                f"weights[{k}] must be zeros and ones of shape (features, channels, height, "
                f"width), got dtype {W.dtype} and shape {W.shape}."
            )
    if not known:
        raise ValueError("weights must hold an array per layer, got none.")
    return [np.ascontiguousarray(W.astype(bool)) for W in known]


def check_weight_shapes(weights: Sequence[BoolArray], shapes: Sequence[tuple[int, ...]]) -> None:
    """Weights that fit the layers."""
    came = [W.shape for W in weights]
    if came != [tuple(shape) for shape in shapes]:
        raise ValueError(
            f"weights must have the shapes {', '.join(map(str, shapes))} to fit the layers, got "
            f"{', '.join(map(str, came))}."
        )
