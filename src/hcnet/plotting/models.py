"""Pictures of fitted estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from hcnet.hierarchy.decoding import nodes
from hcnet.hierarchy.inference import configuration
from hcnet.plotting.drawing import tile_grid
from hcnet.plotting.hierarchies import show_hierarchy
from hcnet.plotting.pictures import draw_places, places_scale, show_features, show_placements
from hcnet.validation.fitted import is_network


def show_model(model: Any, scale: int | None = None) -> Image.Image:
    """The parts of a `FeatureLearner` on one sheet, or all layers of a network.

    Parts have the number of their placements below them, where it is known.  Features of a network
    are drawn down to the pixels.
    """
    if is_network(model):
        pools = [level.pool.window for level in model._model.network.levels]
        names = [f"class {name}" for name in model.template_classes_.tolist()]
        return show_hierarchy(model.weights_, pools, names, scale)
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
    if not is_network(model):
        given, found = model._explain(X, mask)
        pixels, placed = given.images.pixels, model._corners(found, given.images)
        scale = places_scale(pixels, scale)
        features = model.features_
        return tile_grid(
            [show_placements(image, placed, features, n, scale) for n, image in enumerate(pixels)]
        )
    images = model._check(X, mask).images
    found = configuration(model._model, images, model._inference())
    scale, tiles = places_scale(images.pixels, scale), []
    for n, image in enumerate(images.pixels):
        places = []
        for node in nodes(model._model.network, model.weights_, found, n):
            if node.level == 1:
                at = np.array(sorted(node.pixels), np.int64).reshape(-1, 3)
                places.append((node.feature, at[:, 1], at[:, 2]))
        tiles.append(draw_places(np.asarray(image.any(axis=0)), places, scale))
    return tile_grid(tiles)
