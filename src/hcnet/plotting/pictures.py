"""Pictures of images, parts, placements, errors and filled-in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.checks import check_count, check_flag, check_optional_count
from hcnet.images import BoolArray
from hcnet.plotting.drawing import (
    ADDED,
    BLACK,
    GAP,
    IMAGE_SIDE,
    INKS,
    LINE,
    MISSED,
    MISSING,
    PALE,
    PANEL_SIDE,
    PAPER,
    PART_SIDE,
    TEXT,
    Colour,
    blank,
    colour_of,
    framed,
    paint,
    sheet_columns,
    tile_grid,
    tint,
)
from hcnet.validation.drawings import (
    as_image_list,
    as_masks,
    as_parts,
    as_planes,
    as_same_shape,
    check_captions,
    check_placements,
    check_scale,
    check_use,
)


def show_image(
    image: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
) -> Image.Image:
    """One binary image, enlarged and framed; what `mask` marks as missing is amber.

    `scale` is the size of a pixel on the screen; None chooses one that fits the screen.
    """
    planes = as_planes("image", image)
    missing = None if mask is None else as_masks(mask, [planes])[0]
    if len(planes) <= len(INKS):
        return framed(paint(planes, missing), check_scale(scale, max(planes.shape[1:]), IMAGE_SIDE))
    scale = check_scale(scale, max(planes.shape[1:]) * sheet_columns(len(planes)), IMAGE_SIDE)
    hidden = [None] * len(planes) if missing is None else missing[:, None]
    pairs = zip(planes[:, None], hidden, strict=True)
    return tile_grid([framed(paint(*pair), scale) for pair in pairs])


def image_grid(
    images: Iterable[ArrayLike],
    columns: int | None = None,
    scale: int | None = None,
    captions: Sequence[str] | None = None,
) -> Image.Image:
    """Several images side by side, row by row, with optional captions below them."""
    tiles = as_image_list("images", images)
    lines = check_captions(captions, len(tiles))
    columns = check_optional_count("columns", columns, 1, "to choose it") or sheet_columns(
        len(tiles) or 1
    )
    if not tiles:
        return blank(1, 1)
    columns = min(columns, len(tiles))
    scale = check_scale(scale, columns * max(max(one.shape[1:]) for one in tiles), IMAGE_SIDE)
    return tile_grid([show_image(one, scale=scale) for one in tiles], columns, lines)


def places_scale(images: NDArray[np.generic], scale: int | None = None) -> int:
    """Screen pixels per pixel of images that are drawn beside each other with their parts.

    However many there are, colours and boxes of each can still be seen.
    """
    room = max(2 * PART_SIDE, IMAGE_SIDE // sheet_columns(len(images)))
    return check_scale(scale, max(images.shape[-2:]), room)


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
    parts = as_parts(features)
    order = np.arange(len(parts))
    captions = None
    used, columns = (
        check_use(counts, len(parts)),
        check_optional_count("columns", columns, 1, "to choose it"),
    )
    if used is not None:
        order = np.argsort(-used, kind="stable")
        captions = [f"{used[f]:,}" for f in order]
    if not parts:
        return blank(PART_SIDE, PART_SIDE)
    scale = check_scale(scale, max(parts[0].shape[1:]), PART_SIDE)
    tiles = [
        _part(parts[f], colour_of(int(f)) if check_flag("colours", colours) else None, scale)
        for f in order
    ]
    return tile_grid(tiles, columns, captions)


def show_placements(
    image: ArrayLike,
    placements: ArrayLike,
    features: ArrayLike,
    index: int = 0,
    scale: int | None = None,
) -> Image.Image:
    """Boxes and pixels of all placements over a pale copy of the image.

    `placements` are rows of image, feature, row and column, as `FeatureLearner.placements`
    returns them; those of image `index` are drawn.  Pixels that a part explains have its full
    colour, pixels that it adds a pale one; what no part explains stays grey.
    """
    seen: BoolArray = np.asarray(as_planes("image", image).any(axis=0))
    parts = [part.any(axis=0) for part in as_parts(features)]
    rows = check_placements(placements, len(parts))
    rows = rows[rows[:, 0] == check_count("index", index, 0), 1:]
    places = []
    for f, r, c in rows.tolist():
        i, j = np.nonzero(parts[f])
        places.append((f, i + r, j + c))
    return draw_places(seen, places, scale)


def draw_places(
    seen: BoolArray,
    places: Iterable[tuple[int, NDArray[np.int64], NDArray[np.int64]]],
    scale: int | None,
) -> Image.Image:
    """A pale image (height, width) with parts over it: number, rows and columns of the pixels."""
    scale = check_scale(scale, max(seen.shape), IMAGE_SIDE)
    canvas = np.full((*seen.shape, 3), PAPER, np.uint8)
    canvas[seen] = PALE
    boxes: list[tuple[tuple[int, int, int, int], Colour]] = []
    for f, i, j in places:
        if not len(i):
            continue
        colour = colour_of(f)
        boxes.append(((int(i.min()), int(j.min()), int(i.max()), int(j.max())), colour))
        inside = (i >= 0) & (i < seen.shape[0]) & (j >= 0) & (j < seen.shape[1])
        i, j = i[inside], j[inside]
        canvas[i, j] = np.where(seen[i, j, None], colour, tint(colour))
    picture = framed(canvas, scale)
    draw = ImageDraw.Draw(picture)
    for (top, left, bottom, right), colour in boxes:
        # On the outside of the pixels, so that no ink is hidden; 1 is the frame's width.
        corner = (left * scale, top * scale)
        opposite = ((right + 1) * scale + 1, (bottom + 1) * scale + 1)
        draw.rectangle([corner, opposite], outline=tint(colour))
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
    planes = as_planes("image", image)
    side = max(planes.shape[1:])
    scale = check_scale(scale, side, PANEL_SIDE + side / 2)
    parts = np.array(as_parts(features))
    rows = check_placements(placements, len(parts))
    here = rows[rows[:, 0] == check_count("index", index, 0)]
    counts = np.bincount(here[:, 1], minlength=len(parts))
    panels = [
        show_image(planes, scale=scale),
        show_placements(planes, here, parts, index, scale),
        _fitting_sheet(parts, counts, (planes.shape[1] * scale, planes.shape[2] * scale)),
        show_image(reconstruction, scale=scale),
    ]
    captions = ["Image", f"Placements: {len(here):,}", f"Parts: {len(parts)}", "Reconstruction"]
    return tile_grid(panels, len(panels), captions, margin=GAP, gap=2 * GAP)


def show_errors(
    images: ArrayLike,
    reconstruction: ArrayLike,
    mask: ArrayLike | None = None,
    scale: int | None = None,
) -> Image.Image:
    """Reconstructions with their errors marked, and counted below.

    Correct ink is black; ink that the parts leave out is vermilion, ink that they add is blue.
    Missing pixels are amber where they are not filled in.  Arrays are one image or several.
    """
    seen = as_image_list("images", images, 1)
    made = as_same_shape("reconstruction", reconstruction, seen)
    hidden = [np.zeros_like(x) for x in seen] if mask is None else as_masks(mask, seen)
    columns = sheet_columns(len(seen))
    scale = check_scale(scale, columns * max(max(x.shape[1:]) for x in seen), IMAGE_SIDE)
    tiles, captions = [], []
    for x, r, m in zip(seen, made, hidden, strict=True):
        missed, added = x & ~r & ~m, r & ~x & ~m
        canvas = np.full((*x.shape[1:], 3), PAPER, np.uint8)
        for where, colour in ((m, MISSING), (r, BLACK), (added, ADDED), (missed, MISSED)):
            canvas[where.any(axis=0)] = colour
        tiles.append(framed(canvas, scale))
        captions.append(f"{missed.sum():,} missed, {added.sum():,} added")
    return tile_grid(tiles, columns, captions)


def show_completion(
    images: ArrayLike,
    mask: ArrayLike,
    filled: ArrayLike,
    truth: ArrayLike | None = None,
    scale: int | None = None,
) -> Image.Image:
    """A column per image: the image with missing pixels in amber, filled in, and the truth."""
    seen = as_image_list("images", images, 1)
    room = max(2 * PART_SIDE, PANEL_SIDE // len(seen))
    scale = check_scale(scale, max(max(x.shape[1:]) for x in seen), room)
    pairs = zip(seen, as_masks(mask, seen), strict=True)
    tiles = [show_image(x, m, scale) for x, m in pairs]
    rows = {"seen": seen, "filled in": as_same_shape("filled", filled, seen)}
    if truth is not None:
        rows["truth"] = as_same_shape("truth", truth, seen)
    tiles += [show_image(x, scale=scale) for row in list(rows.values())[1:] for x in row]
    captions = [name for name in rows for _ in seen]
    return tile_grid(tiles, len(seen), captions)


def _part(planes: BoolArray, colour: Colour | None, scale: int) -> Image.Image:
    """A part, in one colour if there is one for it and it has one channel."""
    if colour is None or len(planes) > 1:
        return show_image(planes, scale=scale)
    return framed(paint(planes, None, colour), scale)


def _fitting_sheet(
    features: NDArray[np.generic], counts: NDArray[np.int64], box: tuple[int, int]
) -> Image.Image:
    """The contact sheet with the largest parts that fits the box (height, width)."""
    n = len(features)
    if n == 0:
        return blank(box[1], box[0])
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
