"""`FeatureLearner`: the single-layer HCN as a scikit-learn transformer."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hcnet.archive.kinds import Contents, Node, list_of, text
from hcnet.checkpoint import EVERY, Checkpoint, digest
from hcnet.checks import check_choice, check_optional_count, check_pair, check_random_state
from hcnet.engine.driver import Status, interruptible
from hcnet.engine.engines import DEFAULT_ENGINE, Engine
from hcnet.estimators.base import Estimator, takes_images
from hcnet.estimators.part_streams import stream_of
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.learning.learn import Learned, LearningOptions, learn
from hcnet.memory import check_memory
from hcnet.model import PartsModel, codes_of, placements_from_codes
from hcnet.names import ALGORITHMS
from hcnet.objective import compression_ratio, estimate, log_joint
from hcnet.online.parts_stream import BATCH_SIZE, FORGETTING, PartsShape, PartsStream
from hcnet.online.soft_stream import SoftOptions, SoftStream
from hcnet.online.stream import Minibatch, grouped
from hcnet.progress import Callback
from hcnet.soft.sizes import size_of_parts
from hcnet.soft.soft_learning import SoftLearned, learn_soft, may_be_soft
from hcnet.soft.soft_model import ANY_MODEL, SoftExplanation, SoftModel
from hcnet.solutions.explanation import Explanation
from hcnet.validation.images import (
    ImageInput,
    check_codes,
    check_images,
    check_placements,
    check_reading,
    check_stream,
    stream_length,
)
from hcnet.validation.parameters import (
    check_feature_size,
    check_learning,
    check_max_memory,
    check_part_names,
    check_positive,
    check_priors,
)

# The smallest window of a feature that is given none.
WINDOW = (12, 12)


@dataclass(eq=False, repr=False)
class FeatureLearner(TransformerMixin, Estimator):
    """Find the parts that binary images are made of, and their positions.

    The model is the single-layer Hierarchical Compositional Network of Lázaro-Gredilla et al.
    (ICLR 2017): binary features are placed at some positions, ORed where they overlap, and seen
    through a noisy channel.

    Parameters
    ----------
    n_features : int or None, default=None
        The largest number of features; features that do not pay for themselves are pruned.  None
        leaves the number open.
    feature_size : int, (int, int) or None, default=None
        Height and width of the window of a feature: at least the size of the largest part.  None:
        as large as the parts are.  Parts that repeat exactly then have windows of at least 12×12,
        and larger ones if most of the ink is pieces that repeat and are larger.
    border : {"full", "valid"}, default="full"
        Whether placements may reach over the border of the image, or must lie inside (paper).
    algorithm : {"auto", "refined", "mpmp", "soft"}, default="auto"
        "soft": parts that repeat approximately, as in scans; see `feature_probabilities_`.
        "refined": parts that repeat exactly, by message passing and then a search whose moves are
        kept if the joint probability rises.  "mpmp": max-product message passing alone, the
        paper's algorithm.  "auto": "refined" if a `feature_size` or an option of it is given, else
        whichever of "soft" and "refined" fits how parts repeat; `algorithm_` says which.
    p_S, p_W, p01, p10 : float or None, default=None
        Probability that a placement is on, that a weight is on, that an on pixel is seen off,
        that an off pixel is seen on; each strictly between 0 and 0.5.  None: chosen by the
        joint log-probability.
    n_init : int or None, default=None
        Number of starts; the best by joint log-probability is kept.  None: more for small data.  A
        stream has one.
    max_iter : int or None, default=None
        Sweeps of message passing per start; 0 refines from an empty start, without messages.  In a
        stream every image is visited once.
    max_seconds : float or None, default=None
        Stop after about this time with the best solution so far.
    max_memory : int or None, default=None
        Bytes that message passing may take.  Learning that would need more fails before it starts;
        parts are found in smaller tiles of the images.  None: as much as the machine has.
    engine : str or Engine, default="active"
        How messages are stored: "active", "beliefs", "dense" or "reference", or an `hcnet.Engine`,
        which also sets the schedule and the damping of their updates.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where messages are passed.  "cuda" needs an NVIDIA GPU and ``pip install 'hcnet[cuda]'``;
        "auto" takes one if there is one.  Streams run on the processor.
    random_state : int, numpy.random.Generator or None, default=None
        The same seed gives the same result, with any number of threads.
    verbose : bool, default=False
        Show a progress bar.
    callback : callable or None, default=None
        Called with a `hcnet.progress.Step` after every step of learning: its figures, and a
        function that returns the model at that step.

    Attributes
    ----------
    features_ : ndarray of bool, shape (n_features, channels, height, width)
        The learned parts, the most used first; refined ones lie in the middle of their windows.
    feature_probabilities_ : ndarray of float, shape as `features_`
        Of soft parts: the share of their copies in which a pixel is on.
    algorithm_ : str
        The algorithm that was used.
    placements_ : ndarray of int, shape (n_placements, 4)
        Their placements in the training images: image, feature, row and column of the top left
        corner of the window (negative where it reaches over the border).
    part_names_ : ndarray of str, shape (n_features,)
        What a person calls each part (`hcnet.reading.name_parts`); "" is unnamed.  A new fit
        forgets them.
    p_S_, p_W_, p01_, p10_ : float
        The priors, as given or estimated.
    compression_ratio_ : float
        Code length of the training images with the parts, divided by that without them.
    log_joint_ : float
        Joint log-probability of images, placements and features.
    n_iter_ : int
        Sweeps and moves of the best start; minibatches of a stream.
    history_ : list of Record
        Seconds, joint log-probability and changes after each of them.
    status_ : str
        Why learning stopped, in a sentence.
    seconds_ : float
        How long it took.
    n_images_seen_ : int
        Images of the stream so far.  After a stream there are no `placements_`,
        `compression_ratio_` and `log_joint_`; `placements`, `compression_ratio` and `score` return
        those of given images.

    """

    _kind = "FeatureLearner"
    _model_kind = ANY_MODEL
    _model: PartsModel | SoftModel = field(init=False)

    n_features: int | None = None
    feature_size: int | Sequence[int] | None = None
    _: KW_ONLY
    border: str = "full"
    algorithm: str = "auto"
    p_S: float | None = None
    p_W: float | None = None
    p01: float | None = None
    p10: float | None = None
    n_init: int | None = None
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
        y: object = None,
        mask: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn the parts of X; `mask` is True (or X is NaN) where a pixel is missing.

        With a `checkpoint`, the path of a file, the state of learning is written to it `every` so
        many seconds.  If the process ends, the same call continues from there, to the same result.
        """
        images = check_images(X, mask).images
        check_priors(self)
        options = check_learning(self, ready=True, algorithms=ALGORITHMS)
        soft = may_be_soft(self, images)
        with self._keeping(checkpoint, every, "fit", *images.arrays()) as keeper, interruptible():
            learned = self._learn_soft(images, options, keeper) if soft else None
            settled = learned is not None and (learned.soft or learned.status.cut_short)
            if not settled and self.algorithm != "soft":
                exact = layer, *_ = self._exact(images, options, keeper, learned)
                ratio = self._store(learn(images, *exact), layer, images).compression_ratio_
                if learned is not None and (learned.soft is False or ratio < learned.ratio):
                    learned = None
            if learned is not None:
                self._store_soft(learned, images)
        self._learned_from = digest(*images.arrays())
        if images.pixels[images.observed].any():
            self._warn_if_empty()
        return self

    def _learn_soft(
        self, images: Images, options: LearningOptions, keeper: Checkpoint | None
    ) -> SoftLearned:
        progress = self._progress(lambda now: self._copy()._store_soft(now, images))
        limits = *self._soft_options(), options.max_seconds
        return learn_soft(images, *limits, self._generator(keeper), progress, keeper)

    def _exact(
        self,
        images: Images,
        options: LearningOptions,
        keeper: Checkpoint | None,
        soft: SoftLearned | None,
    ) -> tuple[Any, ...]:
        """What to learn parts with that repeat exactly, in the time that soft ones have left."""
        shape, priors = self._shape(images, soft), check_priors(self)
        layer = shape.layer(images.size)
        if soft is not None and options.max_seconds is not None:
            options = replace(options, max_seconds=max(options.max_seconds - soft.seconds, 1e-3))

        def running(found: Explanation) -> FeatureLearner:
            now = Learned(found, estimate(found.counts, priors), Status.RUNNING, 0, 0.0, 0)
            return self._copy()._store(now, layer, images)

        rng, progress = self._generator(keeper), self._progress(running)
        return layer, priors, options, rng, progress, keeper

    def fit_stream(
        self,
        source: Iterable[ArrayLike],
        *,
        batch_size: int = BATCH_SIZE,
        epochs: int | None = None,
        forgetting: float = FORGETTING,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        At the end of the stream exact parts are refined on the last images, unless
        ``algorithm="mpmp"`` or the time is up.  "auto" decides on the first minibatch.

        Parameters
        ----------
        source : array or iterable
            An array (also memory-mapped), or yields images: one (height, width) or several
            (images, height, width) or (images, channels, height, width) at a time.  They may
            differ in size; NaN is missing.  Files come from `hcnet.image_files.stream_images`.
        batch_size : int, default=5
            Images of a minibatch.
        epochs : int or None, default=None
            None reads the source once, in its order.  A number reads all images into memory, and
            learns from each so many times, in random order.
        forgetting : float, default=0.95
            λ: share of the beliefs that the next minibatch starts from.  0 forgets everything, 1
            nothing, and 0.95 most of what is more than 20 minibatches back.
        checkpoint, every
            As in `fit`.  The same call must get the same images again: those that were learned
            from already are skipped.

        """
        reading = check_reading(batch_size, epochs, forgetting)
        singles = (one for images, _ in check_stream(source) for one in Minibatch(images).split())
        with self._keeping(checkpoint, every, "fit_stream", settings=asdict(reading)) as keeper:
            n_images, rng = stream_length(source), self._generator(keeper)
            batches, total = reading.minibatches(singles, n_images, rng)
            stream, batches = stream_of(self, batches, reading.forgetting, None, keeper)
            finish = stream.refined if isinstance(stream, PartsStream) else None
            finish = None if self.algorithm == "mpmp" else finish
            self._learn_stream(stream, batches, total, finish, keeper)
        if self.algorithm != "mpmp":
            self._warn_if_empty()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: object = None,
        mask: ArrayLike | None = None,
        *,
        batch_size: int = BATCH_SIZE,
        forgetting: float = FORGETTING,
    ) -> Self:
        """Continue learning with more images, in minibatches.

        The first call starts a new stream, also after `fit`; its images decide between exact and
        soft parts.  Exact ones are those of message passing; `refine` improves them.
        """
        reading = check_reading(batch_size, None, forgetting)
        images = check_images(X, mask).images
        batches = grouped(Minibatch(images).split(), reading.batch_size)
        return self._learn_stream(*stream_of(self, batches, reading.forgetting, self._stream))

    def refine(self) -> Self:
        """Improve parts learned from a stream by moves on its last images.

        The stream itself does not change: more images may follow.  Soft parts are as good as they
        get already.
        """
        check_is_fitted(self)
        if self._stream is None:
            raise ValueError(
                "refine needs the images of a stream, and there was none: learn with partial_fit "
                "or fit_stream first; fit refines by itself."
            )
        if isinstance(self._stream, SoftStream):
            return self
        progress = self._progress(lambda model: self._copy()._publish(model))
        with closing(progress):
            seconds = check_positive("max_seconds", self.max_seconds)
            refined = self._stream.refined(seconds, progress)
        self._publish(refined)
        self._warn_if_empty()
        return self

    def fit_transform(
        self, X: ArrayLike, y: object = None, mask: ArrayLike | None = None
    ) -> sparse.csr_array:
        """Learn the parts of X, and return their placements, as `transform` does."""
        return self.fit(X, y, mask).transform(X, mask)

    def transform(self, X: ArrayLike, mask: ArrayLike | None = None) -> sparse.csr_array:
        """Placements of the parts in X: a sparse row per image, a column per feature and position.

        `placements` returns the same as a short table.
        """
        given, found = self._explain(X, mask)
        layer = self._model.layer(given.images.size)
        return codes_of(found.placements, layer, given.images.n_images)

    def placements(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.int64]:
        """Placements of the parts in X: rows of image, feature, row, column (as `placements_`)."""
        given, found = self._explain(X, mask)
        return self._corners(found, given.images)

    def inverse_transform(
        self, codes: sparse.sparray | ArrayLike, image_size: tuple[int, int] | None = None
    ) -> BoolArray:
        """Images (n, channels, height, width) from codes: R = bconv(S, W)."""
        check_is_fitted(self)
        table = check_codes(codes)
        size = self._size(image_size)
        layer = self._model.layer(size)
        columns = layer.n_features * layer.n_positions
        if table.shape[1] != columns:
            raise ValueError(
                f"codes must have {columns} columns ({layer.n_features} features × "
                f"{layer.n_positions} positions) for images of {size[0]}×{size[1]}, got "
                f"{table.shape[1]}; pass image_size=(height, width) if they are of other images."
            )
        placed = placements_from_codes(table, layer)
        return self._model.reconstruct(placed, table.shape[0], size)

    def render(
        self,
        placements: ArrayLike,
        n_images: int | None = None,
        image_size: tuple[int, int] | None = None,
    ) -> BoolArray:
        """Images (n, channels, height, width) from rows as `placements` returns them.

        `n_images` is at least one more than the last image that has a placement (the default).
        """
        check_is_fitted(self)
        size = self._size(image_size)
        rows = check_placements(placements)
        n = check_optional_count("n_images", n_images, 1, "for those that have placements")
        n = n or int(rows[:, 0].max(initial=0)) + 1
        layer = self._model.layer(size)
        needed = 3 * math.prod((n, layer.n_channels, *size))
        check_memory("Drawing", needed, check_max_memory(self.max_memory), "ask for fewer images")
        inside = rows + np.array([0, 0, *layer.overhang])
        limits = n, len(self.features_), *layer.placement_size
        wrong = ((inside < 0) | (inside >= limits)).any(axis=1)
        if wrong.any():
            raise ValueError(
                f"placements must be rows of image, feature, row and column that lie in {n} images "
                f"of {size[0]}×{size[1]} with {len(self.features_)} features, got "
                f"{rows[wrong][0].tolist()}; pass n_images or image_size if they are others."
            )
        return self._model.reconstruct(inside, n, size)

    def denoise(self, X: ArrayLike, mask: ArrayLike | None = None) -> BoolArray:
        """X without noise, in its shape: as its parts make it.

        Soft parts take flips back and leave the rest of X as it is.
        """
        given, found = self._explain(X, mask)
        return given.restore(self._model.denoise(given.images, found))

    def inpaint(self, X: ArrayLike, mask: ArrayLike) -> BoolArray:
        """X with the pixels under the mask filled in; the others do not change."""
        given, found = self._explain(X, mask)
        return given.restore(self._model.fill(given.images, found))

    def score(self, X: ArrayLike, y: object = None, mask: ArrayLike | None = None) -> float:
        """Joint log-probability of X, the placements found in it, and the features."""
        _, found = self._explain(X, mask)
        return self._model.log_joint(found)

    def compression_ratio(self, X: ArrayLike, mask: ArrayLike | None = None) -> float:
        """(E(S) + E(W) + E(X-R)) / E(X), as in the paper's Table 1; the parts save bits below 1.

        With soft parts, E(X-R) is the code of X given them.
        """
        given, found = self._explain(X, mask)
        return self._model.compression_ratio(given.images, found)

    def _most_features(self) -> int | None:
        if isinstance(self.n_features, Sequence) and not isinstance(self.n_features, str):
            raise ValueError(
                f"n_features must be one number, got {self.n_features!r}; if that is the window of "
                f"a part, pass feature_size={self.n_features!r}."
            )
        return check_optional_count("n_features", self.n_features, 1, "to leave it open")

    def _shape(
        self, images: Images, soft: SoftLearned | None = None, known: tuple[int, int] | None = None
    ) -> PartsShape:
        """Number and size of features for such images; 0 features leave the number open.

        If the size is open and not `known`, windows hold the largest piece of ink that repeats, and
        12×12 pixels.
        """
        most = self._most_features()
        size = known if self.feature_size is None else self.feature_size
        if size is None:
            repeated = size_of_parts(images) if soft is None else soft.repeated
            size = tuple(np.minimum(np.maximum(WINDOW, repeated or 0), images.size).tolist())
        size = check_feature_size(size, images.size, self.border)
        return PartsShape(most or 0, images.n_channels, size, self.border)  # type: ignore[arg-type]

    def _soft_options(self) -> SoftOptions:
        size = self.feature_size
        largest = None if size is None else check_pair("feature_size", size)
        return SoftOptions(largest, self._most_features())

    def _read_stream(self, file: Node) -> None:
        if "known" in file:
            self._stream = SoftStream.read(file, self._soft_options())
            return
        self._stream = stream = PartsStream.read(
            file, check_learning(self, ready=False, algorithms=ALGORITHMS).engine
        )
        if stream.shape.n_channels != self.features_.shape[1]:
            raise ValueError("its stream has other channels than its features")

    def _check_parameters(self) -> None:
        self._most_features()
        if self.feature_size is not None:
            check_pair("feature_size", self.feature_size)
        check_choice("border", self.border, get_args(Border))
        check_priors(self)
        check_learning(self, ready=False, algorithms=ALGORITHMS)
        check_random_state(self.random_state)

    def _warn_if_empty(self) -> None:
        if len(self.features_) or getattr(self, "status_", "") == Status.INTERRUPTED.value:
            return
        if getattr(self, "status_", "") == Status.TIME_LIMIT.value:
            warnings.warn("No part was found in this time: raise max_seconds.", stacklevel=3)
        else:
            warnings.warn(
                "No part was found that shortens the description of X: pass more images, a "
                "feature_size closer to the size of the parts, or other priors.",
                UserWarning,
                stacklevel=3,
            )

    def _store(self, learned: Learned, layer: FeatureLayer, images: Images) -> Self:
        self._forget()
        found = learned.explanation
        order = found.by_use
        rank = np.argsort(order)
        W = np.zeros((0, layer.n_channels, *layer.feature_size), bool)
        W = found.weights()[order] if len(order) else W
        self._publish(PartsModel(W, learned.priors, layer.border, images.size))
        self.placements_ = self._corners(found, images)
        self.placements_[:, 1] = rank[self.placements_[:, 1]] if len(order) else 0
        self.compression_ratio_ = compression_ratio(found.counts, images)
        self.log_joint_ = log_joint(found.counts, learned.priors)
        self.memory_, self.moves_ = learned.memory, learned.moves
        return self._store_run(learned)

    def _store_soft(self, learned: SoftLearned, images: Images) -> Self:
        self._forget()
        self._publish(learned.model)
        self.placements_ = self._corners(learned.explanation, images)
        self.compression_ratio_ = learned.ratio
        self.log_joint_ = learned.model.log_joint(learned.explanation)
        self.memory_, self.moves_ = 0, {}
        return self._store_run(learned)

    @property
    def feature_probabilities_(self) -> NDArray[np.float32]:
        """Of soft parts: the share of their copies in which a pixel is on."""
        model = getattr(self, "_model", None)
        if not isinstance(model, SoftModel):
            raise AttributeError(
                "only soft parts have feature_probabilities_; learn with algorithm='soft'."
            )
        return model.probabilities

    def _knows(self, images: Images) -> bool:
        """Whether these are the images of `placements_`."""
        known = getattr(self, "_learned_from", None)
        return hasattr(self, "placements_") and known == digest(*images.arrays())

    def _publish(self, model: PartsModel | SoftModel) -> Self:
        self._model = model
        self.features_ = model.features
        exact = "mpmp" if self.algorithm == "mpmp" else "refined"
        self.algorithm_ = "soft" if isinstance(model, SoftModel) else exact
        self.part_names_ = check_part_names([""] * len(model.features), len(model.features))
        self.p_S_, self.p_W_ = model.priors.p_S, model.priors.p_W
        self.p01_, self.p10_ = model.priors.p01, model.priors.p10
        return self

    def _model_contents(self) -> Contents:
        contents = super()._model_contents()
        names = check_part_names(self.part_names_, len(self.features_)).tolist()
        more = {"part_names": names} if any(names) else {}
        return Contents(contents.header | more, contents.arrays)

    @classmethod
    def _from_model(cls, parameters: Node, model: Node) -> Self:
        made = super()._from_model(parameters, model)
        if "part_names" in model:
            found = list_of(text(), most=len(made.features_)).read(model["part_names"])
            made.part_names_ = check_part_names(found, len(made.features_))
        return made

    def _corners(self, found: Explanation | SoftExplanation, images: Images) -> NDArray[np.int64]:
        """Placements as rows of image, feature, and the corner of the window in the image."""
        overhang = self._model.layer(images.size).overhang
        return np.asarray(found.placements - np.array([0, 0, *overhang]))

    def _bits_saved(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.float64]:
        """Bits that each of `placements_`, which were learned from X, saves."""
        images = check_images(X, mask, warn=False).images
        overhang = self._model.layer(images.size).overhang
        return self._model.bits_saved(images, self.placements_ + np.array([0, 0, *overhang]))

    def _explain(self, X: ArrayLike, mask: ArrayLike | None) -> tuple[ImageInput, Any]:
        check_is_fitted(self)
        given, channels = check_images(X, mask), self.features_.shape[1]
        if given.images.n_channels != channels:
            raise ValueError(
                f"X has {given.images.n_channels} channels, but the features were learned with "
                f"{channels}; pass images with {channels}."
            )
        check_feature_size(self.features_.shape[2:], given.images.size, self._model.border)
        # Inference breaks ties at random; the same images must always get the same answer.
        rng, most = np.random.default_rng(0), check_max_memory(self.max_memory)
        return given, self._model.explain(given.images, rng, most)

    def _size(self, image_size: Any) -> tuple[int, int]:
        """The size of images to draw: as given, or that of the training images."""
        if image_size is None:
            return self._model.image_size
        size = check_pair("image_size", image_size)
        check_feature_size(self.features_.shape[2:], size, self._model.border)
        return size

    def __sklearn_tags__(self) -> Any:
        tags = takes_images(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = []  # codes are int8, whatever the pixels were
        return tags
