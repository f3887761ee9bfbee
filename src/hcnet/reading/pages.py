"""The text of pages whose parts have names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from hcnet.images import BoolArray, Images, part_boxes
from hcnet.reading.rows import Boxes
from hcnet.reading.words import page_lines
from hcnet.validation.images import check_images
from hcnet.validation.parameters import check_has_parts

# Stands for a part without a name, and for ink that no part explains.
PLACEHOLDER = "□"
# Ink of which less is covered by parts was not read, if it is as large as a small letter.
COVERED = 0.3
SMALL_LETTER = 0.25


@dataclass(frozen=True)
class PageText:
    """The text of a page, and what is missing in it."""

    lines: list[str]
    unnamed: Counter[int]  # parts without a name, and how often each is on the page
    unexplained: int  # pieces of ink that no part explains


def read_text(model: Any, X: ArrayLike, mask: ArrayLike | None = None) -> list[list[str]]:
    """The lines of text of each page in X, by the names of its parts.

    Parts are grouped into lines, which may be skewed by up to two degrees, and lines into columns.
    The gaps of the page decide where words end.  □ stands for a part without a name, and for ink
    that no part explains.  Pieces above each other become one character where there is one: . over
    ı is i, . over , is ;, and ´ over e is é.

    Parameters
    ----------
    model : FeatureLearner
        A fitted estimator whose parts have names (`name_parts`).
    X : array
        Pages, in a shape that `fit` takes.
    mask : array or None, default=None
        True where a pixel of X is missing.

    Returns
    -------
    list of list of str
        The lines of each page, from the top; columns one after the other.

    """
    return [page.lines for page in read_pages(model, X, mask)]


def read_pages(model: Any, X: ArrayLike, mask: ArrayLike | None = None) -> list[PageText]:
    """As `read_text`, with the number of placeholders of each kind."""
    check_has_parts(model)
    images = check_images(X, mask).images
    placed = model.placements_ if model._knows(images) else model.placements(X, mask)
    made = model.render(placed, images.n_images, images.size).any(axis=1)
    ink = np.asarray((images.pixels & images.observed).any(axis=1))
    if model.algorithm_ == "soft":
        left = np.stack([_left_over(*pair) for pair in zip(ink, made, strict=True)])
        rest = Images(left[:, None], images.observed)
        more = model._corners(model._model.guess(rest), rest)
        made |= model.render(more, images.n_images, images.size).any(axis=1)
        placed = np.concatenate([placed, more])
    own, areas = part_boxes(model.features_), model.features_.sum(axis=(1, 2, 3))
    pages = []
    for n in range(images.n_images):
        parts = placed[placed[:, 0] == n, 1]
        corners = placed[placed[:, 0] == n, 2:]
        boxes = own[parts] + np.hstack([corners, corners])
        texts = model.part_names_[parts]
        unnamed = Counter(parts[texts == ""].tolist())
        other = _unexplained(_left_over(ink[n], made[n]), boxes, areas[parts])
        boxes = np.concatenate([boxes, other])
        texts = np.concatenate([texts, np.full(len(other), PLACEHOLDER, object)])
        texts[texts == ""] = PLACEHOLDER
        pages.append(PageText(page_lines(boxes, texts), unnamed, len(other)))
    return pages


def _left_over(ink: BoolArray, made: BoolArray) -> BoolArray:
    """Connected ink that parts hardly cover."""
    labels, n = ndimage.label(ink, np.ones((3, 3)))
    near = ndimage.binary_dilation(made, np.ones((3, 3)))  # edges differ from copy to copy
    area = np.bincount(labels.ravel(), minlength=n + 1)
    covered = np.bincount(labels[near], minlength=n + 1)
    return np.asarray(ink & (covered < COVERED * area)[labels])


def _unexplained(left: BoolArray, boxes: Boxes, areas: NDArray[np.int64]) -> Boxes:
    """Boxes of connected ink that is left over, of about the size of the parts on the page."""
    if not len(boxes):
        return boxes
    labels, n = ndimage.label(left, np.ones((3, 3)))
    area = np.bincount(labels.ravel(), minlength=n + 1)
    found = ndimage.find_objects(labels)
    large = np.flatnonzero(area[1:] >= SMALL_LETTER * np.median(areas))
    sides = [found[k] for k in large]
    other = np.array([(r.start, c.start, r.stop, c.stop) for r, c in sides], np.int64)
    other = other.reshape(-1, 4)
    size = (other[:, 2:] - other[:, :2]) / np.median(boxes[:, 2:] - boxes[:, :2], axis=0)
    right_size = (size[:, 0] > 0.5) & (size < 4).all(axis=1)  # no dashes, rules and figures
    return np.asarray(other[right_size])
