"""Checks on the layers of a network: each by itself, and whether they fit on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hcnet.archive.kinds import LARGEST_SIDE
from hcnet.checks import (
    check_choice,
    check_count,
    check_number,
    check_optional_count,
    check_pair,
    one_line,
)
from hcnet.hierarchy.network import LEARNED, P_W, P_W_TEMPLATES, UNIFORM, CheckedLayer, Layer
from hcnet.layers import MOST_MEMBERS, FeatureLayer, FeatureOrder, PoolLayer
from hcnet.validation.images import colours_hint
from hcnet.validation.parameters import check_damping


def check_layers(
    layers: Sequence[Layer],
    n_templates: int,
    image_size: tuple[int, int],
    n_channels: int | None = None,
    names: Sequence[str] = (),
) -> list[CheckedLayer]:
    """Layers that fit on each other and on the image; `names` are for messages.

    `n_channels` are those of the images, None if they are not known yet.
    """
    if isinstance(layers, Layer) or not isinstance(layers, Sequence) or not len(layers):
        raise ValueError(
            f"layers must be a list of hcnet.Layer from the image upwards, got {layers!r}; the "
            f"last one holds the templates, for example [Layer(16, size=9), Layer()]."
        )
    checked: list[CheckedLayer] = []
    variants = 1
    for k, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            raise TypeError(f"layers[{k}] must be an hcnet.Layer, got {layer!r}.")
        last, name = k == len(layers) - 1, names[k] if names else f"layers[{k}]"
        one = _check_layer(layer, name, n_templates if last else None)
        depth, order = _check_depth(layer, name, variants)
        below = checked[-1].n_features if checked else n_channels
        if depth * one.pool[0] * one.pool[1] > MOST_MEMBERS:
            across = f"those of {depth} features, " if depth > 1 else ""
            raise ValueError(
                f"{name}.pool must have at most {MOST_MEMBERS} positions, got {across}"
                f"{one.pool[0]}×{one.pool[1]}; choose a smaller window."
            )
        one = replace(one, depth=depth, feature_order=order)
        if below is not None and depth > below:
            raise ValueError(
                f"{name}.pool_features must be at most {below}, the number of "
                f"{'features below' if checked else 'channels of the images'}, got {depth}."
            )
        checked.append(replace(one, pool_prior=_check_prior(layer.pool_prior, name, one, below)))
        variants = _check_variants(layer, name, one.n_features, last)
        image_size = _fit(checked[-1], name, image_size)
    return checked


def _check_variants(layer: Layer, name: str, n_features: int, last: bool) -> int:
    """Features of a group."""
    variants = check_count(f"{name}.variants", layer.variants)
    if last and variants > 1:
        raise ValueError(
            f"{name}.variants must be 1 in the last layer, got {variants}: its templates are the "
            f"variants of their classes already; choose templates_per_class."
        )
    if n_features % variants:
        raise ValueError(
            f"{name}.n_features must be a multiple of its variants, {variants}, got {n_features}; "
            f"it counts the features of all groups."
        )
    return variants


def _check_depth(layer: Layer, name: str, variants: int) -> tuple[int, FeatureOrder]:
    """Features that a pool chooses from, and which these are; the layer below has `variants`."""
    depth = check_count(f"{name}.pool_features", layer.pool_features)
    order: Any = check_choice(f"{name}.feature_order", layer.feature_order, ("line", "ring"))
    if depth == 1:
        return variants, "groups"
    if variants > 1:
        raise ValueError(
            f"{name}.pool_features must be 1 above a layer with variants, got {depth}: its pool "
            f"chooses among the variants of a group."
        )
    return depth, order


def _check_prior(prior: Any, name: str, layer: CheckedLayer, below: int | None) -> Any:
    """The prior of a pool: a word, or relative probabilities of four dimensions."""
    if isinstance(prior, str):
        return check_choice(f"{name}.pool_prior", prior, (UNIFORM, LEARNED))
    shape = (layer.depth, *layer.pool)
    try:
        given = np.asarray(prior, float)
        window = given.reshape((1,) * (4 - given.ndim) + given.shape)
        window = np.broadcast_to(window, (len(window), *shape))
        channels = below and (below // layer.depth if layer.feature_order == "groups" else below)
        fits = channels is None or len(window) in (1, channels)
    except (TypeError, ValueError):
        fits = False
    came = f"got {one_line(repr(prior), 80)}."
    if not fits:
        raise ValueError(
            f"{name}.pool_prior must be 'uniform', 'learned', or numbers of a shape that "
            f"broadcasts to (channels, {', '.join(map(str, shape))}), {came}"
        )
    if not (np.isfinite(window) & (window > 0) & (window <= LARGEST_SIDE)).all():
        raise ValueError(
            f"{name}.pool_prior must hold numbers above 0 and at most {LARGEST_SIDE}, which need "
            f"not add up to one, {came}"
        )
    return window.copy()


def _check_layer(layer: Layer, name: str, n_templates: int | None) -> CheckedLayer:
    """One layer by itself; `n_templates` is given for the last."""
    for option in ("n_features", "size"):
        if n_templates is None and getattr(layer, option) is None:
            raise ValueError(f"{name}.{option} must be given; only the last layer leaves it open.")
    n_features = check_optional_count(
        f"{name}.n_features", layer.n_features, 1, "in the last layer"
    )
    if n_templates is not None and n_features not in (None, n_templates):
        raise ValueError(
            f"{name}.n_features must be the number of templates, n_classes × templates_per_class "
            f"= {n_templates}, got {n_features}; leave it None in the last layer."
        )
    size = None if layer.size is None else check_pair(f"{name}.size", layer.size)
    p_W = layer.p_W
    if p_W is None:
        p_W = P_W if n_templates is None else P_W_TEMPLATES
    pool = check_pair(f"{name}.pool", layer.pool)
    border: Any = check_choice(f"{name}.pool_border", layer.pool_border, ("full", "same"))
    return CheckedLayer(
        n_features=n_templates or n_features or 0,
        size=size,
        pool=pool,
        pool_border=border,
        perturbation=check_number(f"{name}.perturbation", layer.perturbation, least=0, below=1),
        p_W=check_number(
            f"{name}.p_W",
            p_W,
            above=0,
            most=0.5,
            note=" (weights are rarer than not)",
            hint="leave it None for the default",
        ),
        damping=check_damping(layer.damping, f"{name}.damping"),
    )


def _fit(layer: CheckedLayer, name: str, below: tuple[int, int]) -> tuple[int, int]:
    """The grid of placements of a layer on the grid below it."""
    grid = PoolLayer(1, layer.pool, below, layer.pool_border).size
    size = layer.size or grid
    if min(grid) < 1 or size[0] > grid[0] or size[1] > grid[1]:
        raise ValueError(
            f"{name} does not fit: the grid below is {below[0]}×{below[1]}, its pool of "
            f"{layer.pool[0]}×{layer.pool[1]} ({layer.pool_border!r}) leaves "
            f"{max(grid[0], 0)}×{max(grid[1], 0)}, and its features are {size[0]}×{size[1]}; "
            f"choose smaller features, smaller pools, pool_border='same', or larger images"
            f"{colours_hint(below)}."
        )
    return FeatureLayer(1, 1, size, grid, "valid").placement_size
