"""Convolutional networks in the form of an HCN's fast pass, trained by gradient descent.

The fast pass of an HCN is a max-pool and a correlation per layer, and at the top the best template
of every class.  With real weights, biases and a softmax over the classes that is a network like any
other.  Two forms matter:

- *linear* activations and several templates per class: what an HCN computes, trained to
  discriminate instead of to explain;
- *ReLU* activations and one template per class, which is a dense layer: a common network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet import Layer

try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError:
    message = "This benchmark needs JAX and optax: install them with pip install 'hcnet[bench]'."
    raise SystemExit(message) from None

# The comparison is on CPUs, also where JAX would find something else.
jax.config.update("jax_platforms", "cpu")

Labelled = tuple[NDArray[Any], NDArray[Any]]
# Images that are classified at once: bounds the memory for their windows.
CHUNK = 500


class Pool(NamedTuple):
    """A window, and whether there is one around every element, also at the border."""

    window: tuple[int, int]
    same: bool = False


class Weights(NamedTuple):
    """Of one layer: W is (features, channels, height, width), b is (features,)."""

    W: Any
    b: Any


@dataclass(frozen=True)
class Form:
    """What of a network is not learned."""

    pools: tuple[Pool, ...]
    relu: bool
    n_classes: int


def pooled(x: Any, pool: Pool) -> Any:
    """The maximum in every window of (images, channels, height, width)."""
    if pool.same:
        before = [(side - 1) // 2 for side in pool.window]
        after = [side // 2 for side in pool.window]
        x = jnp.pad(x, ((0, 0), (0, 0), *zip(before, after, strict=True)), constant_values=-jnp.inf)
    h, w = (side - own + 1 for side, own in zip(x.shape[2:], pool.window, strict=True))
    shifted = [x[:, :, i : i + h, j : j + w] for i, j in np.ndindex(*pool.window)]
    return jnp.stack(shifted).max(axis=0)


def windows(x: Any, size: tuple[int, int]) -> Any:
    """What a feature of a size sees at each position: (images, rows, columns, elements).

    A correlation is then a matrix product, many times faster on a CPU than XLA's own for features
    that are nearly as large as the image.
    """
    n, channels, height, width = x.shape
    rows, columns = height - size[0] + 1, width - size[1] + 1
    if rows * columns <= size[0] * size[1]:
        seen = [
            x[:, :, i : i + size[0], j : j + size[1]].reshape(n, -1)
            for i, j in np.ndindex(rows, columns)
        ]
        return jnp.stack(seen, axis=1).reshape(n, rows, columns, -1)
    shifted = [x[:, :, r : r + rows, c : c + columns] for r, c in np.ndindex(*size)]
    moved = jnp.stack(shifted, axis=2)  # images, channels, offsets, rows, columns
    return moved.reshape(n, channels * len(shifted), rows, columns).transpose(0, 2, 3, 1)


def _correlated(seen: Any, layer: Weights) -> Any:
    return jnp.moveaxis(seen @ layer.W.reshape(len(layer.W), -1).T + layer.b, -1, 1)


def class_scores(form: Form, weights: Sequence[Weights], seen: Any) -> Any:
    """Scores (images, classes) from the windows of the pooled images."""
    first, *others = weights
    x = _correlated(seen, first)
    for layer, pool in zip(others, form.pools[1:], strict=True):
        below = pooled(jax.nn.relu(x) if form.relu else x, pool)
        x = _correlated(windows(below, layer.W.shape[2:]), layer)
    return x.max(axis=(2, 3)).reshape(len(x), form.n_classes, -1).max(axis=2)


_scores = jax.jit(class_scores, static_argnames="form")


@partial(jax.jit, static_argnames=("pool", "size"))
def first_windows(images: Any, pool: Pool, size: tuple[int, int], shift: Any, scale: Any) -> Any:
    """Windows of the pooled images: all that the first layer needs, worked out only once."""
    return windows((pooled(images.astype(jnp.float32), pool) - shift) * scale, size)


def initial(form: Form, shapes: tuple[tuple[int, ...], ...], key: Any) -> list[Weights]:
    """Random weights that keep the size of what passes through them; no biases."""
    gain = 2.0 if form.relu else 1.0
    weights = []
    for own, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True):
        scale = np.sqrt(gain / np.prod(shape[1:]))
        weights.append(Weights(scale * jax.random.normal(own, shape), jnp.zeros(shape[0])))
    return weights


def cross_entropy(form: Form, weights: Sequence[Weights], seen: Any, y: Any) -> Any:
    """Mean over images."""
    scores = class_scores(form, weights, seen)
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean()


@partial(jax.jit, static_argnames=("form", "shapes", "steps", "rate"))
def train(
    form: Form,
    shapes: tuple[tuple[int, ...], ...],
    seen: Any,
    y: Any,
    l2: Any,
    keys: Any,
    steps: int,
    rate: float,
) -> tuple[list[Weights], Any]:
    """Many networks at once, one per entry of `l2` and `keys`; their weights and losses per step.

    Every step sees all images.  They share one product with the windows of the images, which is
    what makes restarts cheap.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def loss(weights: list[Weights], strength: Any) -> Any:
        squares = sum(jnp.sum(layer.W**2) for layer in weights)
        return cross_entropy(form, weights, seen, y) + strength / 2 * squares

    def one(strength: Any, key: Any) -> tuple[list[Weights], Any]:
        def step(carry: Any, _: None) -> tuple[Any, Any]:
            weights, state = carry
            value, gradient = jax.value_and_grad(loss)(weights, strength)
            update, state = optimiser.update(gradient, state)
            return (optax.apply_updates(weights, update), state), value

        weights = initial(form, shapes, key)
        (weights, _), losses = jax.lax.scan(step, (weights, optimiser.init(weights)), None, steps)
        return weights, losses

    return jax.vmap(one)(l2, keys)


@partial(jax.jit, static_argnames="form")
def judge(form: Form, weights: list[Weights], seen: Any, y: Any) -> tuple[Any, Any]:
    """Wrong images and cross-entropy of many networks."""

    def one(own: list[Weights]) -> tuple[Any, Any]:
        wrong = (class_scores(form, own, seen).argmax(axis=1) != y).sum()
        return wrong, cross_entropy(form, own, seen, y)

    return jax.vmap(one)(weights)


class CNN:
    """A network per L2 strength and restart; the best on held-out images is kept.

    `layers` are those of an `HCN`: the last one stands for the templates.  Best is the one with
    the fewest errors on the held-out images; among equals, that with the lowest cross-entropy
    there.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        templates_per_class: int = 1,
        relu: bool = False,
        l2: Sequence[float] = (1e-3, 1e-2, 1e-1, 0.3),
        restarts: int = 8,
        steps: int = 300,
        learning_rate: float = 3e-3,
        random_state: int = 0,
    ) -> None:
        self.layers = layers
        self.templates_per_class = templates_per_class
        self.relu = relu
        self.l2 = l2
        self.restarts = restarts
        self.steps = steps
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: NDArray[Any], y: NDArray[Any], held_out: Labelled | None = None) -> CNN:
        """Learn from images (n, channels, height, width); without `held_out`, from most of them.

        Then every fifth image of a class is kept back to choose by.
        """
        if held_out is None:
            rest = fifths(y)
            X, y, held_out = X[~rest], y[~rest], (X[rest], y[rest])
        shapes = self._prepare(X, y)
        strengths = jnp.repeat(jnp.asarray(self.l2), self.restarts)
        keys = jax.random.split(jax.random.key(self.random_state), len(strengths))
        networks, losses = train(
            self.form_,
            shapes,
            self._see(X),
            jnp.asarray(np.searchsorted(self.classes_, y)),
            strengths,
            keys,
            self.steps,
            self.learning_rate,
        )
        best = self._best(networks, *held_out)
        self.weights_ = [Weights(layer.W[best], layer.b[best]) for layer in networks]
        self.l2_ = float(strengths[best])
        self.losses_ = np.asarray(losses[best])
        return self

    def set_weights(self, weights: Sequence[Weights], n_classes: int) -> CNN:
        """Use these on images as they are, neither shifted nor scaled."""
        self.classes_ = np.arange(n_classes)
        self.shift_, self.scale_ = np.zeros((1, 1, 1), np.float32), np.float32(1)
        self.form_ = self._form()
        self.weights_ = [Weights(jnp.asarray(W), jnp.asarray(b)) for W, b in weights]
        self.size_ = self.weights_[0].W.shape[2:]
        return self

    def scores(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Of every class, before the softmax."""
        parts = [X[start : start + CHUNK] for start in range(0, len(X), CHUNK)]
        return np.concatenate([_scores(self.form_, self.weights_, self._see(x)) for x in parts])

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The class with the largest score."""
        return self.classes_[self.scores(X).argmax(axis=1)]

    def _form(self) -> Form:
        pools = [Pool(_pair(layer.pool), layer.pool_border == "same") for layer in self.layers]
        return Form(tuple(pools), self.relu, len(self.classes_))

    def _prepare(self, X: NDArray[Any], y: NDArray[Any]) -> tuple[tuple[int, ...], ...]:
        """Settle what does not change while learning; return the shapes of all W."""
        self.classes_ = np.unique(y)
        self.form_ = self._form()
        below = np.asarray(pooled(jnp.asarray(X, jnp.float32), self.form_.pools[0]))
        # A shift and a scale for the whole image: what biases and weights could do, too.
        self.shift_ = below.mean(axis=(0, 2, 3), keepdims=True)[0]
        self.scale_ = np.float32(1 / max(float((below - self.shift_).std()), 1e-6))
        channels, grid = X.shape[1], np.array(X.shape[2:])
        shapes = []
        for layer, pool in zip(self.layers, self.form_.pools, strict=True):
            grid = grid if pool.same else grid - pool.window + 1
            size = _pair(layer.size) if layer.size is not None else (int(grid[0]), int(grid[1]))
            n = layer.n_features or len(self.classes_) * self.templates_per_class
            shapes.append((n, channels, *size))
            channels, grid = n, grid - size + 1
        self.size_ = shapes[0][2:]
        return tuple(shapes)

    def _see(self, X: NDArray[Any]) -> Any:
        pool, size = self.form_.pools[0], tuple(self.size_)
        return first_windows(jnp.asarray(X), pool, size, self.shift_, self.scale_)

    def _best(self, networks: list[Weights], X: NDArray[Any], y: NDArray[Any]) -> int:
        n = len(networks[0].b)
        wrong, entropy = np.zeros(n), np.zeros(n)
        for start in range(0, len(X), CHUNK):
            part = X[start : start + CHUNK]
            truth = jnp.asarray(np.searchsorted(self.classes_, y[start : start + CHUNK]))
            errors, mean = judge(self.form_, networks, self._see(part), truth)
            wrong += np.asarray(errors)
            entropy += np.asarray(mean) * len(part)
        return int(np.lexsort((entropy, wrong))[0])


def fifths(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Every fifth image of each class."""
    chosen = np.zeros(len(y), bool)
    for label in np.unique(y):
        chosen[np.flatnonzero(y == label)[4::5]] = True
    return chosen


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size
