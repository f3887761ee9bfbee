"""What a `FeatureLearner` can say about itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from sklearn.utils.validation import check_is_fitted

from hcnet import inference
from hcnet.estimators.base import plain
from hcnet.images import Images
from hcnet.plotting.pictures import show_features
from hcnet.progress import Step
from hcnet.reporting.content import first, how_many
from hcnet.reporting.finishing import finished
from hcnet.reporting.page import write_report
from hcnet.reporting.parts import parts_content
from hcnet.validation.images import check_images


class PartsReporting:
    """The half of `FeatureLearner` that explains what was learned."""

    if TYPE_CHECKING:  # of the estimator

        def __getattr__(self, name: str) -> Any: ...

    def summary(self) -> dict[str, Any]:
        """What was learned, as plain numbers and words that JSON can hold."""
        check_is_fitted(self)
        F, channels, h, w = self.features_.shape
        told: dict[str, Any] = {
            "kind": "FeatureLearner",
            "parts": F,
            "feature_size": [h, w],
            "channels": channels,
            "image_size": list(self._model.image_size),
            "border": self._model.border,
            "p_S": self.p_S_,
            "p_W": self.p_W_,
            "p01": self.p01_,
            "p10": self.p10_,
            "pixels_per_part": self.features_.sum(axis=(1, 2, 3)).tolist(),
        }
        if hasattr(self, "placements_"):
            told["placements"] = len(self.placements_)
            told["compression_ratio"] = plain(self.compression_ratio_)
        return told | training_summary(self)

    def picture(self, scale: int | None = None) -> Image.Image:
        """The parts on one sheet; with how often each is used where that is known."""
        check_is_fitted(self)
        counts = None
        if hasattr(self, "placements_"):
            counts = np.bincount(self.placements_[:, 1], minlength=len(self.features_))
        return show_features(self.features_, counts, scale=scale, colours=True)

    def report(
        self,
        path: str | os.PathLike[str],
        X: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write one HTML file: what was learned, where it is in X, how well, and how to repeat it.

        It needs no network and nothing beside it.  Without X it shows the parts, and if the model
        has just been learned, the places where they are in a reconstruction of the images.
        `names` are those of the images.
        """
        check_is_fitted(self)
        check_belongings(X, mask=mask)
        if X is not None:
            given, found = self._explain(X, mask)
            layer = inference.layer_for(self._model, given.images)
            ratio = inference.compression_ratio(self._model, given.images, found)
            placed = self._corners(found, layer)
            return self._write(path, given.images, placed, ratio, names, overwrite)
        if not hasattr(self, "placements_"):
            return self._write(path, None, np.zeros((0, 4), np.int64), None, names, overwrite)
        made = self.render(self.placements_)
        images = Images(made, np.ones_like(made))
        ratio = self.compression_ratio_
        return self._write(path, images, self.placements_, ratio, names, overwrite)

    def _live_report(
        self,
        path: Path,
        X: ArrayLike,
        mask: ArrayLike | None,
        names: Sequence[str] | None,
        step: Step,
    ) -> None:
        """As far as learning has come; where parts are is known by then, except of a stream."""
        if not hasattr(self, "placements_"):
            given, found = self._explain(X, mask)
            layer = inference.layer_for(self._model, given.images)
            self._write(path, given.images, self._corners(found, layer), None, names, True, step)
            return
        images = check_images(X, mask).images
        ratio = self.compression_ratio_
        self._write(path, images, self.placements_, ratio, names, True, step)

    def _write(
        self,
        path: str | os.PathLike[str],
        images: Images | None,
        placed: NDArray[np.int64],
        ratio: float | None,
        names: Sequence[str] | None,
        overwrite: bool,
        live: Step | None = None,
    ) -> Path:
        shown, made = None, None
        if images is not None:
            shown = first(images, how_many(images))
            here = placed[placed[:, 0] < shown.n_images]
            made = self.render(here, shown.n_images, images.size)
        content = parts_content(self._model, shown, placed, made, names, images)
        if ratio is not None:
            bits = "bits that parts, placements and errors cost, by those of the images alone"
            content.facts.append(("Compression", f"{ratio:.2%}", bits))
        content.facts.append(("Noise", f"{self.p10_:.2g}", "p10: an off pixel is seen on"))
        return write_report(
            path, finished_report(self, content, images, "learner", live), overwrite
        )


def check_belongings(X: ArrayLike | None, **given: ArrayLike | None) -> None:
    """An error if something is said about images that are not there."""
    for name, value in given.items():
        if X is None and value is not None:
            raise ValueError(f"{name} says something about images, and X is None; pass X as well.")


def finished_report(
    estimator: Any, content: Any, images: Images | None, name: str, live: Step | None
) -> Any:
    """The content with what the estimator knows about its run."""
    parameters = estimator.get_params(deep=False)
    quiet = type(estimator)(**parameters | {"verbose": False, "callback": None})
    kind = type(estimator).__name__
    made = "Layer" if "layers" in parameters else ""
    imported = ", ".join(filter(None, [kind, made]))
    fitted = f"{name}.fit(X, y)" if "layers" in parameters else f"{name}.fit(X)"
    code = f"from hcnet import {imported}\n\n{name} = {quiet!r}\n{fitted}"
    history = live.history if live is not None else getattr(estimator, "history_", [])
    told = estimator.summary()
    return finished(content, images, told, history, parameters, code, live)


def training_summary(estimator: Any) -> dict[str, Any]:
    """What learning left behind; nothing of a model that was loaded."""
    names = ("log_joint_", "n_iter_", "n_images_seen_", "status_")
    return {
        name.removesuffix("_"): plain(getattr(estimator, name))
        for name in names
        if hasattr(estimator, name)
    }
