"""`to_onnx`: a fitted estimator as an ONNX file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hcnet.estimators.template_classifier import TemplateClassifier
from hcnet.export.network_graph import network_graph
from hcnet.export.parts_graph import parts_graph
from hcnet.validation.fitted import is_network


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
        return network_graph(model._model).save(path, overwrite)
    if not len(model.features_):
        raise ValueError(
            "There are no parts to export: none was found that shortens the description of the "
            "images; learn from others, or with another feature_size."
        )
    return parts_graph(model._model).save(path, overwrite)
