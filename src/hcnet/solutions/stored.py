"""Explanations in files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Kind
from hcnet.images import BoolArray
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver


class _Stored(NamedTuple):
    features: BoolArray
    placements: NDArray[np.int64]


def explanation_kind(improver: Improver) -> Kind:
    """Features and placements; the cost of an explanation of the same images follows from them."""
    layer, n_images = improver.canvas.layer, improver.canvas.n_images
    shape = layer.n_channels, *layer.feature_size

    def to_file(found: Explanation) -> _Stored:
        W = found.weights() if found.features else np.zeros((0, *shape), bool)
        return _Stored(W, found.placements)

    def from_file(found: _Stored) -> Explanation:
        W, placements = found
        ends = (n_images, len(W), *layer.placement_size)
        if ((placements < 0) | (placements >= ends)).any():
            raise ValueError("its placements lie outside the images")
        return improver.evaluate([improver.feature(w) for w in W], placements, prune=False)

    stored = kinds.object_of(
        _Stored,
        features=kinds.binary_array((None, *shape)),
        placements=kinds.array(np.int64, (None, 4)),
    )
    return kinds.converted(stored, to_file, from_file)
