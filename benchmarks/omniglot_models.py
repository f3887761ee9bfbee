"""Classifiers of the characters of a one-shot task."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import make_pipeline

from benchmarks.mnist_models import N_PARTS, PART_POOL, PART_SIZE, PIXEL_POOL, mnist_edges
from hcnet import ShapeClassifier, TemplateClassifier
from hcnet.datasets import OneShotTask

# Side of the images that TemplateClassifier gets, as ink three pixels thick comes out one thick.
SIZE = 35


class Centred(TransformerMixin, BaseEstimator):
    """Smaller grey images with the centre of the ink in the middle."""

    def fit(self, X: NDArray[Any], y: object = None) -> Self:
        """Nothing is learned."""
        return self

    def transform(self, X: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Grey images (n, SIZE, SIZE)."""
        step = X.shape[1] / SIZE
        found = np.zeros((len(X), SIZE, SIZE), np.float32)
        for own, ink in zip(found, X, strict=True):
            centre = np.argwhere(ink).mean(axis=0)
            smooth = ndimage.gaussian_filter(ink.astype(np.float32), step / 2)
            line = (np.arange(SIZE) - (SIZE - 1) / 2) * step
            where = np.meshgrid(line + centre[0], line + centre[1], indexing="ij")
            own[:] = ndimage.map_coordinates(smooth, where, order=1)
            own /= own.max()
        return np.clip(found, 0, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class ModifiedHausdorff(ClassifierMixin, BaseEstimator):
    """The nearest example by the larger of two mean distances from each pixel of ink to the other.

    As in the code that comes with the runs: the centres of both lie on each other.
    """

    def fit(self, X: NDArray[np.bool_], y: NDArray[Any]) -> Self:
        """Keep the examples."""
        self.examples_, self.classes_ = [_centred_ink(image) for image in X], np.asarray(y)
        return self

    def predict(self, X: NDArray[np.bool_]) -> NDArray[Any]:
        """The class of each image."""
        nearest = [
            np.argmin([_hausdorff(_centred_ink(image), example) for example in self.examples_])
            for image in X
        ]
        return np.asarray(self.classes_[nearest])


def _centred_ink(image: NDArray[np.bool_]) -> NDArray[np.float64]:
    ink = np.argwhere(image).astype(float)
    return np.asarray(ink - ink.mean(axis=0))


def _hausdorff(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    apart = cdist(one, other)
    return float(max(apart.min(axis=0).mean(), apart.min(axis=1).mean()))


def _templates() -> Any:
    model = TemplateClassifier(
        N_PARTS, PART_SIZE, 1, pool=PIXEL_POOL, template_pool=PART_POOL, random_state=0
    )
    return make_pipeline(Centred(), mnist_edges(), model)


METHODS = {
    "ShapeClassifier": ShapeClassifier,
    "TemplateClassifier": _templates,
    "modified Hausdorff, measured": ModifiedHausdorff,
}


def fit(method: str, task: OneShotTask) -> Any:
    """A classifier by its name; all that it ever gets to see are the examples of the task."""
    return METHODS[method]().fit(task.images, task.labels)
