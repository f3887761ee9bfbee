"""Pictures of images, parts and errors, of fitted estimators, and of images that they explain.

Colours, sizes, enlarging, framing and tiling are the same in all pictures.  At the end are pictures
made of characters.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.atomic_files import file_path, write_atomically
from hcnet.checks import check_count, check_flag, check_optional_count
from hcnet.engine.planes import feature_below
from hcnet.hierarchy.convolution import bconv
from hcnet.hierarchy.decoding import nodes
from hcnet.image_files.writing import write_picture
from hcnet.images import BoolArray, Images, part_boxes
from hcnet.layers import PoolLayer
from hcnet.validation.images import check_binary, check_counts, check_images
from hcnet.validation.parameters import check_has_parts, is_network

Colour: TypeAlias = tuple[int, int, int]
Picture: TypeAlias = NDArray[np.uint8]
# A part of an image: the number of its feature, rows and columns of its pixels.
Place: TypeAlias = tuple[int, NDArray[np.int64], NDArray[np.int64]]

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
LETTER_SIDE = 48  # of a part of ordinary size on a sheet where sizes differ
FAINTEST = 0.1  # probability of a pixel that is drawn at all
ROW = 10  # features of a layer beside each other
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
        return write_picture(path, picture, overwrite, format="PNG", optimize=True)
    figure: Any = getattr(picture, "figure", None)
    if not hasattr(figure, "savefig"):
        raise TypeError(
            f"picture must be a PIL image or matplotlib axes, got {type(picture).__name__}; pass "
            f"the result of a function of hcnet.plotting."
        )
    packed = io.BytesIO()
    figure.savefig(packed, format="png")
    return write_atomically(path, lambda file: file.write(packed.getvalue()), overwrite)


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


def show_images(
    X: ArrayLike,
    mask: ArrayLike | None = None,
    captions: Sequence[str] | None = None,
    columns: int | None = None,
    scale: int | None = None,
) -> Image.Image:
    """Binary images side by side, row by row, with optional captions below them.

    Pixels that `mask` marks as missing are amber.  `scale` is the size of a pixel on the screen;
    None chooses one that fits the screen.
    """
    images = check_images(X, mask).images
    lines = check_captions(captions, images.n_images)
    columns = check_optional_count("columns", columns, 1, "to choose it")
    columns = min(columns or sheet_columns(images.n_images), images.n_images)
    planes = sheet_columns(images.n_channels) if images.n_channels > len(INKS) else 1
    scale = check_scale(scale, columns * planes * max(images.size), IMAGE_SIDE)
    pairs = zip(images.pixels, ~images.observed, strict=True)
    return tile_grid([draw_image(*pair, scale) for pair in pairs], columns, lines)


def draw_image(
    planes: BoolArray, missing: BoolArray, scale: int, ink: Colour = BLACK
) -> Image.Image:
    """One image (channels, height, width); `ink` is the colour of a single channel."""
    if len(planes) <= len(INKS):
        return framed(paint(planes, missing, ink), scale)
    pairs = zip(planes[:, None], missing[:, None], strict=True)
    return tile_grid([framed(paint(*pair), scale) for pair in pairs])


def show_features(
    features: ArrayLike,
    counts: ArrayLike | None = None,
    columns: int | None = None,
    scale: int | None = None,
    colours: bool = False,
) -> Image.Image:
    """A contact sheet of parts (features, channels, height, width).

    `counts`, the number of placements of each part, puts the most used first and the number below
    each.  With `colours`, parts have their colours in `show_explanation`.
    """
    parts = check_binary("features", features, "features, channels, height, width", least=0)
    columns = check_optional_count("columns", columns, 1, "to choose it")
    coloured = check_flag("colours", colours)
    order, captions = np.arange(len(parts)), None
    if counts is not None:
        used = check_counts(counts, len(parts))
        order = np.argsort(-used, kind="stable")
        captions = [f"{used[f]:,}" for f in order]
    scale = check_scale(scale, max(parts.shape[2:]), PART_SIDE)
    nothing = np.zeros(parts.shape[1:], bool)
    tiles = [
        draw_image(parts[f], nothing, scale, colour_of(f) if coloured else BLACK)
        for f in order.tolist()
    ]
    return tile_grid(tiles, columns, captions) if tiles else blank(PART_SIDE, PART_SIDE)


def show_parts(model: Any, scale: int | None = None) -> Image.Image:
    """All parts of a `FeatureLearner`, the most used first, each cropped to its own pixels.

    Below each are its number, its name, and after a fit the number of its placements.  Parts with
    `feature_probabilities_` are drawn in shades of grey.
    """
    check_has_parts(model)
    features = model.features_
    soft = getattr(model, "feature_probabilities_", None)
    shown = features if soft is None else features | (np.asarray(soft) > FAINTEST)
    counts, placed = np.zeros(len(features), np.int64), getattr(model, "placements_", None)
    if placed is not None:
        counts = np.bincount(placed[:, 1], minlength=len(features))
    boxes = part_boxes(shown)
    side = float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))) if len(boxes) else 1.0
    scale = check_scale(scale, max(side, 1.0), LETTER_SIDE)
    cells = []
    for f in np.argsort(-counts, kind="stable").tolist():
        top, left, bottom, right = boxes[f] + [0, 0, *(boxes[f, :2] == boxes[f, 2:])]
        if soft is None or len(features[f]) > 1:
            planes = features[f, :, top:bottom, left:right]
            tile = draw_image(planes, np.zeros_like(planes), scale)
        else:
            grey = np.rint((1 - soft[f, 0, top:bottom, left:right]) * PAPER).astype(np.uint8)
            tile = framed(grey[..., None].repeat(3, axis=2), scale)
        lines = [f"{f} {model.part_names_[f]}", "" if placed is None else f"{counts[f]:,}x"]
        cells.append(tile_grid([tile_grid([tile], 1, lines[:1])], 1, lines[1:], gap=0))
    return _pack(cells)


def _pack(cells: Sequence[Image.Image]) -> Image.Image:
    """Cells of any size one after the other, in rows of a sheet a little wider than high."""
    area = sum((cell.width + GAP) * (cell.height + GAP) for cell in cells)
    width = max([math.ceil(math.sqrt(1.3 * area)), PART_SIDE, *(cell.width for cell in cells)])
    rows: list[list[Image.Image]] = [[]]
    for cell in cells:
        if sum(one.width + GAP for one in rows[-1]) + cell.width > width:
            rows.append([])
        rows[-1].append(cell)
    heights = [max((cell.height for cell in row), default=PART_SIDE) for row in rows]
    sheet = blank(width + 2 * GAP, sum(heights) + (len(rows) + 1) * GAP)
    y = GAP
    for row, height in zip(rows, heights, strict=True):
        x = GAP
        for cell in row:
            sheet.paste(cell, (x, y + height - cell.height))
            x += cell.width + GAP
        y += height + GAP
    return sheet


def show_errors(
    X: ArrayLike, reconstruction: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
) -> Image.Image:
    """Reconstructions with their errors marked, and counted below.

    Correct ink is black; ink that the parts leave out is vermilion, ink that they add is blue.
    Missing pixels are amber where they are not filled in.
    """
    given = check_images(X, mask)
    seen, hidden = given.images.pixels, ~given.images.observed
    made = check_binary("reconstruction", reconstruction, given.shape).reshape(seen.shape)
    columns = sheet_columns(len(seen))
    scale = check_scale(scale, columns * max(given.images.size), IMAGE_SIDE)
    tiles, captions = [], []
    for x, r, m in zip(seen, made, hidden, strict=True):
        missed, added = x & ~r & ~m, r & ~x & ~m
        canvas = np.full((*x.shape[1:], 3), PAPER, np.uint8)
        for where, colour in ((m, MISSING), (r, BLACK), (added, ADDED), (missed, MISSED)):
            canvas[where.any(axis=0)] = colour
        tiles.append(framed(canvas, scale))
        captions.append(f"{missed.sum():,} missed, {added.sum():,} added")
    return tile_grid(tiles, columns, captions)


def show_model(
    model: Any, names: Sequence[str] | None = None, scale: int | None = None
) -> Image.Image:
    """The parts of a `FeatureLearner` on one sheet, or all layers of a network.

    Parts have the number of their placements below them, where it is known.  A network has a row
    per layer, the templates first.  Its features are drawn down to the pixels: by the features of
    the first layer, each at the centre of its pool; pixels of several are black.  A caption lists
    the features of the next row that a feature is made of.  `names` are those of the templates
    (default: their classes).
    """
    if is_network(model):
        classes = [f"class {name}" for name in model.template_classes_.tolist()]
        titles = check_captions(names, len(classes)) or classes
        pools = [level.pool for level in model._model.network.levels]
        return _draw_layers(model.weights_, pools, titles, scale)
    counts = None
    if hasattr(model, "placements_"):
        counts = np.bincount(model.placements_[:, 1], minlength=len(model.features_))
    return show_features(model.features_, counts, scale=scale, colours=True)


def show_explanation(
    model: Any, X: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
) -> Image.Image:
    """The images with their parts over them, in the colours of `show_model`.

    Parts of a network are the features of its first layer.  Pixels that a part explains have its
    full colour, pixels that it adds a pale one; pixels that no part explains stay grey.
    """
    images, _, places = _explain(model, X, mask)
    # However many images there are, colours and boxes of each can still be seen.
    side = max(2 * PART_SIDE, IMAGE_SIDE // sheet_columns(images.n_images))
    scale = check_scale(scale, max(images.size), side)
    pairs = zip(images.pixels, places, strict=True)
    return tile_grid([draw_places(image, parts, scale) for image, parts in pairs])


def show_comparison(
    model: Any, X: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
) -> Image.Image:
    """A row per image: the image, its placements, the parts, and the reconstruction."""
    images, reconstruction, places = _explain(model, X, mask)
    features = model.weights_[0] if is_network(model) else model.features_
    side = max(images.size)
    scale = check_scale(scale, side, PANEL_SIDE + side / 2)
    box = images.size[0] * scale, images.size[1] * scale
    panels, captions = [], []
    for n, (image, made) in enumerate(zip(images.pixels, reconstruction, strict=True)):
        counts = np.bincount([f for f, _, _ in places[n]], minlength=len(features))
        panels += [
            draw_image(image, ~images.observed[n], scale),
            draw_places(image, places[n], scale),
            _fitting_sheet(features, counts, box),
            draw_image(made, np.zeros_like(made), scale),
        ]
        captions += ["Image", f"Placements: {len(places[n]):,}", f"Parts: {len(features)}"]
        captions += ["Reconstruction"]
    return tile_grid(panels, 4, captions, margin=GAP, gap=2 * GAP)


def _explain(
    model: Any, X: ArrayLike, mask: ArrayLike | None
) -> tuple[Images, BoolArray, list[list[Place]]]:
    """The images, their reconstruction, and the parts of each image."""
    if not is_network(model):
        rows = model.placements(X, mask)
        images = check_images(X, mask, warn=False).images
        places: list[list[Place]] = [[] for _ in range(images.n_images)]
        for n, f, row, column in rows.tolist():
            i, j = np.nonzero(model.features_[f].any(axis=0))
            places[n].append((f, i + row, j + column))
        return images, model.render(rows, images.n_images, images.size), places
    images = model._check(X, mask).images
    found = model._configuration(images)
    places = []
    for n in range(images.n_images):
        places.append([])
        for node in nodes(model._model.network, model.weights_, found, n):
            if node.level == 1:
                _, i, j = np.array(sorted(node.pixels), np.int64).reshape(-1, 3).T
                places[n].append((node.feature, i, j))
    return images, found.S[0], places


def draw_places(planes: BoolArray, places: Iterable[Place], scale: int) -> Image.Image:
    """A pale image (channels, height, width) with boxes and pixels of its parts over it."""
    seen = np.asarray(planes.any(axis=0))
    canvas = np.full((*seen.shape, 3), PAPER, np.uint8)
    canvas[seen] = PALE
    boxes = []
    for f, i, j in places:
        if len(i) == 0:
            continue
        colour = colour_of(f)
        boxes.append((int(i.min()), int(j.min()), int(i.max()), int(j.max()), tint(colour)))
        inside = (i >= 0) & (i < seen.shape[0]) & (j >= 0) & (j < seen.shape[1])
        i, j = i[inside], j[inside]
        canvas[i, j] = np.where(seen[i, j, None], colour, tint(colour))
    picture = framed(canvas, scale)
    draw = ImageDraw.Draw(picture)
    for top, left, bottom, right, pale in boxes:
        # On the outside of the pixels, so that no ink is hidden; 1 is the frame's width.
        corner = (left * scale, top * scale)
        opposite = ((right + 1) * scale + 1, (bottom + 1) * scale + 1)
        draw.rectangle([corner, opposite], outline=pale)
    return picture


def _fitting_sheet(
    features: BoolArray, counts: NDArray[np.int64], box: tuple[int, int]
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


def _draw_layers(
    weights: Sequence[BoolArray],
    pools: Sequence[PoolLayer],
    names: Sequence[str],
    scale: int | None,
) -> Image.Image:
    """A row per layer, the templates first; `names` are those of the templates.

    Variants of a feature share a tile.
    """
    palette = [(PAPER,) * 3, *(colour_of(f) for f in range(len(weights[0]))), BLACK]
    rows, titles, last = [], [], len(weights) - 1
    for k in range(last, -1, -1):
        W, drawn = weights[k], drawn_features(weights[: k + 1], pools[: k + 1])
        if k == last:  # templates are the largest
            scale = check_scale(scale, max(drawn[0].shape), 2 * PART_SIDE)
        captions = list(names) if k == last else [f"{f}" for f in range(len(W))]
        if k > 0:
            elements = ["+".join(choices_of(pools[k], one)) for one in W]
            pairs = zip(captions, elements, strict=True)
            captions = [f"{name} = {parts or 'nothing'}" for name, parts in pairs]
        tiles = [framed(np.array(palette, np.uint8)[one], scale or 1) for one in drawn]
        forms = pools[k + 1].variants if k < last else 1
        if forms > 1:
            groups = range(0, len(W), forms)
            tiles = [tile_grid(tiles[f : f + forms], forms, gap=1) for f in groups]
            captions = [" | ".join(captions[f : f + forms]) for f in groups]
        rows.append(tile_grid(tiles, min(len(tiles), max(ROW // forms, 1)), captions))
        kind = "templates" if k == last > 0 else "features"
        titles.append(f"layer {k + 1}: {len(W)} {kind}")
    return tile_grid(rows, columns=1, captions=titles, margin=GAP, gap=2 * GAP)


def choices_of(pool: PoolLayer, feature: BoolArray) -> list[str]:
    """The features below that a feature is made of: "3", or all variants, "6|7"."""
    channels = np.flatnonzero(feature.any(axis=(1, 2)))
    forms = range(pool.depth) if pool.feature_order == "groups" else [pool.reach[6]]
    return [
        "|".join(f"{feature_below(pool.reach, a, d, pool.n_below)}" for d in forms)
        for a in channels
    ]


def drawn_features(
    weights: Sequence[BoolArray], pools: Sequence[PoolLayer]
) -> list[NDArray[np.int64]]:
    """The feature of the first layer at each pixel, for every feature of the last layer.

    0 is none, f + 1 is feature f, and the number of features + 1 stands for several.  All pools
    choose their centre, and the first of several variants.
    """
    S: BoolArray = np.eye(len(weights[-1]), dtype=bool)[..., None, None]
    for W, pool in zip(weights[:0:-1], pools[:0:-1], strict=True):
        R = bconv(S, W)
        margins = [((side - 1) // 2, side // 2) for side in pool.window]
        S = np.zeros((len(R), pool.n_below, *R.shape[2:]), bool)
        channels = np.arange(pool.n_channels)
        S[:, feature_below(pool.reach, channels, pool.reach[6], pool.n_below)] = R
        S = np.pad(S, [(0, 0), (0, 0), *margins])
    first: BoolArray = np.any(weights[0], axis=1)
    h, w = first.shape[1:]
    numbers = np.zeros((len(S), S.shape[2] + h - 1, S.shape[3] + w - 1), np.int64)
    covered = np.zeros_like(numbers)
    for k, f, i, j in np.argwhere(S):
        numbers[k, i : i + h, j : j + w][first[f]] = f + 1
        covered[k, i : i + h, j : j + w] += first[f]
    numbers[covered > 1] = len(first) + 1
    return list(numbers)


def text_image(image: BoolArray) -> list[str]:
    """Lines of characters for an image (channels, height, width), channels over each other."""
    on = np.pad(image.any(axis=0), ((0, image.shape[1] % 2), (0, 0))).astype(int)
    return ["".join(line) for line in HALVES[on[::2], on[1::2]]]


def text_sheet(images: Sequence[BoolArray], captions: Sequence[str], width: int = 80) -> str:
    """Images of any sizes side by side, each with its caption below, in lines of this width."""
    rows: list[list[list[str]]] = [[]]
    for image, caption in zip(images, captions, strict=True):
        lines = [*text_image(image), caption]
        across = max(map(len, lines))
        if rows[-1] and sum(len(one[0]) + TEXT_GAP for one in rows[-1]) + across > width:
            rows.append([])
        rows[-1].append([line.ljust(across) for line in lines])
    for row in rows:
        tall = max(map(len, row), default=0)
        row[:] = [[" " * len(one[0])] * (tall - len(one)) + one for one in row]
    return "\n\n".join(
        "\n".join((" " * TEXT_GAP).join(lines).rstrip() for lines in zip(*row, strict=True))
        for row in rows
    )
