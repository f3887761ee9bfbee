"""The report of a network: layers of features, and what explains each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.hierarchy.anatomy import children, nodes
from hcnet.hierarchy.decoding import Configuration
from hcnet.hierarchy.model import NetworkModel
from hcnet.images import Images
from hcnet.plotting.hierarchies import drawn_features
from hcnet.reporting.content import (
    Content,
    ImageView,
    LayerView,
    PartView,
    image_names,
    image_view,
    left_out,
    runs,
    several,
)
from hcnet.reporting.parts import error_facts


def network_content(
    model: NetworkModel,
    images: Images | None,
    found: Configuration | None,
    names: Sequence[str] | None,
    total: Images | None,
    about: Sequence[str] = (),
) -> Content:
    """What was learned, and what explains the images; `about` is a remark per image."""
    network, L = model.network, len(model.network.levels)
    classes = len(model.classes)
    content = Content(
        title=f"{several(L, 'layer')}, {'1 class' if classes == 1 else f'{classes} classes'}",
        summary=f"A network of {several(L, 'layer')} for images of {network.image_size[0]}×"
        f"{network.image_size[1]} pixels.",
        layers=_layers(model, found),
        facts=[
            (
                f"Layer {k + 1}",
                f"{len(W)} {'templates' if k == L - 1 else 'features'}",
                f"of {W.shape[2]}×{W.shape[3]}, {int(W.sum()):,} weights on, pools of "
                f"{level.pool.window[0]}×{level.pool.window[1]}",
            )
            for k, (level, W) in enumerate(zip(network.levels, model.weights, strict=True))
        ],
    )
    if images is None or found is None or total is None:
        return content
    content.channels = images.n_channels
    content.images = _views(model, images, found, names, about)
    content.images_note = left_out(images.n_images, total)
    content.facts += error_facts(images, found.S[0])
    return content


def _layers(model: NetworkModel, found: Configuration | None) -> list[LayerView]:
    """The templates first, then what they are made of."""
    pools = [level.pool.window for level in model.network.levels]
    L = len(model.weights)
    layers = []
    for k in reversed(range(L)):
        W = model.weights[k]
        drawn = drawn_features(model.weights[: k + 1], pools[: k + 1])
        made = children(W)
        counts: Any = [None] * len(W)
        if found is not None:
            counts = found.S[k + 1].sum(axis=(0, 2, 3)).tolist()
        parts = []
        for f, canvas in enumerate(drawn):
            name = f"feature {f}"
            if k == L - 1:
                kind = model.classes[model.network.classes.categories[f]]
                name = f"template {f}, class {kind}"
            below = sorted({a for a, _, _ in made[f]}) if k else []
            parts.append(
                PartView(
                    number=f,
                    name=name,
                    size=(int(canvas.shape[0]), int(canvas.shape[1])),
                    pixels=runs(canvas),
                    count=counts[f],
                    made_of=f"features {', '.join(map(str, below))} of layer {k}" if below else "",
                )
            )
        title = "templates" if k == L - 1 else "features"
        layers.append(LayerView(f"Layer {k + 1}: {title}", parts))
    return layers


def _views(
    model: NetworkModel,
    images: Images,
    found: Configuration,
    names: Sequence[str] | None,
    about: Sequence[str],
) -> list[ImageView]:
    L = len(model.weights)
    views = []
    for n, title in enumerate(image_names(names, images.n_images)):
        rows: list[list[Any]] = []
        for node in nodes(model.network, model.weights, found, n):
            plane: NDArray[np.bool_] = np.zeros(images.size, bool)
            for _, r, c in node.pixels:
                plane[r, c] = True
            # Layers are shown from the top down.
            rows.append([L - node.level, node.feature, node.row, node.column, runs(plane)])
        views.append(
            image_view(images, found.S[0], n, title, rows, about[n] if len(about) > n else "")
        )
    return views
