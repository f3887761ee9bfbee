"""Learning parts from a stream: the online half of `FeatureLearner`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hcnet.engine.driver import Record
from hcnet.images import Images
from hcnet.online.minibatches import join, regroup, shuffled, split
from hcnet.online.parts import BATCH_SIZE, PartsStream, parts_shape
from hcnet.online.process import HISTORY, feed
from hcnet.progress import Bar, Silence
from hcnet.validation.images import check_images
from hcnet.validation.parameters import (
    check_algorithm,
    check_count,
    check_feature_size,
    check_needed,
    check_positive,
    check_priors,
    check_random_state,
    check_share,
)
from hcnet.validation.streams import check_stream

# What learning leaves behind besides the model.
_TRAINING = (
    "placements_",
    "compression_ratio_",
    "log_joint_",
    "n_iter_",
    "history_",
    "status_",
    "memory_",
    "moves_",
    "n_images_seen_",
)


class PartsStreaming:
    """What `FeatureLearner` can do with a stream."""

    _stream: PartsStream | None = None

    if TYPE_CHECKING:  # of the estimator
        n_images_seen_: int
        n_iter_: int
        history_: list[Record]
        status_: str

        def __getattr__(self, name: str) -> Any: ...

    def fit_stream(self, source: Iterable[ArrayLike]) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        `source` is an array (memory-mapped, too), or yields images: one (height, width) or several
        (images, height, width) or (images, channels, height, width) at a time.  They may differ in
        size; NaN is missing.  Files come from `hcnet.datasets.image_files`.  Every image is seen
        once, in minibatches of `batch_size`; in the end (unless `algorithm="mpmp"`) the parts are
        refined on the last images.
        """
        self._forget()
        size = self._minibatch_size()
        total = -(-len(source) // size) if isinstance(source, np.ndarray) else None
        singles = (image for images in check_stream(source) for image in split(images))
        self._learn_stream(regroup(singles, size, join), total)
        return self.refine() if check_algorithm(self.algorithm) == "refined" else self

    def partial_fit(self, X: ArrayLike, y: object = None, mask: ArrayLike | None = None) -> Self:
        """Go on learning with some more images, in minibatches of `batch_size`.

        Parts are as message passing has them by now; `refine` improves them.
        """
        images = check_images(X, mask).images
        self._learn_stream(regroup(split(images), self._minibatch_size(), join), None)
        return self

    def refine(self) -> Self:
        """Improve parts learned from a stream by moves on its last images.

        The stream is left as it is: more images may follow.
        """
        check_is_fitted(self)
        if self._stream is None:
            raise ValueError(
                "refine needs the images of a stream, and there was none: learn with partial_fit "
                "or fit_stream first; fit refines by itself."
            )
        progress = Bar() if self.verbose else Silence()
        try:
            refined = self._stream.refined(
                check_positive("max_seconds", self.max_seconds), progress
            )
        finally:
            progress.close()
        self._publish(refined)
        self._warn_if_empty()
        return self

    def _fit_minibatches(self, images: Images) -> Self:
        self._forget()
        size, epochs = self._minibatch_size(), check_needed("epochs", self.epochs)
        order = np.random.default_rng(check_random_state(self.random_state).integers(2**32))
        stream = regroup(shuffled(split(images), epochs, order), size, join)
        self._learn_stream(stream, -(-images.n_images * epochs // size))
        return self.refine() if check_algorithm(self.algorithm) == "refined" else self

    def _forget(self) -> None:
        """Start anew: what was learned before is gone."""
        self._stream = None
        for name in _TRAINING:
            self.__dict__.pop(name, None)

    def _minibatch_size(self) -> int:
        return check_count("batch_size", self.batch_size, 1, "None for 5") or BATCH_SIZE

    def _learn_stream(self, batches: Iterator[Images], total: int | None) -> None:
        """Go on with the stream, or start one."""
        first = next(batches, None)
        if first is None:
            raise ValueError("The stream holds no image; pass at least one.")
        if self._stream is None:
            self._stream = self._start_stream(first)
        stream = self._stream
        if first.n_channels != stream.shape.n_channels:
            raise ValueError(
                f"X has {first.n_channels} channels, but the stream so far had "
                f"{stream.shape.n_channels}; pass images with {stream.shape.n_channels}."
            )
        progress = Bar() if self.verbose else Silence()
        try:
            outcome = feed(
                stream,
                self._that_fit(itertools.chain([first], batches)),
                progress,
                total=total,
                max_seconds=check_positive("max_seconds", self.max_seconds),
                max_memory=check_count("max_memory", self.max_memory, 1, "None for no limit"),
            )
            self.history_ = [*getattr(self, "history_", []), *outcome.history][-HISTORY:]
            self.status_ = outcome.status.value
        finally:
            progress.close()
            if stream.n_batches:  # also if an item in the middle could not be read
                self._publish(stream.model())
                self.n_images_seen_, self.n_iter_ = stream.n_images, stream.n_batches

    def _start_stream(self, images: Images) -> PartsStream:
        size = check_feature_size(self.feature_size, images.size, self.border)
        most = check_count("n_features", self.n_features, 1, "None to leave it open")
        shape = parts_shape(most, images.n_channels, size, self.border)
        rng = check_random_state(self.random_state)
        forgetting = check_share("forgetting", self.forgetting)
        return PartsStream(shape, check_priors(self), self._options().passing, forgetting, rng)

    def _that_fit(self, batches: Iterable[Images]) -> Iterator[Images]:
        for images in batches:
            check_feature_size(self.feature_size, images.size, self.border)
            yield images
