"""Pictures made of characters, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hcnet.images import BoolArray
from hcnet.validation.drawings import as_planes

# Two rows of pixels in one line of text, since a character is twice as high as wide.
_HALVES = np.array([[" ", "▄"], ["▀", "█"]])
GAP = 2


def text_image(image: ArrayLike) -> list[str]:
    """Lines of a binary image (height, width), or of several channels over each other."""
    on: BoolArray = np.asarray(as_planes("image", image).any(axis=0))
    if len(on) % 2:
        on = np.pad(on, ((0, 1), (0, 0)))
    top, bottom = on[::2].astype(int), on[1::2].astype(int)
    return ["".join(line) for line in _HALVES[top, bottom]]


def text_sheet(images: Sequence[ArrayLike], captions: Sequence[str], width: int = 80) -> str:
    """Several images side by side, each with its caption below, in lines of this width."""
    tiles = []
    for image, caption in zip(images, captions, strict=True):
        lines = [*text_image(image), caption]
        across = max(map(len, lines))
        tiles.append([line.ljust(across) for line in lines])
    sheet: list[str] = []
    row: list[list[str]] = []
    for tile in tiles:
        if row and sum(len(one[0]) + GAP for one in row) + len(tile[0]) > width:
            sheet += [*_side_by_side(row), ""]
            row = []
        row.append(tile)
    return "\n".join([*sheet, *_side_by_side(row)])


def _side_by_side(tiles: list[list[str]]) -> list[str]:
    height = max((len(tile) for tile in tiles), default=0)
    # Captions stand on one line, also below tiles of different heights.
    full = [[*tile[:-1], *[" " * len(tile[0])] * (height - len(tile)), tile[-1]] for tile in tiles]
    return [(" " * GAP).join(lines).rstrip() for lines in zip(*full, strict=True)]
