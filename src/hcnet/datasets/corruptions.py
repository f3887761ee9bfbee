"""The paper's six corruptions of grey images of bright ink on dark paper.

Each takes images (n, height, width) and returns new ones of the same shape and dtype.  The same
seed, `random_state`, gives the same images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.checks import (
    RandomState,
    check_count,
    check_grey,
    check_noise,
    check_number,
    check_random_state,
)
from hcnet.images import BoolArray


def noise(
    images: ArrayLike, *, flips: float = 0.1, random_state: RandomState = None
) -> NDArray[Any]:
    """Flip each pixel of the binarised images with probability `flips`.

    The result is black and white; a pixel counts as ink from half of white on.
    """
    flips = check_noise(flips, "flips")
    pixels, white, rng = _prepare(images, random_state)
    ink = 2.0 * pixels >= white
    return _like(images, np.where(ink ^ (rng.random(ink.shape) < flips), white, 0))


def border(
    images: ArrayLike, *, width: int = 1, reach: int = 1, random_state: RandomState = None
) -> NDArray[Any]:
    """Draw a white frame, `width` pixels thick, around each image.

    `reach` is the number of places that a side of the frame may take: with 1 it is at the edge of
    the image, with more it is up to `reach - 1` pixels away from it, each side by itself.
    """
    width, reach = check_count("width", width), check_count("reach", reach)
    pixels, white, rng = _prepare(images, random_state)
    above, below, left, right = rng.integers(reach, size=(4, len(pixels), 1, 1))

    def framed(by: int) -> BoolArray:
        """The image without its margins and `by` more pixels on every side."""
        row, column = np.ogrid[: pixels.shape[1], : pixels.shape[2]]
        rows = (row >= above + by) & (row < pixels.shape[1] - below - by)
        columns = (column >= left + by) & (column < pixels.shape[2] - right - by)
        return np.asarray(rows & columns)

    return _like(images, np.where(framed(0) & ~framed(width), white, pixels))


def patches(
    images: ArrayLike, *, n_patches: int = 2, size: int = 4, random_state: RandomState = None
) -> NDArray[Any]:
    """Draw white squares at random places, also on the digit.

    Each image has `n_patches` of them, with sides of `size` pixels; they may overlap.
    """
    n_patches, size = check_count("n_patches", n_patches), check_count("size", size)
    pixels, white, rng = _prepare(images, random_state)
    room = np.array(pixels.shape[1:]) - size + 1
    if room.min() < 1:
        raise ValueError(
            f"size must be at most {min(pixels.shape[1:])}, the shorter side of the images, but "
            f"it is {size}: pass smaller patches."
        )
    corners = rng.integers(room, size=(len(pixels), n_patches, 2))
    return _like(images, np.where(_squares(pixels.shape, corners, size), white, pixels))


def grid(
    images: ArrayLike, *, spacing: int = 5, width: int = 1, random_state: RandomState = None
) -> NDArray[Any]:
    """Draw white lines from side to side, as on squared paper.

    `spacing` is the distance from a line to the next, `width` the thickness of the lines.  The
    first row and the first column are random.
    """
    spacing, width = check_count("spacing", spacing, 2), check_count("width", width)
    if width >= spacing:
        raise ValueError(
            f"width must be less than spacing, {spacing}, got {width}; all would be white."
        )
    pixels, white, rng = _prepare(images, random_state)
    down, right = rng.integers(spacing, size=(2, len(pixels), 1, 1))
    rows, columns = np.arange(pixels.shape[1])[:, None], np.arange(pixels.shape[2])
    where = ((rows + down) % spacing < width) | ((columns + right) % spacing < width)
    return _like(images, np.where(where, white, pixels))


def line_clutter(
    images: ArrayLike,
    *,
    n_lines: int = 6,
    length: float | None = None,
    width: float = 1,
    random_state: RandomState = None,
) -> NDArray[Any]:
    """Draw straight white lines through random places in random directions.

    Each image has `n_lines` of them; their `length` (None: from side to side) and `width` are in
    pixels.
    """
    n_lines, width = check_count("n_lines", n_lines), check_number("width", width, above=0)
    half = np.inf if length is None else check_number("length", length, above=0) / 2
    pixels, white, rng = _prepare(images, random_state)
    row, column = np.ogrid[: pixels.shape[1], : pixels.shape[2]]
    where = np.zeros(pixels.shape, bool)
    for y, x, turn in rng.random((n_lines, 3, len(pixels), 1, 1)):
        down, right = row + 0.5 - y * pixels.shape[1], column + 0.5 - x * pixels.shape[2]
        cosine, sine = np.cos(np.pi * turn), np.sin(np.pi * turn)
        along, beside = right * cosine + down * sine, down * cosine - right * sine
        where |= (np.abs(along) <= half) & (np.abs(beside) <= width / 2)
    return _like(images, np.where(where, white, pixels))


def deletion(
    images: ArrayLike, *, n_holes: int = 2, size: int = 6, random_state: RandomState = None
) -> NDArray[Any]:
    """Erase squares of the digit, each around a random pixel of ink.

    Each image has `n_holes` of them, with sides of `size` pixels; they may overlap.
    """
    n_holes, size = check_count("n_holes", n_holes), check_count("size", size)
    pixels, white, rng = _prepare(images, random_state)
    ink = (2.0 * pixels >= white).reshape(len(pixels), -1)
    # Each pixel of ink draws a number, and the largest ones are the centres.
    centres = np.where(ink, rng.random(ink.shape), -1.0).argsort(axis=1)[:, -n_holes:]
    corners = np.stack(np.divmod(centres, pixels.shape[2]), axis=-1) - size // 2
    return _like(images, np.where(_squares(pixels.shape, corners, size), 0, pixels))


# By the paper's names, in the order of its table.
CORRUPTIONS: dict[str, Callable[..., NDArray[Any]]] = {
    corrupt.__name__.replace("_", " "): corrupt
    for corrupt in (noise, border, patches, grid, line_clutter, deletion)
}


def _prepare(
    images: ArrayLike, random_state: RandomState
) -> tuple[NDArray[Any], float, np.random.Generator]:
    pixels, white = check_grey(images)
    return pixels, white, check_random_state(random_state)


def _like(images: ArrayLike, pixels: NDArray[Any]) -> NDArray[Any]:
    """In the shape and the kind of numbers that came."""
    array = np.asarray(images)
    return pixels.astype(array.dtype).reshape(array.shape)


def _squares(shape: tuple[int, ...], corners: NDArray[np.int64], size: int) -> BoolArray:
    """The pixels of squares with these top-left corners (images, squares, 2)."""
    where = np.zeros(shape, bool)
    row, column = np.ogrid[: shape[1], : shape[2]]
    for top, left in corners.transpose(1, 2, 0)[..., None, None]:
        rows, columns = (row >= top) & (row < top + size), (column >= left) & (column < left + size)
        where |= rows & columns
    return where
