"""Classifiers of scikit-learn on pixels, each with the setting that held-out images prefer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC


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
        return np.asarray(self.best_.predict(self._flat(X)))

    def _flat(self, X: NDArray[Any]) -> NDArray[np.float32]:
        windows = sliding_window_view(X, (self.pool, self.pool), axis=(2, 3))
        return windows.max(axis=(4, 5)).reshape(len(X), -1).astype(np.float32)


def svm(pool: int = 1) -> Chosen:
    """With a radial kernel."""
    return Chosen([SVC(C=C, gamma=g) for C in (1, 10, 100) for g in ("scale", 1e-3, 1e-2)], pool)


def neighbours(pool: int = 1) -> Chosen:
    """By the Euclidean distance."""
    return Chosen([KNeighborsClassifier(k) for k in (1, 3, 5, 9)], pool)


def logistic_regression(pool: int = 1) -> Chosen:
    """With an L2 penalty."""
    return Chosen([LogisticRegression(C=C, max_iter=2000) for C in (1e-3, 1e-2, 0.1, 1, 10)], pool)
