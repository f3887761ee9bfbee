"""Pictures of images, parts and placements, as PIL images: save them, or show them in a notebook.

Pixels are enlarged without smoothing, ink is black and paper white.  An image is (height, width)
or (channels, height, width).  One channel is drawn in black; two or three are printed over each
other in colours; more are tiled, because nobody can tell four inks apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

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

IMAGE_SIDE = 600  # screen pixels of the longer side of an image, about
PANEL_SIDE = 420  # of each of several panels in a row
PART_SIDE = 66  # and of a part on a contact sheet
GAP = 8
TEXT = 14
LINE = TEXT + 8  # a caption with the space above and below it


def show_image(
    image: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
) -> Image.Image:
    """One binary image, enlarged and framed; what `mask` marks as missing is amber.

    `scale` is the size of a pixel on the screen; None chooses one that fits the screen.
    """
    planes = _planes(image)
    missing = None if mask is None else _planes(mask, "mask")
    side = max(planes.shape[1:]) * (_columns(len(planes)) if len(planes) > len(INKS) else 1)
    scale = scale or max(1, IMAGE_SIDE // side)
    if len(planes) <= len(INKS):
        return _framed(_paint(planes, missing), scale)
    tiles = []
    for channel, plane in enumerate(planes):
        hidden = None if missing is None else missing[[channel % len(missing)]]
        tiles.append(_framed(_paint(plane[None], hidden), scale))
    return _tile(tiles)


def image_grid(
    images: Iterable[ArrayLike],
    columns: int | None = None,
    scale: int | None = None,
    captions: Sequence[str] | None = None,
) -> Image.Image:
    """Several images side by side, row by row, with optional captions below them."""
    shapes = [_planes(one) for one in images]
    if not shapes:
        return _blank(1, 1)
    columns = columns or _columns(len(shapes))
    scale = scale or max(1, IMAGE_SIDE // (columns * max(max(one.shape[1:]) for one in shapes)))
    return _tile([show_image(one, scale=scale) for one in shapes], columns, captions)


def show_features(
    features: ArrayLike,
    counts: ArrayLike | None = None,
    columns: int | None = None,
    scale: int | None = None,
    colours: bool = False,
) -> Image.Image:
    """A contact sheet of parts (features, channels, height, width).

    `counts`, how often each part is used, puts the most used first and the number below each.
    With `colours`, a part has the colour that `show_placements` gives it.
    """
    parts = [_planes(one) for one in np.asarray(features)]
    order = np.arange(len(parts))
    captions = None
    if counts is not None:
        used = np.asarray(counts)
        order = np.argsort(-used, kind="stable")
        captions = [f"{used[f]:,}" for f in order]
    if not parts:
        return _blank(PART_SIDE, PART_SIDE)
    scale = scale or max(1, PART_SIDE // max(parts[0].shape[1:]))
    tiles = [_part(parts[f], _colour(int(f)) if colours else None, scale) for f in order]
    return _tile(tiles, columns, captions)


def show_placements(
    image: ArrayLike,
    placements: ArrayLike,
    features: ArrayLike,
    index: int = 0,
    scale: int | None = None,
) -> Image.Image:
    """Where the parts are: box and pixels of each placement over a pale copy of the image.

    `placements` are rows of image, feature, row and column, as `FeatureLearner.placements`
    returns them; those of image `index` are drawn.  Pixels that a part explains have its full
    colour, pixels that it adds a pale one; what no part explains stays grey.
    """
    seen: BoolArray = np.asarray(_planes(image).any(axis=0))
    parts = [_planes(one).any(axis=0) for one in np.asarray(features)]
    rows = np.asarray(placements, dtype=np.int64).reshape(-1, 4)
    rows = rows[rows[:, 0] == index, 1:]
    scale = scale or max(1, IMAGE_SIDE // max(seen.shape))
    canvas = np.full((*seen.shape, 3), PAPER, np.uint8)
    canvas[seen] = PALE
    boxes: list[tuple[tuple[int, int, int, int], Colour]] = []
    for f, r, c in rows:
        i, j = np.nonzero(parts[f])
        if not len(i):
            continue
        i, j = i + r, j + c
        boxes.append(((int(i.min()), int(j.min()), int(i.max()), int(j.max())), _colour(int(f))))
        inside = (i >= 0) & (i < seen.shape[0]) & (j >= 0) & (j < seen.shape[1])
        i, j = i[inside], j[inside]
        full = _colour(int(f))
        canvas[i, j] = np.where(seen[i, j, None], full, _tint(_colour(int(f))))
    picture = _framed(canvas, scale)
    draw = ImageDraw.Draw(picture)
    for (top, left, bottom, right), colour in boxes:
        # On the outside of the pixels, so that no ink is hidden; 1 is the frame's width.
        corner = (left * scale, top * scale)
        opposite = ((right + 1) * scale + 1, (bottom + 1) * scale + 1)
        draw.rectangle([corner, opposite], outline=_tint(colour))
    return picture


def show_comparison(
    image: ArrayLike,
    placements: ArrayLike,
    features: ArrayLike,
    reconstruction: ArrayLike,
    index: int = 0,
    scale: int | None = None,
) -> Image.Image:
    """Image, placements, parts and reconstruction side by side, with captions.

    `image` and `reconstruction` are single images, `placements` are as in `show_placements`.
    """
    planes = _planes(image)
    scale = scale or max(1, round(PANEL_SIDE / max(planes.shape[1:])))
    rows = np.asarray(placements, dtype=np.int64).reshape(-1, 4)
    here = rows[rows[:, 0] == index]
    parts = np.asarray(features)
    counts = np.bincount(here[:, 1], minlength=len(parts))
    panels = [
        show_image(planes, scale=scale),
        show_placements(planes, here, parts, index, scale),
        _fitting_sheet(parts, counts, (planes.shape[1] * scale, planes.shape[2] * scale)),
        show_image(reconstruction, scale=scale),
    ]
    captions = [
        "Image",
        _several(len(here), "placement"),
        _several(len(parts), "part"),
        "Reconstruction",
    ]
    return _tile(panels, len(panels), captions, margin=GAP, gap=2 * GAP)


def _several(n: int, thing: str) -> str:
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def _planes(image: ArrayLike, name: str = "image") -> BoolArray:
    """(channels, height, width); a batch of one image counts as that image."""
    array = np.asarray(image)
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"{name} must be one image of shape (height, width) or (channels, height, width), got "
            f"shape {array.shape}; pick one of several, for example images[0]."
        )
    return array > 0.5


def _paint(planes: BoolArray, missing: BoolArray | None, ink: Colour | None = None) -> Picture:
    """Up to three channels as colours (height, width, 3); overlapping inks multiply."""
    inks = [ink or BLACK] if len(planes) == 1 else INKS
    colours = np.ones((*planes.shape[1:], 3))
    for plane, one in zip(planes, inks, strict=False):
        colours[plane] *= np.array(one) / PAPER
    canvas: Picture = np.rint(colours * PAPER).astype(np.uint8)
    if missing is not None:
        canvas[missing.any(axis=0)] = MISSING
    return canvas


def _framed(canvas: Picture, scale: int) -> Image.Image:
    large = canvas.repeat(scale, axis=0).repeat(scale, axis=1)
    return Image.fromarray(np.pad(large, ((1, 1), (1, 1), (0, 0)), constant_values=FRAME))


def _part(planes: BoolArray, colour: Colour | None, scale: int) -> Image.Image:
    """A part in one colour, if told and if it has one channel."""
    if colour is None or len(planes) > 1:
        return show_image(planes, scale=scale)
    return _framed(_paint(planes, None, colour), scale)


def _colour(feature: int) -> Colour:
    return PALETTE[feature % len(PALETTE)]


def _tint(colour: Colour) -> Colour:
    """A pale version of a colour."""
    red, green, blue = ((part + PAPER) // 2 for part in colour)
    return red, green, blue


def _columns(n: int) -> int:
    """Columns of a sheet that is a little wider than high, with few empty cells."""
    about = math.ceil(math.sqrt(1.3 * n))
    return min(range(max(about - 1, 1), about + 2), key=lambda k: (-n % k, abs(k - about)))


def _blank(width: int, height: int) -> Image.Image:
    return Image.new("RGB", (width, height), (PAPER, PAPER, PAPER))


def _tile(
    tiles: Sequence[Image.Image],
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    margin: int = 0,
    gap: int = GAP,
) -> Image.Image:
    """Tiles in a grid, each centred in its cell with its caption centred below."""
    columns = min(columns or _columns(len(tiles)), len(tiles))
    rows = -(-len(tiles) // columns)
    font = ImageFont.load_default(TEXT)
    line = 0 if captions is None else LINE
    width = max(tile.width for tile in tiles)
    if captions is not None:
        width = max([width, *(math.ceil(font.getlength(text)) for text in captions)])
    height = max(tile.height for tile in tiles)
    sheet = _blank(
        2 * margin + columns * (width + gap) - gap,
        2 * margin + rows * (height + line + gap) - gap,
    )
    draw = ImageDraw.Draw(sheet)
    for k, tile in enumerate(tiles):
        left = margin + k % columns * (width + gap)
        top = margin + k // columns * (height + line + gap)
        sheet.paste(tile, (left + (width - tile.width) // 2, top + (height - tile.height) // 2))
        if captions is not None:
            centre = (left + width / 2, top + height + 4)
            draw.text(centre, captions[k], fill=BLACK, font=font, anchor="ma")
    return sheet


def _fitting_sheet(
    features: NDArray[np.generic], counts: NDArray[np.int64], box: tuple[int, int]
) -> Image.Image:
    """The contact sheet with the largest parts that fits the box (height, width)."""
    n = len(features)
    if n == 0:
        return _blank(box[1], box[0])
    h, w = features.shape[-2:]
    text = ImageFont.load_default(TEXT).getlength(f"{counts.max():,}")
    best = (0, 1)
    for columns in range(1, n + 1):
        cell = (box[1] + GAP) // columns - GAP
        down = ((box[0] + GAP) // -(-n // columns) - GAP - 2 - LINE) // h
        if cell >= text:
            best = max(best, (min((cell - 2) // w, down), columns))
    scale, columns = best
    return show_features(features, counts, columns, max(scale, 1), colours=True)
