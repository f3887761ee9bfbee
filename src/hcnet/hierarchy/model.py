"""What learning a network leaves behind, and its part of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.archive.contents import Contents
from hcnet.archive.fields import (
    BELOW_HALF,
    LARGEST,
    listed,
    named,
    number,
    probability,
    size,
    whole,
    word,
)
from hcnet.archive.reading import Source
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

    def contents(self) -> Contents:
        """What goes into a file."""
        names = self.classes.tolist()
        odd = [name for name in names if not isinstance(name, bool | int | float | str)]
        if odd:
            raise ValueError(
                f"Class names must be numbers or strings to be saved, got {odd[0]!r}; train with "
                f"such labels, or rename the classes: with_class_layer(classes=…)."
            )
        network = self.network
        header = {
            "image_size": list(network.image_size),
            "channels": network.n_channels,
            "noise": [network.noise.p01, network.noise.p10],
            "categories": list(network.classes.categories),
            "p_on": network.classes.p_on,
            "classes": names,
            "levels": [
                {
                    "features": level.features.n_features,
                    "size": list(level.features.feature_size),
                    "pool": list(level.pool.window),
                    "pool_border": level.pool.border,
                    "p_W": level.p_W,
                }
                for level in network.levels
            ],
        }
        contents = Contents(header).with_all("pool", [level.window for level in network.levels])
        for k, W in enumerate(self.weights):
            contents = contents.with_bits(f"weights-{k}", W)
        return contents

    @classmethod
    def read(cls, file: Source) -> NetworkModel:
        """The model of a file."""
        header = file.header
        p01, p10 = (
            probability("noise", p, BELOW_HALF) for p in listed("noise", header["noise"], 2)
        )
        below = size("image_size", header["image_size"])
        channels = whole("channels", header["channels"], 1)
        levels, weights, elements = [], [], 0
        for k, about in enumerate(listed("levels", header["levels"])):
            level = _level(file, k, named("levels", about), channels, below)
            levels.append(level)
            elements += level.features.n_features * level.features.n_positions
            pools = level.pool.size[0] * level.pool.size[1]
            elements += channels * (below[0] * below[1] + pools) + pools * level.pool.n_members
            if elements > MOST_ELEMENTS:
                raise ValueError(f"its layers have more than {MOST_ELEMENTS} elements per image")
            weights.append(file.bits(f"weights-{k}", level.weight_shape))
            channels, below = level.features.n_features, level.features.placement_size
        if not levels:
            raise ValueError("it has no layers")
        p_on = None if header["p_on"] is None else probability("p_on", header["p_on"])
        categories = listed("categories", header["categories"], channels)
        # Not more classes than templates, so that the largest number is no reason for an array.
        classes = ClassLayer(
            tuple(whole("categories", k, 0, channels - 1) for k in categories), p_on
        )
        names = _names(listed("classes", header["classes"], classes.n_classes))
        if set(classes.categories) != set(range(classes.n_classes)):
            raise ValueError("it has classes without templates")
        return cls(Network(tuple(levels), classes, Noise(p01, p10)), weights, names)


def _names(names: list[Any]) -> NDArray[Any]:
    for name in names:
        if not isinstance(name, str):
            number("classes", int(name) if isinstance(name, bool) else name)
    if len(set(names)) != len(names):
        raise ValueError("two of its classes have the same name")
    plain = np.asarray(names)
    # NumPy would turn numbers beside strings into strings.
    return plain if plain.tolist() == names else np.array(names, object)


def _level(
    file: Source, k: int, about: dict[str, Any], channels: int, below: tuple[int, int]
) -> Level:
    border = word("pool_border", about["pool_border"], get_args(PoolBorder))
    pool = PoolLayer(channels, size("pool", about["pool"]), below, border)
    if pool.n_members > MOST_MEMBERS:
        raise ValueError(f"its pools have {pool.n_members} positions")
    n_features = whole("features", about["features"], 1)
    feature_size = size("size", about["size"])
    if feature_size[0] > pool.size[0] or feature_size[1] > pool.size[1]:
        raise ValueError("its layers do not fit on each other")
    window = file.array(f"pool-{k}", np.float64, pool.window)
    if not ((window > 0) & (window <= LARGEST)).all():
        raise ValueError("its pools hold what is no probability")
    features = FeatureLayer(n_features, channels, feature_size, pool.size, "valid")
    return Level(pool, features, window, probability("p_W", about["p_W"]))
