"""Reports about a `FeatureLearner`: its parts, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet import inference
from hcnet.images import BoolArray, Images
from hcnet.reporting.content import (
    Content,
    ImageView,
    LayerView,
    PartView,
    error_facts,
    image_names,
    image_view,
    left_out,
    number_of,
    runs,
    shown_images,
)
from hcnet.validation.images import check_images


def parts_summary(model: Any) -> dict[str, Any]:
    """The figures of a `FeatureLearner`."""
    F, channels, h, w = model.features_.shape
    figures: dict[str, Any] = {
        "kind": "FeatureLearner",
        "parts": F,
        "feature_size": [h, w],
        "channels": channels,
        "image_size": list(model._model.image_size),
        "border": model._model.border,
        "p_S": model.p_S_,
        "p_W": model.p_W_,
        "p01": model.p01_,
        "p10": model.p10_,
        "pixels_per_part": model.features_.sum(axis=(1, 2, 3)).tolist(),
    }
    if hasattr(model, "placements_"):
        figures["placements"] = len(model.placements_)
    return figures


def parts_content(
    model: Any,
    X: ArrayLike | None,
    mask: ArrayLike | None,
    names: Sequence[str] | None,
    live: bool,
) -> tuple[Content, Images | None]:
    """The content of a report, and the images that it is about.

    In a `live` report the placements of the model are those of X.
    """
    images: Images | None = None
    placed, ratio = np.zeros((0, 4), np.int64), None
    known = hasattr(model, "placements_")
    if X is not None and not (live and known):
        given, found = model._explain(X, mask)
        images, placed = given.images, model._corners(found, given.images)
        ratio = inference.compression_ratio(model._model, given.images, found)
    elif known:
        placed, ratio = model.placements_, model.compression_ratio_
        if X is not None:
            images = check_images(X, mask).images
        else:
            made = model.render(placed)
            images = Images(made, np.ones_like(made))
    content = _parts(model.features_, placed, images is not None)
    if images is not None:
        _add_images(content, model, images, placed, names)
    if ratio is not None:
        bits = "bits of parts, placements and errors, by those of the images alone"
        content.facts.append(("Compression", f"{ratio:.2%}", bits))
    content.facts.append(("Noise", f"{model.p10_:.2g}", "p10: an off pixel is seen on"))
    return content, images


def _parts(features: BoolArray, placed: NDArray[np.int64], counted: bool) -> Content:
    F, _, h, w = features.shape
    counts = np.bincount(placed[:, 1], minlength=F) if F else np.zeros(0, int)
    parts = [
        PartView(
            number=f,
            name=f"part {f}",
            size=(h, w),
            pixels=runs(np.where(features[f].any(axis=0), f + 1, 0)),
            count=int(counts[f]) if counted else None,
        )
        for f in np.argsort(-counts, kind="stable").tolist()
    ]
    return Content(
        title=number_of(F, "part"),
        summary=f"{number_of(F, 'part')} of at most {h}×{w} pixels.",
        layers=[LayerView("Parts", parts)],
        facts=[("Parts", f"{F}", f"in windows of {h}×{w} pixels")],
    )


def _add_images(
    content: Content,
    model: Any,
    images: Images,
    placed: NDArray[np.int64],
    names: Sequence[str] | None,
) -> None:
    shown = shown_images(images)
    n = shown.n_images
    made = model.render(placed[placed[:, 0] < n], n, images.size)
    content.channels = images.n_channels
    content.images = _views(shown, placed, made, names)
    content.images_note = left_out(n, images)
    content.summary += (
        f" {number_of(len(placed), 'placement')} in {number_of(images.n_images, 'image')} of "
        f"{images.size[0]}×{images.size[1]} pixels."
    )
    content.facts += [
        ("Placements", f"{len(placed):,}", "of parts in all images"),
        error_facts(shown, made),
    ]


def _views(
    images: Images, placed: NDArray[np.int64], made: BoolArray, names: Sequence[str] | None
) -> list[ImageView]:
    views = []
    for n, title in enumerate(image_names(names, images.n_images)):
        own = placed[placed[:, 0] == n, 1:]
        nodes = [[0, int(f), int(r), int(c), None] for f, r, c in own]
        views.append(image_view(images, made, n, title, nodes, number_of(len(own), "placement")))
    return views
