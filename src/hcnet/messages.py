"""Arrays of messages, of feature layers and of pools: layout, initial values, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from hcnet.engine.cpu_compilation import in_pieces
from hcnet.engine.driver import look
from hcnet.engine.planes import feature_below
from hcnet.engine.schedules import BLOCK_SIZE
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import ClassLayer, FeatureLayer, PoolLayer

IntArray = NDArray[np.int64]

# Elements that are listed or filled at a time, and from how many on they are shuffled in pieces: a
# million take some hundredths of a second.
CHUNK, LARGE = 2**20, 2**22


@dataclass(frozen=True)
class Layout:
    """Where the variables of a feature layer lie in the arrays of a run.

    A tree is the factor of one pixel (n, a, r, c).  Its leaves pair S[n, f, i, j] with
    W[a, f, r-i, c-j].  S and W play the same part in every formula, so the smaller grid of
    the two becomes the *kernel*, stored flipped as one contiguous row per image or channel,
    and the larger the *field*, padded so that the leaves of every tree are whole runs of
    memory: row ``r + i`` of the field, columns ``c`` to ``c + width``, features last.
    A page has small features (W is the kernel); an MNIST digit with 26×26 features has only
    3×3 placements (S is the kernel).
    """

    layer: FeatureLayer
    n_images: int

    @cached_property
    def kernel_is_weights(self) -> bool:
        """True where W is the kernel and S the field."""
        h, w = self.layer.feature_size
        hs, ws = self.layer.placement_size
        return h * w <= hs * ws or self.layer.border == "full"

    @cached_property
    def kernel_size(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        layer = self.layer
        return layer.feature_size if self.kernel_is_weights else layer.placement_size

    @property
    def leaves(self) -> int:
        """ANDs per tree."""
        return self.kernel_size[0] * self.kernel_size[1] * self.layer.n_features

    @property
    def kernel_shape(self) -> tuple[int, int]:
        """(channels or images, leaves)."""
        rows = self.layer.n_channels if self.kernel_is_weights else self.n_images
        return rows, self.leaves

    @property
    def field_shape(self) -> tuple[int, int, int]:
        """(images or channels, padded height, padded width × features)."""
        rows = self.n_images if self.kernel_is_weights else self.layer.n_channels
        (H, W), (kh, kw) = self.layer.image_size, self.kernel_size
        return rows, H + kh - 1, (W + kw - 1) * self.layer.n_features

    @property
    def geometry(self) -> tuple[int, int, int, int, int]:
        """Height, width and features of the field, height and run length of the kernel."""
        _, height, width = self.field_shape
        (kernel_height, kernel_width), F = self.kernel_size, self.layer.n_features
        return height, width // F, F, kernel_height, kernel_width * F

    def _field_padding(self) -> tuple[int, int]:
        kh, kw = self.kernel_size
        oh, ow = self.layer.overhang if self.kernel_is_weights else (0, 0)
        return kh - 1 - oh, kw - 1 - ow

    def to_field(self, values: FloatArray, fill: float) -> FloatArray:
        """(rows, features, height, width) to the padded, features-last field."""
        ph, pw = self._field_padding()
        moved = np.moveaxis(values, 1, 3)
        padded = np.pad(moved, ((0, 0), (ph, ph), (pw, pw), (0, 0)), constant_values=fill)
        return np.ascontiguousarray(padded.reshape(self.field_shape), dtype=FLOAT)

    def from_field(self, field: FloatArray) -> FloatArray:
        """Inverse of `to_field`."""
        F = self.layer.n_features
        rows, height, width = self.field_shape
        ph, pw = self._field_padding()
        grid = field.reshape(rows, height, width // F, F)
        return np.moveaxis(grid[:, ph : height - ph, pw : width // F - pw], 3, 1)

    def to_kernel(self, values: FloatArray) -> FloatArray:
        """(rows, features, height, width) to one flipped, features-last row each."""
        flipped = np.moveaxis(values[:, :, ::-1, ::-1], 1, 3)
        return np.ascontiguousarray(flipped.reshape(self.kernel_shape), dtype=FLOAT)

    def from_kernel(self, kernel: FloatArray) -> FloatArray:
        """Inverse of `to_kernel`."""
        grid = kernel.reshape(kernel.shape[0], *self.kernel_size, self.layer.n_features)
        return np.moveaxis(grid, 3, 1)[:, :, ::-1, ::-1]

    def memory(self, n_trees: int, lanes: int = 1, keep: bool = True) -> int:
        """Bytes that a run with this many trees needs, known before it starts.

        Where images work at the same time, each lane has a copy of the beliefs of W.  With `keep`
        messages are kept from sweep to sweep; otherwise those of a few trees at a time are.
        """
        edges = 2 * 4 * (n_trees if keep else max(lanes, BLOCK_SIZE)) * self.leaves
        beliefs = 4 * 4 * (int(np.prod(self.field_shape)) + int(np.prod(self.kernel_shape)))
        trees = n_trees * (4 + 4 * 4 + 8)
        weights = self.kernel_shape if self.kernel_is_weights else self.field_shape
        copies = 4 * lanes * int(np.prod(weights)) if lanes > 1 else 0
        return edges + beliefs + trees + copies


@dataclass
class Messages:
    """State of one run: evidence and priors (fixed), edge messages and beliefs (moving).

    The belief of a variable is its prior plus all messages to it.  A prior of ±HUGE (a clamped
    weight, a forbidden placement) swallows the messages in its own belief; the messages
    themselves are kept, so that `engine.dense.rebuild` can take up a new prior at any time.
    """

    layout: Layout
    trees: NDArray[np.int32]  # (n_trees, 4): field row, kernel row, pixel row, pixel column
    images: NDArray[np.int32]  # (n_trees,): which image a tree belongs to
    evidence: FloatArray  # (n_trees,)
    field_prior: FloatArray
    kernel_prior: FloatArray
    field: FloatArray  # beliefs
    kernel: FloatArray
    to_field: FloatArray  # (n_trees, leaves); (0, leaves) where each tree is visited only once
    to_kernel: FloatArray
    quiet: NDArray[
        np.uint8
    ]  # (n_trees × rows of the kernel): 1: surely no message to the kernel but 0
    # No tree has been visited, and memory holds anything instead of messages of 0.
    fresh: bool = False

    @property
    def keeps_messages(self) -> bool:
        """Whether trees remember what they said; otherwise each may be visited only once."""
        return len(self.to_field) == self.n_trees

    @property
    def n_trees(self) -> int:
        """Number of trees: observed pixels."""
        return int(self.trees.shape[0])

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return self._beliefs(weights=False)

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return self._beliefs(weights=True)

    def _beliefs(self, weights: bool) -> FloatArray:
        if weights == self.layout.kernel_is_weights:
            return self.layout.from_kernel(self.kernel)
        return self.layout.from_field(self.field)

    def set_placement_prior(self, prior: FloatArray) -> None:
        """Another prior of S, (images, features, height, width); `add_priors` takes it up."""
        if self.layout.kernel_is_weights:
            self.field_prior = self.layout.to_field(prior, fill=-HUGE)
        else:
            self.kernel_prior = self.layout.to_kernel(prior)

    def add_priors(self) -> None:
        """Turn sums of messages (`CPUEngine.collect`) into beliefs."""
        self.field += self.field_prior
        self.kernel += self.kernel_prior


def trees_of(
    observed: BoolArray, rng: np.random.Generator, same_order: bool = False
) -> NDArray[np.int32]:
    """(n_trees, 4): image, channel, row and column of every tree of a run.

    One tree per observed element (an unobserved one would send exactly 0 for ever), shuffled
    once, so that a schedule can take runs of neighbours in memory in random order.  With
    `same_order`, where everything is observed, one image comes after the other, each in the same
    random order, so that what is inferred about an image does not depend on those beside it.
    """
    if not same_order:
        return _shuffled(observed, rng)
    one = _shuffled(observed[:1], rng)
    every = np.tile(one, (len(observed), 1))
    every[:, 0] = np.repeat(np.arange(len(observed)), len(one))
    return every


def _shuffled(which: BoolArray, rng: np.random.Generator) -> NDArray[np.int32]:
    where = np.flatnonzero(which)
    look()
    order = _permutation(len(where), rng)
    pixels = np.empty((len(where), which.ndim), np.int32)
    for rows in chunks(len(where)):
        pixels[rows] = np.stack(np.unravel_index(where[order[rows]], which.shape), axis=1)
    return pixels


def _permutation(n: int, rng: np.random.Generator) -> IntArray:
    """The numbers below n in random order: what NumPy gives, in pieces if that takes long."""
    if not LARGE < n < 2**32:
        return rng.permutation(n)
    order = np.arange(n)
    look()
    _swap(n - 1, order, rng)
    return order


@in_pieces
def _swap(first: int, last: int, order: Any, rng: Any) -> None:
    """Exchange elements from the last to the second with one before them, or themselves."""
    for k in range(first, last):
        i = order.size - 1 - k
        mask = np.uint32(i)
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> np.uint32(shift)
        j = i + 1
        while j > i:
            j = np.int64(np.uint32(rng.integers(0, 2**32 - 1, endpoint=True)) & mask)
        order[i], order[j] = order[j], order[i]


def chunks(n: int) -> Iterator[slice]:
    """Slices of rows; between two a run can be ended."""
    for start in range(0, n, CHUNK):
        look()
        yield slice(start, start + CHUNK)


def filled(shape: tuple[int, ...], value: float) -> FloatArray:
    """An array of one value; large ones take seconds to fill, and longer where memory is slow."""
    array = np.empty(shape, FLOAT)
    flat = array.reshape(-1)
    for part in chunks(flat.size):
        flat[part] = value
    return array


def start_messages(
    layer: FeatureLayer,
    pixels: NDArray[np.int32],
    evidence: FloatArray,
    placement_prior: FloatArray | float,
    weight_prior: FloatArray,
    keep: bool = True,
    memory: FloatArray | None = None,
) -> Messages:
    """All messages 0; priors as log-odds.

    `pixels` says which elements of R have a tree (`trees_of`), `evidence`
    is (images, channels, height, width), `placement_prior` one number or (images, features,
    height, width), `weight_prior` (channels, features, height, width).  Without `keep`, messages
    enter the beliefs and are forgotten: for trees that are visited once.  `memory`, two numbers
    for every leaf, is used instead of new memory, which takes as long to get as a sweep; there
    quiet rows hold anything, so that messages can be updated, but not saved or added up anew.
    """
    n_images = len(evidence)
    layout = Layout(layer, n_images)
    shape = (n_images, layer.n_features, *layer.placement_size)
    S = np.broadcast_to(np.asarray(placement_prior, dtype=FLOAT), shape)
    field, kernel = (S, weight_prior) if layout.kernel_is_weights else (weight_prior, S)
    field_prior = layout.to_field(field, fill=-HUGE)
    kernel_prior = layout.to_kernel(kernel)
    edges = (len(pixels) if keep else 0, layout.leaves)
    to_field, to_kernel = np.zeros((2, *edges), FLOAT) if memory is None else memory[:, : edges[0]]
    trees, own = np.empty_like(pixels), np.empty(len(pixels), FLOAT)
    for rows in chunks(len(pixels)):
        n, a, r, c = pixels[rows].T
        own[rows] = evidence[n, a, r, c]
        trees[rows] = np.stack((n, a, r, c) if layout.kernel_is_weights else (a, n, r, c), axis=1)
    return Messages(
        layout=layout,
        trees=trees,
        images=np.ascontiguousarray(pixels[:, 0]),
        evidence=own,
        field_prior=field_prior,
        kernel_prior=kernel_prior,
        field=field_prior.copy(),
        kernel=kernel_prior.copy(),
        to_field=to_field,
        to_kernel=to_kernel,
        quiet=np.ones(edges[0] * layout.kernel_size[0], np.uint8),
        fresh=memory is not None,
    )


@dataclass(frozen=True)
class ActivePools:
    """Pools that may be on, and the elements below that they reach.

    The messages of all others are the same in every pass.
    """

    pools: NDArray[np.int64]  # numbers of elements (image, channel, row, column) of R
    below: NDArray[np.int64]


@dataclass
class PoolMessages:
    """State of one pooling layer: messages along the edges of its intermediate variables U.

    An element (a, r, c) of R has a pool with a member per choice in the window.
    """

    layer: PoolLayer
    log_prior: FloatArray  # (channels or 1, height, width, members) of R; 1: the same for all
    to_U: FloatArray  # (images, channels, height, width, members): from the ORs below
    from_pool: FloatArray  # the same shape: from the pools above
    to_R: FloatArray  # (images, channels, height, width)
    active: ActivePools | None = None  # None: all

    @property
    def window(self) -> tuple[int, ...]:
        """The window as `engine.planes` wants it."""
        return self.layer.reach


def start_pools(
    layer: PoolLayer,
    n_images: int,
    log_prior: FloatArray,
    hold: Callable[[FloatArray], FloatArray] = np.asarray,
) -> PoolMessages:
    """Messages up are 0, messages down are minus infinity: nothing is expected.

    `hold` brings arrays to where the engine works.
    """
    shape = (n_images, layer.n_channels, *layer.size)
    return PoolMessages(
        layer=layer,
        log_prior=hold(log_prior),
        to_U=hold(np.zeros((*shape, layer.n_members), FLOAT)),
        from_pool=hold(filled((*shape, layer.n_members), -HUGE)),
        to_R=hold(np.zeros(shape, FLOAT)),
    )


def features_below(layer: PoolLayer, d: int) -> tuple[IntArray, BoolArray]:
    """The feature that each channel of R chooses by depth d, and whether there is one."""
    below = feature_below(layer.reach, np.arange(layer.n_channels), d, layer.n_below)
    return below, (below >= 0) & (below < layer.n_below)


def set_active_pools(pools: PoolMessages, some: BoolArray) -> None:
    """Update some pools only from now on, (images, channels, height, width).

    The messages to the others must have been computed, with nothing expected of any.
    """
    layer = pools.layer
    (H, W), (h, w) = layer.size, layer.window
    (top, left), (below_h, below_w) = layer.offset, layer.below_size
    wide = np.zeros((*some.shape[:2], H + h - 1, W + w - 1), bool)
    for i in range(h):
        for j in range(w):
            wide[:, :, i : i + H, j : j + W] |= some
    wide = wide[:, :, top : top + below_h, left : left + below_w]
    reached = np.zeros((len(some), layer.n_below, below_h, below_w), bool)
    for d in range(layer.depth):
        below, inside = features_below(layer, d)
        reached[:, below[inside]] |= wide[:, inside]
    pools.active = ActivePools(np.flatnonzero(some), np.flatnonzero(reached))


def pool_memory(layer: PoolLayer, n_images: int) -> int:
    """Bytes of the messages of a pooling layer, and of those between it and its neighbours."""
    elements = n_images * layer.n_channels * int(np.prod(layer.size))
    below = n_images * layer.n_below * int(np.prod(layer.below_size))
    return 4 * (elements * (2 * layer.n_members + 3) + 2 * below)


def pool_log_prior(layer: PoolLayer, window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probability of every member of every pool: (channels or 1, height, width, members).

    `window` holds the relative probabilities of the choices, (channels or 1, depth, height, width).
    Members beyond the border of the grid below, or off a line of features, are impossible, and the
    others share their probability.
    """
    (H, W), (h, w) = layer.size, layer.window
    (top, left), (below_h, below_w) = layer.offset, layer.below_size
    y = np.arange(H)[:, None] + np.arange(h) - top
    x = np.arange(W)[:, None] + np.arange(w) - left
    rows, columns = (y >= 0) & (y < below_h), (x >= 0) & (x < below_w)
    # A channel at the end of a line has fewer choices than others.
    channels = layer.n_channels if layer.feature_order == "line" and layer.depth > 1 else 1
    a, d = np.arange(max(channels, len(window)))[:, None], np.arange(layer.depth)
    below = feature_below(layer.reach, a, d, layer.n_below)
    window = np.where(((below >= 0) & (below < layer.n_below))[:, :, None, None], window, 0.0)
    found = np.empty((len(window), H, W, layer.n_members))
    for r in range(H):
        look()
        inside = rows[r, :, None] & columns[:, None, :]
        p = np.where(inside[:, None], window[:, None], 0.0).reshape(len(window), W, -1)
        p /= p.sum(axis=2, keepdims=True)
        found[:, r] = np.where(p > 0, np.log(np.maximum(p, 1e-300)), -HUGE)
    return found


def template_log_prior(layer: ClassLayer, positions: int) -> NDArray[np.float64]:
    """Prior of every template at each of some positions.

    Where exactly one is on: the log-probability that it is this one.  Where each is on by itself:
    the log-odds of that.
    """
    if layer.p_on is not None:
        return np.full(layer.n_templates, float(logit(layer.p_on)))
    sizes = np.bincount(layer.categories)
    return -np.log(layer.n_classes * positions * sizes[list(layer.categories)])


def class_log_prior(
    layer: ClassLayer, shape: tuple[int, ...], allowed: BoolArray
) -> NDArray[np.float64]:
    """`template_log_prior` for templates S of shape (images, templates, height, width).

    A row per image; impossible where `allowed` (images, templates) is False.
    """
    positions = shape[2] * shape[3]
    prior = np.where(allowed, template_log_prior(layer, positions), -HUGE)
    return np.repeat(prior, positions, axis=1)
