"""The template classifier of digits, as a classifier of grey images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline

from hcnet import TemplateClassifier
from hcnet.preprocessing import LineRemover, OrientedEdges

# Chosen on validation digits: NOTES.md.
N_ORIENTATIONS, SHARED = 8, 0.9
N_PARTS, PART_SIZE = 64, 7
PIXEL_POOL, PART_POOL = 3, 5
TEMPLATES_PER_CLASS = 32  # as in the paper


def fit_templates(images: NDArray[Any], labels: NDArray[Any], seed: int) -> Pipeline:
    """Learn templates from grey images (n, height, width)."""
    fewest = int(np.bincount(labels).min())
    model = TemplateClassifier(
        N_PARTS,
        PART_SIZE,
        min(TEMPLATES_PER_CLASS, fewest),
        pool=PIXEL_POOL,
        template_pool=PART_POOL,
        random_state=seed,
    )
    edges = OrientedEdges(N_ORIENTATIONS, shared=SHARED)
    return make_pipeline(LineRemover(), edges, model).fit(images, labels)


def with_lines(fitted: Pipeline) -> Pipeline:
    """The same without its first step, which removes lines; clean digits have none anyway."""
    return fitted[1:]
