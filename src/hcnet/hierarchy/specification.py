"""The layers of a network as users describe them, and the network made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.hierarchy.network import Level, Network
from hcnet.images import Noise
from hcnet.layers import ClassLayer, FeatureLayer, PoolBorder, PoolLayer

# Default probability of a weight: features are sparse, and a template may use any of the features
# below it.
P_W = 0.2
P_W_TEMPLATES = 0.5
# Share of a new message that a pool sends up.  `make bench NAME=choices` measures others.
DAMPING = 0.1


@dataclass(frozen=True)
class Layer:
    """One layer of an `HCN`: features, and the pooling that shifts what they are made of.

    Parameters
    ----------
    n_features : int or None, default=None
        Features of this layer.  In the last layer they are the templates, whose number follows
        from the classes: leave it None.
    size : int, (int, int) or None, default=None
        Height and width of a feature, in elements of the layer below (pixels for the first).  None
        in the last layer: as large as the grid below.
    pool : int or (int, int), default=3
        Window within which every element of a feature moves independently; 1 for none.
    pool_border : {"full", "same"}, default="full"
        "full": the grid below is larger by the window less one, so that all elements can move
        freely.  "same": both grids are equal, and elements at the border have fewer positions.
    perturbation : float, default=0.0
        0: all positions of a window are equally probable.  Otherwise each is less probable than
        the centre by a random share of at most this.
    p_W : float or None, default=None
        Probability that a weight is on.  None: 0.2, and 0.5 in the last layer.
    damping : float, default=0.1
        Share of a new message from the pools upwards that replaces the old one while learning.

    """

    n_features: int | None = None
    size: int | tuple[int, int] | None = None
    pool: int | tuple[int, int] = 3
    pool_border: PoolBorder = "full"
    perturbation: float = 0.0
    p_W: float | None = None
    damping: float = DAMPING


@dataclass(frozen=True, slots=True)
class CheckedLayer:
    """A `Layer` with nothing open but the size of the last one."""

    n_features: int
    size: tuple[int, int] | None
    pool: tuple[int, int]
    pool_border: PoolBorder
    perturbation: float
    p_W: float
    damping: float


def build_network(
    layers: Sequence[CheckedLayer],
    classes: ClassLayer,
    noise: Noise,
    n_channels: int,
    image_size: tuple[int, int],
    rng: np.random.Generator,
) -> Network:
    """The network over images of a size, its pools perturbed as the layers ask for."""
    levels = []
    for layer in layers:
        pool = PoolLayer(n_channels, layer.pool, image_size, layer.pool_border)
        features = FeatureLayer(
            layer.n_features, n_channels, layer.size or pool.size, pool.size, "valid"
        )
        window = perturbed_window(layer.pool, layer.perturbation, rng)
        levels.append(Level(pool, features, window, layer.p_W))
        n_channels, image_size = layer.n_features, features.placement_size
    return Network(tuple(levels), classes, noise)


def perturbed_window(
    window: tuple[int, int], perturbation: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Relative probabilities of the positions of a pool; none is more probable than the centre."""
    p = np.ones(window)
    if perturbation > 0:
        p -= perturbation * rng.random(window)
        p[(window[0] - 1) // 2, (window[1] - 1) // 2] = 1.0
    return p
