"""One layer of parts as an ONNX graph: a convolution with binary weights."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from hcnet.export.graph import Graph
from hcnet.layers import FeatureLayer
from hcnet.model import PartsModel

ABOUT = (
    "How much every part at every position explains of binary images, if it stood there alone, "
    "less what a placement costs.  X holds 0, 1, and NaN for missing pixels."
)


def parts_graph(model: PartsModel) -> Graph:
    """Output: "scores" (images, features, rows, columns), for images of any size."""
    F, channels, height, width = model.features.shape
    graph = Graph(("images", channels, "height", "width"), ABOUT)
    priors = model.priors
    evidence = graph.evidence(priors.noise.k1, priors.noise.k0)
    layer = FeatureLayer(F, channels, (height, width), model.image_size, model.border)
    weights = graph.constant("W", model.features.astype(np.float32))
    prior = graph.constant("prior", np.full(F, logit(priors.p_S), np.float32))
    # Pixels beyond the border are not observed; their evidence is the 0 of a padded convolution.
    pads = [*layer.overhang, *layer.overhang]
    graph.add("Conv", [evidence, weights, prior], "scores", pads=pads)
    graph.output("scores", np.dtype(np.float32), ("images", F, "rows", "columns"))
    return graph
