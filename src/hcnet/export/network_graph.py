"""The fast forward pass of a network as an ONNX graph: a CNN with binary weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.export.graph import Graph
from hcnet.factors import HUGE
from hcnet.hierarchy.network import Level
from hcnet.hierarchy.network_model import NetworkModel
from hcnet.images import BoolArray
from hcnet.layers import ClassLayer
from hcnet.pool_messages import template_log_prior

ABOUT = (
    "Class of binary images by one forward pass of a Hierarchical Compositional Network: "
    "max-pooling and convolution with binary weights.  X holds 0, 1, and NaN for missing pixels."
)


def network_graph(model: NetworkModel) -> Graph:
    """Outputs: "label", "scores" and "probabilities" of the classes (images, classes)."""
    network = model.network
    graph = Graph(("images", network.n_channels, *network.image_size), ABOUT)
    up = graph.evidence(network.noise.k1, network.noise.k0)
    for k, (level, W) in enumerate(zip(network.levels, model.weights, strict=True), start=1):
        up = _level(graph, level, W, up, k)
    scores = _class_scores(graph, network.classes, up, network.top_size)
    graph.add("Softmax", [scores], "probabilities", axis=1)
    best = graph.add("ArgMax", [scores], "best", axis=1, keepdims=0)
    names = _class_names(model.classes)
    graph.add("Gather", [graph.constant("classes", names), best], "label", axis=0)
    K = network.classes.n_classes
    graph.output("label", names.dtype, ("images",))
    for name in ("scores", "probabilities"):
        graph.output(name, np.dtype(np.float32), ("images", K))
    return graph


def _level(graph: Graph, level: Level, W: BoolArray, below: str, k: int) -> str:
    """Messages up to S of level k."""
    pooled = _pool(graph, level, below, k)
    weights = graph.constant(f"W{k}", W.astype(np.float32))
    return graph.add("Conv", [pooled, weights], f"S{k}")


def _pool(graph: Graph, level: Level, below: str, k: int) -> str:
    """Messages up to R of level k: the best position in every window, with its prior."""
    pool, prior = level.pool, level.log_prior
    (height, width), (top, left) = pool.window, pool.offset
    # Rows and columns that windows reach over the border, on all four sides.
    bottom = pool.size[0] + height - 1 - top - pool.below_size[0]
    right = pool.size[1] + width - 1 - left - pool.below_size[1]
    pads = [top, left, bottom, right]
    best = prior.max(axis=2)
    if ((prior == best[:, :, None]) | (prior <= -HUGE)).all():
        # Adding a number keeps the order, also when rounded: the prior may come after the maximum.
        largest = graph.add(
            "MaxPool", [below], f"maximum{k}", kernel_shape=[height, width], pads=pads
        )
        return graph.add("Add", [largest, graph.constant(f"prior{k}", best)], f"R{k}")
    padded = below
    if any(pads):
        sides = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
        outside = graph.number(f"outside{k}", -HUGE)
        inputs = [below, graph.constant(f"sides{k}", sides), outside]
        padded = graph.add("Pad", inputs, f"padded{k}")
    members = []
    axes = graph.constant(f"axes{k}", np.array([2, 3], np.int64))
    for m, (i, j) in enumerate(np.ndindex(height, width)):
        first = np.array([i, j], np.int64)
        start = graph.constant(f"start{k}_{m}", first)
        end = graph.constant(f"end{k}_{m}", first + pool.size)
        moved = graph.add("Slice", [padded, start, end, axes], f"moved{k}_{m}")
        own = graph.constant(f"prior{k}_{m}", np.ascontiguousarray(prior[:, :, m]))
        members.append(graph.add("Add", [moved, own], f"member{k}_{m}"))
    return graph.add("Max", members, f"R{k}")


def _class_scores(graph: Graph, classes: ClassLayer, up: str, top_size: tuple[int, int]) -> str:
    """The best template of every class at its best position, with its prior."""
    best = graph.add("ReduceMax", [up], "best_position", axes=[2, 3], keepdims=0)
    prior = template_log_prior(classes, top_size[0] * top_size[1]).astype(np.float32)
    scored = graph.add("Add", [best, graph.constant("template_prior", prior)], "templates")
    own = [np.flatnonzero(np.array(classes.categories) == k) for k in range(classes.n_classes)]
    # A row per class; shorter ones repeat their last template, which changes no maximum.
    most = max(map(len, own))
    rows = np.stack([np.pad(row, (0, most - len(row)), mode="edge") for row in own])
    members = graph.constant("class_templates", rows.astype(np.int64))
    grouped = graph.add("Gather", [scored, members], "of_class", axis=1)
    return graph.add("ReduceMax", [grouped], "scores", axes=[2], keepdims=0)


def _class_names(classes: NDArray[np.generic]) -> NDArray[np.generic]:
    """Class names in types of ONNX: whole numbers, numbers, or strings."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes
    return np.array([str(name) for name in classes.tolist()], object)
