"""Reports about a network: layers of features, and the explanation of each image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.hierarchy.composition import children, nodes
from hcnet.hierarchy.decoding import Configuration
from hcnet.hierarchy.inference import configuration
from hcnet.hierarchy.network_model import NetworkModel
from hcnet.images import Images
from hcnet.plotting.charts import confusion_counts
from hcnet.plotting.hierarchies import drawn_features
from hcnet.reporting import charts
from hcnet.reporting.content import (
    Content,
    ImageView,
    LayerView,
    PartView,
    Picture,
    error_facts,
    image_names,
    image_view,
    left_out,
    number_of,
    runs,
    shown_images,
)


def network_summary(model: Any) -> dict[str, Any]:
    """The figures of a network."""
    network = model._model.network
    return {
        "kind": type(model).__name__,
        "image_size": list(network.image_size),
        "channels": network.n_channels,
        "classes": model.classes_.tolist(),
        "template_classes": model.template_classes_.tolist(),
        "p01": network.noise.p01,
        "p10": network.noise.p10,
        "p_on": network.classes.p_on,
        "inference": model._inference().name,
        "layers": [
            {
                "features": level.features.n_features,
                "size": list(level.features.feature_size),
                "pool": list(level.pool.window),
                "pool_border": level.pool.border,
                "weights_on": int(W.sum()),
            }
            for level, W in zip(network.levels, model.weights_, strict=True)
        ],
    }


def network_content(
    model: Any,
    X: ArrayLike | None,
    y: ArrayLike | None,
    mask: ArrayLike | None,
    names: Sequence[str] | None,
) -> tuple[Content, Images | None]:
    """The content of a report, and the images that it is about."""
    if X is None:
        return _layers_content(model._model, None), None
    images = model._check(X, mask).images
    shown = shown_images(images)
    found = configuration(model._model, shown, model._inference())
    content = _layers_content(model._model, found)
    content.channels = images.n_channels
    content.images = _views(model._model, shown, found, names, _remarks(model, shown))
    content.images_note = left_out(shown.n_images, images)
    content.facts.append(error_facts(shown, found.S[0]))
    if y is not None:
        right = model.score(X, y, mask)
        content.facts.append(("Right class", f"{right:.2%}", "of the images with a label"))
        predicted = model.predict(X, mask)
        if predicted.ndim == 1:
            table = charts.confusion(*confusion_counts(y, predicted, model.classes_))
            text = f"True classes against predicted ones; {right:.2%} are right."
            content.pictures.append(Picture("Classes", table, text))
    return content, images


def _remarks(model: Any, images: Images) -> list[str]:
    """The class of every image with its probability, where an image has one class."""
    if model._model.network.classes.p_on is not None:
        return [""] * images.n_images
    probabilities = model.predict_proba(images.pixels, ~images.observed)
    return [
        f"class {model.classes_[row.argmax()]}, probability {row.max():.3f}"
        for row in probabilities
    ]


def _layers_content(model: NetworkModel, found: Configuration | None) -> Content:
    network, L, classes = model.network, len(model.network.levels), len(model.classes)
    height, width = network.image_size
    return Content(
        title=f"{number_of(L, 'layer')}, {'1 class' if classes == 1 else f'{classes} classes'}",
        summary=f"A network of {number_of(L, 'layer')} for images of {height}×{width} pixels.",
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


def _layers(model: NetworkModel, found: Configuration | None) -> list[LayerView]:
    """The templates first, then the layers below them."""
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
    remarks: Sequence[str],
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
        views.append(image_view(images, found.S[0], n, title, rows, remarks[n]))
    return views
