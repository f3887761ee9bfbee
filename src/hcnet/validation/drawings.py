"""Checks on images, parts, placements and weights that are to be drawn."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.checks import as_numbers, check_count, check_pair
from hcnet.images import BoolArray

# Screen pixels of a side beyond which no program shows a picture.
MOST_SIDE = 20_000


def as_planes(name: str, image: ArrayLike) -> BoolArray:
    """One image as (channels, height, width); a batch of one image counts as that image."""
    array = as_numbers(name, image)
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"{name} must be one image of shape (height, width) or (channels, height, width), got "
            f"shape {array.shape}; pick one of several, for example images[0]."
        )
    return np.asarray(array > 0.5)


def as_image_list(name: str, images: Any, least: int = 0) -> list[BoolArray]:
    """Several images, each as `as_planes`; one array (height, width) counts as one image."""
    try:
        dimensions = np.ndim(images)
    except ValueError:  # images of different sizes
        dimensions = 3
    if dimensions == 2:
        return [as_planes(name, images)]
    if isinstance(images, str | bytes | dict) or not isinstance(images, Iterable) or not dimensions:
        raise TypeError(
            f"{name} must be several images, got {type(images).__name__}; pass an array of shape "
            f"(images, height, width), or a list."
        )
    found = [as_planes(f"{name}[{k}]", image) for k, image in enumerate(images)]
    if len(found) < least:
        raise ValueError(f"{name} must hold at least one image, got none; pass some.")
    return found


def as_same_shape(name: str, value: ArrayLike, images: list[BoolArray]) -> list[BoolArray]:
    """One image for each of `images`, of the same shape."""
    found = as_image_list(name, value)
    _check_shapes(name, [one.shape for one in found], [one.shape for one in images])
    return found


def as_masks(mask: ArrayLike, images: list[BoolArray]) -> list[BoolArray]:
    """The missing pixels of each image; one mask may serve all images, or all channels."""
    found = as_image_list("mask", mask, 1)
    if len(found) == len(images[0]) != len(images) and len(found) > 1:  # a plane for each channel
        found = [as_planes("mask", mask)]
    found = found * len(images) if len(found) == 1 else found
    full = [
        np.broadcast_to(m, x.shape) if len(m) == 1 and m.shape[1:] == x.shape[1:] else m
        for m, x in zip(found, images, strict=False)
    ]
    _check_shapes("mask", [m.shape for m in full], [x.shape for x in images])
    return full


def _check_shapes(name: str, came: list[Any], wanted: list[Any]) -> None:
    if came != wanted:
        raise ValueError(
            f"{name} must hold an image for each of the {len(wanted)} images and have their shape, "
            f"{wanted[0] if wanted else ()}, got {len(came)} of shape {came[0] if came else ()}; "
            f"pass arrays of the same shape."
        )


def as_parts(features: ArrayLike) -> list[BoolArray]:
    """Parts, all of the same size."""
    parts = as_image_list("features", features)
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            "features must all have the same size, and these differ; pass for example features_ of "
            "a FeatureLearner."
        )
    return parts


def check_placements(placements: ArrayLike, n_features: int | None = None) -> NDArray[np.int64]:
    """Rows of image, feature, row and column; features are below `n_features`."""
    rows = as_numbers("placements", placements)
    if rows.size == 0:
        return np.zeros((0, 4), np.int64)
    far = 2**31  # no image is so large, and sums of such numbers are still exact
    if rows.ndim != 2 or rows.shape[1] != 4 or not _are_whole(rows, -far, far):
        raise ValueError(
            f"placements must be rows of four whole numbers (image, feature, row, column), got "
            f"shape {rows.shape}; pass the result of FeatureLearner.placements."
        )
    found = rows.astype(np.int64)
    if n_features is not None and not ((found[:, 1] >= 0) & (found[:, 1] < n_features)).all():
        raise ValueError(
            f"placements must name features from 0 to {n_features - 1}, and some do not; pass the "
            f"features that belong to them."
        )
    return found


def check_use(counts: ArrayLike | None, n: int) -> NDArray[np.int64] | None:
    """The number of placements of each part."""
    if counts is None:
        return None
    used = as_numbers("counts", counts)
    if used.shape != (n,) or not _are_whole(used, 0, 2**53):
        raise ValueError(
            f"counts must hold a whole number of at least 0 for each of the {n} features, got "
            f"shape {used.shape}; leave it None for none."
        )
    return used.astype(np.int64)


def check_captions(captions: Any, n: int) -> list[str] | None:
    """One text for each picture."""
    if captions is None:
        return None
    several = isinstance(captions, Iterable) and not isinstance(captions, str)
    texts = list(captions) if several and np.ndim(captions) else []
    if len(texts) != n or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"captions must be a list of {n} texts, one for each picture, got {captions!r}; leave "
            f"it None for none."
        )
    return texts


def check_scale(scale: int | None, side: float, wanted: float) -> int:
    """Screen pixels of a pixel; None makes the longer side about `wanted` screen pixels long."""
    if scale is None:
        return max(1, int(wanted // side))
    most = max(int(MOST_SIDE // side), 1)
    hint = f"a picture is at most {MOST_SIDE} screen pixels wide and high; or pass None"
    return check_count("scale", scale, most=most, hint=hint)


def check_templates_to_draw(
    weights: Any, pools: Any
) -> tuple[list[BoolArray], list[tuple[int, int]]]:
    """Weights of all layers that fit on each other, and the windows of their pools."""
    levels: list[BoolArray] = [
        as_numbers(f"weights[{k}]", W) > 0.5 for k, W in enumerate(_items(weights))
    ]
    fit = all(W.ndim == 4 and W.size for W in levels) and all(
        above.shape[1] == len(below) for below, above in pairwise(levels)
    )
    if not levels or not fit:
        raise ValueError(
            f"weights must hold an array (features, features below, height, width) for every "
            f"layer, got {', '.join(str(W.shape) for W in levels) or 'none'}; pass weights_ of an "
            f"HCN."
        )
    windows = _items(pools)
    if len(windows) != len(levels):
        raise ValueError(
            f"pools must hold a window (height, width) for each of the {len(levels)} layers, got "
            f"{pools!r}; pass for example [(3, 3)] * {len(levels)}."
        )
    sizes = [check_pair(f"pools[{k}]", window) for k, window in enumerate(windows)]
    for axis in (0, 1):
        side = 1 + sum(W.shape[2 + axis] - 1 for W in levels)
        side += sum(size[axis] - 1 for size in sizes[1:])  # the first pools move nothing
        if side > MOST_SIDE:
            raise ValueError(
                f"weights and pools must make templates of at most {MOST_SIDE} pixels a side, but "
                f"these have {side}; pass smaller ones."
            )
    return levels, sizes


def _items(value: Any) -> list[Any]:
    """The items of a list, a tuple or an array; none of anything else."""
    several = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim)
    return list(value) if several else []


def _are_whole(values: NDArray[Any], low: int, high: int) -> bool:
    inside = (values >= low) & (values <= high)
    return bool(inside.all()) and bool((values == np.rint(values)).all())
