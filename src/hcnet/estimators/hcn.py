"""`HCN`: the multi-layer network as a scikit-learn classifier, clusterer and generator."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.checkpoint import EVERY, digest, text_digest
from hcnet.engine.choice import DEFAULT_ENGINE
from hcnet.engine.driver import Status
from hcnet.estimators.base import Estimator
from hcnet.estimators.network_saving import ALGORITHM_NAMES, NetworkSaving
from hcnet.estimators.network_streaming import NetworkStreaming
from hcnet.hierarchy import inference
from hcnet.hierarchy.batches import check_image_fits
from hcnet.hierarchy.bottom_up.learn import learn_bottom_up
from hcnet.hierarchy.decoding import Configuration
from hcnet.hierarchy.explaining import CANDIDATES, agreeing
from hcnet.hierarchy.learn import N_INIT, Decided, LearnedNetwork, NetworkOptions, learn_network
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.network import Network, sample, sample_templates
from hcnet.hierarchy.specification import Layer, build_network
from hcnet.images import BoolArray, Images
from hcnet.layers import equal_classes
from hcnet.progress import Callback
from hcnet.validation.images import ImageInput, check_images
from hcnet.validation.network import (
    Labels,
    check_class_count,
    check_class_layer,
    check_class_names,
    check_class_number,
    check_known_labels,
    check_labels,
    check_layers,
    check_noise,
    check_templates,
    check_weight_shapes,
    check_weights,
    class_code,
    labelled,
)
from hcnet.validation.parameters import (
    check_choice,
    check_count,
    check_engine,
    check_flag,
    check_max_memory,
    check_needed,
    check_pair,
    check_positive,
    check_random_state,
)


class HCN(
    NetworkStreaming,
    NetworkSaving,
    ClassifierMixin,
    TransformerMixin,
    Estimator,
):
    """A hierarchy of parts: classifies, clusters, denoises, completes and generates binary images.

    Every image shows one template; a template is made of features of the layer below, these of
    smaller ones, down to the pixels; on the way down pools shift every element a little.  This is
    the Hierarchical Compositional Network of Lázaro-Gredilla et al. (ICLR 2017), learned by
    max-product message passing from labelled images, unlabelled ones, or both.

    Parameters
    ----------
    layers : list of Layer
        From the image upwards.  The last one holds the templates: ``Layer()`` fills it in.
    n_classes : int or None, default=None
        Number of classes.  None: as many as y holds, or 1 without labels.  To cluster, ask for one
        class per cluster.
    templates_per_class : int, default=1
        Ways in which a class can look.
    p01, p10 : float, default=1e-3
        Probability that an on pixel is seen off, and that an off pixel is seen on; each strictly
        between 0 and 0.5.
    algorithm : {"mpmp", "bottom-up"}, default="mpmp"
        How weights are learned.  "mpmp": message passing in all layers at once (the paper's), for
        parts that repeat but for noise and pooling, and few templates.  "bottom-up": a discrete
        search, layer by layer, with examples as templates: for drawn and written things, which
        come in many variants; much faster.  It ignores `n_init`, `vote`, `schedule`, `engine` and
        `device`, and learns how far parts shift within their pools.
    inference : {"explain", "forward", "passing", "match"} or None, default=None
        How known weights are used.  None: "match" with the algorithm "bottom-up", else "explain".
        "forward": one forward pass, as in a CNN; the fastest.
        "explain": the templates that the forward pass likes best are worked out down to the pixels,
        and the best explanation counts; on whole images the most accurate.  "passing": forward and
        backward passes of messages (the paper's, for imputation).  "match": all templates are
        compared by what they expect and the image lacks, and by what the image has and they leave
        unexplained; for many templates, clutter and deformation.
    candidates : int, default=8
        Templates that "explain" works out for each image.
    n_passes : int, default=1
        Forward and backward passes of "passing".
    n_init : int, default=2
        Number of starts.  Half-way through, only the best by joint log-probability goes on.
    vote : bool, default=True
        Whether every weight is set as it was in most of the 15 passes with the highest joint
        log-probability.  Otherwise the weights of the best of them are kept.  In a stream: of the
        last 15 minibatches, otherwise the last.
    max_iter : int or None, default=None
        Forward and backward passes per start; None: 60.  In a stream, per minibatch; None: 20.
    max_seconds : float or None, default=None
        Stop after about this time with what was learned so far.
    max_memory : int or None, default=None
        Bytes that learning may take; a run that would need more fails before it starts.
    schedule : {"sequential", "per-image", "blocks", "flooding"} or None, default=None
        Order of the message updates within a layer.  "per-image" uses several threads;
        "blocks" and "flooding" do where all messages are stored.  None: "sequential", and
        "per-image" on a GPU.
    engine : {"active", "beliefs", "dense", "reference"}, default="active"
        What passes the messages while learning.  "active" stores those of undecided placements
        only, "beliefs" in the first layer those of elements near ink, which learns more from
        handwriting, "dense" all of them; "reference" is slow and readable.
    device, deterministic : as in `FeatureLearner`
    random_state : int, numpy.random.Generator or None, default=None
        The same seed gives the same result, with any number of threads.
    verbose : bool, default=False
        Show a progress bar.
    callback : callable or None, default=None
        Called with a `hcnet.progress.Step` after every step of learning: what was measured, and a
        way to get the model as it is by then.

    Attributes
    ----------
    weights_ : list of ndarray of bool, shape (n_features, channels, height, width)
        The learned features of every layer; the channels of a layer are the features below it.
    classes_ : ndarray
        The classes, sorted.
    template_classes_ : ndarray
        The class of every template.
    templates_ : ndarray of int
        The template of every training image.
    log_joint_ : float
        Joint log-probability of training images, what explains them, and weights.
    n_iter_, history_, status_, seconds_, memory_
        Passes of the best start, what was measured after each, why it stopped, how long all took,
        bytes it took.
        Of a stream: its minibatches.
    n_images_seen_ : int
        Images of the stream so far.

    """

    _kind = "HCN"

    def __init__(
        self,
        layers: Sequence[Layer],
        n_classes: int | None = None,
        templates_per_class: int = 1,
        *,
        p01: float = 1e-3,
        p10: float = 1e-3,
        algorithm: str = "mpmp",
        inference: str | None = None,
        candidates: int = CANDIDATES,
        n_passes: int = 1,
        n_init: int = N_INIT,
        vote: bool = True,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        max_memory: int | None = None,
        schedule: str | None = None,
        engine: str = DEFAULT_ENGINE,
        device: str = "cpu",
        deterministic: bool = True,
        random_state: int | np.random.Generator | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
    ) -> None:
        self.layers = layers
        self.n_classes = n_classes
        self.templates_per_class = templates_per_class
        self.p01 = p01
        self.p10 = p10
        self.algorithm = algorithm
        self.inference = inference
        self.candidates = candidates
        self.n_passes = n_passes
        self.n_init = n_init
        self.vote = vote
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.max_memory = max_memory
        self.schedule = schedule
        self.engine = engine
        self.device = device
        self.deterministic = deterministic
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn the weights of all layers.

        `y` holds a label per image, -1 for images without one, or is None.  `mask` is True (or X is
        NaN) where a pixel is missing.

        With a `checkpoint`, the path of a file, learning is written down every so many seconds: the
        same call goes on from there, whatever happened to the process, and comes to the same end.
        """
        images = check_images(X, mask).images
        labels = check_labels(y, images.n_images, self._n_classes())
        check_choice("algorithm", self.algorithm, ALGORITHM_NAMES)
        data = None
        if checkpoint is not None:
            names = text_digest(repr(labels.classes.tolist()))
            data = names + digest(*images.arrays(), labels.codes)
        with self._keeping(checkpoint, every, "fit", data) as keeper:
            rng = self._generator(keeper)
            network, options = self._build(images, labels, rng)

            def running(found: Decided) -> Any:
                now = self._copy()._publish(NetworkModel(network, found.weights, labels.classes))
                now.log_joint_, now.status_ = found.log_joint, Status.RUNNING.value
                return now

            progress = self._progress(running)
            start = network, images, agreeing(network, labels.codes), options, rng, progress
            learned = _ALGORITHMS[self.algorithm](*start, keeper)
        self._store(learned, labels, images)
        return self

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> sparse.csr_array:
        """Learn the weights from X, and which features are where."""
        return self.fit(X, y, mask).transform(X, mask)

    def set_weights(
        self,
        weights: Sequence[ArrayLike],
        image_size: int | Sequence[int],
        classes: ArrayLike | None = None,
    ) -> Self:
        """Use known weights instead of learning them: ready to predict, to inpaint, to sample.

        `weights` are as `weights_`, `classes` the names of the classes (numbers if None).
        """
        size = check_pair("image_size", image_size)
        per_class = check_needed("templates_per_class", self.templates_per_class)
        known = check_weights(weights)
        n_classes = check_class_count(len(known[-1]), per_class, self._n_classes())
        names = check_class_names(classes, n_classes)
        layer = equal_classes(n_classes, per_class)
        layers = check_layers(self.layers, layer.n_templates, size)
        noise = check_noise(self.p01, self.p10)
        rng = check_random_state(self.random_state)
        network = build_network(layers, layer, noise, known[0].shape[1], size, rng)
        check_weight_shapes(known, [level.weight_shape for level in network.levels])
        check_image_fits(network)
        self._forget()
        self._publish(NetworkModel(network, known, names))
        return self

    def predict(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[Any]:
        """The class of every image.

        With a class layer that allows several objects: a row per image that is True for the classes
        that are present.
        """
        images = self._check(X, mask).images
        if self._model.network.classes.p_on is not None:
            return self._present(self._configuration(images).S[-1])
        return np.asarray(self.classes_[self._scores(images).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
        """Probability of every class, (images, classes), from max-marginals.

        The best explanation by each class is compared, not the sum over all of its explanations:
        a sharper answer than the posterior, with the same order.
        """
        images = self._check(X, mask).images
        self._one_object("predict_proba")
        return np.asarray(softmax(self._scores(images), axis=1))

    def cluster(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """The template of every image."""
        images = self._check(X, mask).images
        self._one_object("cluster")
        return _template(self._configuration(images))

    def transform(self, X: ArrayLike, mask: ArrayLike | None = None) -> sparse.csr_array:
        """Which features are where: a sparse row per image, all layers side by side, lowest first.

        `sparsifications` gives the same as arrays.
        """
        S = self.sparsifications(X, mask)
        flat = [sparse.csr_array(level.reshape(len(level), -1).astype(np.int8)) for level in S]
        return sparse.csr_array(sparse.hstack(flat, format="csr"))

    def sparsifications(self, X: ArrayLike, mask: ArrayLike | None = None) -> list[BoolArray]:
        """Where the features are: S¹ … Sᴸ, each (images, features, rows, columns)."""
        return self._configuration(self._check(X, mask).images).S[1:]

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

    def denoise(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> BoolArray:
        """X as the network explains it, without the noise; in the shape of X.

        `y` are labels where they are known: -1, or None for all, where not.
        """
        given = self._check(X, mask)
        return given.restore(self._clean(given.images, y))

    def inpaint(self, X: ArrayLike, mask: ArrayLike, y: ArrayLike | None = None) -> BoolArray:
        """X with the pixels under the mask filled in; the others stay as they are."""
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

        If `clean`, parts shift, but single pixels stay in place, and there is no noise.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        category = None if label is None else class_code(label, self.classes_)
        network = self._model.network
        top = sample_templates(network, check_needed("n", n), rng, category)
        X, _ = sample(network, self._model.weights, top, rng, check_flag("clean", clean))
        if network.classes.p_on is not None:
            return X, self._present(top)
        return X, self.template_classes_[top.any(axis=(2, 3)).argmax(axis=1)]

    def score(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> float:
        """Share of images in the right class; without y, the mean joint log-probability.

        Images without a label do not count.  With a class layer that allows several objects, `y` is
        as `predict` returns it, and all classes of an image must be right.
        """
        if y is None:
            return float(self.joint_log_probability(X, mask=mask).mean())
        predicted = self.predict(X, mask)
        if predicted.ndim == 2:
            if np.shape(y) != predicted.shape:
                raise ValueError(
                    f"y must hold a row per image and a column per class, shape "
                    f"{predicted.shape}, because this class layer allows several objects, got "
                    f"{np.shape(y)}; True where a class is present, as predict returns it."
                )
            return float((np.asarray(y, bool) == predicted).all(axis=1).mean())
        labels, known = labelled(y, len(predicted))
        pairs = zip(labels[known].tolist(), predicted[known].tolist(), strict=True)
        return float(np.mean([label == found for label, found in pairs]))

    def joint_log_probability(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Log p(X, H | W) of every image with its best explanation H, of class y where given."""
        images = self._check(X, mask).images
        return self._configuration(images, self._allowed(y, images.n_images)).log_joint

    def with_class_layer(
        self,
        categories: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        p_on: float | None = None,
        image_size: int | Sequence[int] | None = None,
    ) -> HCN:
        """The same weights under another class layer, without retraining.

        Parameters
        ----------
        categories : array of int or None
            The number of the class of every template; None keeps them.
        classes : array or None
            The names of the classes; None keeps them, and numbers them where `categories` is given.
        p_on : float or None
            With a probability, every template is present at every position by itself: images with
            several objects, or none.  None: exactly one, as in training.
        image_size : int, (int, int) or None
            Images of another size, in which templates can take more positions.

        """
        check_is_fitted(self)
        old = self._model
        layer, names = check_class_layer(
            old.network.classes, self.classes_, categories, classes, p_on
        )
        network = Network(old.network.levels, layer, old.network.noise)
        if image_size is not None:
            size = check_pair("image_size", image_size)
            smallest = old.network.smallest_image
            if size[0] < smallest[0] or size[1] < smallest[1]:
                raise ValueError(
                    f"image_size must be at least {smallest[0]}×{smallest[1]} to hold a template, "
                    f"got {size[0]}×{size[1]}."
                )
            network = network.for_images_of(size)
            check_image_fits(network)
        return self._copy()._publish(NetworkModel(network, old.weights, names))

    def _build(
        self, images: Images, labels: Labels, rng: np.random.Generator
    ) -> tuple[Network, NetworkOptions]:
        """The network for these images, and how to learn it."""
        classes = check_templates(len(labels.classes), self.templates_per_class)
        layers = check_layers(self.layers, classes.n_templates, images.size)
        noise = check_noise(self.p01, self.p10)
        network = build_network(layers, classes, noise, images.n_channels, images.size, rng)
        self._method()  # before learning, not after
        passing = self.algorithm != "bottom-up"
        return network, self._options(tuple(layer.damping for layer in layers), ready=passing)

    def _n_classes(self) -> int | None:
        return check_class_number(self.n_classes)

    def _options(self, damping: tuple[float, ...], ready: bool = False) -> NetworkOptions:
        engine, schedule = check_engine(self, ready)
        return NetworkOptions(
            damping=damping,
            engine=engine,
            schedule=schedule,
            vote=check_flag("vote", self.vote),
            n_init=check_needed("n_init", self.n_init),
            max_iter=check_count("max_iter", self.max_iter, 1, "None for the default"),
            max_seconds=check_positive("max_seconds", self.max_seconds),
            max_memory=check_max_memory(self.max_memory),
        )

    def _store(self, learned: LearnedNetwork, labels: Labels, images: Images) -> None:
        self._forget()
        self._publish(NetworkModel(learned.network, learned.weights, labels.classes))
        found = self._configuration(images, agreeing(learned.network, labels.codes))
        self.templates_ = _template(found)
        self.log_joint_ = learned.log_joint
        self._store_run(learned)
        self.memory_ = learned.memory

    def _publish(self, model: NetworkModel) -> Self:
        self._model = model
        self.weights_ = model.weights
        self.classes_ = model.classes
        self.template_classes_ = model.classes[list(model.network.classes.categories)]
        return self

    def _check(self, X: ArrayLike, mask: ArrayLike | None) -> ImageInput:
        check_is_fitted(self)
        given = check_images(X, mask)
        network = self._model.network
        wanted = (network.n_channels, *network.image_size)
        came = (given.images.n_channels, *given.images.size)
        if came != wanted:
            raise ValueError(
                f"X has {came[0]} channels of {came[1]}×{came[2]} pixels, but the network has "
                f"{wanted[0]} of {wanted[1]}×{wanted[2]}; pass such images, or use "
                f"with_class_layer(image_size=…) for larger ones."
            )
        method = self._method().method
        if network.classes.p_on is not None and method in ("passing", "match"):
            raise ValueError(
                f"inference must be 'explain' or 'forward' with a class layer that allows several "
                f"objects, got {method!r}, which judges every template by itself and would find "
                f"the same object many times; change it with set_params."
            )
        return given

    def _method(self) -> inference.How:
        default = "match" if self.algorithm == "bottom-up" else "explain"
        wanted = default if self.inference is None else self.inference
        method: Any = check_choice("inference", wanted, inference.METHODS)
        candidates = check_needed("candidates", self.candidates)
        passes = check_needed("n_passes", self.n_passes)
        return inference.How(method, candidates, passes)

    def _configuration(self, images: Images, allowed: BoolArray | None = None) -> Configuration:
        return inference.configuration(self._model, images, allowed, self._method())

    def _scores(self, images: Images) -> NDArray[np.float64]:
        return inference.class_scores(self._model, images, self._method())

    def _clean(self, images: Images, y: ArrayLike | None) -> BoolArray:
        allowed = self._allowed(y, images.n_images)
        how = self._method()
        if how.method == "passing":
            return np.asarray(inference.pixel_beliefs(self._model, images, allowed, how) > 0)
        return self._configuration(images, allowed).S[0]

    def _allowed(self, y: ArrayLike | None, n: int) -> BoolArray | None:
        if y is None:
            return None
        return agreeing(self._model.network, check_known_labels(y, n, self.classes_))

    def _present(self, top: BoolArray) -> BoolArray:
        on: BoolArray = np.asarray(top.any(axis=(2, 3)))
        categories = np.array(self._model.network.classes.categories)
        columns = [on[:, categories == k].any(axis=1) for k in range(len(self.classes_))]
        return np.stack(columns, axis=1)

    def _one_object(self, name: str) -> None:
        if self._model.network.classes.p_on is not None:
            raise ValueError(
                f"{name} needs exactly one object per image, and this class layer allows several; "
                f"use predict for the classes that are present, sparsifications for all templates."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []  # codes are int8, whatever the pixels were
        return tags


_ALGORITHMS: dict[str, Callable[..., LearnedNetwork]] = {
    "mpmp": learn_network,
    "bottom-up": learn_bottom_up,
}


def _template(found: Configuration) -> NDArray[np.int64]:
    return np.asarray(found.S[-1].any(axis=(2, 3)).argmax(axis=1))
