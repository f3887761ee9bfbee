"""Pictures of what went wrong: reconstructions against images, predicted against true classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.images import BoolArray
from hcnet.plotting.arguments import (
    class_names,
    enlargement,
    labels_of,
    like_of,
    masks_of,
    several_of,
)
from hcnet.plotting.drawing import (
    ADDED,
    BLACK,
    FRAME,
    GAP,
    IMAGE_SIDE,
    INKS,
    LINE,
    MISSED,
    MISSING,
    PAPER,
    TEXT,
    Colour,
    blank,
    framed,
    one_line,
    sheet_columns,
    tile_grid,
)

CELL = 46  # screen pixels of a cell of a confusion matrix, at least
MOST_CLASSES = 80  # more would make a picture that no program shows
LETTERS = 16  # of a name of a class


def show_errors(
    images: ArrayLike,
    reconstruction: ArrayLike,
    mask: ArrayLike | None = None,
    scale: int | None = None,
) -> Image.Image:
    """Reconstructions with their errors marked, and counted below.

    Right ink is black; ink that the parts leave out is vermilion, ink that they add is blue.
    Missing pixels are amber where they are not filled in.  Arrays are one image or several.
    """
    seen = several_of(images, "images")
    made = like_of(reconstruction, "reconstruction", seen)
    hidden = [np.zeros_like(x) for x in seen] if mask is None else masks_of(mask, seen)
    columns = sheet_columns(len(seen))
    side = columns * max(max(x.shape[1:]) for x in seen)
    scale = enlargement(scale, side, IMAGE_SIDE)
    tiles, captions = [], []
    for x, r, m in zip(seen, made, hidden, strict=True):
        missed, added = x & ~r & ~m, r & ~x & ~m
        tiles.append(framed(_marked(r, missed, added, m), scale))
        captions.append(f"{missed.sum():,} missed, {added.sum():,} added")
    return tile_grid(tiles, columns, captions)


def _marked(r: BoolArray, missed: BoolArray, added: BoolArray, hidden: BoolArray) -> Any:
    canvas = np.full((*r.shape[1:], 3), PAPER, np.uint8)
    canvas[hidden.any(axis=0)] = MISSING
    canvas[r.any(axis=0)] = BLACK
    canvas[added.any(axis=0)] = ADDED
    canvas[missed.any(axis=0)] = MISSED
    return canvas


def show_confusion(y: ArrayLike, predicted: ArrayLike, classes: ArrayLike) -> Image.Image:
    """How often each true class (a row) was taken for each class (a column).

    The darker, the larger its share of the row.  Images without a label (-1) do not count.
    """
    names = class_names(classes, MOST_CLASSES)
    counts = confusion(y, predicted, names)
    font = ImageFont.load_default(TEXT)
    words = [_short(one_line(name)) for name in names]
    widest = max(font.getlength(word) for word in [*words, f"{counts.max():,}"])
    cell = max(CELL, int(widest) + 2 * GAP)
    left, top = int(widest) + LINE + 2 * GAP, 2 * LINE + GAP
    sheet = blank(left + cell * len(names) + 2 * GAP, top + CELL * len(names) + 2 * GAP)
    draw = ImageDraw.Draw(sheet)
    middle = left + cell * len(names) / 2
    draw.text((middle, GAP // 2), "predicted", fill=BLACK, font=font, anchor="ma")
    _upright(sheet, "true", (GAP // 2, top + CELL * len(names) // 2))
    for i, word in enumerate(words):
        draw.text((left - GAP, top + (i + 0.5) * CELL), word, fill=BLACK, font=font, anchor="rm")
        draw.text((left + (i + 0.5) * cell, top - GAP), word, fill=BLACK, font=font, anchor="ms")
        whole = max(int(counts[i].sum()), 1)
        for j in range(len(words)):
            share = counts[i, j] / whole
            box = [left + j * cell, top + i * CELL, left + (j + 1) * cell, top + (i + 1) * CELL]
            draw.rectangle(box, fill=_shade(share), outline=(FRAME,) * 3)
            centre = left + (j + 0.5) * cell, top + (i + 0.5) * CELL
            ink = (PAPER,) * 3 if share > 0.5 else BLACK
            draw.text(centre, f"{counts[i, j]:,}", fill=ink, font=font, anchor="mm")
    return sheet


def confusion(y: ArrayLike, predicted: ArrayLike, names: list[Any]) -> NDArray[np.int64]:
    """Counts (true class, predicted class); images without a label do not count."""
    number = {str(name): k for k, name in enumerate(names)}
    labels, predictions = labels_of(y, "y"), labels_of(predicted, "predicted")
    if len(labels) != len(predictions):
        raise ValueError(
            f"y and predicted must have a label for each image, got {len(labels)} and "
            f"{len(predictions)}; pass both for the same images."
        )
    strange = [found for found in predictions if str(found) not in number]
    if strange:
        raise ValueError(
            f"predicted must hold classes only, and {strange[0]!r} is none of them; pass classes_ "
            f"of the model that predicted."
        )
    counts = np.zeros((len(names), len(names)), np.int64)
    for true, found in zip(labels, predictions, strict=True):
        if str(true) in number:
            counts[number[str(true)], number[str(found)]] += 1
    return counts


def _short(word: str) -> str:
    return word if len(word) <= LETTERS else word[: LETTERS - 1] + "…"


def _shade(share: float) -> Colour:
    """From paper to the first ink."""
    red, green, blue = (round(PAPER + (ink - PAPER) * share) for ink in INKS[0])
    return red, green, blue


def _upright(sheet: Image.Image, word: str, at: tuple[int, int]) -> None:
    """A word that reads from the bottom up, at its left middle."""
    font = ImageFont.load_default(TEXT)
    tile = blank(int(font.getlength(word)) + 2, LINE)
    ImageDraw.Draw(tile).text((1, 1), word, fill=BLACK, font=font)
    turned = tile.rotate(90, expand=True)
    sheet.paste(turned, (at[0], at[1] - turned.height // 2))
