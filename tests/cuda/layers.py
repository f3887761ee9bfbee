"""Small layers for the tests: what they are, and what they see."""

from typing import NamedTuple

import numpy as np

from hcnet.grid import on_grid
from hcnet.images import FloatArray, Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import start_messages, trees_of

SHAPES = {
    # images, channels, image size, features, feature size, border
    "over the border": (2, 1, (4, 5), 3, (2, 3), "full"),
    "channels": (2, 3, (3, 4), 2, (2, 2), "full"),
    "few placements": (3, 2, (5, 5), 3, (4, 4), "valid"),
    "many leaves": (1, 1, (4, 4), 5, (3, 3), "full"),
    "matrix": (5, 4, (1, 1), 3, (1, 1), "valid"),
}


class Start(NamedTuple):
    """What a run begins with."""

    layer: FeatureLayer
    images: Images
    evidence: FloatArray
    weight_prior: FloatArray
    elements: np.ndarray


def make(shape, seed=0, missing=0.2):
    n, channels, size, n_features, feature_size, border = SHAPES[shape]
    rng = np.random.default_rng(seed)
    everything = (n, channels, *size)
    images = Images(rng.random(everything) < 0.4, rng.random(everything) >= missing)
    layer = FeatureLayer(n_features, channels, feature_size, size, border)
    prior = on_grid(rng.normal(-0.5, 0.3, (channels, n_features, *feature_size)))
    elements = trees_of(images.observed, rng)
    elements = elements[np.argsort(elements[:, 0], kind="stable")]  # as they are on a GPU
    return Start(layer, images, images.evidence_on_grid(Noise(0.02, 0.05)), prior, elements)


def messages(start):
    return start_messages(start.layer, start.elements, start.evidence, -2.0, start.weight_prior)
