"""Fitted estimators as ONNX files (`to_onnx`), and as dictionaries that JSON can hold (`to_dict`).

In a dictionary a binary array becomes nested lists whose rows are strings, ``"#"`` for on and
``"."`` for off.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from hcnet.archive import kinds
from hcnet.archive.kinds import ArraySource, Node, Shape, fits, shape_text
from hcnet.atomic_files import write_atomically
from hcnet.checks import in_short
from hcnet.estimators.files import ESTIMATORS, Estimator
from hcnet.estimators.template_classifier import TemplateClassifier
from hcnet.factors import HUGE
from hcnet.hierarchy.network import Level, NetworkModel
from hcnet.images import BoolArray, Noise
from hcnet.layers import ClassLayer
from hcnet.messages import features_below, template_log_prior
from hcnet.model import PartsModel
from hcnet.soft.soft_model import SoftModel
from hcnet.validation.parameters import is_network

FORMAT, VERSION = "hcnet-model", 1
# Levels of a dictionary, and values in it: far more than any model has, and few enough to look at.
MOST_DEPTH, MOST_VALUES = 20, 2**24
ON, OFF = "#", "."
# The oldest set of operators that is sufficient, so that old runtimes can read it.
OPSET = 17
IR_VERSION = 8
FLOAT = np.dtype(np.float32)
NETWORK = (
    "Class of binary images by one forward pass of a Hierarchical Compositional Network: "
    "max-pooling and convolution with binary weights.  X holds 0, 1, and NaN for missing pixels."
)
PARTS = (
    "How much every part at every position explains of binary images, if it stood there alone, "
    "less what a placement costs.  X holds 0, 1, and NaN for missing pixels."
)


def to_onnx(model: Any, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write a fitted `FeatureLearner` or `HCN` as an ONNX graph with binary weights.

    The input "X" (images, channels, height, width) is float32: 0, 1, NaN where a pixel is missing.

    For an `HCN` the graph is its forward pass, a CNN for images of the network's size.  Outputs:
    "label" (images,), "scores" and "probabilities" (images, classes), as `predict` and
    `predict_proba` with ``inference="forward"``, up to the rounding of float32.  If class names are
    of several types, they become strings.

    For a `FeatureLearner` the graph is a convolution, for images of any size.  Output: "scores"
    (images, features, rows, columns), the nats that a part at a position would explain if it stood
    there alone, less the cost of a placement.  Positions are those of `placements_`, counted from
    the first that a window can take.  `transform` decides which placements explain an image
    together, and is not part of the graph.
    """
    if is_network(model):
        if isinstance(model, TemplateClassifier):
            raise TypeError(
                "to_onnx writes a forward pass, and a TemplateClassifier matches templates; use "
                "to_dict for its weights."
            )
        if model._model.network.classes.p_on is not None:
            raise ValueError(
                "to_onnx needs exactly one object per image, and this class layer allows several, "
                "which a forward pass alone cannot tell apart; export the network without p_on: "
                "to_onnx(model.with_class_layer(), …)."
            )
        graph = _network_graph(model._model)
    elif isinstance(model._model, SoftModel):
        raise ValueError(
            "to_onnx writes parts that repeat exactly, and these are soft; use to_dict for their "
            "probabilities, or learn with algorithm='refined'."
        )
    elif not len(model.features_):
        raise ValueError(
            "There are no parts to export: none was found that shortens the description of the "
            "images; learn from others, or with another feature_size."
        )
    else:
        graph = _parts_graph(model._model)
    data = graph.serialized()
    return write_atomically(path, lambda file: file.write(data), overwrite)


class Graph:
    """A graph under construction; `add` and `constant` return the name of the tensor that they add.

    `shape` is that of the input "X", a name where a length is open.  The first tensor is
    "evidence": k1 where a pixel is on, k0 where it is off, 0 where it is NaN.
    """

    def __init__(self, shape: tuple[int | str, ...], about: str, noise: Noise) -> None:
        try:
            self._onnx = onnx = import_module("onnx")
        except ImportError:
            raise ImportError(
                "to_onnx needs the package onnx, which is not installed; install it with "
                "pip install onnx, or hcnet with its extra: pip install 'hcnet[onnx]'."
            ) from None
        self._about = about
        self._nodes: list[Any] = []
        self._constants: dict[str, NDArray[Any]] = {}
        self._outputs: list[Any] = []
        self._input = onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, shape)
        numbers = {"k1": noise.k1, "k0": noise.k0, "half": 0.5, "zero": 0.0}
        for name, value in numbers.items():
            self.constant(name, np.array(value, FLOAT))
        self.add("IsNaN", ["X"], "missing")
        self.add("Greater", ["X", "half"], "on")
        self.add("Where", ["on", "k1", "k0"], "seen")
        self.add("Where", ["missing", "zero", "seen"], "evidence")

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A tensor that is part of the graph."""
        self._constants[name] = value
        return name

    def add(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """An operator with one result, called `name`."""
        node = self._onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self._nodes.append(node)
        return name

    def output(self, name: str, dtype: np.dtype[Any], *shape: int | str) -> None:
        """Make the tensor of this name an output."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, kind, shape))

    def serialized(self) -> bytes:
        """The finished model, checked by onnx."""
        onnx = self._onnx
        tensors = [
            onnx.numpy_helper.from_array(value, name) for name, value in self._constants.items()
        ]
        graph = onnx.helper.make_graph(
            self._nodes, "hcnet", [self._input], self._outputs, tensors, doc_string=self._about
        )
        model = onnx.helper.make_model(
            graph,
            producer_name="hcnet",
            doc_string=self._about,
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        onnx.checker.check_model(model, full_check=True)
        data: bytes = model.SerializeToString()
        return data


def _parts_graph(model: PartsModel) -> Graph:
    """A convolution; output: "scores" (images, features, rows, columns), for images of any size."""
    F, channels = model.features.shape[:2]
    graph = Graph(("images", channels, "height", "width"), PARTS, model.priors.noise)
    weights = graph.constant("W", model.features.astype(FLOAT))
    prior = graph.constant("prior", np.full(F, logit(model.priors.p_S), FLOAT))
    # Pixels beyond the border are not observed; their evidence is the 0 of a padded convolution.
    pads = [*model.layer(model.image_size).overhang] * 2
    graph.add("Conv", ["evidence", weights, prior], "scores", pads=pads)
    graph.output("scores", FLOAT, "images", F, "rows", "columns")
    return graph


def _network_graph(model: NetworkModel) -> Graph:
    """Outputs: "label", "scores" and "probabilities" of the classes (images, classes)."""
    network = model.network
    graph = Graph(("images", network.n_channels, *network.image_size), NETWORK, network.noise)
    up = "evidence"
    for k, (level, W) in enumerate(zip(network.levels, model.weights, strict=True), start=1):
        weights = graph.constant(f"W{k}", W.astype(FLOAT))
        up = graph.add("Conv", [_pool(graph, level, up, k), weights], f"S{k}")
    scores = _class_scores(graph, network.classes, up, network.top_size)
    graph.add("Softmax", [scores], "probabilities", axis=1)
    best = graph.add("ArgMax", [scores], "best", axis=1, keepdims=0)
    names = _class_names(model.classes)
    graph.add("Gather", [graph.constant("classes", names), best], "label", axis=0)
    graph.output("label", names.dtype, "images")
    for name in ("scores", "probabilities"):
        graph.output(name, FLOAT, "images", network.classes.n_classes)
    return graph


def _pool(graph: Graph, level: Level, below: str, k: int) -> str:
    """Messages up to R of level k: the best position in every window, with its prior."""
    pool, prior = level.pool, level.log_prior
    (height, width), (top, left) = pool.window, pool.offset
    positions = height * width
    # Rows and columns that windows reach over the border, on all four sides.
    bottom = pool.size[0] + height - 1 - top - pool.below_size[0]
    right = pool.size[1] + width - 1 - left - pool.below_size[1]
    best = prior.max(axis=3)
    if ((prior == best[..., None]) | (prior <= -HUGE)).all():
        # Adding a number keeps the order, also when rounded: the prior may come after the maximum.
        shape = {"kernel_shape": [height, width], "pads": [top, left, bottom, right]}
        largest = graph.add("MaxPool", [below], f"maximum{k}", **shape)
        chosen = [_chosen(graph, level, largest, d, k) for d in range(pool.depth)]
        largest = _largest(graph, chosen, f"group{k}")
        return graph.add("Add", [largest, graph.constant(f"prior{k}", best)], f"R{k}")
    sides = graph.constant(f"sides{k}", np.array([0, 0, top, left, 0, 0, bottom, right]))
    outside = graph.constant(f"outside{k}", np.array(-HUGE, FLOAT))
    padded = graph.add("Pad", [below, sides, outside], f"padded{k}")
    features = [_chosen(graph, level, padded, d, k) for d in range(pool.depth)]
    members = []
    axes = graph.constant(f"axes{k}", np.array([2, 3]))
    for m in range(pool.n_members):
        at = np.array(np.unravel_index(m % positions, pool.window))
        start = graph.constant(f"start{k}_{m}", at)
        end = graph.constant(f"end{k}_{m}", at + pool.size)
        moved = graph.add("Slice", [features[m // positions], start, end, axes], f"moved{k}_{m}")
        own = graph.constant(f"prior{k}_{m}", np.ascontiguousarray(prior[..., m]))
        members.append(graph.add("Add", [moved, own], f"member{k}_{m}"))
    return _largest(graph, members, f"R{k}")


def _largest(graph: Graph, members: list[str], name: str) -> str:
    """The largest of some tensors."""
    return members[0] if len(members) == 1 else graph.add("Max", members, name)


def _chosen(graph: Graph, level: Level, below: str, d: int, k: int) -> str:
    """The feature below that each channel of R chooses by depth d.

    Off a line it is that at the end: another choice of the same channel, or one whose prior
    rules it out.
    """
    pool = level.pool
    if pool.depth == 1:
        return below
    numbers, _ = features_below(pool, d)
    which = graph.constant(f"features{k}_{d}", np.clip(numbers, 0, pool.n_below - 1))
    return graph.add("Gather", [below, which], f"chosen{k}_{d}", axis=1)


def _class_scores(graph: Graph, classes: ClassLayer, up: str, top_size: tuple[int, int]) -> str:
    """The best template of every class at its best position, with its prior."""
    best = graph.add("ReduceMax", [up], "best_position", axes=[2, 3], keepdims=0)
    prior = template_log_prior(classes, top_size[0] * top_size[1]).astype(FLOAT)
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


def to_dict(model: Estimator) -> dict[str, Any]:
    """A fitted estimator as a dictionary that JSON can hold; `from_dict` reads it.

    Features and weights are rows of "#" and ".".  The state of a stream is left out: `save` keeps
    it.
    """
    check_is_fitted(model)
    contents = model._model_contents()
    arrays = {
        key: _drawn(array) if array.dtype == bool else array.tolist()
        for key, array in contents.arrays.items()
    }
    about = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": model._kind,
        "parameters": model._plain_parameters(),
    }
    found: dict[str, Any] = about | contents.header | {"arrays": arrays}
    return found


def from_dict(description: dict[str, Any]) -> Estimator:
    """The estimator that `to_dict` described.

    A dictionary may come from anybody: one that is damaged or made up raises a ValueError that says
    so.
    """
    try:
        _check_plain(description)
        node = Node("", description, DrawnArrays(description.get("arrays")))
        kinds.choice(FORMAT).read(node["format"])
        kind = ESTIMATORS[kinds.choice(*ESTIMATORS).read(node["estimator"])]
        version = kinds.whole_number(1).read(node["version"])
        if version <= VERSION:
            found: Estimator = kind._from_model(node["parameters"], node)
            return found
    except MemoryError:
        raise
    except Exception as error:  # whatever does not fit
        raise ValueError(
            f"A dictionary that to_dict made was expected ({in_short(error)}); pass one as it was "
            f"made, or as json.loads gives it back."
        ) from error
    raise ValueError(
        f"This dictionary was made by a newer hcnet (version {version}, this hcnet reads up to "
        f"{VERSION}); update hcnet."
    )


def _check_plain(description: Any) -> None:
    """Raise an error unless this holds plain values, not too many and not nested too deep."""
    if not isinstance(description, dict):
        raise ValueError(f"it is {kinds.shown(description)}")
    if _count(description, MOST_DEPTH, {}) > MOST_VALUES:
        raise ValueError("it holds too many values")


def _count(value: Any, depth: int, known: dict[tuple[int, int], int]) -> int:
    """The values in a dictionary or list, each as often as it is found in there.

    `known` are those of others, by their identity and depth: a few lists may hold each other so
    often that nobody could look at all of them.
    """
    if depth == 0:
        raise ValueError("it is nested too deep")
    key = id(value), depth
    if key not in known:
        if isinstance(value, dict) and not all(isinstance(name, str) for name in value):
            raise ValueError("it has names that are no texts")
        items = value.values() if isinstance(value, dict) else value
        inside = [one for one in items if isinstance(one, dict | list | tuple)]
        known[key] = len(value) + sum(_count(one, depth - 1, known) for one in inside)
    return known[key]


class DrawnArrays(ArraySource):
    """The arrays of a dictionary."""

    def __init__(self, arrays: Any) -> None:
        if not isinstance(arrays, dict):
            raise ValueError(f"its arrays are {kinds.shown(arrays)} instead of values with names")
        self._arrays = arrays

    def _find(self, name: str) -> Any:
        if name not in self._arrays:
            raise ValueError(f"its {name} is missing")
        return self._arrays[name]

    def read(self, name: str, dtype: DTypeLike, shape: Shape) -> NDArray[Any]:
        """An array of this shape."""
        found = np.asarray(self._find(name), dtype)
        if not fits(found.shape, shape):
            wanted = shape_text(shape)
            raise ValueError(f"its {name} have the shape {found.shape} instead of {wanted}")
        return found

    def read_bits(self, name: str, shape: tuple[int, ...]) -> BoolArray:
        """A binary array."""
        found = _read(self._find(name))
        if found.size == 0 and 0 in shape:
            return np.zeros(shape, bool)
        if found.shape != shape:
            raise ValueError(f"its {name} have the shape {found.shape} instead of {shape}")
        return found


def _drawn(array: BoolArray) -> Any:
    if array.ndim == 1:
        return "".join(ON if one else OFF for one in array)
    return [_drawn(one) for one in array]


def _read(drawn: Any) -> BoolArray:
    if isinstance(drawn, str):
        if set(drawn) - {ON, OFF}:
            raise ValueError(f"a row may hold {ON!r} and {OFF!r} only, not {kinds.shown(drawn)}")
        return np.array([one == ON for one in drawn], bool)
    return np.array([_read(one) for one in drawn], bool)
