"""`NetworkClassifier`: the use of a network with known weights, shared by two estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.checks import check_count, check_flag, check_random_state
from hcnet.engine.driver import Status
from hcnet.estimators.base import Estimator, takes_images
from hcnet.hierarchy.decoding import Configuration
from hcnet.hierarchy.explaining import agreeing
from hcnet.hierarchy.inference import Inference, class_scores, clean_pixels, configuration
from hcnet.hierarchy.network import NETWORK_MODEL, Network, NetworkModel, sample, sample_templates
from hcnet.images import BoolArray, Images
from hcnet.validation.images import ImageInput, check_images
from hcnet.validation.parameters import check_known_labels, class_code, labelled


class NetworkClassifier(ClassifierMixin, Estimator):
    """Recognise, complete and generate images with a network of known weights.

    A subclass learns the weights, and has `_inference`, which says how they are used.
    """

    _model_kind = NETWORK_MODEL
    _model: NetworkModel
    _remedy = ""  # for images of another size

    weights_: list[BoolArray]
    classes_: NDArray[Any]
    template_classes_: NDArray[Any]

    def _inference(self) -> Inference:
        raise NotImplementedError

    def predict(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]:
        """The class of every image.

        With a class layer that allows several objects: a row per image that is True for the classes
        that are present.
        """
        images = self._check(X, mask).images
        if self._model.network.classes.p_on is not None:
            return self._present(self._configuration(images).S[-1])
        return np.asarray(self.classes_[self._class_scores(images).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
        """Probability of every class, (images, classes), by its best explanations.

        The probabilities are sharper than those of the posterior, which would sum over all
        explanations; their order is the same.
        """
        images = self._check(X, mask).images
        self._one_object("predict_proba")
        return np.asarray(softmax(self._class_scores(images), axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, mask: ArrayLike | None = None) -> float:
        """Share of images in the right class; images without a label (-1) do not count."""
        predicted = self.predict(X, mask)
        labels, known = labelled(y, len(predicted))
        pairs = zip(labels[known].tolist(), predicted[known].tolist(), strict=True)
        return float(np.mean([label == found for label, found in pairs]))

    def cluster(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """The template of every image."""
        images = self._check(X, mask).images
        self._one_object("cluster")
        top = self._configuration(images).S[-1]
        return np.asarray(top.any(axis=(2, 3)).argmax(axis=1))

    def placements(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """Features in X: rows of image, layer (from 1), feature, row, column; templates first.

        Row and column count the positions of the layer.
        """
        images = self._check(X, mask).images
        found = self._configuration(images)
        tables = [np.insert(np.argwhere(S), 1, k, axis=1) for k, S in enumerate(found.S[1:], 1)]
        rows = np.concatenate(tables)
        return np.asarray(rows[np.lexsort((-rows[:, 1], rows[:, 0]))])

    def denoise(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> BoolArray:
        """X as the network explains it, without the noise; in the shape of X.

        `y` are known labels; -1, or None for all, where there is none.
        """
        given = self._check(X, mask)
        return given.restore(self._clean(given.images, y))

    def inpaint(self, X: ArrayLike, mask: ArrayLike, y: ArrayLike | None = None) -> BoolArray:
        """X with the pixels under the mask filled in; the others do not change."""
        given = self._check(X, mask)
        filled = self._clean(given.images, y)
        return given.restore(np.where(given.images.observed, given.images.pixels, filled))

    def sample(
        self,
        n: int = 1,
        label: Any = None,
        random_state: int | np.random.Generator | None = None,
        clean: bool = False,
    ) -> tuple[BoolArray, NDArray[Any]]:
        """Draw images (n, channels, height, width) and their classes, optionally of one class.

        If `clean`, parts shift, but single pixels do not, and there is no noise.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        category = None if label is None else class_code(label, self.classes_)
        network = self._model.network
        top = sample_templates(network, check_count("n", n), rng, category)
        X, _ = sample(network, self._model.weights, top, rng, check_flag("clean", clean))
        if network.classes.p_on is not None:
            return X, self._present(top)
        return X, self.template_classes_[top.any(axis=(2, 3)).argmax(axis=1)]

    def _publish(self, model: NetworkModel) -> Self:
        self._model = model
        self.weights_ = model.weights
        self.classes_ = model.classes
        self.template_classes_ = model.classes[list(model.network.classes.categories)]
        return self

    def _running(self, model: NetworkModel) -> Self:
        """An estimator with the model of a run that has not ended."""
        now = self._copy()._publish(model)
        now.status_ = Status.RUNNING.value
        return now

    def _check(self, X: ArrayLike, mask: ArrayLike | None) -> ImageInput:
        check_is_fitted(self)
        given = check_images(X, mask)
        check_shape(given.images, self._model.network, "the network has", self._remedy)
        return given

    def _class_scores(self, images: Images) -> NDArray[np.float64]:
        """Log-score of every class, up to a constant per image: (images, classes)."""
        return class_scores(self._model, images, self._inference())

    def _allowed(self, images: Images) -> BoolArray | None:
        """Templates (images, templates) that an image may have; None for all."""
        return None

    def _configuration(self, images: Images) -> Configuration:
        """What of the network is on for each image."""
        allowed = self._allowed(images)
        return configuration(self._model, images, self._inference(), allowed)

    def _clean(self, images: Images, y: ArrayLike | None) -> BoolArray:
        if y is None:
            allowed = self._allowed(images)
        else:
            codes = check_known_labels(y, images.n_images, self.classes_)
            allowed = agreeing(self._model.network, codes)
        return clean_pixels(self._model, images, self._inference(), allowed)

    def _present(self, top: BoolArray) -> BoolArray:
        """The classes of the templates that are on: (images, classes)."""
        return self._model.network.by_class(top.reshape(len(top), -1), np.any)

    def _one_object(self, name: str) -> None:
        if self._model.network.classes.p_on is not None:
            raise ValueError(
                f"{name} needs exactly one object per image, and this class layer allows several; "
                f"use predict for the classes that are present, placements for all templates."
            )

    def __sklearn_tags__(self) -> Any:
        tags = takes_images(super().__sklearn_tags__())
        tags.target_tags.required = False
        return tags


def check_shape(images: Images, network: Network, owner: str, remedy: str = "") -> None:
    """Raise an error unless images have the channels and the size of a network."""
    wanted = (network.n_channels, *network.image_size)
    came = (images.n_channels, *images.size)
    if came != wanted:
        raise ValueError(
            f"X has {came[0]} channels of {came[1]}×{came[2]} pixels, but {owner} {wanted[0]} of "
            f"{wanted[1]}×{wanted[2]}; pass such images{remedy}."
        )
