"""The paper's network and the template classifier of digits, as classifiers of grey images."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from hcnet import HCN, Layer, ShapeClassifier, TemplateClassifier
from hcnet.preprocessing import LineRemover, OrientedEdges

# Chosen on validation digits: NOTES.md.
N_ORIENTATIONS, SHARED = 8, 0.9
N_PARTS, PART_SIZE = 64, 7
PIXEL_POOL, PART_POOL = 3, 5
TEMPLATES_PER_CLASS = 32  # as in the paper
VARIANTS = 2400  # of a class, shared out among its examples
SIGMA = 1.2  # for templates: coarser edges than for networks, with fewer from noise
SIZE = 28  # of an image
# The paper's network: 64 features of 26×26, pools of 3×3, and these probabilities of a weight.
N_FEATURES, FEATURE_SIZE, P_W = 64, 26, (0.001, 0.05)
# Chosen on validation digits.  While learning, a pixel that is on gives evidence of 100 nats, one
# that is off of 50: with less, nothing is decided.
LEARNING = {"p01": math.exp(-50), "p10": math.exp(-100)}
DAMPING, PASSES = 0.5, 60
# In a new digit, pixels of a template are often missing, and few others are on.
CLASSIFYING = {"p01": 0.25, "p10": 0.01}


def mnist_edges(sigma: float = 1.0) -> OrientedEdges:
    """What our classifiers see of a grey image."""
    return OrientedEdges(N_ORIENTATIONS, sigma=sigma, shared=SHARED)


def mnist_network(seed: int, damping: float = DAMPING, **how: Any) -> HCN:
    """The paper's network for digits, to be learned by message passing in all layers at once."""
    layer = {"pool": 3, "damping": damping, "perturbation": 0.1}
    return HCN(
        [
            Layer(N_FEATURES, size=FEATURE_SIZE, pool_border="same", p_W=P_W[0], **layer),
            Layer(p_W=P_W[1], **layer),
        ],
        templates_per_class=TEMPLATES_PER_CLASS,
        n_init=1,
        max_iter=PASSES,
        inference="match",
        random_state=seed,
        **LEARNING,
        **how,
    )


def for_new_digits(learned: HCN) -> HCN:
    """The same weights, with the noise of new digits."""
    model = clone(learned).set_params(**CLASSIFYING)
    return model.set_weights(learned.weights_, SIZE, learned.classes_)


def fit_network(images: NDArray[Any], labels: NDArray[Any], seed: int) -> Pipeline:
    """Learn the paper's network from grey images (n, height, width); lines stay."""
    return _fit_network(mnist_edges(), images, labels, seed)


def fit_network_on_16(images: NDArray[Any], labels: NDArray[Any], seed: int) -> Pipeline:
    """The same from 16 channels, as many as the paper has, with every edge in one of them."""
    return _fit_network(OrientedEdges(), images, labels, seed)


def _fit_network(
    edges: OrientedEdges, images: NDArray[Any], labels: NDArray[Any], seed: int
) -> Pipeline:
    learned = mnist_network(seed, engine="beliefs").fit(edges.transform(images), labels)
    return make_pipeline(edges, for_new_digits(learned))


def by_forward_pass(fitted: Pipeline) -> Pipeline:
    """The same network, which takes the template with the largest message up, as the paper does."""
    return make_pipeline(fitted[0], copy(fitted[1]).set_params(inference="forward"))


def fit_templates(images: NDArray[Any], labels: NDArray[Any], seed: int) -> Pipeline:
    """Learn templates from grey images (n, height, width)."""
    fewest = int(np.bincount(labels).min())
    model = TemplateClassifier(
        N_PARTS,
        PART_SIZE,
        min(TEMPLATES_PER_CLASS, fewest),
        pool=PIXEL_POOL,
        template_pool=PART_POOL,
        variants=VARIANTS // fewest - 1,
        random_state=seed,
    )
    return make_pipeline(LineRemover(), mnist_edges(SIGMA), model).fit(images, labels)


def with_lines(fitted: Pipeline) -> Pipeline:
    """The same without its first step, which removes lines; clean digits have none anyway."""
    return fitted[1:]


def fit_shapes(images: NDArray[Any], labels: NDArray[Any], seed: int) -> ShapeClassifier:
    """Keep all images as examples that are deformed; nothing is random."""
    return ShapeClassifier().fit(images, labels)
