"""Pictures of a network: what its templates are made of, and what it fills in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hcnet.images import BoolArray
from hcnet.plotting.arguments import (
    captions_of,
    columns_of,
    enlargement,
    planes_of,
    sheet_of,
    templates_of,
)
from hcnet.plotting.drawing import (
    BLACK,
    GAP,
    PANEL_SIDE,
    PAPER,
    PART_SIDE,
    blank,
    colour_of,
    framed,
    tile_grid,
)
from hcnet.plotting.parts import show_image

ROW = 10  # features of a layer beside each other


def show_templates(
    weights: Sequence[ArrayLike],
    pools: Sequence[tuple[int, int]],
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    scale: int | None = None,
) -> Image.Image:
    """Every template, drawn by the features of the first layer that it is made of.

    `weights` are as `HCN.weights_`, `pools` the windows of the layers; everything stands at the
    centre of its pool.  Features have the colours of `show_features(…, colours=True)`; pixels of
    several are black.
    """
    levels, windows = templates_of(weights, pools)
    lines, columns = captions_of(captions, len(levels[-1])), columns_of(columns)
    colours = [(PAPER,) * 3, *(colour_of(f) for f in range(len(levels[0]))), BLACK]
    palette = np.array(colours, np.uint8)
    sheets = [palette[numbers] for numbers in drawn_features(levels, windows)]
    scale = enlargement(scale, max(sheets[0].shape[:2]), 2 * PART_SIDE)
    return tile_grid([framed(sheet, scale) for sheet in sheets], columns, lines)


def drawn_features(
    weights: Sequence[ArrayLike], pools: Sequence[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """Every feature of the last layer down to the pixels: who of the first layer is where.

    0 is nobody, f + 1 feature f, and one more than there are features stands for several.
    """
    levels, windows = templates_of(weights, pools)
    drawn = []
    for j in range(len(levels[-1])):
        top = np.zeros((1, len(levels[-1]), 1, 1), bool)
        top[0, j] = True
        drawn.append(_numbers(_first_layer(top, levels, windows), levels[0]))
    return drawn


def show_hierarchy(
    weights: Sequence[ArrayLike],
    pools: Sequence[tuple[int, int]],
    captions: Sequence[str] | None = None,
    scale: int | None = None,
) -> Image.Image:
    """A row per layer, the templates first, every feature drawn down to the pixels.

    Below each feature stands what it is made of: the numbers of the features of the next row.
    `captions` are names of the templates.
    """
    rows, titles = [], []
    if scale is None:
        widest = max(max(one.shape) for one in drawn_features(weights, pools))
        scale = max(1, 2 * PART_SIDE // widest)
    for k in reversed(range(len(weights))):
        W = np.asarray(weights[k], dtype=bool)
        names = [f"{f}" for f in range(len(W))]
        if k == len(weights) - 1 and captions is not None:
            names = list(captions)
        if k > 0:
            made = [np.flatnonzero(one.any(axis=(1, 2))) for one in W]
            names = [
                f"{name} = {'+'.join(map(str, parts)) or 'nothing'}"
                for name, parts in zip(names, made, strict=True)
            ]
        columns = min(len(W), ROW)
        rows.append(show_templates(weights[: k + 1], pools[: k + 1], names, columns, scale))
        last = k == len(weights) - 1 and k > 0
        titles.append(f"layer {k + 1}: {len(W)} {'templates' if last else 'features'}")
    return tile_grid(rows, columns=1, captions=titles, margin=GAP, gap=2 * GAP)


def show_completion(
    images: ArrayLike,
    mask: ArrayLike,
    filled: ArrayLike,
    truth: ArrayLike | None = None,
    scale: int | None = None,
) -> Image.Image:
    """A column per image: what was seen (the rest is amber), what was filled in, the truth."""
    seen = sheet_of(images, "images")  # type: ignore[arg-type]
    if not seen:
        raise ValueError("images must hold at least one image, and there is none; pass some.")
    hidden = _like(mask, "mask", images, seen)
    room = max(2 * PART_SIDE, PANEL_SIDE // len(seen))
    scale = enlargement(scale, max(seen[0].shape[1:]), room)
    rows = [[show_image(x, m, scale) for x, m in zip(seen, hidden, strict=True)]]
    for name, more in (("filled", filled), ("truth", truth)):
        if name == "filled" or more is not None:
            rows.append([show_image(x, scale=scale) for x in _like(more, name, images, seen)])
    words = [tile_grid([blank(1, 1)], captions=[name]) for name in ("Seen", "Filled in", "Truth")]
    margin = max(word.width for word in words) + GAP
    lines = []
    for word, tiles in zip(words, rows, strict=False):
        row = tile_grid(tiles, columns=len(tiles))
        line = blank(margin + row.width, row.height)
        line.paste(word, (0, (row.height - word.height) // 2))
        line.paste(row, (margin, 0))
        lines.append(line)
    return tile_grid(lines, columns=1)


def _like(
    value: ArrayLike | None, name: str, images: ArrayLike, seen: list[BoolArray]
) -> list[BoolArray]:
    """One image for each of those that were seen, of the same size."""
    shape = np.shape(images)
    if value is not None and np.ndim(value) and np.shape(value) != shape:
        with suppress(ValueError):  # a mask for all images
            value = np.broadcast_to(np.asarray(value), shape)
    found = sheet_of(value, name)  # type: ignore[arg-type]
    if [one.shape[1:] for one in found] != [one.shape[1:] for one in seen]:
        raise ValueError(
            f"{name} must hold an image for each of the {len(seen)} images and be of their size, "
            f"shape {shape}, got {np.shape(value)}; pass arrays of the same shape."  # type: ignore[arg-type]
        )
    return found


def _first_layer(
    top: BoolArray, levels: Sequence[BoolArray], pools: Sequence[tuple[int, int]]
) -> BoolArray:
    """S¹ of one template (1, features, height, width), everything at the centre of its pool."""
    S = top
    for W, (height, width) in zip(reversed(levels[1:]), reversed(pools[1:]), strict=True):
        R = np.zeros(
            (1, W.shape[1], S.shape[2] + W.shape[2] - 1, S.shape[3] + W.shape[3] - 1), bool
        )
        for _, f, i, j in np.argwhere(S):
            R[0, :, i : i + W.shape[2], j : j + W.shape[3]] |= W[f]
        before = (height - 1) // 2, (width - 1) // 2
        after = height - 1 - before[0], width - 1 - before[1]
        S = np.pad(R, ((0, 0), (0, 0), (before[0], after[0]), (before[1], after[1])))
    return S


def _numbers(S: BoolArray, W: BoolArray) -> NDArray[np.int64]:
    """Which feature of the first layer is at each pixel, as `drawn_features` counts them."""
    h, w = W.shape[2:]
    size = S.shape[2] + h - 1, S.shape[3] + w - 1
    canvas, covered = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for _, f, i, j in np.argwhere(S):
        on = planes_of(W[f]).any(axis=0)
        canvas[i : i + h, j : j + w][on] = f + 1
        covered[i : i + h, j : j + w] += on
    canvas[covered > 1] = len(W) + 1
    return canvas
