"""`ShapeClassifier`: every example is a template that is deformed to the image."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.checks import check_count, check_grey, check_number
from hcnet.preprocessing import OrientedEdges
from hcnet.templates.shapes import Shapes, costs_of_templates, enlarge, shapes_of

# Edges of the enlarged image.
EDGES = OrientedEdges(16, sigma=1.5)


@dataclass(eq=False, repr=False)
class ShapeClassifier(ClassifierMixin, BaseEstimator):
    """Classifies drawings and handwriting by examples that are deformed to the image.

    One example per class will do.  What is drawn counts as points on its edges, wherever it lies
    and however large it is.  The points of an example move by an affine map and a smooth warp until
    they explain those of the image as well as they can; large deformations cost.  The class is that
    of the example which then leaves least unexplained, in the image and of itself.

    Nothing is learned: `fit` keeps the examples.  Use it for few examples, and for clean images: it
    takes all that is bright for the drawing.

    Parameters
    ----------
    n_points : int, default=60
        Points per image, at most 500.  The time grows with their square.
    candidates : int, default=20
        How many examples are deformed to an image: those most like it as they are.  Each takes a
        millisecond.
    stiffness : float, default=2.0
        How much warps cost.

    Attributes
    ----------
    classes_ : ndarray
        The labels of `y`, sorted.
    n_examples_ : int
        How many examples there are.

    Examples
    --------
    >>> import numpy as np
    >>> from hcnet import ShapeClassifier
    >>> cross, ring = np.zeros((2, 20, 20))
    >>> cross[9:11, 4:16] = cross[4:16, 9:11] = 1
    >>> ring[4:16, 4:16] = 1
    >>> ring[6:14, 6:14] = 0
    >>> model = ShapeClassifier().fit([cross, ring], ["cross", "ring"])
    >>> model.predict([ring[2:, 3:]])  # another place
    array(['ring'], dtype='<U5')

    """

    n_points: int = 60
    _: KW_ONLY
    candidates: int = 20
    stiffness: float = 2.0

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep the examples X, grey images (n, height, width), and their labels y.

        X are uint8 from 0 to 255, or floats or booleans from 0 to 1; ink is bright.
        """
        images, white = self._checked(X)
        labels = np.asarray(y)
        if labels.shape != (len(images),):
            raise ValueError(
                f"y must hold a label for each of the {len(images)} images, got shape "
                f"{labels.shape}; pass one label per image."
            )
        self.classes_, self._codes = np.unique(labels, return_inverse=True)
        self._templates = self._shapes(images, white)
        self.n_examples_ = len(images)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """How well the best example of each class explains each image: (images, classes).

        0 is perfect, all else is below.  Images need not have the size of the examples.
        """
        check_is_fitted(self)
        shapes = self._shapes(*self._checked(X))
        costs = costs_of_templates(shapes, self._templates, self.candidates, self.stiffness)
        own = [costs[:, self._codes == k].min(axis=1) for k in range(len(self.classes_))]
        return -np.stack(own, axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of every image."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def _shapes(self, images: NDArray[Any], white: float) -> Shapes:
        enlarged = np.stack([enlarge(image, white) for image in images])
        return shapes_of(EDGES.transform(enlarged), self.n_points)

    def _checked(self, X: ArrayLike) -> tuple[NDArray[Any], float]:
        hint = "60 suffice for characters"
        check_count("n_points", self.n_points, 2, most=500, hint=hint)
        check_count("candidates", self.candidates)
        check_number("stiffness", self.stiffness, above=0, hint="2 suits handwriting")
        return check_grey(X)
