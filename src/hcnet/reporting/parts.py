"""The report of a single layer of parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray, Images
from hcnet.model import PartsModel
from hcnet.reporting.content import (
    Content,
    ImageView,
    LayerView,
    PartView,
    error_marks,
    image_names,
    image_view,
    left_out,
    runs,
    several,
)


def parts_content(
    model: PartsModel,
    images: Images | None,
    placements: NDArray[np.int64],
    made: BoolArray | None,
    names: Sequence[str] | None,
    total: Images | None,
) -> Content:
    """What was learned and where it is.

    `images` are those that are shown, the first of `total`; `placements` are rows of image, part,
    row and column of all of `total`, `made` the reconstruction of `images`.
    """
    F, _, h, w = model.features.shape
    counts = np.bincount(placements[:, 1], minlength=F) if F else np.zeros(0, int)
    order = np.argsort(-counts, kind="stable")
    parts = [
        PartView(
            number=f,
            name=f"part {f}",
            size=(h, w),
            pixels=runs(np.where(model.features[f].any(axis=0), f + 1, 0)),
            count=int(counts[f]) if images is not None else None,
        )
        for f in range(F)
    ]
    content = Content(
        title=several(F, "part"),
        summary=f"{several(F, 'part')} of at most {h}×{w} pixels.",
        layers=[LayerView("Parts", [parts[f] for f in order])],
        facts=[("Parts", f"{F}", f"in windows of {h}×{w} pixels")],
    )
    if images is None or made is None or total is None:
        return content
    content.channels = images.n_channels
    content.images = _views(images, placements, made, names)
    content.images_note = left_out(images.n_images, total)
    content.summary += (
        f" {several(len(placements), 'placement')} in {several(total.n_images, 'image')} of "
        f"{total.size[0]}×{total.size[1]} pixels."
    )
    content.facts += [
        ("Placements", f"{len(placements):,}", "times that a part stands in an image"),
        *error_facts(images, made),
    ]
    return content


def error_facts(images: Images, made: BoolArray) -> list[tuple[str, str, str]]:
    """How many pixels the reconstruction has wrong, in a row of facts."""
    marks = np.array(
        [error_marks(*planes) for planes in zip(images.pixels, made, images.observed, strict=True)]
    )
    missed, added = int((marks == 1).sum()), int((marks == 2).sum())
    share = (missed + added) / max(images.n_observed, 1)
    return [
        (
            "Wrong pixels",
            f"{missed + added:,}",
            f"{share:.3%} of those observed in the images shown: {missed:,} on that no part "
            f"explains, {added:,} off that a part covers",
        )
    ]


def _views(
    images: Images, placements: NDArray[np.int64], made: BoolArray, names: Sequence[str] | None
) -> list[ImageView]:
    titles = image_names(names, images.n_images)
    views = []
    for n, title in enumerate(titles):
        own = placements[placements[:, 0] == n, 1:]
        nodes = [[0, int(f), int(r), int(c), None] for f, r, c in own]
        about = several(len(own), "placement")
        views.append(image_view(images, made, n, title, nodes, about))
    return views
