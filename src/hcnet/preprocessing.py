"""From grey images to the binary channels that networks learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from sklearn.base import BaseEstimator, TransformerMixin

from hcnet.checks import check_choice, check_count, check_grey, check_number, check_share
from hcnet.engine.cpu_compilation import kept
from hcnet.engine.threads import over_threads
from hcnet.images import BoolArray, FloatArray

__all__ = ["LineRemover", "OrientedEdges"]

# What lies around an image, by the names that SciPy has for it.
_OUTSIDE = {"black": "constant", "repeat": "nearest"}
# Of a Gaussian, what is further out than so many sigmas is left away: a hundredth of its peak.
_REACH = 3
# More would only be slow: an edge this coarse is none, and of directions nobody asks for more.
_MOST_SIGMA, _MOST_ORIENTATIONS = 100, 360
# Images that are worked on at once, so that their floats stay in the cache.
_CHUNK = 64
# Longest side of an image: one of this size takes 20 s and 64 MB.
_MOST_SIDE = 1000
# Steps per pixel in which the ends of lines are tried.  With whole pixels, lines one pixel wide
# are lost between two of those that are tried; with thirds it takes twice as long as with halves.
_STEPS = 2


class _GreyTransformer(TransformerMixin, BaseEstimator):
    """A transformer of grey images that learns nothing."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the parameters and the images; y is ignored.

        X are grey images (n, height, width) or (n, 1, height, width): uint8 from 0 to 255, or
        floats (or booleans) from 0 to 1.
        """
        self._checked(X)
        return self

    def _checked(self, X: ArrayLike) -> tuple[NDArray[Any], float]:
        """Images (n, height, width), and the value that is white in them."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


@dataclass(eq=False, repr=False)
class OrientedEdges(_GreyTransformer):
    """Grey images to binary edge maps with one channel per direction.

    The derivative of a Gaussian is taken in all directions.  A pixel is on in the channel of the
    direction in which the image brightens most, if it does so by more than at the neighbours ahead
    and behind, and by enough.  So every pixel is on in at most one channel (unless `shared` asks
    for more), and edges are one pixel thick.  Where two pixels share an edge equally, it belongs to
    the brighter one.

    There is nothing to learn: `fit` only checks the parameters.

    Parameters
    ----------
    n_orientations : int, default=16
        Number of directions around the full circle, at most 360.  Channel k has the edges that
        brighten in the direction k / n_orientations of a full turn: channel 0 to the right, and a
        quarter turn later downwards.  An edge from dark to bright and one from bright to dark
        differ.
    sigma : float, default=1.0
        Width of the Gaussian in pixels, at most 100: how coarse an edge must be.
    threshold : float, default=0.25
        Least strength of an edge.  A straight edge from black to white has about 1, which is the
        most there can be; half the contrast has half the strength.
    shared : float, default=1.0
        An edge is also on in other channels in which it has at least this share of its strength in
        the best one.  With 1 it is in one channel alone, and an edge between two directions looks
        like another one as soon as it turns a little; with 0.9 it is in both then.
    outside : {"black", "repeat"}, default="black"
        What lies around the image: black, or its outermost pixels again.  With "black", ink that
        touches the border has an edge there.

    Examples
    --------
    >>> import numpy as np
    >>> from hcnet.preprocessing import OrientedEdges
    >>> image = np.zeros((9, 9))
    >>> image[:, 4:] = 1
    >>> edges = OrientedEdges(outside="repeat").transform(image[None])
    >>> edges.shape
    (1, 16, 9, 9)
    >>> np.unique(np.argwhere(edges[0])[:, [0, 2]], axis=0)  # channel and column
    array([[0, 4]])

    """

    n_orientations: int = 16
    _: KW_ONLY
    sigma: float = 1.0
    threshold: float = 0.25
    shared: float = 1.0
    outside: str = "black"

    def transform(self, X: ArrayLike) -> BoolArray:
        """The edges of grey images of any size: bool (n, n_orientations, height, width).

        X is as in `fit`.
        """
        images, white = self._checked(X)
        n, height, width = images.shape
        directions = _directions(self.n_orientations)
        edges = np.zeros((n, self.n_orientations, height, width), bool)
        for start in range(0, n, _CHUNK):
            chunk = images[start : start + _CHUNK].astype(np.float32) / np.float32(white)
            strengths = _strengths(chunk, self.sigma, _OUTSIDE[self.outside], directions)
            strength, channel = _strongest(strengths)
            on = _peaks(strength, channel, directions) & (strength >= self.threshold)
            image, row, column = np.nonzero(on)
            own = edges[start : start + _CHUNK]
            own[image, channel[on], row, column] = True
            if self.shared < 1:
                for k, other in enumerate(strengths()):
                    own[:, k] |= on & (other >= np.float32(self.shared) * strength)
        return edges

    def _checked(self, X: ArrayLike) -> tuple[NDArray[Any], float]:
        hint = "16 distinguish strokes of all directions"
        check_count("n_orientations", self.n_orientations, most=_MOST_ORIENTATIONS, hint=hint)
        hint = "1 pixel fits strokes that are two to four pixels thick"
        check_number("sigma", self.sigma, above=0, most=_MOST_SIGMA, hint=hint)
        check_share("threshold", self.threshold)
        check_share("shared", self.shared)
        check_choice("outside", self.outside, tuple(_OUTSIDE))
        return check_grey(X)


def _directions(n: int) -> NDArray[np.float64]:
    """Unit vectors (n, 2): right and down.  Rounded, so that a quarter turn is exactly one."""
    angles = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).round(12)


def _filters(
    sigma: float, directions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float32]]:
    """A Gaussian and its slope along a line, and how the slopes make up each direction (n, 2).

    The derivative in a direction is the gradient's share in it, so two filters are enough for all.
    Every direction is scaled so that the image that suits it best, white where the filter is
    positive and black elsewhere, has a strength of 1.
    """
    reach = max(int(np.ceil(_REACH * sigma)), 1)
    x = np.arange(-reach, reach + 1, dtype=float)
    # Narrower ones are the same to the last bit, but their squares may be too small for a number.
    smooth = np.exp(-(x**2) / (2 * max(sigma, 0.01) ** 2))
    # With the neighbours alone the slope is theirs up to its scale, which may be as small.
    slope = x * smooth if reach > 1 else x
    right, down = np.outer(smooth, slope), np.outer(slope, smooth)
    best = [np.maximum(across * right + along * down, 0).sum() for across, along in directions]
    shares = (directions / np.array(best)[:, None]).astype(np.float32)
    return smooth, slope, shares


def _strengths(
    images: FloatArray, sigma: float, mode: str, directions: NDArray[np.float64]
) -> Callable[[], Iterator[FloatArray]]:
    """A function that yields the edge strengths of one direction after the other."""
    smooth, slope, shares = _filters(sigma, directions)

    def filtered(across: NDArray[np.float64], along: NDArray[np.float64]) -> FloatArray:
        rows = ndimage.correlate1d(images, across, axis=2, mode=mode)
        result: FloatArray = ndimage.correlate1d(rows, along, axis=1, mode=mode)
        return result

    right, down = filtered(slope, smooth), filtered(smooth, slope)
    return lambda: (x * right + y * down for x, y in shares)


def _strongest(
    strengths: Callable[[], Iterator[FloatArray]],
) -> tuple[FloatArray, NDArray[np.intp]]:
    """The largest strength over all directions, and which direction that is."""
    each = strengths()
    best = next(each)
    channel = np.zeros(best.shape, np.intp)
    for k, strength in enumerate(each, start=1):
        better = strength > best
        best[better] = strength[better]
        channel[better] = k
    return best, channel


def _peaks(
    strength: FloatArray, channel: NDArray[np.intp], directions: NDArray[np.float64]
) -> BoolArray:
    """Pixels above the next one ahead, and not below the one behind."""
    right, down = np.rint(directions).astype(int).T[:, channel]
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    image, row, column = np.ogrid[tuple(map(slice, strength.shape))]
    ahead = padded[image, row + 1 + down, column + 1 + right]
    behind = padded[image, row + 1 - down, column + 1 - right]
    return np.asarray((strength > ahead) & (strength >= behind))


@dataclass(eq=False, repr=False, kw_only=True)
class LineRemover(_GreyTransformer):
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

    bright: float = 0.5
    share: float = 0.9
    shortest: float = 0.5

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The images without lines, of the same shape and dtype; X is as in `fit`."""
        images, white = self._checked(X)
        bright, shortest = images >= self.bright * white, self.shortest * min(images.shape[1:])
        flat = _bright_lines(bright, float(self.share), shortest)
        steep = _bright_lines(bright.transpose(0, 2, 1), float(self.share), shortest)
        lines = bright & (flat | steep.transpose(0, 2, 1))
        result = images.copy()
        some = lines.any(axis=(1, 2)) & ~lines.all(axis=(1, 2))
        filled = _filled(images[some].astype(np.float32), lines[some])
        if white > 1:
            filled = np.rint(filled)
        result[some] = filled if images.dtype != bool else filled >= 0.5
        return result.reshape(np.shape(X))

    def _checked(self, X: ArrayLike) -> tuple[NDArray[Any], float]:
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


def _bright_lines(bright: BoolArray, share: float, shortest: float) -> BoolArray:
    """The pixels of all lines that run through the columns of images and are bright.

    Of slopes up to one pixel per column; images are (n, height, width).  A line has one pixel in
    each column that it meets, at least ``shortest`` of them, and at least a ``share`` of them is
    bright.
    """
    width = bright.shape[2]
    across = max(width - 1, 1)
    start = np.arange(_STEPS)[:, None, None]
    rise = np.arange(-_STEPS * across, _STEPS * across + 1)[:, None]
    # The nearest row, halves upwards, in whole numbers: the same on every machine.
    doubled = 2 * (start * across + rise * np.arange(width))
    rows = (doubled + _STEPS * across) // (2 * _STEPS * across)
    marked = np.zeros(bright.shape, bool)
    _mark(len(bright), np.ascontiguousarray(bright), rows, share, shortest, marked)
    return marked


@over_threads
@kept(nogil=True)
def _mark(first, last, bright, rows, share, shortest, marked):
    """``rows`` (start, rise, column) of lines that start in the first row or just below it."""
    height, width = bright.shape[1:]
    # From so many rows above the image to so many below it.
    beyond = max(width - 1, 1)
    most_dark = width - share * width
    for n in range(first, last):
        for down in range(-beyond, height + beyond):
            for s in range(rows.shape[0]):
                for k in range(rows.shape[1]):
                    ends = down + rows[s, k, 0], down + rows[s, k, width - 1]
                    if max(ends) < 0 or min(ends) >= height:
                        continue
                    length = dark = 0
                    for x in range(width):
                        y = down + rows[s, k, x]
                        if 0 <= y < height:
                            length += 1
                            if not bright[n, y, x]:
                                dark += 1
                                if dark > most_dark:
                                    break
                    if length < shortest or length - dark < share * length:
                        continue
                    for x in range(width):
                        y = down + rows[s, k, x]
                        if 0 <= y < height:
                            marked[n, y, x] = True
