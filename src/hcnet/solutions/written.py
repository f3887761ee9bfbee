"""A solution in a file."""

from __future__ import annotations

import numpy as np

from hcnet.archive.contents import Contents
from hcnet.archive.fields import whole
from hcnet.archive.reading import Section
from hcnet.images import BoolArray
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver


def written(found: Explanation, improver: Improver) -> Contents:
    """Features and placements; what they cost follows from them."""
    W: BoolArray = np.zeros((0, *_feature_shape(improver)), bool)
    if found.features:
        W = found.weights()
    contents = Contents({"features": len(W)}, {"placements": found.placements})
    return contents.with_bits("features", W)


def read_explanation(file: Section, improver: Improver) -> Explanation:
    """The solution that was written, for the same images."""
    F = whole("number of features", file.header["features"])
    W = file.bits("features", (F, *_feature_shape(improver)))
    placements = file.array("placements", np.int64, (None, 4))
    canvas = improver.canvas
    ends = (canvas.n_images, F, *canvas.layer.placement_size)
    if ((placements < 0) | (placements >= ends)).any():
        raise ValueError("its placements lie outside the images")
    return improver.evaluate([improver.feature(w) for w in W], placements, prune=False)


def _feature_shape(improver: Improver) -> tuple[int, int, int]:
    layer = improver.canvas.layer
    return layer.n_channels, *layer.feature_size
