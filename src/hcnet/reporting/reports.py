"""`report` and `LiveReport` write pages about estimators, `summary` returns figures.

The content of a report depends on the estimator: a `FeatureLearner`, or a network.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.atomic_files import refuse_existing
from hcnet.checkpoint import digest
from hcnet.environment import versions
from hcnet.estimators.base import plain
from hcnet.hierarchy.decoding import Configuration, nodes
from hcnet.hierarchy.network import NetworkModel
from hcnet.images import BoolArray, Images, part_boxes
from hcnet.plotting.charts import confusion_counts, curve_points
from hcnet.plotting.drawing import choices_of, drawn_features
from hcnet.progress import Step
from hcnet.reporting.page import (
    Content,
    LayerView,
    PartView,
    confusion,
    curve,
    number_of,
    report_path,
    runs,
    shown_images,
    write_report,
)
from hcnet.validation.images import check_images
from hcnet.validation.parameters import is_network

# Seconds after which a browser reads a live report again.
REFRESH = 3
# The largest share of the time of a fit that live reports may take.
SHARE = 0.1
# Figures about learning, where an estimator has them.
FIGURES = ("compression_ratio", "log_joint", "cost", "n_iter", "n_images_seen", "status")
# Parameters that change nothing about a result.
WATCHING = ("verbose", "callback")


def report(
    model: Any,
    path: str | os.PathLike[str],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file about a fitted estimator; it needs no network and no other file.

    It shows what was learned, where it is in X, how well it fits, and how to repeat it.

    Parameters
    ----------
    model : FeatureLearner, HCN or TemplateClassifier
        The fitted estimator.
    path : str or path
        The file, which ends in .html.
    X : array or None, default=None
        Images to show.  None: only the parts, and if the model was not loaded from a file, their
        places in a reconstruction of the training images.
    y : array or None, default=None
        Labels of X for a network: the report then has a confusion matrix.
    mask : array or None, default=None
        True where a pixel of X is missing.
    names : list of str or None, default=None
        Names of the images.
    overwrite : bool, default=False
        Whether a file of this name may be replaced.

    Returns
    -------
    Path
        The file.

    """
    network = is_network(model)
    for name, value in (("y", y), ("mask", mask)):
        if X is None and value is not None:
            raise ValueError(f"{name} belongs to images, and X is None; pass X as well.")
    if y is not None and not network:
        raise ValueError("y holds labels, and parts have none; leave y out.")
    return write_report(path, _page_content(model, X, y, mask, names), overwrite)


def summary(model: Any) -> dict[str, Any]:
    """The figures of a fitted estimator, as plain numbers and words that JSON can hold."""
    figures = network_figures(model) if is_network(model) else parts_figures(model)
    known = [name for name in FIGURES if hasattr(model, f"{name}_")]
    return figures | {name: plain(getattr(model, f"{name}_")) for name in known}


class LiveReport:
    """A callback that writes a report every few seconds, to be watched in a browser.

    ::

        live = LiveReport("report.html", X)
        model = FeatureLearner(callback=live).fit(X)
        report(model, "report.html", X, overwrite=True)     # the final one

    Args:
        path: the file; a browser that shows it reads it again by itself.
        X: images to show, usually those that are learned from.
        mask: where pixels of X are missing.
        names: of the images.
        overwrite: whether a file that is there may be replaced.

    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        X: ArrayLike,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = report_path(path)
        refuse_existing(self.path, overwrite)
        self.X, self.mask, self.names = X, mask, names
        self._next = 0.0
        self._broken = False

    def __call__(self, step: Step) -> None:
        """Write the report, if the last one is old enough."""
        if self._broken or time.perf_counter() < self._next:
            return
        began = time.perf_counter()
        content = _page_content(step.model(), self.X, None, self.mask, self.names, step)
        try:
            write_report(self.path, content, overwrite=True)
        except OSError as error:  # a full disk must not end hours of learning
            self._broken = True
            warnings.warn(
                f"The live report {self.path} cannot be written any more ({error}); learning goes "
                f"on without it.",
                UserWarning,
                stacklevel=2,
            )
        took = time.perf_counter() - began
        self._next = time.perf_counter() + max(REFRESH, took / SHARE)

    def __deepcopy__(self, memo: object) -> LiveReport:
        """Itself: a clone of an estimator writes to the same file."""
        return self


def _page_content(
    model: Any,
    X: ArrayLike | None,
    y: ArrayLike | None,
    mask: ArrayLike | None,
    names: Sequence[str] | None,
    step: Step | None = None,
) -> Content:
    """The content of a report; `step` is that of a run that is not finished."""
    if is_network(model):
        content, images = network_content(model, X, y, mask, names)
    else:
        content, images = parts_content(model, X, mask, names, live=step is not None)
    _add_training(content, model, step)
    add_settings(content, model, images)
    return content


def _add_training(content: Content, model: Any, step: Step | None) -> None:
    """How learning went."""
    if getattr(model, "log_joint_", None) is not None:
        value = f"{model.log_joint_:,.1f}"
        content.facts.append(("Joint log-probability", value, "of the images learned from"))
    if hasattr(model, "cost_"):
        content.facts.append(("Matching cost", f"{model.cost_:,.1f}", "of the images learned from"))
    if hasattr(model, "n_iter_"):
        content.facts.append(("Steps", f"{model.n_iter_:,}", getattr(model, "status_", "")))
    history = getattr(model, "history_", []) if step is None else step.history
    if history:
        first, last = history[0], history[-1]
        text = (
            f"{last.figure.capitalize()} over {len(history)} steps: from {first.objective:,.0f} to "
            f"{last.objective:,.0f}."
        )
        if points := curve_points(history):
            content.pictures.insert(0, ("Learning", curve(points, last.figure), text))
    if step is not None:
        of = "" if step.total is None else f" of about {step.total}"
        content.live = (
            f"Still learning: {step.stage.lower()}, step {step.iteration}{of}, {step.seconds:.0f} "
            f"s so far. {step.note}"
        ).strip()
        content.refresh = REFRESH


def parts_figures(model: Any) -> dict[str, Any]:
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
    if any(model.part_names_):
        figures["part_names"] = model.part_names_.tolist()
    if hasattr(model, "placements_"):
        figures["placements"] = len(model.placements_)
    return figures


def parts_content(
    model: Any, X: ArrayLike | None, mask: ArrayLike | None, names: Sequence[str] | None, live: bool
) -> tuple[Content, Images | None]:
    """The content of a report, and the images that it is about.

    In a `live` report the placements of the model are those of X.
    """
    images: Images | None = None
    placed, ratio = np.zeros((0, 4), np.int64), None
    known, anew = hasattr(model, "placements_"), False
    if X is not None and not (known and (live or model._knows(check_images(X, mask).images))):
        anew = True
        given, found = model._explain(X, mask)
        images, placed = given.images, model._corners(found, given.images)
        ratio = model._model.compression_ratio(given.images, found)
    elif known:
        placed, ratio = model.placements_, model.compression_ratio_
        if X is not None:
            images = check_images(X, mask).images
        else:
            made = model.render(placed)
            images = Images(made, np.ones_like(made))
    labels = [None] * len(model.features_) if live else model.part_names_.tolist()
    content = _parts(model.features_, placed, images is not None, labels)
    if images is not None:
        n = shown_images(images).n_images
        made = model.render(placed[placed[:, 0] < n], n, images.size)
        # Corners of what is seen of the parts, not of their windows.
        corners = placed + np.pad(part_boxes(model.features_)[placed[:, 1], :2], ((0, 0), (2, 0)))
        own = [corners[corners[:, 0] == k, 1:].tolist() for k in range(n)]
        content.summary += (
            f" {number_of(len(placed), 'placement')} in {number_of(images.n_images, 'image')} of "
            f"{images.size[0]}×{images.size[1]} pixels."
        )
        where = "of parts, found anew: learning may count others" if anew else "of parts"
        content.facts.append(("Placements", f"{len(placed):,}", f"{where}, in all images"))
        content.show_images(
            images,
            made,
            names,
            nodes=[[[0, *row, None] for row in rows] for rows in own],
            about=[number_of(len(rows), "placement") for rows in own],
        )
    if ratio is not None:
        bits = "bits of parts, placements and errors, by those of the images alone"
        content.facts.append(("Compression", f"{ratio:.2%}", bits))
    content.facts.append(("Noise", f"{model.p10_:.2g}", "p10: an off pixel is seen on"))
    return content, images


def _parts(
    features: BoolArray, placed: NDArray[np.int64], counted: bool, labels: list[str | None]
) -> Content:
    F, _, h, w = features.shape
    counts = np.bincount(placed[:, 1], minlength=F) if F else np.zeros(0, int)
    parts = []
    for f in np.argsort(-counts, kind="stable").tolist():
        top, left, bottom, right = part_boxes(features[f : f + 1])[0].tolist()
        seen = features[f, :, top : bottom or 1, left : right or 1].any(axis=0)
        view = PartView(
            number=f,
            name=f"part {f}",
            size=seen.shape,
            pixels=runs(np.where(seen, f + 1, 0)),
            count=int(counts[f]) if counted else None,
            label=labels[f],
        )
        parts.append(view)
    return Content(
        title=number_of(F, "part"),
        summary=f"{number_of(F, 'part')} of at most {h}×{w} pixels.",
        layers=[LayerView("Parts", parts)],
        facts=[("Parts", f"{F}", f"in windows of {h}×{w} pixels")],
        parts_key=digest(features, json.dumps(labels))[:16],
    )


def network_figures(model: Any) -> dict[str, Any]:
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
                "pool_depth": level.pool.depth,
                "feature_order": level.pool.feature_order,
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
        return _layers(model._model, None), None
    images = model._check(X, mask).images
    shown = shown_images(images)
    found = model._configuration(shown)
    content = _layers(model._model, found)
    rows = [_node_rows(model._model, found, k) for k in range(shown.n_images)]
    about = [""] * shown.n_images
    if model._model.network.classes.p_on is None:  # an image has one class
        about = [
            f"class {model.classes_[row.argmax()]}, probability {row.max():.3f}"
            for row in model.predict_proba(shown.pixels, ~shown.observed)
        ]
    content.show_images(images, found.S[0], names, rows, about)
    if y is not None:
        right = model.score(X, y, mask)
        content.facts.append(("Right class", f"{right:.2%}", "of the images with a label"))
        predicted = model.predict(X, mask)
        if predicted.ndim == 1:
            table = confusion(*confusion_counts(y, predicted, model.classes_))
            text = f"True classes against predicted ones; {right:.2%} are right."
            content.pictures.append(("Classes", table, text))
    return content, images


def _layers(model: NetworkModel, found: Configuration | None) -> Content:
    """The templates first, then the layers below them."""
    network, L, classes = model.network, len(model.weights), len(model.classes)
    pools = [level.pool for level in network.levels]
    layers: list[LayerView] = []
    facts: list[tuple[str, str, str]] = []
    for k in reversed(range(L)):
        W = model.weights[k]
        drawn = drawn_features(model.weights[: k + 1], pools[: k + 1])
        counts = None if found is None else found.S[k + 1].sum(axis=(0, 2, 3)).tolist()
        parts = []
        for f, canvas in enumerate(drawn):
            name = f"feature {f}"
            if k < L - 1 and pools[k + 1].variants > 1:
                group, variant = divmod(f, pools[k + 1].variants)
                name = f"feature {f}: variant {variant} of group {group}"
            if k == L - 1:
                name = f"template {f}, class {model.classes[network.classes.categories[f]]}"
            below = ", ".join(choices_of(pools[k], W[f])) if k else ""
            view = PartView(
                number=f,
                name=name,
                size=canvas.shape,
                pixels=runs(canvas),
                count=counts and counts[f],
                made_of=below and f"features {below} of layer {k}",
            )
            parts.append(view)
        kind = "templates" if k == L - 1 else "features"
        layers.append(LayerView(f"Layer {k + 1}: {kind}", parts))
        size = "×".join(map(str, pools[k].window))
        if pools[k].depth > 1:
            size += f" positions × {pools[k].depth} features"
        about = f"of {W.shape[2]}×{W.shape[3]}, {int(W.sum()):,} weights on, pools of {size}"
        facts.insert(0, (f"Layer {k + 1}", f"{len(W)} {kind}", about))
    height, width = network.image_size
    return Content(
        title=f"{number_of(L, 'layer')}, {'1 class' if classes == 1 else f'{classes} classes'}",
        summary=f"A network of {number_of(L, 'layer')} for images of {height}×{width} pixels.",
        layers=layers,
        facts=facts,
    )


def _node_rows(model: NetworkModel, found: Configuration, n: int) -> list[list[Any]]:
    """The features that are on in image `n`, with their pixels; layers count from the top down."""
    rows: list[list[Any]] = []
    for node in nodes(model.network, model.weights, found, n):
        plane: BoolArray = np.zeros(model.network.image_size, bool)
        for _, r, c in node.pixels:
            plane[r, c] = True
        level = len(model.weights) - node.level
        rows.append([level, node.feature, node.row, node.column, runs(plane)])
    return rows


def add_settings(content: Content, model: Any, images: Images | None) -> None:
    """How to learn the same again."""
    parameters = model.get_params(deep=False)
    kind = type(model)
    shown = repr(kind(**parameters | {"verbose": False, "callback": None}))
    imported = ", ".join(
        name for name in (kind.__name__, "Engine", "Inference", "Layer") if f"{name}(" in shown
    )
    data = "X, y" if is_network(model) else "X"
    content.code = f"from hcnet import {imported}\n\nmodel = {shown}\nmodel.fit({data})"
    content.parameters = {
        name: repr(value) for name, value in parameters.items() if name not in WATCHING
    }
    if parameters.get("random_state") is None:
        content.parameters["random_state"] = "None: no seed was given or kept, runs may differ"
    content.versions = versions()
    if images is not None:
        found = digest(images.pixels & images.observed, images.observed)
        content.parameters["fingerprint of X"] = found[:16]
