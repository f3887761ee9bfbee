"""`HCN`: the multi-layer network as a scikit-learn classifier, clusterer and generator."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hcnet.archive.kinds import LARGEST_SIDE, Node, saveable
from hcnet.checkpoint import EVERY, Checkpoint
from hcnet.checks import (
    check_count,
    check_flag,
    check_optional_count,
    check_pair,
    check_random_state,
)
from hcnet.engine.engines import DEFAULT_ENGINE, Engine
from hcnet.estimators.base import Estimator
from hcnet.estimators.network_classifier import NetworkClassifier, check_shape
from hcnet.hierarchy.explaining import agreeing
from hcnet.hierarchy.inference import Inference, configuration
from hcnet.hierarchy.network import (
    LEARNED,
    Layer,
    Network,
    NetworkModel,
    build_network,
    check_image_fits,
)
from hcnet.hierarchy.network_learning import N_INIT, Decided, NetworkOptions, learn_network
from hcnet.images import Images
from hcnet.layers import equal_classes
from hcnet.online.network_stream import BATCH_SIZE, FORGETTING, NetworkStream
from hcnet.online.stream import Minibatch, grouped
from hcnet.progress import Callback
from hcnet.validation.images import (
    ImageInput,
    check_images,
    check_reading,
    check_stream,
    in_item,
    stream_length,
)
from hcnet.validation.layers import check_layers
from hcnet.validation.parameters import (
    MOST_STARTS,
    UNLABELLED,
    Labels,
    check_class_count,
    check_class_layer,
    check_class_names,
    check_class_number,
    check_engine,
    check_inference,
    check_known_labels,
    check_labels,
    check_max_memory,
    check_noise,
    check_positive,
    check_stream_classes,
    check_templates,
    check_weight_shapes,
    check_weights,
)


@dataclass(eq=False, repr=False)
class HCN(NetworkClassifier):
    """A hierarchy of parts: classifies, clusters, denoises, completes and generates binary images.

    Every image shows one template.  A template is made of features of the layer below, these of
    smaller ones, down to the pixels; between the layers, pools shift every element a little.  This
    is the Hierarchical Compositional Network of Lázaro-Gredilla et al. (ICLR 2017), learned by
    max-product message passing from labelled images, unlabelled ones, or both.  For handwriting,
    of which no two examples are equal, `TemplateClassifier` has fewer errors.

    Parameters
    ----------
    layers : list of Layer
        From the image upwards.  The last one holds the templates: ``Layer()`` fills it in.
    n_classes : int or None, default=None
        Number of classes.  None: as many as y holds, or 1 without labels.  To cluster, ask for one
        class per cluster.
    templates_per_class : int, default=1
        Templates that each class has.
    p01, p10 : float, default=1e-3
        Probability that an on pixel is seen off, and that an off pixel is seen on; each strictly
        between 0 and 0.5.
    inference : {"explain", "forward", "passing", "match"} or Inference, default="explain"
        How known weights are used; `hcnet.Inference` describes the four ways.
    n_init : int, default=2
        Number of starts.  Once one of them is clearly the best by joint log-probability, only that
        one continues; all of them, where features have variants.
    vote : bool, default=True
        Whether every weight is decided by the majority of the 15 passes with the highest joint
        log-probability (in a stream, of the last 15 minibatches).  Otherwise the best pass, or the
        last minibatch, decides.
    max_iter : int or None, default=None
        Forward and backward passes per start; None: 60.  In a stream, per minibatch; None: 20.
    max_seconds : float or None, default=None
        Stop after about this time with what was learned so far.
    engine : str or Engine, default="active"
        As in `FeatureLearner`, but damping is a parameter of each layer.
    max_memory, device, random_state, verbose, callback
        As in `FeatureLearner`.

    Attributes
    ----------
    weights_ : list of ndarray of bool, shape (n_features, channels, height, width)
        The learned features of every layer; the channels of a layer are the features below it.
    classes_ : ndarray
        The classes, sorted.
    template_classes_ : ndarray
        The class of every template.
    log_joint_ : float
        Joint log-probability of the training images, their explanations and the weights.
    n_iter_, history_, status_, seconds_, memory_
        Passes of the best start (minibatches of a stream), the figures of each, why it stopped, the
        seconds and bytes that learning took.
    n_images_seen_ : int
        Images of the stream so far.

    """

    _kind = "HCN"
    _remedy = ", or use with_class_layer(image_size=…) for larger ones"
    _stream: NetworkStream | None = field(init=False, default=None)

    layers: Sequence[Layer]
    n_classes: int | None = None
    templates_per_class: int = 1
    _: KW_ONLY
    p01: float = 1e-3
    p10: float = 1e-3
    inference: str | Inference = "explain"
    n_init: int = N_INIT
    vote: bool = True
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None
    engine: str | Engine = DEFAULT_ENGINE
    device: str = "cpu"
    random_state: int | np.random.Generator | None = None
    verbose: bool = False
    callback: Callback | None = None

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

        With a `checkpoint`, the path of a file, the state of learning is written every so many
        seconds: after a crash, the same call continues from there, with the same result.
        """
        images = check_images(X, mask).images
        labels = check_labels(y, images.n_images, check_class_number(self.n_classes))
        data = repr(labels.classes.tolist()), *images.arrays(), labels.codes
        with self._keeping(checkpoint, every, "fit", *data) as keeper:
            rng = self._generator(keeper)
            network, options = self._build(images, labels, rng)

            def so_far(found: Decided) -> HCN:
                now = self._running(NetworkModel(network, found.weights, labels.classes))
                now.log_joint_ = found.log_joint
                return now

            allowed, progress = agreeing(network, labels.codes), self._progress(so_far)
            run = network, images, allowed, options, rng, progress, keeper
            outcome, memory = learn_network(*run)
        self._forget()
        best = outcome.best
        self._publish(NetworkModel(best.network or network, best.weights, labels.classes))
        self._store_run(outcome)
        self.log_joint_, self.memory_ = outcome.objective, memory
        return self

    def fit_stream(
        self,
        source: Iterable[Any],
        *,
        classes: ArrayLike | None = None,
        batch_size: int = BATCH_SIZE,
        epochs: int | None = None,
        forgetting: float = FORGETTING,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        Every minibatch gets `max_iter` passes (None: 20).

        Parameters
        ----------
        source : array or iterable
            An array (also memory-mapped), or yields images, alone or with their labels, ``(X, y)``;
            -1 is no label, NaN is missing.
        classes : array or None, default=None
            All labels that may come; None: those of the first item.
        batch_size : int, default=50
            Images of a minibatch.
        forgetting : float, default=0.7
            λ: share of the beliefs that the next minibatch starts from.
        epochs, checkpoint, every
            As in `FeatureLearner.fit_stream`.

        """
        reading = check_reading(batch_size, epochs, forgetting)
        data, settings = () if classes is None else (repr(classes),), asdict(reading)
        with self._keeping(checkpoint, every, "fit_stream", *data, settings=settings) as keeper:
            items = check_stream(source, pairs=True)
            first = next(items)
            stream = self._start_stream(*first, classes, reading.forgetting, keeper)
            singles = (
                one
                for number, (images, y) in enumerate(itertools.chain([first], items))
                for one in _labelled(stream, images, y, number).split()
            )
            n_images, rng = stream_length(source), self._generator(keeper)
            batches, total = reading.minibatches(singles, n_images, rng)
            return self._learn_stream(stream, batches, total, keeper=keeper)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        batch_size: int = BATCH_SIZE,
        forgetting: float = FORGETTING,
    ) -> Self:
        """Continue learning with more images, in minibatches.

        The first call starts a new stream, also after `fit`.  `classes` are all labels that may
        come; without them those of the y of the first call.
        """
        reading = check_reading(batch_size, None, forgetting)
        images = check_images(X, mask).images
        if self._stream is None:
            stream = self._start_stream(images, y, classes, reading.forgetting)
        else:
            stream = self._continued(classes, reading.forgetting)
        singles = _labelled(stream, images, y).split()
        return self._learn_stream(stream, grouped(singles, reading.batch_size))

    def set_weights(
        self,
        weights: Sequence[ArrayLike],
        image_size: int | Sequence[int],
        classes: ArrayLike | None = None,
    ) -> Self:
        """Use known weights instead of learning them.

        `weights` are as `weights_`, `classes` the names of the classes (numbers if None).
        """
        size = check_pair("image_size", image_size)
        per_class = check_count("templates_per_class", self.templates_per_class)
        known = check_weights(weights)
        n_classes = check_class_count(len(known[-1]), per_class, check_class_number(self.n_classes))
        names = check_class_names(classes, n_classes)
        layer = equal_classes(n_classes, per_class)
        layers = check_layers(self.layers, layer.n_templates, size, known[0].shape[1])
        noise = check_noise(self.p01, self.p10)
        rng = check_random_state(self.random_state)
        network = build_network(layers, layer, noise, known[0].shape[1], size, rng)
        check_weight_shapes(known, [level.weight_shape for level in network.levels])
        check_image_fits(network)
        self._forget()
        self._publish(NetworkModel(network, known, names))
        return self

    def score(
        self, X: ArrayLike, y: ArrayLike | None = None, mask: ArrayLike | None = None
    ) -> float:
        """Share of images in the right class; without y, the mean joint log-probability.

        Images without a label do not count.  With a class layer that allows several objects, `y` is
        as `predict` returns it, and all classes of an image must be right.
        """
        if y is None:
            images = self._check(X, mask).images
            return float(configuration(self._model, images, self._inference()).log_joint.mean())
        check_is_fitted(self)
        if self._model.network.classes.p_on is not None:
            predicted = self.predict(X, mask)
            if np.shape(y) != predicted.shape:
                raise ValueError(
                    f"y must hold a row per image and a column per class, shape "
                    f"{predicted.shape}, because this class layer allows several objects, got "
                    f"{np.shape(y)}; True where a class is present, as predict returns it."
                )
            return float((np.asarray(y, bool) == predicted).all(axis=1).mean())
        return super().score(X, y, mask)

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
        self._inference()  # an error before learning, not after
        classes = check_templates(len(labels.classes), self.templates_per_class)
        given = classes.n_templates, images.size, images.n_channels
        layers = check_layers(self.layers, *given)
        noise = check_noise(self.p01, self.p10)
        network = build_network(layers, classes, noise, images.n_channels, images.size, rng)
        priors = [layer.pool_prior for layer in layers]
        learned = tuple(k for k, p in enumerate(priors) if isinstance(p, str) and p == LEARNED)
        options = self._options(tuple(layer.damping for layer in layers), ready=True)
        return network, replace(options, learned_pools=learned)

    def _options(self, damping: tuple[float, ...], ready: bool = False) -> NetworkOptions:
        return NetworkOptions(
            damping=damping,
            engine=check_engine(self, ready, damping=None),
            vote=check_flag("vote", self.vote),
            n_init=check_count("n_init", self.n_init, most=MOST_STARTS),
            max_iter=check_optional_count("max_iter", self.max_iter, 1, "for the default"),
            max_seconds=check_positive("max_seconds", self.max_seconds),
            max_memory=check_max_memory(self.max_memory),
        )

    def _inference(self) -> Inference:
        return check_inference(self.inference)

    def _check(self, X: ArrayLike, mask: ArrayLike | None) -> ImageInput:
        given, name = super()._check(X, mask), self._inference().name
        if self._model.network.classes.p_on is not None and name in ("passing", "match"):
            raise ValueError(
                f"inference must be 'explain' or 'forward' with a class layer that allows several "
                f"objects, got {name!r}, which judges every template by itself and would find "
                f"the same object many times; change it with set_params."
            )
        return given

    def _read_stream(self, file: Node) -> None:
        network, classes = self._model.network, self._model.classes
        if len(self.layers) != len(network.levels):
            raise ValueError("its layers are not those of its stream")
        options = self._options(tuple(layer.damping for layer in self.layers))
        self._stream = NetworkStream.read(file, network, classes, options)
        self._stream.made_for = self._structure()

    @classmethod
    def _parameter(cls, name: str, node: Node) -> Any:
        if name == "layers":
            return [Layer(**_arguments(about)) for about in node]
        if name == "inference" and not isinstance(node.value, str):
            return Inference(**_arguments(node))
        return super()._parameter(name, node)

    def _check_parameters(self) -> None:
        per_class = check_count("templates_per_class", self.templates_per_class)
        check_class_number(self.n_classes)
        # Whether the layers fit on an image is known only with an image.
        check_layers(
            self.layers, self.layers[-1].n_features or per_class, (LARGEST_SIDE, LARGEST_SIDE)
        )
        check_noise(self.p01, self.p10)
        self._inference()
        self._options(())
        check_random_state(self.random_state)

    def _start_stream(
        self,
        images: Images,
        y: ArrayLike | None,
        classes: ArrayLike | None,
        forgetting: float,
        keeper: Checkpoint | None = None,
    ) -> NetworkStream:
        n, n_classes = images.n_images, check_class_number(self.n_classes)
        if classes is None:
            labels = check_labels(y, n, n_classes)
        else:
            labels = Labels(check_stream_classes(classes, n_classes), np.full(n, UNLABELLED))
        rng = saveable(self._generator(keeper))
        network, options = self._build(images, labels, rng)
        if options.learned_pools:
            raise ValueError(
                f"layers[{options.learned_pools[0]}].pool_prior must be 'uniform' or numbers in a "
                f"stream, which sees no image twice, got {LEARNED!r}; learn it by fit."
            )
        stream = NetworkStream(network, labels.classes, options, forgetting, rng)
        stream.made_for = self._structure()
        return stream

    def _continued(self, classes: ArrayLike | None, forgetting: float) -> NetworkStream:
        stream = self._stream
        assert stream is not None
        if self._structure() != stream.made_for:
            raise ValueError(
                "layers, templates_per_class, p01 and p10 cannot change within a stream; set them "
                "back, or start anew with fit_stream."
            )
        if classes is not None:
            names = check_stream_classes(classes, None)
            if names.tolist() != stream.classes.tolist():
                raise ValueError(
                    f"The stream began with the classes {stream.classes.tolist()}, got "
                    f"{names.tolist()}; leave classes out, or start anew with fit_stream."
                )
        stream.configure(self._options(stream.options.damping, ready=True), forgetting)
        return stream

    def _structure(self) -> tuple[Any, ...]:
        """Parameters that must not change within a stream."""
        return list(self.layers), self.templates_per_class, self.p01, self.p10


def _arguments(about: Node) -> dict[str, Any]:
    """Arguments of a constructor, from a file."""
    return {key: Estimator._parameter(key, about[key]) for key in about.names()}


def _labelled(
    stream: NetworkStream, images: Images, y: ArrayLike | None, number: int | None = None
) -> Minibatch:
    """Images with the templates that their labels allow; `number` is that of a stream's item."""
    network, n = stream.network, images.n_images
    with nullcontext() if number is None else in_item(number):
        check_shape(images, network, "the stream so far had")
        codes = np.full(n, UNLABELLED) if y is None else check_known_labels(y, n, stream.classes)
    return Minibatch(images, agreeing(network, codes))
