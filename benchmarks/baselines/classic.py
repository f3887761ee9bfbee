"""Classifiers of scikit-learn on pixels, each with the setting that held-out images prefer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

# Images that are classified at once: bounds the memory for their pixels as floats.
CHUNK = 1000


class Chosen:
    """The one of several classifiers that makes the fewest errors on held-out images.

    Among equals it is the first.  With a `pool`, they see the maximum of every such window of
    pixels instead of the pixels.
    """

    def __init__(self, candidates: Sequence[Any], pool: int = 1) -> None:
        self.candidates = candidates
        self.pool = pool

    def fit(
        self, X: NDArray[Any], y: NDArray[Any], held_out: tuple[NDArray[Any], NDArray[Any]]
    ) -> Chosen:
        """Learn from images (n, channels, height, width) and choose."""
        flat, (others, truth) = self._flat(X), held_out
        seen = self._flat(others)
        wrong = []
        for candidate in self.candidates:
            wrong.append((candidate.fit(flat, y).predict(seen) != truth).mean())
        self.best_ = self.candidates[int(np.argmin(wrong))]
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Classes of images."""
        parts = [X[start : start + CHUNK] for start in range(0, len(X), CHUNK)]
        return np.concatenate([self.best_.predict(self._flat(part)) for part in parts])

    def _flat(self, X: NDArray[Any]) -> NDArray[np.float32]:
        for axis in (2, 3):  # a maximum over rows, then over columns
            n = X.shape[axis] - self.pool + 1
            shifted = [np.take(X, range(k, k + n), axis) for k in range(self.pool)]
            X = np.maximum.reduce(shifted)
        return X.reshape(len(X), -1).astype(np.float32)


class RadialSVM:
    """`SVC` whose radial kernel is a matrix product, since there may be thousands of features."""

    def __init__(self, C: float, gamma: float | str = "scale") -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> RadialSVM:
        """Learn from rows of pixels; gamma "scale" is by their variance, as in `SVC`."""
        self.X_, self.squares_ = X, (X**2).sum(axis=1)
        self.gamma_ = 1 / (X.shape[1] * X.var()) if self.gamma == "scale" else self.gamma
        self.svc_ = SVC(C=self.C, kernel="precomputed").fit(self._kernel(X), y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Classes of rows of pixels."""
        return np.asarray(self.svc_.predict(self._kernel(X)))

    def _kernel(self, X: NDArray[Any]) -> NDArray[Any]:
        distances = (X**2).sum(axis=1)[:, None] + self.squares_ - 2 * X @ self.X_.T
        return np.asarray(np.exp(-np.float32(self.gamma_) * np.maximum(distances, 0)))


def svm(pool: int = 1) -> Chosen:
    """With a radial kernel."""
    gammas = ("scale", 1e-3, 1e-2)
    return Chosen([RadialSVM(C, gamma) for C in (1, 10, 100) for gamma in gammas], pool)


def neighbours(pool: int = 1) -> Chosen:
    """By the Euclidean distance."""
    return Chosen([KNeighborsClassifier(k) for k in (1, 3, 5, 9)], pool)


def logistic_regression(pool: int = 1) -> Chosen:
    """With an L2 penalty."""
    return Chosen([LogisticRegression(C=C, max_iter=2000) for C in (1e-3, 1e-2, 0.1, 1, 10)], pool)
