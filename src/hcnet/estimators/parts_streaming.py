"""Learning parts from a stream: the online half of `FeatureLearner`."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hcnet.archive.generators import saveable
from hcnet.checkpoint import EVERY, Checkpoint
from hcnet.estimators.streaming import Streaming
from hcnet.images import Images
from hcnet.online.minibatches import join, regroup, shuffled, split
from hcnet.online.parts import BATCH_SIZE, PartsStream, parts_shape
from hcnet.validation.images import check_images
from hcnet.validation.parameters import (
    check_algorithm,
    check_count,
    check_feature_size,
    check_needed,
    check_positive,
    check_priors,
    check_share,
)
from hcnet.validation.streams import check_stream, stream_length


class PartsStreaming(Streaming):
    """What `FeatureLearner` can do with a stream."""

    _stream: PartsStream | None = None
    _default_batch_size = BATCH_SIZE
    _training = (
        "placements_",
        "compression_ratio_",
        "log_joint_",
        "n_iter_",
        "history_",
        "status_",
        "seconds_",
        "memory_",
        "moves_",
        "n_images_seen_",
    )

    def fit_stream(
        self,
        source: Iterable[ArrayLike],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        `source` is an array (memory-mapped, too), or yields images: one (height, width) or several
        (images, height, width) or (images, channels, height, width) at a time.  They may differ in
        size; NaN is missing.  Files come from `hcnet.datasets.image_files`.  Every image is seen
        once, in minibatches of `batch_size`; in the end (unless `algorithm="mpmp"`, or time was up)
        the parts are refined on the last images.

        With a `checkpoint` as in `fit`.  The same call must get the same images again: those that
        were learned from already are read and passed over.
        """
        size = self._minibatch_size()
        singles = (image for images in check_stream(source) for image in split(images))
        with self._keeping(checkpoint, every, "fit_stream") as keeper:
            batches, total = regroup(singles, size, join), stream_length(source, size)
            self._learn_stream(batches, total, anew=True, keeper=keeper)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, mask: ArrayLike | None = None) -> Self:
        """Go on learning with some more images, in minibatches of `batch_size`.

        The first call starts a stream anew, also after `fit`.  Parts are as message passing has
        them by now; `refine` improves them.
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
        progress = self._watching()
        try:
            seconds = check_positive("max_seconds", self.max_seconds)
            refined = self._stream.refined(seconds, progress)
        finally:
            progress.close()
        self._publish(refined)
        self._warn_if_empty()
        return self

    def _fit_minibatches(self, images: Images, keeper: Checkpoint | None) -> Self:
        size, epochs = self._minibatch_size(), check_needed("epochs", self.epochs)
        order = np.random.default_rng(self._generator(keeper).integers(2**32))
        batches = regroup(shuffled(split(images), epochs, order), size, join)
        total = -(-images.n_images * epochs // size)
        self._learn_stream(batches, total, anew=True, keeper=keeper)
        return self

    def _learn_stream(
        self,
        batches: Iterator[Images],
        total: int | None,
        anew: bool = False,
        keeper: Checkpoint | None = None,
    ) -> None:
        """Go on with the stream, or start one `anew`, which is then refined when it ends."""
        first = next(batches, None)
        if first is None:
            raise ValueError("The stream holds no image; pass at least one.")
        stream = self._stream_for(first, anew or self._stream is None, keeper)
        refine = anew and check_algorithm(self.algorithm) == "refined"
        fitting = _that_fit(itertools.chain([first], batches), stream)
        self._feed(stream, fitting, total, stream.refined if refine else None, keeper)
        if refine:
            self._warn_if_empty()

    def _stream_for(
        self, images: Images, fresh: bool, keeper: Checkpoint | None = None
    ) -> PartsStream:
        """The stream so far, or a new one for images such as these."""
        most = check_count("n_features", self.n_features, 1, "None to leave it open")
        size = check_feature_size(self.feature_size, images.size, self.border)
        shape = parts_shape(most, images.n_channels, size, self.border)
        options, forgetting = (
            self._options(ready=True).passing,
            check_share("forgetting", self.forgetting),
        )
        if fresh or self._stream is None:
            rng = saveable(self._generator(keeper))
            stream = PartsStream(shape, check_priors(self), options, forgetting, rng)
            if stream.dead:
                warnings.warn(stream.dead, UserWarning, stacklevel=4)
            return stream
        stream = self._stream
        if images.n_channels != stream.shape.n_channels:
            raise ValueError(
                f"X has {images.n_channels} channels, but the stream so far had "
                f"{stream.shape.n_channels}; pass images with {stream.shape.n_channels}."
            )
        if shape != stream.shape:
            raise ValueError(
                f"n_features, feature_size and border cannot change within a stream, which has "
                f"{stream.shape.n_features}, {stream.shape.feature_size} and "
                f"{stream.shape.border!r}; set them back, or start anew with fit_stream."
            )
        stream.configure(options, forgetting)
        return stream


def _that_fit(batches: Iterable[Images], stream: PartsStream) -> Iterator[Images]:
    for images in batches:
        check_feature_size(stream.shape.feature_size, images.size, stream.shape.border)
        yield images
