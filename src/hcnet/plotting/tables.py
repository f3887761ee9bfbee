"""A table sorted by its components, each outlined in its colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont
from sklearn.utils.validation import check_is_fitted

from hcnet.images import BoolArray
from hcnet.plotting.drawing import (
    MISSING,
    PAPER,
    check_captions,
    check_scale,
    colour_of,
    framed,
    tint,
)
from hcnet.validation.tables import check_table

# Colour of ones that no component covers, and of zeros that one covers.
UNCOVERED, WRONG = (90, 90, 90), (238, 238, 238)
# Smallest cell with names beside it, and with outlines; the longest name in characters.
NAMED, OUTLINED, LONGEST = 9, 4, 28
# Largest cell that is chosen.
LARGEST = 16
# Screen pixels that the longer side of a table is to have, and most cells of a side.
WANTED, MOST_CELLS = 1200, 2000


def show_factors(
    model: Any,
    X: ArrayLike,
    mask: ArrayLike | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    scale: int | None = None,
) -> Image.Image:
    """A table sorted by the components of a `BooleanMatrixFactorization`, each outlined.

    Ones are painted in the colour of the first component that covers them, dark grey without one;
    zeros that a component covers are pale grey, and missing entries amber.  Of more than 2,000
    rows or columns some are left out, evenly.  `rows` and `columns` are their names, where X is no
    DataFrame.  `scale` is the size of a cell on the screen; names need at least 9.
    """
    if not hasattr(model, "inverse_transform"):
        raise TypeError(
            f"model must be a BooleanMatrixFactorization, got {type(model).__name__}; the parts of "
            f"images are drawn by show_explanation."
        )
    check_is_fitted(model)
    codes, given = model.transform(X, mask), check_table(X, mask)
    learned = getattr(model, "feature_names_in_", None)
    known = given.column_names or (None if learned is None else list(learned))
    words = check_captions(columns, given.values.shape[1]) or known
    names = check_captions(rows, given.values.shape[0]) or given.row_names
    down, across = _thinned(_order(codes)), _thinned(_order(model.components_.T))
    cells = np.ix_(down, across)
    codes, components = codes[down], model.components_[:, across]
    side = max(len(down), len(across))
    scale = min(check_scale(None, side, WANTED), LARGEST) if scale is None else scale
    scale = check_scale(scale, side, WANTED)
    canvas = _painted(given.values[cells], given.observed[cells], codes, components)
    large = canvas.repeat(scale, axis=0).repeat(scale, axis=1)
    if scale >= OUTLINED:
        for k in range(len(components)):
            inside = np.outer(codes[:, k], components[k])
            _outline(large, inside, scale, colour_of(k), inset=k % max(1, scale // 3))
    picture = framed(large, 1)
    if scale < NAMED:
        return picture
    return _labelled(picture, scale, _pick(words, across), _pick(names, down))


def _order(bits: BoolArray) -> NDArray[np.intp]:
    """An order in which equal rows of bits, and those with the same first bits, are neighbours."""
    if bits.shape[1] == 0:
        return np.arange(len(bits))
    first = np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1])
    keys = [*(~bits.T)[::-1], first]
    return np.lexsort(keys)


def _thinned(order: NDArray[np.intp]) -> NDArray[np.intp]:
    if len(order) <= MOST_CELLS:
        return order
    return order[np.linspace(0, len(order) - 1, MOST_CELLS).round().astype(np.intp)]


def _painted(
    values: BoolArray, observed: BoolArray, codes: BoolArray, components: BoolArray
) -> NDArray[np.uint8]:
    """Colours of all cells."""
    canvas = np.full((*values.shape, 3), PAPER, np.uint8)
    covered = np.zeros(values.shape, bool)
    canvas[values] = UNCOVERED
    for k in reversed(range(len(components))):
        inside = np.outer(codes[:, k], components[k])
        covered |= inside
        canvas[inside & values] = tint(colour_of(k))
    canvas[covered & ~values] = WRONG
    canvas[~observed] = MISSING
    return canvas


def _outline(
    canvas: NDArray[np.uint8], inside: BoolArray, scale: int, colour: Any, inset: int
) -> None:
    """A line around the cells of a component, drawn into its cells."""
    padded = np.pad(inside, 1)
    up, down = inside & ~padded[:-2, 1:-1], inside & ~padded[2:, 1:-1]
    left, right = inside & ~padded[1:-1, :-2], inside & ~padded[1:-1, 2:]
    for i, j in np.argwhere(up | down | left | right):
        y, x = i * scale, j * scale
        a, b = inset if left[i, j] else 0, scale - inset if right[i, j] else scale
        c, d = inset if up[i, j] else 0, scale - inset if down[i, j] else scale
        if up[i, j]:
            canvas[y + c, x + a : x + b] = colour
        if down[i, j]:
            canvas[y + d - 1, x + a : x + b] = colour
        if left[i, j]:
            canvas[y + c : y + d, x + a] = colour
        if right[i, j]:
            canvas[y + c : y + d, x + b - 1] = colour


def _pick(names: Sequence[str] | None, order: NDArray[np.intp]) -> list[str] | None:
    if names is None:
        return None
    found = [names[k] for k in order]
    return [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in found]


def _labelled(
    picture: Image.Image, scale: int, columns: list[str] | None, rows: list[str] | None
) -> Image.Image:
    """A word over every column, and before every row."""
    font = ImageFont.load_default(max(8, min(scale - 2, 12)))

    def longest(words: list[str] | None) -> int:
        return int(max((font.getlength(word) for word in words or ()), default=-6)) + 6

    head, left = longest(columns), longest(rows)
    sheet = Image.new("RGB", (left + picture.width, head + picture.height), (PAPER,) * 3)
    sheet.paste(picture, (left, head))
    for k, word in enumerate(columns or ()):
        tile = Image.new("RGB", (head, scale), (PAPER,) * 3)
        ImageDraw.Draw(tile).text((2, scale // 2), word, fill=(0, 0, 0), font=font, anchor="lm")
        sheet.paste(tile.rotate(90, expand=True), (left + 1 + k * scale, 0))
    for k, word in enumerate(rows or ()):
        at = (left - 4, head + 1 + k * scale + scale // 2)
        ImageDraw.Draw(sheet).text(at, word, fill=(0, 0, 0), font=font, anchor="rm")
    return sheet
