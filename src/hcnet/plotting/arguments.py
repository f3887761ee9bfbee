"""Checks on what users want drawn; nothing below them checks again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.checks import check_count
from hcnet.images import BoolArray

# Screen pixels of a side beyond which no program shows a picture.
MOST_SIDE = 20_000
# Beyond, the difference of two numbers may be no number.
MOST_VALUE = 1e300


def planes_of(image: ArrayLike, name: str = "image") -> BoolArray:
    """(channels, height, width); a batch of one image counts as that image."""
    array = _numbers(image, name)
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


def mask_of(mask: ArrayLike | None, planes: BoolArray) -> BoolArray | None:
    """Where pixels of an image are missing, for all of its channels or each of them."""
    if mask is None:
        return None
    missing = planes_of(mask, "mask")
    if missing.shape[1:] != planes.shape[1:] or len(missing) not in (1, len(planes)):
        raise ValueError(
            f"mask must have the shape of the image, {planes.shape}, got {missing.shape}; give one "
            f"value per pixel."
        )
    return missing


def sheet_of(images: Iterable[ArrayLike], name: str) -> list[BoolArray]:
    """Several images, perhaps none; each as `planes_of`."""
    if isinstance(images, str | bytes | dict) or not isinstance(images, Iterable):
        raise TypeError(
            f"{name} must be several images, got {type(images).__name__}; pass an array of shape "
            f"(images, height, width), or a list."
        )
    if isinstance(images, np.ndarray) and images.ndim == 0:
        raise ValueError(f"{name} must be several images, got a single number; pass an array.")
    return [planes_of(one, f"{name}[{k}]") for k, one in enumerate(images)]


def several_of(images: ArrayLike, name: str) -> list[BoolArray]:
    """One image (height, width), or several of them; at least one."""
    if _is_flat(images):
        return [planes_of(images, name)]
    found = sheet_of(images, name)  # type: ignore[arg-type]
    if not found:
        raise ValueError(f"{name} must hold at least one image, and there is none; pass some.")
    return found


def like_of(value: ArrayLike, name: str, seen: list[BoolArray]) -> list[BoolArray]:
    """One image for each of those that were seen, of the same shape."""
    found = several_of(value, name)
    _check_alike(name, found, seen, all_channels=True)
    return found


def masks_of(mask: ArrayLike, seen: list[BoolArray]) -> list[BoolArray]:
    """Where pixels are missing in each of several images; one mask may be that of all."""
    found = several_of(mask, "mask")
    if len(found) == len(seen[0]) != len(seen):  # a plane for each channel
        found = [planes_of(mask, "mask")] if len(found) > 1 else found
    found = found * len(seen) if len(found) == 1 else found
    _check_alike("mask", found, seen, all_channels=False)
    return found


def _check_alike(
    name: str, found: list[BoolArray], seen: list[BoolArray], all_channels: bool
) -> None:
    fit = len(found) == len(seen) and all(
        one.shape[1:] == other.shape[1:]
        and (len(one) == len(other) or (len(one) == 1 and not all_channels))
        for one, other in zip(found, seen, strict=True)
    )
    if not fit:
        raise ValueError(
            f"{name} must hold an image for each of the {len(seen)} images and be of their shape, "
            f"{seen[0].shape}, got {len(found)} of shape {found[0].shape}; pass arrays of the same "
            f"shape."
        )


def _is_flat(value: Any) -> bool:
    """An array of rows and columns."""
    try:
        return np.ndim(value) == 2
    except ValueError:  # images of different sizes
        return False


def parts_of(features: ArrayLike) -> list[BoolArray]:
    """Parts, all of the same size."""
    parts = sheet_of(features, "features")  # type: ignore[arg-type]
    if len({part.shape for part in parts}) > 1:
        raise ValueError(
            "features must all have the same size, and these differ; pass for example features_ of "
            "a FeatureLearner."
        )
    return parts


def placements_of(placements: ArrayLike, n_features: int) -> NDArray[np.int64]:
    """Rows of image, feature, row and column, of features that there are."""
    whole = placement_rows(placements)
    if (whole[:, 1] < 0).any() or (whole[:, 1] >= n_features).any():
        raise ValueError(
            f"placements name features from 0 to {n_features - 1}, and there are others among "
            f"these; pass the features that belong to them."
        )
    return whole


def placement_rows(placements: ArrayLike) -> NDArray[np.int64]:
    """Rows of image, feature, row and column."""
    rows = _numbers(placements, "placements")
    if rows.size == 0:
        return np.zeros((0, 4), np.int64)
    far = 2**31  # no image is so large, and sums of such numbers are still exact
    if rows.ndim != 2 or rows.shape[1] != 4 or not _is_whole(rows, -far, far):
        raise ValueError(
            f"placements must be rows of four whole numbers (image, feature, row, column), got "
            f"shape {rows.shape}; pass what FeatureLearner.placements returns."
        )
    return rows.astype(np.int64)


def counts_of(counts: ArrayLike | None, n: int) -> NDArray[np.int64] | None:
    """How often each part is used."""
    if counts is None:
        return None
    used = _numbers(counts, "counts")
    if used.shape != (n,) or not _is_whole(used, 0, 2**53):
        raise ValueError(
            f"counts must hold a whole number of at least 0 for each of the {n} features, got "
            f"shape {used.shape}; leave it None for none."
        )
    return used.astype(np.int64)


def captions_of(captions: Sequence[str] | None, n: int) -> list[str] | None:
    """One line of text for each picture."""
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


def columns_of(columns: int | None) -> int | None:
    """How many pictures stand side by side."""
    return None if columns is None else check_count("columns", columns)


def enlargement(scale: int | None, side: float, wanted: float) -> int:
    """Screen pixels of a pixel, as told, or so that the longer side comes to about `wanted`."""
    if scale is None:
        return max(1, int(wanted // side))
    scale = check_count("scale", scale)
    if scale * side > MOST_SIDE:
        raise ValueError(
            f"scale must leave the picture at most {MOST_SIDE} screen pixels wide and high, but it "
            f"is {scale}: pass at most {max(int(MOST_SIDE // side), 1)}, or None."
        )
    return scale


def templates_of(
    weights: Sequence[ArrayLike], pools: Sequence[Any]
) -> tuple[list[BoolArray], list[tuple[int, int]]]:
    """Weights of all layers that fit on each other, and the windows of their pools."""
    if isinstance(weights, np.ndarray) and weights.ndim:
        weights = list(weights)
    if not isinstance(weights, list | tuple) or not weights:
        raise ValueError(
            f"weights must be a list of arrays, one per layer, got {type(weights).__name__}; pass "
            f"weights_ of an HCN."
        )
    levels: list[BoolArray] = [_numbers(W, f"weights[{k}]") > 0.5 for k, W in enumerate(weights)]
    fit = all(W.ndim == 4 and W.size for W in levels) and all(
        above.shape[1] == len(below) for below, above in pairwise(levels)
    )
    if not fit:
        raise ValueError(
            f"weights must have the shape (features, features below, height, width) in every "
            f"layer, got {', '.join(str(W.shape) for W in levels)}; pass weights_ of an HCN."
        )
    windows = list(pools) if isinstance(pools, Iterable) and np.ndim(pools) > 0 else []
    pairs = [w for w in windows if np.shape(w) == (2,)]
    if len(windows) != len(levels) or len(pairs) != len(levels):
        raise ValueError(
            f"pools must hold a window (height, width) for each of the {len(levels)} layers, got "
            f"{pools!r}; pass for example [(3, 3)] * {len(levels)}."
        )
    sizes = [(check_count("pools", h), check_count("pools", w)) for h, w in pairs]
    for axis in (0, 1):
        side = 1 + sum(W.shape[2 + axis] - 1 for W in levels)
        side += sum(size[axis] - 1 for size in sizes[1:])  # of the first, everything is in place
        if side > MOST_SIDE:
            raise ValueError(
                f"weights and pools must make templates of at most {MOST_SIDE} pixels a side, but "
                f"these have {side}; pass smaller ones."
            )
    return levels, sizes


def curve_of(history: Iterable[Any]) -> list[tuple[float, float]]:
    """Step and joint log-probability of every measurement that has one."""
    if isinstance(history, str | bytes | dict) or not isinstance(history, Iterable):
        raise TypeError(
            f"history must be the steps of a run, got {type(history).__name__}; pass history_ of "
            f"an estimator."
        )
    if isinstance(history, np.ndarray) and history.ndim == 0:
        raise ValueError("history must be the steps of a run, got one number; pass history_.")
    points = []
    for k, one in enumerate(history):
        x: Any
        y: Any
        x, y = getattr(one, "iteration", None), getattr(one, "objective", None)
        if not (_is_number(x) and _is_number(y) and abs(x) < MOST_VALUE):
            raise TypeError(
                f"history[{k}] must have the numbers iteration and objective, got {one!r}; pass "
                f"history_ of an estimator."
            )
        if abs(y) < MOST_VALUE:  # which is False for NaN
            points.append((float(x), float(y)))
    return points


def picture_size(size: tuple[int, int], least: tuple[int, int]) -> tuple[int, int]:
    """Width and height of a picture, in screen pixels."""
    pair = list(size) if isinstance(size, tuple | list) else []
    if len(pair) != 2:
        raise ValueError(
            f"size must be two whole numbers (width, height), got {size!r}; pass for example "
            f"(640, 300)."
        )
    names = ("The width in size", "The height in size")
    width, height = (
        check_count(name, one, low) for name, one, low in zip(names, pair, least, strict=True)
    )
    if max(width, height) > MOST_SIDE:
        raise ValueError(
            f"size must be at most {MOST_SIDE} screen pixels wide and high, got {size!r}; pass "
            f"less."
        )
    return width, height


def class_names(classes: ArrayLike, most: int) -> list[Any]:
    """The names of classes, at least one, no two that look the same."""
    names = labels_of(classes, "classes")
    if not 1 <= len(names) <= most:
        raise ValueError(
            f"classes must be 1 to {most} names for a picture, got {len(names)}; pass for example "
            f"classes_ of an HCN."
        )
    if len(set(map(str, names))) < len(names):
        raise ValueError("classes must differ, but two of them are the same; name each once.")
    return names


def labels_of(labels: ArrayLike, name: str) -> list[Any]:
    """A label per image, of any type."""
    try:
        array = np.asarray(labels)
    except ValueError:  # lists of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of labels, one per entry, got {labels!r}.")
    found: list[Any] = array.tolist()
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _is_whole(values: NDArray[Any], low: int, high: int) -> bool:
    inside = (values >= low) & (values <= high)
    return bool(inside.all()) and bool((values == np.rint(values)).all())


def _numbers(value: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be one array, but its parts differ in size; make them equally large."
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers or booleans, got dtype {array.dtype}; convert it first."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(
            f"{name} must not hold NaN; pass the missing pixels as a mask, and 0 in their place."
        )
    return array
