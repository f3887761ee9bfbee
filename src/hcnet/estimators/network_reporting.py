"""What an `HCN` can say about itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from hcnet.engine.driver import Status
from hcnet.estimators.parts_reporting import check_belongings, finished_report, training_summary
from hcnet.hierarchy.anatomy import nodes
from hcnet.hierarchy.learn import Decided
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.network import Network
from hcnet.images import Images
from hcnet.plotting.charts import confusion_counts
from hcnet.plotting.drawing import tile_grid
from hcnet.plotting.hierarchies import show_hierarchy
from hcnet.plotting.pictures import draw_places, places_scale
from hcnet.progress import Step
from hcnet.reporting import charts
from hcnet.reporting.content import Picture, first, how_many
from hcnet.reporting.network import network_content
from hcnet.reporting.page import write_report
from hcnet.validation.network import Labels


class NetworkReporting:
    """The half of `HCN` that explains what was learned."""

    if TYPE_CHECKING:  # of the estimator

        def __getattr__(self, name: str) -> Any: ...

    def _so_far(self, network: Network, labels: Labels) -> Callable[[Decided], Any]:
        """Makes an estimator of what is known while learning goes on."""

        def so_far(found: Decided) -> Any:
            now = self._copy()._publish(NetworkModel(network, found.weights, labels.classes))
            now.log_joint_, now.status_ = found.log_joint, Status.RUNNING.value
            return now

        return so_far

    def placements(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """Which features are where in X: rows of image, layer (from 1), feature, row, column.

        Row and column count positions of the layer; `sparsifications` has the same as arrays.
        """
        tables = []
        for number, S in enumerate(self.sparsifications(X, mask), 1):
            on = np.argwhere(S)
            tables.append(np.insert(on, 1, number, axis=1))
        rows = np.concatenate(tables)
        return np.asarray(rows[np.lexsort((-rows[:, 1], rows[:, 0]))])

    def picture(self, scale: int | None = None) -> Image.Image:
        """Templates and features of all layers, each drawn down to the pixels."""
        check_is_fitted(self)
        pools = [level.pool.window for level in self._model.network.levels]
        names = [f"class {name}" for name in self.template_classes_.tolist()]
        return show_hierarchy(self.weights_, pools, names, scale)

    def picture_of(
        self, X: ArrayLike, mask: ArrayLike | None = None, scale: int | None = None
    ) -> Image.Image:
        """The images with the features of the first layer over them, in the colours of `picture`.

        Pixels that a feature explains have its full colour, pixels that it adds a pale one; what
        nothing explains stays grey.
        """
        images = self._check(X, mask).images
        found = self._configuration(images)
        scale, tiles = places_scale(images.pixels, scale), []
        for n, image in enumerate(images.pixels):
            places = []
            for node in nodes(self._model.network, self.weights_, found, n):
                if node.level == 1:
                    at = np.array(sorted(node.pixels), np.int64).reshape(-1, 3)
                    places.append((node.feature, at[:, 1], at[:, 2]))
            tiles.append(draw_places(np.asarray(image.any(axis=0)), places, scale))
        return tile_grid(tiles)

    def summary(self) -> dict[str, Any]:
        """What was learned, as plain numbers and words that JSON can hold."""
        check_is_fitted(self)
        network = self._model.network
        told: dict[str, Any] = {
            "kind": "HCN",
            "image_size": list(network.image_size),
            "channels": network.n_channels,
            "classes": self.classes_.tolist(),
            "template_classes": self.template_classes_.tolist(),
            "p01": network.noise.p01,
            "p10": network.noise.p10,
            "p_on": network.classes.p_on,
            "inference": self._method().method,
            "layers": [
                {
                    "features": level.features.n_features,
                    "size": list(level.features.feature_size),
                    "pool": list(level.pool.window),
                    "pool_border": level.pool.border,
                    "weights_on": int(W.sum()),
                }
                for level, W in zip(network.levels, self.weights_, strict=True)
            ],
        }
        return told | training_summary(self)

    def report(
        self,
        path: str | os.PathLike[str],
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write one HTML file: what was learned, what explains X, how well, and how to repeat it.

        It needs no network and nothing beside it.  With the labels `y` it also shows which class
        was taken for which.  `names` are those of the images.
        """
        check_is_fitted(self)
        check_belongings(X, y=y, mask=mask)
        return self._write(path, X, y, mask, names, overwrite, None)

    def _live_report(
        self,
        path: Path,
        X: ArrayLike,
        mask: ArrayLike | None,
        names: Sequence[str] | None,
        step: Step,
    ) -> None:
        """As far as learning has come."""
        self._write(path, X, None, mask, names, True, step)

    def _write(
        self,
        path: str | os.PathLike[str],
        X: ArrayLike | None,
        y: ArrayLike | None,
        mask: ArrayLike | None,
        names: Sequence[str] | None,
        overwrite: bool,
        live: Step | None,
    ) -> Path:
        images, shown, found, remarks = None, None, None, []
        if X is not None:
            images = self._check(X, mask).images
            shown = first(images, how_many(images))
            found = self._configuration(shown)
            one = self._model.network.classes.p_on is None
            remarks = self._remarks(shown) if one else []
        content = network_content(self._model, shown, found, names, images, remarks)
        if y is not None and X is not None:
            right = self.score(X, y, mask)
            content.facts.append(("Right class", f"{right:.2%}", "of the images with a label"))
            predicted = self.predict(X, mask)
            if predicted.ndim == 1:
                table = charts.confusion(*confusion_counts(y, predicted, self.classes_))
                text = f"True classes against predicted ones; {right:.2%} are right."
                content.pictures.append(Picture("Classes", table, text))
        finished = finished_report(self, content, images, "model", live)
        return write_report(path, finished, overwrite)

    def _remarks(self, images: Images) -> list[str]:
        """The class of every image, and how sure that is."""
        scores = softmax(self._scores(images), axis=1)
        best = scores.argmax(axis=1)
        return [
            f"class {self.classes_[k]}, probability {scores[n, k]:.3f}"
            for n, k in enumerate(best.tolist())
        ]
