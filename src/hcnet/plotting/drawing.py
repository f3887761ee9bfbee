"""Colours, sizes, enlarging, framing and tiling of all pictures; pictures made of characters."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.atomic_files import file_path, write_atomically
from hcnet.checks import check_count
from hcnet.images import BoolArray

Colour: TypeAlias = tuple[int, int, int]
Picture: TypeAlias = NDArray[np.uint8]

# Paul Tol's "muted" scheme: nine colours that stay apart for colour-blind readers.  Neighbours
# differ most, since the first features are the most used ones.
PALETTE: tuple[Colour, ...] = (
    (51, 34, 136),
    (204, 102, 119),
    (68, 170, 153),
    (153, 153, 51),
    (136, 204, 238),
    (136, 34, 85),
    (17, 119, 51),
    (221, 204, 119),
    (170, 68, 153),
)
# Two or three channels: blue, vermilion and green of Okabe and Ito; printed over each other they
# darken, so that a pixel that is on in all channels is nearly black.
INKS: tuple[Colour, ...] = ((0, 114, 178), (213, 94, 0), (0, 158, 115))
BLACK: Colour = (0, 0, 0)
PAPER = 255
FRAME = 176
PALE = 206  # ink below the placements that are drawn over it
MISSING: Colour = (255, 236, 179)
# Errors, vermilion and blue of Okabe and Ito, which also differ in brightness.
MISSED: Colour = (213, 94, 0)  # ink that a reconstruction leaves out
ADDED: Colour = (0, 114, 178)  # ink that it adds

MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # of pictures that PNG can hold
MOST_SIDE = 20_000  # screen pixels of a side beyond which no program shows a picture
IMAGE_SIDE = 600  # screen pixels of the longer side of an image, about
PANEL_SIDE = 420  # of each of several panels in a row
PART_SIDE = 66  # and of a part on a contact sheet
GAP = 8
TEXT = 14
LINE = TEXT + 8  # a caption with the space above and below it
# Two rows of pixels in one line of text, since a character is twice as high as wide.
HALVES = np.array([[" ", "▄"], ["▀", "█"]])
TEXT_GAP = 2


def save_picture(picture: Any, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write a PIL image, or the figure of matplotlib axes, as PNG, whole or not at all.

    A file that exists is replaced only with `overwrite`.
    """
    path = picture_path(path)
    if isinstance(picture, Image.Image):
        if picture.mode not in MODES or 0 in picture.size:
            raise ValueError(
                f"picture has mode {picture.mode!r} and size {picture.size}, which PNG does not "
                f"have; convert it first, for example with picture.convert('RGB')."
            )
        return write_atomically(path, partial(picture.save, format="PNG", optimize=True), overwrite)
    figure: Any = getattr(picture, "figure", None)
    if not hasattr(figure, "savefig"):
        raise TypeError(
            f"picture must be a PIL image or matplotlib axes, got {type(picture).__name__}; pass "
            f"the result of a function of hcnet.plotting."
        )
    return write_atomically(path, partial(figure.savefig, format="png"), overwrite)


def picture_path(path: str | os.PathLike[str]) -> Path:
    """The path of a picture, which must end in .png."""
    path = file_path(path)
    if path.suffix.lower() != ".png":
        raise ValueError(f"{path} does not end in .png, and pictures are written as PNG.")
    return path


def check_captions(captions: Any, n: int) -> list[str] | None:
    """One text for each of the `n` pictures."""
    if captions is None:
        return None
    texts = list(captions) if isinstance(captions, list | tuple) else []
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


def paint(planes: BoolArray, missing: BoolArray, ink: Colour = BLACK) -> Picture:
    """Up to three channels as colours (height, width, 3); overlapping inks multiply."""
    inks = [ink] if len(planes) == 1 else INKS
    colours = np.ones((*planes.shape[1:], 3))
    for plane, one in zip(planes, inks, strict=False):
        colours[plane] *= np.array(one) / PAPER
    canvas: Picture = np.rint(colours * PAPER).astype(np.uint8)
    canvas[missing.any(axis=0)] = MISSING
    return canvas


def framed(canvas: Picture, scale: int) -> Image.Image:
    """Enlarge colours (height, width, 3) and draw a thin frame around them."""
    large = canvas.repeat(scale, axis=0).repeat(scale, axis=1)
    return Image.fromarray(np.pad(large, ((1, 1), (1, 1), (0, 0)), constant_values=FRAME))


def colour_of(feature: int) -> Colour:
    """The colour of a feature, the same in all pictures."""
    return PALETTE[feature % len(PALETTE)]


def tint(colour: Colour) -> Colour:
    """A pale version of a colour."""
    red, green, blue = ((part + PAPER) // 2 for part in colour)
    return red, green, blue


def sheet_columns(n: int) -> int:
    """Columns of a sheet that is a little wider than high, with few empty cells."""
    about = math.ceil(math.sqrt(1.3 * n))
    return min(range(max(about - 1, 1), about + 2), key=lambda k: (-n % k, abs(k - about)))


def blank(width: int, height: int) -> Image.Image:
    """An empty sheet of paper."""
    return Image.new("RGB", (width, height), (PAPER, PAPER, PAPER))


def tile_grid(
    tiles: Sequence[Image.Image],
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    margin: int = 0,
    gap: int = GAP,
) -> Image.Image:
    """Tiles in a grid, each centred in its cell with its caption centred below.

    Columns are equally wide; a row is as high as its highest tile.
    """
    columns = min(columns or sheet_columns(len(tiles)), len(tiles))
    rows = -(-len(tiles) // columns)
    font = ImageFont.load_default(TEXT)
    # A character that cannot be drawn on one line becomes a space.
    texts = ["".join(c if c.isprintable() else " " for c in text) for text in captions or []]
    line = LINE if texts else 0
    width = max(tile.width for tile in tiles)
    width = max([width, *(math.ceil(font.getlength(text)) for text in texts)])
    heights = [max(t.height for t in tiles[r * columns : (r + 1) * columns]) for r in range(rows)]
    tops = [margin + sum(heights[:r]) + r * (line + gap) for r in range(rows)]
    sheet = blank(
        2 * margin + columns * (width + gap) - gap, tops[-1] + heights[-1] + line + margin
    )
    draw = ImageDraw.Draw(sheet)
    for k, tile in enumerate(tiles):
        left = margin + k % columns * (width + gap)
        top, height = tops[k // columns], heights[k // columns]
        sheet.paste(tile, (left + (width - tile.width) // 2, top + (height - tile.height) // 2))
        if texts:
            centre = (left + width / 2, top + height + 4)
            draw.text(centre, texts[k], fill=BLACK, font=font, anchor="ma")
    return sheet


def text_image(image: BoolArray) -> list[str]:
    """Lines of characters for an image (channels, height, width), channels over each other."""
    on = np.pad(image.any(axis=0), ((0, image.shape[1] % 2), (0, 0))).astype(int)
    return ["".join(line) for line in HALVES[on[::2], on[1::2]]]


def text_sheet(images: Sequence[BoolArray], captions: Sequence[str], width: int = 80) -> str:
    """Several images side by side, each with its caption below, in lines of this width."""
    rows: list[list[list[str]]] = [[]]
    for image, caption in zip(images, captions, strict=True):
        lines = [*text_image(image), caption]
        across = max(map(len, lines))
        if rows[-1] and sum(len(one[0]) + TEXT_GAP for one in rows[-1]) + across > width:
            rows.append([])
        rows[-1].append([line.ljust(across) for line in lines])
    return "\n\n".join(
        "\n".join((" " * TEXT_GAP).join(lines).rstrip() for lines in zip(*row, strict=True))
        for row in rows
    )
