"""`report` and `LiveReport` write pages about estimators, `summary` returns figures."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from hcnet.atomic_files import refuse_existing
from hcnet.estimators.base import plain
from hcnet.plotting.charts import curve_points
from hcnet.progress import Step
from hcnet.reporting.model_content import (
    add_settings,
    network_content,
    network_figures,
    parts_content,
    parts_figures,
)
from hcnet.reporting.page import Content, curve, report_path, write_report
from hcnet.validation.parameters import is_network

# Seconds after which a browser reads a live report again.
REFRESH = 3
# The largest share of the time of a fit that live reports may take.
SHARE = 0.1
# Figures about learning, where an estimator has them.
FIGURES = ("compression_ratio", "log_joint", "cost", "n_iter", "n_images_seen", "status")


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
