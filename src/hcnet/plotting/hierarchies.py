"""Pictures of a network: its templates and features, drawn down to the pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hcnet.checks import check_optional_count
from hcnet.images import BoolArray
from hcnet.plotting.drawing import BLACK, GAP, PAPER, PART_SIDE, colour_of, framed, tile_grid
from hcnet.validation.drawings import check_captions, check_scale, check_templates_to_draw

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
    levels, windows = check_templates_to_draw(weights, pools)
    lines, columns = (
        check_captions(captions, len(levels[-1])),
        check_optional_count("columns", columns, 1, "to choose it"),
    )
    colours = [(PAPER,) * 3, *(colour_of(f) for f in range(len(levels[0]))), BLACK]
    palette = np.array(colours, np.uint8)
    sheets = [palette[numbers] for numbers in drawn_features(levels, windows)]
    scale = check_scale(scale, max(sheets[0].shape[:2]), 2 * PART_SIDE)
    return tile_grid([framed(sheet, scale) for sheet in sheets], columns, lines)


def drawn_features(
    weights: Sequence[ArrayLike], pools: Sequence[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """The feature of the first layer at each pixel, for every feature of the last layer.

    0 is none, f + 1 is feature f, and the number of features + 1 stands for several.
    """
    levels, windows = check_templates_to_draw(weights, pools)
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

    The caption of a feature lists the features of the next row that it is made of.
    `captions` are names of the templates.
    """
    levels, windows = check_templates_to_draw(weights, pools)
    lines = check_captions(captions, len(levels[-1]))
    widest = max(max(one.shape) for one in drawn_features(levels, windows))
    scale = check_scale(scale, widest, 2 * PART_SIDE)
    rows, titles = [], []
    for k, W in reversed(list(enumerate(levels))):
        names = [f"{f}" for f in range(len(W))]
        if k == len(levels) - 1 and lines is not None:
            names = lines
        if k > 0:
            made = [np.flatnonzero(one.any(axis=(1, 2))) for one in W]
            names = [
                f"{name} = {'+'.join(map(str, parts)) or 'nothing'}"
                for name, parts in zip(names, made, strict=True)
            ]
        columns = min(len(W), ROW)
        rows.append(show_templates(levels[: k + 1], windows[: k + 1], names, columns, scale))
        last = k == len(levels) - 1 and k > 0
        titles.append(f"layer {k + 1}: {len(W)} {'templates' if last else 'features'}")
    return tile_grid(rows, columns=1, captions=titles, margin=GAP, gap=2 * GAP)


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
    """The feature of the first layer at each pixel, numbered as in `drawn_features`."""
    h, w = W.shape[2:]
    size = S.shape[2] + h - 1, S.shape[3] + w - 1
    canvas, covered = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for _, f, i, j in np.argwhere(S):
        on = W[f].any(axis=0)
        canvas[i : i + h, j : j + w][on] = f + 1
        covered[i : i + h, j : j + w] += on
    canvas[covered > 1] = len(W) + 1
    return canvas
