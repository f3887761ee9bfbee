"""`TemplateClassifier`: parts found by search, examples as templates."""

from __future__ import annotations

import os
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hcnet.archive.kinds import LARGEST_SIDE, Node
from hcnet.checkpoint import EVERY
from hcnet.checks import (
    check_count,
    check_flag,
    check_optional_count,
    check_pair,
    check_random_state,
)
from hcnet.engine.driver import Limits, bounded
from hcnet.estimators.network_classifier import NetworkClassifier
from hcnet.hierarchy.explaining import agreeing
from hcnet.hierarchy.inference import Inference
from hcnet.hierarchy.network import CheckedLayer, Layer, NetworkModel, build_network
from hcnet.images import BoolArray, Images, Noise
from hcnet.progress import Callback
from hcnet.templates.deformations import Deformations, check_deformations
from hcnet.templates.template_learning import check_template_memory, learn_templates
from hcnet.templates.variants import MOST_VARIANTS, TEMPLATE_MODEL, TemplateModel, Variants
from hcnet.validation.images import check_images
from hcnet.validation.layers import check_layers
from hcnet.validation.parameters import (
    check_class_number,
    check_labels,
    check_max_memory,
    check_positive,
    check_templates,
)

# Matching has costs of its own; this noise only fills in pixels, and draws images.
NOISE = Noise(1e-3, 1e-3)
# All shifts up to this are tried: an object that is farther away is to be cut out first.
MOST_SHIFT = 1000
# Names of the two layers in error messages.
LAYERS = ("The layer of parts", "The layer of templates")


@dataclass(eq=False, repr=False)
class TemplateClassifier(NetworkClassifier):
    """Classifies drawings and handwriting by examples that are made of parts.

    A search finds parts that the images have in common.  The parts of some images of each class
    become templates.  A new image is matched with all templates from both sides: by the elements
    of a template that the image lacks, and by the pixels that the template does not explain.
    Pixels and parts may shift a little; how far parts usually shift is learned.

    The model is a network of two layers, as in `HCN`, but nothing is learned by message passing.
    Use it for things that come in many variants, of which no two are equal.

    Parameters
    ----------
    n_parts : int, default=64
        Number of parts.
    part_size : int or (int, int), default=7
        Height and width of a part, in pixels.
    templates_per_class : int, default=10
        Examples that each class keeps.
    n_classes : as in `HCN`
    pool : int or (int, int), default=3
        Window within which every pixel of a part shifts.
    template_pool : int or (int, int), default=5
        Window within which every part of a template shifts.
    pool_border : {"same", "full"}, default="same"
        "same": parts and templates may lie at the border of the image.  "full": the windows of all
        their pixels lie within the image.
    variants : int, default=0
        Deformed variants of every labelled example by which images are recognised: 30 to 100 for
        handwriting.  The examples themselves are matched, too, whatever `templates_per_class` is,
        and all variants of a class share the decision.  Templates still say which parts are where.
        0: images are recognised by the templates.
    deformations : Deformations or None, default=None
        How variants differ from their example; None: as `Deformations()` has it, for handwriting.
    placement : int, default=6
        Largest shift in pixels, in rows and columns, at which an object is looked for, with
        variants.  An object that needs no shift is not moved.  0: it is where those of the examples
        are.
    max_iter : int or None, default=None
        Rounds of the search; None: 10.
    max_seconds : float or None, default=None
        Stop the search after about this time with the parts found so far.
    max_memory, random_state, verbose, callback
        As in `FeatureLearner`.

    Attributes
    ----------
    weights_ : list of two ndarrays of bool, shape (n_features, channels, height, width)
        The parts, and the templates, whose channels are the parts.
    classes_, template_classes_ : as in `HCN`
    cost_ : float
        The matching cost that the search lowers, for the parts in the training images.
    n_iter_, history_, status_, seconds_, memory_
        Rounds of the search, the cost after each, why it stopped, the seconds and bytes that
        learning took.

    """

    _kind = "TemplateClassifier"
    _model_kind = TEMPLATE_MODEL

    n_parts: int = 64
    part_size: int | tuple[int, int] = 7
    templates_per_class: int = 10
    _: KW_ONLY
    n_classes: int | None = None
    pool: int | tuple[int, int] = 3
    template_pool: int | tuple[int, int] = 5
    pool_border: str = "same"
    variants: int = 0
    deformations: Deformations | None = None
    placement: int = 6
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None
    random_state: int | np.random.Generator | None = None
    verbose: bool = False
    callback: Callback | None = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        parts: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Search for parts, and choose examples as templates.

        `y` holds a label per image, -1 for images without one, or is None.  `mask` is True (or X is
        NaN) where a pixel is missing.  `parts` are those of another model, its `weights_[0]`, which
        saves the search: they were learned from more images, say.  With a `checkpoint`, the path of
        a file, the state of the search is written every so many seconds, and the same call
        continues from there.
        """
        began = time.perf_counter()
        images = check_images(X, mask).images
        labels = check_labels(y, images.n_images, check_class_number(self.n_classes))
        given = None if parts is None else self._check_parts(parts, images.n_channels)
        own = () if given is None else (given,)
        data = repr(labels.classes.tolist()), *images.arrays(), labels.codes, *own
        with self._keeping(checkpoint, every, "fit", *data) as keeper:
            rng, limits = self._generator(keeper), self._limits()
            variants = self._variants(images, labels.codes, len(labels.classes), rng)
            classes = check_templates(len(labels.classes), self.templates_per_class)
            layers = self._layers(classes.n_templates, images.size)
            network = build_network(layers, classes, NOISE, images.n_channels, images.size, rng)
            most = check_max_memory(self.max_memory)
            memory = check_template_memory(network, images.n_images, most)
            if variants is not None:
                memory = max(memory, variants.check_memory(most))

            def so_far(parts: BoolArray) -> TemplateClassifier:
                empty = np.zeros(network.levels[-1].weight_shape, bool)
                return self._running(TemplateModel(network, [parts, empty], labels.classes))

            allowed, progress = agreeing(network, labels.codes), self._progress(so_far)
            search = network, images, allowed, limits, rng, progress, keeper, given
            learned, weights, outcome = learn_templates(*search)
            if variants is not None and not outcome.status.cut_short:
                seconds = limits.max_seconds
                with bounded(None if seconds is None else began + seconds) as learning:
                    variants = variants.learned(len(labels.classes))
                outcome.status = learning.status or outcome.status
        self._forget()
        self._publish(TemplateModel(learned, weights, labels.classes, variants))
        self._store_run(outcome)
        self.seconds_ = time.perf_counter() - began
        self.cost_, self.memory_ = -outcome.objective, memory
        return self

    def _check_parts(self, parts: ArrayLike, n_channels: int) -> BoolArray:
        """Parts of another model, which must be such as this one would learn."""
        given = np.asarray(parts)
        shape = (self.n_parts, n_channels, *check_pair("part_size", self.part_size))
        if given.dtype != bool or given.shape != shape:
            raise ValueError(
                f"parts must be booleans of shape {shape}, as n_parts, the channels of X and "
                f"part_size say, got {given.dtype} of shape {given.shape}; pass the weights_[0] of "
                f"a TemplateClassifier with these settings."
            )
        return given.copy()

    def _inference(self) -> Inference:
        return Inference("match")

    @property
    def _matched(self) -> Variants | None:
        return self._model.variants if isinstance(self._model, TemplateModel) else None

    def _class_scores(self, images: Images) -> NDArray[np.float64]:
        variants = self._matched
        if variants is None:
            return super()._class_scores(images)
        return variants.class_scores(images, len(self.classes_), self._placement())

    def _placement(self) -> int:
        return check_count("placement", self.placement, 0, most=MOST_SHIFT)

    def _allowed(self, images: Images) -> BoolArray | None:
        if self._matched is None:
            return None
        return agreeing(self._model.network, self._class_scores(images).argmax(axis=1))

    def _variants(
        self, images: Images, codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator
    ) -> Variants | None:
        """Variants of the examples that have a label."""
        n_variants = check_count("variants", self.variants, 0, most=MOST_VARIANTS)
        how = check_deformations(self.deformations)
        self._placement()
        if n_variants == 0:
            return None
        if not np.isin(np.arange(n_classes), codes).all():
            raise ValueError(
                "variants need an example with a label for every class, and there are classes "
                "without one; pass y, or variants=0 to find clusters."
            )
        labelled = codes >= 0
        examples = images.pixels[labelled] & images.observed[labelled]
        seed, nothing = int(rng.integers(2**32)), np.zeros((0, n_classes), np.float32)
        return Variants(examples, codes[labelled], n_variants, how, seed, nothing)

    def _limits(self) -> Limits:
        return Limits(
            max_iter=check_optional_count("max_iter", self.max_iter, 1, "for the default"),
            max_seconds=check_positive("max_seconds", self.max_seconds),
        )

    def _layers(self, n_templates: int, image_size: tuple[int, int]) -> list[CheckedLayer]:
        border: Any = self.pool_border
        size, pool = check_pair("part_size", self.part_size), check_pair("pool", self.pool)
        parts = Layer(check_count("n_parts", self.n_parts), size, pool, border)
        top = Layer(pool=check_pair("template_pool", self.template_pool), pool_border=border)
        return check_layers([parts, top], n_templates, image_size, names=LAYERS)

    def _publish(self, model: NetworkModel) -> Self:
        network = model.network
        flat = all(level.pool.depth == len(level.window) == 1 for level in network.levels)
        if len(network.levels) != 2 or network.classes.p_on is not None or not flat:
            raise ValueError("its network is not that of a TemplateClassifier")
        return super()._publish(model)

    @classmethod
    def _parameter(cls, name: str, node: Node) -> Any:
        if name == "deformations" and isinstance(node.value, dict):
            return Deformations(**{key: node[key].value for key in node.names()})
        return super()._parameter(name, node)

    def _check_parameters(self) -> None:
        check_class_number(self.n_classes)
        check_count("templates_per_class", self.templates_per_class)
        # Whether the layers fit on an image is known only with an image.
        self._layers(1, (LARGEST_SIDE, LARGEST_SIDE))
        check_count("variants", self.variants, 0, most=MOST_VARIANTS)
        check_deformations(self.deformations)
        self._placement()
        self._limits()
        check_max_memory(self.max_memory)
        check_flag("verbose", self.verbose)
        check_random_state(self.random_state)
