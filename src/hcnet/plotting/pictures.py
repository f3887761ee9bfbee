"""Pictures of images, parts and errors, of fitted estimators, and of images that they explain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.checks import check_flag, check_optional_count
from hcnet.hierarchy.decoding import nodes
from hcnet.hierarchy.inference import configuration
from hcnet.images import BoolArray, Images
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
    check_captions,
    check_scale,
    colour_of,
    framed,
    paint,
    sheet_columns,
    tile_grid,
    tint,
)
from hcnet.validation.images import check_binary, check_counts, check_images
from hcnet.validation.parameters import is_network

# A part of an image: the number of its feature, rows and columns of its pixels.
Place: TypeAlias = tuple[int, NDArray[np.int64], NDArray[np.int64]]
ROW = 10  # features of a layer beside each other


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
        pools = [level.pool.window for level in model._model.network.levels]
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
    found = configuration(model._model, images, model._inference())
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
    pools: Sequence[tuple[int, int]],
    names: Sequence[str],
    scale: int | None,
) -> Image.Image:
    """A row per layer, the templates first; `names` are those of the templates."""
    palette = [(PAPER,) * 3, *(colour_of(f) for f in range(len(weights[0]))), BLACK]
    rows, titles, last = [], [], len(weights) - 1
    for k in range(last, -1, -1):
        W, drawn = weights[k], drawn_features(weights[: k + 1], pools[: k + 1])
        if k == last:  # templates are the largest
            scale = check_scale(scale, max(drawn[0].shape), 2 * PART_SIDE)
        captions = list(names) if k == last else [f"{f}" for f in range(len(W))]
        if k > 0:
            elements = ["+".join(map(str, np.flatnonzero(one.any(axis=(1, 2))))) for one in W]
            pairs = zip(captions, elements, strict=True)
            captions = [f"{name} = {parts or 'nothing'}" for name, parts in pairs]
        tiles = [framed(np.array(palette, np.uint8)[one], scale or 1) for one in drawn]
        rows.append(tile_grid(tiles, min(len(W), ROW), captions))
        kind = "templates" if k == last > 0 else "features"
        titles.append(f"layer {k + 1}: {len(W)} {kind}")
    return tile_grid(rows, columns=1, captions=titles, margin=GAP, gap=2 * GAP)


def drawn_features(
    weights: Sequence[BoolArray], pools: Sequence[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """The feature of the first layer at each pixel, for every feature of the last layer.

    0 is none, f + 1 is feature f, and the number of features + 1 stands for several.
    """
    top = np.eye(len(weights[-1]), dtype=bool)[..., None, None]
    return [_feature_numbers(_first_layer(S, weights, pools), weights[0]) for S in top]


def _first_layer(
    top: BoolArray, weights: Sequence[BoolArray], pools: Sequence[tuple[int, int]]
) -> BoolArray:
    """S¹ of one template (features, height, width), everything at the centre of its pool."""
    S = top
    for W, (height, width) in zip(weights[:0:-1], pools[:0:-1], strict=True):
        h, w = W.shape[2:]
        R = np.zeros((W.shape[1], S.shape[1] + h - 1, S.shape[2] + w - 1), bool)
        for f, i, j in np.argwhere(S):
            R[:, i : i + h, j : j + w] |= W[f]
        S = np.pad(R, ((0, 0), ((height - 1) // 2, height // 2), ((width - 1) // 2, width // 2)))
    return S


def _feature_numbers(S: BoolArray, W: BoolArray) -> NDArray[np.int64]:
    """The feature of the first layer at each pixel, numbered as in `drawn_features`."""
    h, w = W.shape[2:]
    canvas = np.zeros((S.shape[1] + h - 1, S.shape[2] + w - 1), np.int64)
    covered = np.zeros_like(canvas)
    for f, i, j in np.argwhere(S):
        on = W[f].any(axis=0)
        canvas[i : i + h, j : j + w][on] = f + 1
        covered[i : i + h, j : j + w] += on
    canvas[covered > 1] = len(W) + 1
    return canvas
