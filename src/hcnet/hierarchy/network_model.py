"""The network that learning returns, and its part of a file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.hierarchy.network import Level, Network
from hcnet.images import BoolArray, Noise
from hcnet.layers import MOST_MEMBERS, ClassLayer, FeatureLayer, PoolBorder, PoolLayer

# Elements of S and R of all layers for one image: 40 features over a page of 2500×3300 are 3e8.  A
# file that asks for more would not be used, but fill the memory.
MOST_ELEMENTS = 2**32


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network with decided weights, and the names of its classes."""

    network: Network
    weights: list[BoolArray]  # per level, (features, channels, height, width)
    classes: NDArray[Any]


class _StoredLevel(NamedTuple):
    pool_border: PoolBorder
    p_W: float
    window: NDArray[np.float64]
    weights: BoolArray


class _StoredNetwork(NamedTuple):
    image_size: tuple[int, int]
    noise: Noise
    levels: list[_StoredLevel]
    categories: Iterable[int]
    p_on: float | None
    classes: list[Any]


def _to_file(model: NetworkModel) -> _StoredNetwork:
    network, names = model.network, model.classes.tolist()
    odd = [name for name in names if not isinstance(name, bool | int | float | str)]
    if odd:
        raise ValueError(
            f"Class names must be numbers or strings to be saved, got {odd[0]!r}; train with "
            f"such labels, or rename the classes: with_class_layer(classes=…)."
        )
    levels = [
        _StoredLevel(level.pool.border, level.p_W, level.window, W)
        for level, W in zip(network.levels, model.weights, strict=True)
    ]
    classes = network.classes
    return _StoredNetwork(
        network.image_size, network.noise, levels, classes.categories, classes.p_on, names
    )


def _from_file(stored: _StoredNetwork) -> NetworkModel:
    below, channels, elements = stored.image_size, stored.levels[0].weights.shape[1], 0
    levels = []
    for about in stored.levels:
        level = _level(about, channels, below)
        levels.append(level)
        elements += level.features.n_features * level.features.n_positions
        pools = level.pool.size[0] * level.pool.size[1]
        elements += channels * (below[0] * below[1] + pools) + pools * level.pool.n_members
        if elements > MOST_ELEMENTS:
            raise ValueError(f"its layers have more than {MOST_ELEMENTS} elements per image")
        channels, below = level.features.n_features, level.features.placement_size
    classes = ClassLayer(tuple(stored.categories), stored.p_on)
    if len(classes.categories) != channels:
        raise ValueError(f"its categories are those of {len(classes.categories)} templates")
    # Not more classes than templates, so that the largest number is no reason for an array.
    if {*classes.categories} != {*range(len(stored.classes))}:
        raise ValueError("its classes are not those of its templates")
    network = Network(tuple(levels), classes, stored.noise)
    return NetworkModel(network, [about.weights for about in stored.levels], _names(stored.classes))


def _level(about: _StoredLevel, channels: int, below: tuple[int, int]) -> Level:
    n_features, n_channels, *(height, width) = about.weights.shape
    window = about.window
    if not 1 <= window.size <= MOST_MEMBERS:
        raise ValueError(f"its pools have {window.size} positions")
    pool = PoolLayer(channels, (window.shape[0], window.shape[1]), below, about.pool_border)
    fits = 0 < height <= pool.size[0] and 0 < width <= pool.size[1]
    if not fits or not n_features or n_channels != channels or not channels:
        raise ValueError("its layers do not fit on each other")
    features = FeatureLayer(n_features, channels, (height, width), pool.size, "valid")
    return Level(pool, features, window, about.p_W)


def _names(names: list[Any]) -> NDArray[Any]:
    if len(set(names)) != len(names):
        raise ValueError("two of its classes have the same name")
    plain = np.asarray(names)
    # NumPy would turn numbers beside strings into strings.
    return plain if plain.tolist() == names else np.array(names, object)


_CLASS_NAME = kinds.plain(
    "a text or a number", lambda name: isinstance(name, str | bool) or kinds.is_number(name)
)
_NOISE = kinds.probability(most=kinds.BELOW_HALF)
_LEVEL = kinds.object_of(
    _StoredLevel,
    pool_border=kinds.choice(*get_args(PoolBorder)),
    p_W=kinds.probability(),
    window=kinds.array(np.float64, (None, None), math.ulp(0), kinds.LARGEST_SIDE),
    weights=kinds.binary_array((None, None, None, None)),
)
NETWORK_MODEL = kinds.converted(
    kinds.object_of(
        _StoredNetwork,
        image_size=kinds.size(),
        noise=kinds.object_of(Noise, p01=_NOISE, p10=_NOISE),
        levels=kinds.list_of(_LEVEL, least=1),
        categories=kinds.list_of(kinds.whole_number()),
        p_on=kinds.optional(kinds.probability()),
        classes=kinds.list_of(_CLASS_NAME),
    ),
    _to_file,
    _from_file,
)
