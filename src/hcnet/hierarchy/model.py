"""What learning a network leaves behind, and its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet import archive
from hcnet.hierarchy.network import Level, Network
from hcnet.images import BoolArray, Noise
from hcnet.layers import ClassLayer, FeatureLayer, PoolBorder, PoolLayer

FORMAT = "hcnet-network"
VERSION = 1
# What a file may say about how the weights are used.
SETTINGS = ("inference", "candidates", "n_passes")


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network with decided weights, and the names of its classes."""

    network: Network
    weights: list[BoolArray]  # per level, (features, channels, height, width)
    classes: NDArray[Any]
    settings: dict[str, Any] = field(default_factory=dict)  # how an estimator uses it: `SETTINGS`

    def contents(self) -> archive.Contents:
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
            "format": FORMAT,
            "version": VERSION,
            "image_size": list(network.image_size),
            "channels": network.n_channels,
            "noise": [network.noise.p01, network.noise.p10],
            "categories": list(network.classes.categories),
            "p_on": network.classes.p_on,
            "classes": names,
            "settings": self.settings,
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
        arrays: dict[str, NDArray[Any]] = {}
        for k, (level, W) in enumerate(zip(network.levels, self.weights, strict=True)):
            arrays[f"weights-{k}"] = np.packbits(W)
            arrays[f"pool-{k}"] = level.window
        return archive.Contents(header, arrays)

    @classmethod
    def read(cls, file: archive.Source) -> NetworkModel:
        """The model of a file."""
        header = file.header
        p01, p10 = (float(p) for p in header["noise"])
        height, width = (int(k) for k in header["image_size"])
        channels, below = int(header["channels"]), (height, width)
        levels, weights = [], []
        for k, about in enumerate(header["levels"]):
            level = _level(about, channels, below, file.array(f"pool-{k}"))
            levels.append(level)
            weights.append(file.bits(f"weights-{k}", level.weight_shape))
            channels, below = level.features.n_features, level.features.placement_size
        if not levels:
            raise ValueError("it has no layers")
        classes = ClassLayer(tuple(int(k) for k in header["categories"]), header["p_on"])
        names = _names(header["classes"])
        if classes.n_templates != channels or names.shape != (classes.n_classes,):
            raise ValueError("its classes are incomplete")
        if set(classes.categories) != set(range(classes.n_classes)):
            raise ValueError("it has classes without templates")
        p_on = [] if classes.p_on is None else [classes.p_on]
        if not all(0 < p < 1 for p in (p01, p10, *p_on)):
            raise ValueError("its probabilities are none")
        settings = {key: header["settings"][key] for key in SETTINGS if key in header["settings"]}
        network = Network(tuple(levels), classes, Noise(p01, p10))
        return cls(network, weights, names, settings)


def _names(names: list[Any]) -> NDArray[Any]:
    plain = np.asarray(names)
    # NumPy would turn numbers beside strings into strings.
    return plain if plain.tolist() == names else np.array(names, object)


def _level(
    about: dict[str, Any], channels: int, below: tuple[int, int], window: NDArray[Any]
) -> Level:
    if about["pool_border"] not in get_args(PoolBorder):
        raise ValueError(f"its pool_border is {about['pool_border']!r}")
    pool_h, pool_w = (int(k) for k in about["pool"])
    if window.shape != (pool_h, pool_w):
        raise ValueError("its pools are incomplete")
    pool = PoolLayer(channels, (pool_h, pool_w), below, about["pool_border"])
    height, width = (int(k) for k in about["size"])
    n_features, p_W = int(about["features"]), float(about["p_W"])
    if min(n_features, pool_h, pool_w, height, width) < 1:
        raise ValueError("its layers have no size")
    if height > pool.size[0] or width > pool.size[1]:
        raise ValueError("its layers do not fit on each other")
    if not (0 < p_W < 1 and (window > 0).all() and np.isfinite(window).all()):
        raise ValueError("its probabilities are none")
    features = FeatureLayer(n_features, channels, (height, width), pool.size, "valid")
    return Level(pool, features, window.astype(float), p_W)
