"""Scattering and affine subspaces (Bruna and Mallat 2013): one per class, by principal components.

The coefficients come from kymatio 0.3, which needs an older SciPy, and so an environment of its
own (`.cache/kymatio`).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.own_environment import OwnEnvironment

KYMATIO = OwnEnvironment(
    "kymatio",
    (("kymatio==0.3.0", "scipy<1.17", "numpy"),),
    "from kymatio.numpy import Scattering2D",
    "scattering_worker.py",
)
# Seconds for all images of a call; 10,000 take 100 s on one core.
PATIENCE = 3600
SCALES, SIDE = (2, 3), 32
DIMENSIONS = (0, 2, 5, 10, 20, 40, 80)


def coefficients(images: NDArray[np.uint8], scales: int, create: bool) -> NDArray[np.float32]:
    """Logarithms of the scattering coefficients of grey images: (images, coefficients)."""
    margins = [(SIDE - side) // 2 for side in images.shape[1:]]
    padded = np.pad(images, [(0, 0), *((m, m) for m in margins)]).astype(np.float32) / 255
    problem = {"images": padded, "scales": scales}
    found = KYMATIO.solve(KYMATIO.python(create), problem, PATIENCE)["coefficients"]
    return np.asarray(found.reshape(len(images), -1), np.float32)


class Scattering:
    """The class whose affine subspace is nearest; scales and dimensions by held-out images."""

    def __init__(self, create: bool = True) -> None:
        self.create = create

    def fit(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[Any],
        held_out: tuple[NDArray[np.uint8], NDArray[Any]],
    ) -> Self:
        """Means and principal components of each class."""
        self.classes, best = np.unique(labels), np.inf
        others, answers = held_out
        for scales in SCALES:
            both = coefficients(np.concatenate([images, others]), scales, self.create)
            own, test = both[: len(images)], both[len(images) :]
            spaces = [_subspace(own[labels == k]) for k in self.classes]
            for dimensions in DIMENSIONS:
                found = self.classes[_distances(test, spaces, dimensions).argmin(axis=1)]
                wrong = float((found != answers).mean())
                if wrong < best:
                    best, self.chosen = wrong, (scales, dimensions)
                    self.spaces = spaces
        return self

    def predict(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Classes of grey images (n, height, width)."""
        scales, dimensions = self.chosen
        seen = coefficients(images, scales, self.create)
        found = _distances(seen, self.spaces, dimensions).argmin(axis=1)
        return np.asarray(self.classes[found])


Subspace = tuple[NDArray[np.float32], NDArray[np.float32]]


def _subspace(own: NDArray[np.float32]) -> Subspace:
    """Mean of a class, and its principal components, the largest first."""
    mean = own.mean(axis=0)
    components = np.linalg.svd(own - mean, full_matrices=False)[2]
    return mean, components[: max(len(own) - 1, 0)]


def _distances(
    seen: NDArray[np.float32], spaces: list[Subspace], dimensions: int
) -> NDArray[np.float32]:
    """Squared distances from the subspaces: (images, classes)."""
    found = []
    for mean, components in spaces:
        apart = seen - mean
        along = apart @ components[:dimensions].T
        found.append((apart**2).sum(axis=1) - (along**2).sum(axis=1))
    return np.stack(found, axis=1)
