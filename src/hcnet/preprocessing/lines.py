"""`LineRemover`: grey images without the straight lines that cross them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from sklearn.base import BaseEstimator, TransformerMixin

from hcnet.checks import check_grey
from hcnet.images import BoolArray
from hcnet.preprocessing.line_kernels import bright_lines
from hcnet.validation.parameters import check_share

# Longest side of an image: one of this size takes 20 s and 64 MB.
_MOST_SIDE = 1000


class LineRemover(TransformerMixin, BaseEstimator):
    """Grey images without the straight lines that run from one side of them to another.

    Such lines are rulings, frames, lines of a form or scratches, and not objects.  A straight line
    in any direction is removed if nearly all of its pixels are bright.  Each of its bright pixels
    gets the mean of its remaining neighbours; pixels without any get the mean of neighbours that
    are already filled in.  A stroke that the line crosses therefore continues below it.  Lines may
    have any thickness; an image of nothing but lines is not changed.

    Lines are bright on dark, as ink is for `OrientedEdges`, which comes next: invert images of dark
    ink.  The time grows with the cube of the side, because all lines are tried: an image of 28×28
    takes 0.3 ms, one of 500×500 two seconds.  `fit` learns nothing and only checks.

    Parameters
    ----------
    bright : float, default=0.5
        Smallest grey value, from 0 to 1, of the pixels of a line.
    share : float, default=0.9
        Smallest share of bright pixels in a line.  Lower values find lines with gaps, but also
        slanted lines in grids that are not there.
    shortest : float, default=0.5
        Smallest length of a line in columns or rows, as a share of the shorter side of the image.
        Shorter lines, which only cut off a corner, may be strokes.

    Examples
    --------
    >>> import numpy as np
    >>> from hcnet.preprocessing import LineRemover
    >>> image = np.zeros((6, 6))
    >>> image[1:5, 2] = 1  # a stroke
    >>> image[3] = 1  # a line across it
    >>> LineRemover().transform(image[None])[0].round(1)
    array([[0. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 0. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 1. , 0. , 0. , 0. ],
           [0. , 0.3, 0.3, 0.3, 0. , 0. ],
           [0. , 0. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 0. , 0. , 0. ]])

    """

    def __init__(self, *, bright: float = 0.5, share: float = 0.9, shortest: float = 0.5) -> None:
        self.bright = bright
        self.share = share
        self.shortest = shortest

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the parameters and the images.

        Parameters
        ----------
        X : array of shape (n, height, width) or (n, 1, height, width)
            Grey images: uint8 from 0 to 255, or floats (or booleans) from 0 to 1.
        y : object
            Ignored.

        Returns
        -------
        self

        """
        self._checked(X)
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The images without lines.

        Parameters
        ----------
        X : array of shape (n, height, width) or (n, 1, height, width)
            Grey images: uint8 from 0 to 255, or floats (or booleans) from 0 to 1.

        Returns
        -------
        images : ndarray of the same shape and dtype

        """
        images, white = self._checked(X)
        lines = self._lines(images >= self.bright * white)
        result = images.copy()
        some = lines.any(axis=(1, 2)) & ~lines.all(axis=(1, 2))
        filled = _filled(images[some].astype(np.float32), lines[some])
        if white > 1:
            filled = np.rint(filled)
        result[some] = filled if images.dtype != bool else filled >= 0.5
        return result.reshape(np.shape(X))

    def _lines(self, bright: BoolArray) -> BoolArray:
        """Bright pixels of lines."""
        shortest = self.shortest * min(bright.shape[1:])
        flat = bright_lines(bright, float(self.share), shortest)
        steep = bright_lines(bright.transpose(0, 2, 1), float(self.share), shortest)
        return bright & (flat | steep.transpose(0, 2, 1))

    def _checked(self, X: ArrayLike) -> tuple[NDArray[Any], float]:
        """Images (n, height, width), and the value that is white in them."""
        check_share("bright", self.bright)
        check_share("share", self.share)
        check_share("shortest", self.shortest)
        images, white = check_grey(X)
        if max(images.shape[1:]) > _MOST_SIDE:
            raise ValueError(
                f"Sides of images may have at most {_MOST_SIDE} pixels, because all lines are "
                f"tried, got {images.shape[1]}×{images.shape[2]}; cut the images, or make them "
                f"smaller."
            )
        return images, white

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _filled(images: NDArray[np.float32], hidden: BoolArray) -> NDArray[np.float32]:
    """Hidden pixels from their neighbours, from the outside inwards."""
    images, hidden = images.copy(), hidden.copy()
    around = np.ones((1, 3, 3), np.float32)
    while hidden.any():
        known = (~hidden).astype(np.float32)
        total = ndimage.correlate(images * known, around, mode="constant")
        number = ndimage.correlate(known, around, mode="constant")
        now = hidden & (number > 0)
        images[now] = total[now] / number[now]
        hidden &= ~now
    return images
