"""A network: layers as users describe them, shapes, memory, drawing images, its part of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.engine.planes import position
from hcnet.grid import single
from hcnet.hierarchy.convolution import bconv
from hcnet.images import BoolArray, FloatArray, Images, Noise
from hcnet.layers import MOST_MEMBERS, ClassLayer, FeatureLayer, FeatureOrder, PoolBorder, PoolLayer
from hcnet.memory import check_memory
from hcnet.messages import pool_log_prior, template_log_prior

# Weights of all levels from the bottom, each (features, channels, height, width).
Weights = Sequence[BoolArray]


# Images of a batch, and the bytes that it may take.
BATCH = 500
BATCH_BYTES = 256 * 2**20
# Bytes per element of S and R that an explanation takes at its peak: 6 to 20 were measured.
ELEMENT_BYTES = 20
# Default probability of a weight: features are sparse, and a template may use any of the features
# below it.
P_W = 0.2
P_W_TEMPLATES = 0.5
# Share of a new message that a pool sends up.  `make bench NAME=choices` measures others.
DAMPING = 0.1
# Priors of pools that are words.
UNIFORM, LEARNED = "uniform", "learned"
# Elements of S and R of all layers for one image: 40 features over a page of 2500×3300 are 3e8.  A
# file that asks for more would not be used, but fill the memory.
MOST_ELEMENTS = 2**32


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
    variants : int, default=1
        The features of this layer come in groups of so many.  The layer above is made of groups:
        wherever one of its elements is on, the pool chooses one feature of the group.  `fit` finds
        the groups; a stream keeps those that chance made.
    pool_features : int, default=1
        Features below, or channels of the image, among which the pool chooses: the one that the
        element stands for, and its neighbours.
    feature_order : {"line", "ring"}, default="line"
        Which features are neighbours, with `pool_features`: in a ring the last and the first are.
    pool_prior : "uniform", "learned" or array, default="uniform"
        How probable the choices of a pool are: numbers that need not add up to one, of a shape that
        broadcasts to (channels, features, height, width); "learned": about as often as they are
        chosen in the training images, where that is more probable.

    """

    n_features: int | None = None
    size: int | tuple[int, int] | None = None
    pool: int | tuple[int, int] = 3
    pool_border: PoolBorder = "full"
    perturbation: float = 0.0
    p_W: float | None = None
    damping: float = DAMPING
    variants: int = 1
    pool_features: int = 1
    feature_order: str = "line"
    pool_prior: Any = UNIFORM

    def __post_init__(self) -> None:
        # Layers are compared, copied and saved: an array becomes tuples in tuples.
        object.__setattr__(self, "pool_prior", _as_tuples(self.pool_prior))


def _as_tuples(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return tuple(map(_as_tuples, values)) if isinstance(values, list | tuple) else values


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
    depth: int = 1  # features below that a pool chooses from
    feature_order: FeatureOrder = "groups"
    pool_prior: Any = UNIFORM  # or LEARNED, or relative probabilities of four dimensions


@dataclass(frozen=True, eq=False)
class Level:
    """Layer ℓ of the paper: a feature layer, and the pooling layer below it."""

    pool: PoolLayer
    features: FeatureLayer
    # Relative probabilities of the choices of a pool: (channels or 1, depth, height, width).
    window: NDArray[np.float64]
    p_W: float

    @cached_property
    def log_prior(self) -> FloatArray:
        """Log-probabilities of all members of pools: (channels or 1, height, width, members)."""
        return single(pool_log_prior(self.pool, self.window))

    def __getstate__(self) -> dict[str, object]:
        # Without `log_prior`: it can be larger than all the rest, and from a file that is mapped
        # into memory it would come back read-only, for which all would be compiled once more.
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """(features, channels, height, width)."""
        return self.features.n_features, self.features.n_channels, *self.features.feature_size


@dataclass(frozen=True, eq=False)
class Network:
    """Levels from the image upwards, the class layer on top, the noisy channel below."""

    levels: tuple[Level, ...]
    classes: ClassLayer
    noise: Noise

    @property
    def n_channels(self) -> int:
        """Channels of the images."""
        return self.levels[0].pool.n_below

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of the images."""
        return self.levels[0].pool.below_size

    @property
    def top_size(self) -> tuple[int, int]:
        """Positions that a template can take: 1×1 where it fills the image."""
        return self.levels[-1].features.placement_size

    @property
    def entry_categories(self) -> NDArray[np.int64]:
        """The category of every template at every position."""
        return np.repeat(np.array(self.classes.categories), int(np.prod(self.top_size)))

    def by_class(self, scores: NDArray[Any], reduce: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """Scores of all templates at all positions, (images, entries), reduced per class."""
        own = (self.entry_categories == k for k in range(self.classes.n_classes))
        return np.stack([reduce(scores[:, entries], axis=1) for entries in own], axis=1)

    @property
    def smallest_image(self) -> tuple[int, int]:
        """Height and width of images in which a template has exactly one position."""
        size = (1, 1)
        for level in reversed(self.levels):
            height, width = level.features.feature_size
            size = size[0] + height - 1, size[1] + width - 1
            if level.pool.border == "full":
                size = size[0] + level.pool.window[0] - 1, size[1] + level.pool.window[1] - 1
        return size

    def for_images_of(self, size: tuple[int, int]) -> Network:
        """The same network over images of another size: templates can then take more positions."""
        levels = []
        for level in self.levels:
            pool = replace(level.pool, below_size=size)
            features = replace(level.features, image_size=pool.size)
            levels.append(replace(level, pool=pool, features=features))
            size = features.placement_size
        return replace(self, levels=tuple(levels))


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
        order = layer.depth, layer.feature_order
        pool = PoolLayer(n_channels, layer.pool, image_size, layer.pool_border, *order)
        features = FeatureLayer(
            layer.n_features, pool.n_channels, layer.size or pool.size, pool.size, "valid"
        )
        window = perturbed_window(pool, layer.perturbation, rng)
        if not isinstance(layer.pool_prior, str):
            window = window * layer.pool_prior
        levels.append(Level(pool, features, window, layer.p_W))
        n_channels, image_size = layer.n_features, features.placement_size
    return Network(tuple(levels), classes, noise)


def perturbed_window(
    pool: PoolLayer, perturbation: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Relative probabilities of the choices of a pool; none is more probable than the centre.

    Every variant has a centre.
    """
    p = np.ones((1, pool.depth, *pool.window))
    if perturbation > 0:
        p -= perturbation * rng.random(p.shape)
        depths = slice(None) if pool.feature_order == "groups" else pool.reach[6]
        p[:, depths, (pool.window[0] - 1) // 2, (pool.window[1] - 1) // 2] = 1.0
    return p


def explaining_memory(network: Network) -> int:
    """Bytes that explaining one image takes, or matching it with all templates."""
    elements = 0
    for level in network.levels:
        pool, layer = level.pool, level.features
        elements += pool.n_below * math.prod(pool.below_size)
        elements += pool.n_channels * math.prod(pool.size)
        elements += layer.n_features * math.prod(layer.placement_size)
    return ELEMENT_BYTES * elements


def check_image_fits(network: Network) -> None:
    """Raise an error if a single image of this size would not fit into memory."""
    height, width = network.image_size
    what = f"One image of {height}×{width} pixels"
    check_memory(what, explaining_memory(network), None, "lower image_size")


def batch_size(bytes_per_image: int) -> int:
    """Images of a batch."""
    return int(np.clip(BATCH_BYTES // bytes_per_image, 1, BATCH))


def in_batches(images: Images, bytes_per_image: int) -> Iterator[tuple[Images, slice]]:
    """Batches of the images, each with the rows that it holds."""
    size = batch_size(bytes_per_image)
    for start in range(0, images.n_images, size):
        rows = slice(start, start + size)
        yield images[rows], rows


def sample(
    network: Network, weights: Weights, S: BoolArray, rng: np.random.Generator, clean: bool = False
) -> tuple[BoolArray, list[BoolArray]]:
    """Draw images given the templates S that are on: images X, and the S of all levels from S⁰.

    If `clean`, single pixels do not shift, and there is no noise.
    """
    sparse = [S]
    for level, W in zip(reversed(network.levels), reversed(weights), strict=True):
        R, still = bconv(sparse[0], W), clean and level is network.levels[0]
        members = level.pool.centre if still else _members(level, R, rng)
        sparse.insert(0, moved(level, R, members))
    if clean:
        return sparse[0], sparse
    noise = network.noise
    flip = rng.random(sparse[0].shape) < np.where(sparse[0], noise.p01, noise.p10)
    return sparse[0] ^ flip, sparse


def sample_templates(
    network: Network, n: int, rng: np.random.Generator, category: int | None = None
) -> BoolArray:
    """Draw the templates of n images, optionally of one category: the top S."""
    classes, (height, width) = network.classes, network.top_size
    allowed = np.array([category in (None, own) for own in classes.categories])
    S = np.zeros((n, classes.n_templates, height, width), bool)
    if classes.p_on is not None:
        S[:] = (rng.random(S.shape) < classes.p_on) & allowed[:, None, None]
        return S
    p = np.exp(template_log_prior(classes, 1)) * allowed
    template = rng.choice(classes.n_templates, n, p=p / p.sum())
    S[np.arange(n), template, rng.integers(height, size=n), rng.integers(width, size=n)] = True
    return S


def _members(level: Level, R: BoolArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random member of its pool for every active element of R."""
    _, a, r, c = np.nonzero(R)
    prior = level.log_prior[a % len(level.log_prior), r, c]
    p = np.exp(prior.astype(float)).cumsum(axis=1)
    return np.asarray((rng.random((len(r), 1)) * p[:, -1:] >= p).sum(axis=1))


def moved(level: Level, R: BoolArray, members: NDArray[Any] | int) -> BoolArray:
    """The S below, with every active element of R at this member of its pool."""
    pool = level.pool
    n, a, r, c = np.nonzero(R)
    S = np.zeros((len(R), pool.n_below, *pool.below_size), bool)
    S[(n, *position(pool.reach, pool.n_below, a, r, c, members))] = True
    return S


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network with decided weights, and the names of its classes."""

    network: Network
    weights: list[BoolArray]  # per level, (features, channels, height, width)
    classes: NDArray[Any]


class _StoredLevel(NamedTuple):
    pool_border: PoolBorder
    feature_order: FeatureOrder
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
        _StoredLevel(level.pool.border, level.pool.feature_order, level.p_W, level.window, W)
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
        elements += channels * below[0] * below[1] + level.pool.n_channels * pools
        priors = level.pool.n_channels if level.pool.depth > 1 else len(level.window)
        elements += priors * pools * level.pool.n_members
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
    own, depth, *positions = window.shape
    if not 1 <= depth * positions[0] * positions[1] <= MOST_MEMBERS:
        raise ValueError(f"its pools have {depth * positions[0] * positions[1]} members")
    shape = (positions[0], positions[1]), below, about.pool_border
    pool = PoolLayer(channels, *shape, depth, about.feature_order)
    fits = 0 < height <= pool.size[0] and 0 < width <= pool.size[1] and depth <= channels
    whole = about.feature_order != "groups" or channels % depth == 0
    if not fits or not whole or not n_features or n_channels != pool.n_channels or not channels:
        raise ValueError("its layers do not fit on each other")
    if own not in (1, pool.n_channels):
        raise ValueError(f"its pools have priors of {own} channels instead of {pool.n_channels}")
    features = FeatureLayer(n_features, n_channels, (height, width), pool.size, "valid")
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
    feature_order=kinds.choice(*get_args(FeatureOrder)),
    p_W=kinds.probability(),
    window=kinds.array(np.float64, (None,) * 4, math.ulp(0), kinds.LARGEST_SIDE),
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
