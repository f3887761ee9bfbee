"""Learning a network from a stream: the online half of `HCN`."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hcnet.archive.generators import saveable
from hcnet.checkpoint import EVERY, Checkpoint, text_digest
from hcnet.estimators.streaming import Streaming
from hcnet.hierarchy.explaining import agreeing
from hcnet.images import Images
from hcnet.online.minibatches import (
    LabelledImages,
    join_labelled,
    regroup,
    shuffled,
    split_labelled,
)
from hcnet.online.network import BATCH_SIZE, NetworkStream
from hcnet.validation.images import check_images
from hcnet.validation.network import (
    UNLABELLED,
    Labels,
    check_known_labels,
    check_labels,
    check_stream_classes,
)
from hcnet.validation.parameters import (
    check_needed,
    check_share,
)
from hcnet.validation.streams import check_item, in_item, stream_items, stream_length


class NetworkStreaming(Streaming):
    """What `HCN` can do with a stream."""

    _stream: NetworkStream | None = None
    _default_batch_size = BATCH_SIZE
    _training = (
        "templates_",
        "log_joint_",
        "n_iter_",
        "history_",
        "status_",
        "seconds_",
        "memory_",
        "n_images_seen_",
    )

    def fit_stream(
        self,
        source: Iterable[Any],
        *,
        classes: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        every: float = EVERY,
    ) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        `source` is an array (memory-mapped, too), or yields images, alone or with their labels,
        ``(X, y)``; -1 is no label, NaN is missing.  `classes` are all labels that may come; without
        them those of the first item.  Every image is seen once, in minibatches of `batch_size`,
        with `max_iter` passes (None: 20) over each.

        With a `checkpoint` as in `fit`.  The same call must get the same images again: those that
        were learned from already are read and passed over.
        """
        data = None if classes is None else text_digest(repr(classes))
        with self._keeping(checkpoint, every, "fit_stream", data) as keeper:
            return self._fit_pairs(source, classes, keeper)

    def _fit_pairs(
        self, source: Iterable[Any], classes: ArrayLike | None, keeper: Checkpoint | None
    ) -> Self:
        items = _pairs(source)
        first = next(items, None)
        if first is None:
            raise ValueError("The stream holds no image; pass at least one.")
        stream = self._start_stream(*first, classes, keeper)
        pairs = itertools.chain([first], items)
        singles = (
            one
            for number, (images, y) in enumerate(pairs)
            for one in split_labelled(_labelled(stream, images, y, number))
        )
        total = stream_length(source, self._minibatch_size())
        return self._learn_stream(stream, singles, total, keeper)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Go on learning with some more images, in minibatches of `batch_size`.

        The first call starts a stream anew, also after `fit`.  `classes` are all labels that may
        come; without them those of the y of the first call.
        """
        images = check_images(X, mask).images
        if self._stream is None:
            stream = self._start_stream(images, y, classes)
        else:
            stream = self._continued(classes)
        return self._learn_stream(stream, split_labelled(_labelled(stream, images, y)), None)

    def _fit_minibatches(self, images: Images, labels: Labels, keeper: Checkpoint | None) -> Self:
        epochs, size = check_needed("epochs", self.epochs), self._minibatch_size()
        order = np.random.default_rng(self._generator(keeper).integers(2**32))
        stream = self._new_stream(images, labels, keeper)
        allowed = agreeing(stream.network, labels.codes)
        singles = split_labelled(LabelledImages(images, allowed))
        total = -(-len(singles) * epochs // size)
        return self._learn_stream(stream, shuffled(singles, epochs, order), total, keeper)

    def _start_stream(
        self,
        images: Images,
        y: ArrayLike | None,
        classes: ArrayLike | None,
        keeper: Checkpoint | None = None,
    ) -> NetworkStream:
        labels = (
            check_labels(y, images.n_images, self._n_classes())
            if classes is None
            else Labels(
                check_stream_classes(classes, self._n_classes()),
                np.full(images.n_images, UNLABELLED),
            )
        )
        return self._new_stream(images, labels, keeper)

    def _new_stream(
        self, images: Images, labels: Labels, keeper: Checkpoint | None
    ) -> NetworkStream:
        if self.algorithm != "mpmp":
            raise ValueError(
                f"Only algorithm='mpmp' learns from a stream or in minibatches, got "
                f"{self.algorithm!r}; change it with set_params, or call fit with all images and "
                f"batch_size=None."
            )
        rng = saveable(self._generator(keeper))
        network, options = self._build(images, labels, rng)
        forgetting = check_share("forgetting", self.forgetting)
        stream = NetworkStream(network, labels.classes, options, forgetting, rng)
        stream.made_for = self._structure()
        if stream.dead:
            warnings.warn(stream.dead, UserWarning, stacklevel=4)
        return stream

    def _continued(self, classes: ArrayLike | None) -> NetworkStream:
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
        options = self._options(stream.options.damping, ready=True)
        stream.configure(options, check_share("forgetting", self.forgetting))
        return stream

    def _structure(self) -> tuple[Any, ...]:
        """Parameters that a stream depends on for good."""
        return list(self.layers), self.templates_per_class, self.p01, self.p10

    def _learn_stream(
        self,
        stream: NetworkStream,
        singles: Iterable[LabelledImages],
        total: int | None,
        keeper: Checkpoint | None = None,
    ) -> Self:
        size = self._minibatch_size()
        self._feed(stream, regroup(singles, size, join_labelled), total, keeper=keeper)
        return self


def _pairs(source: Any) -> Iterator[tuple[Images, ArrayLike | None]]:
    """Items of a stream: images, and their labels if there are any."""
    channels = None
    for number, item in enumerate(stream_items(source)):
        X, y = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
        images = check_item(X, number, channels)
        channels = images.n_channels
        yield images, y if y is None or np.ndim(y) else [y]


def _labelled(
    stream: NetworkStream, images: Images, y: ArrayLike | None, number: int | None = None
) -> LabelledImages:
    """Images with what their labels allow; `number` is that of the item of a stream."""
    network, n = stream.network, images.n_images
    with nullcontext() if number is None else in_item(number):
        if (images.n_channels, *images.size) != (network.n_channels, *network.image_size):
            raise ValueError(
                f"X has {images.n_channels} channels of {images.size[0]}×{images.size[1]} pixels, "
                f"but the stream so far had {network.n_channels} of {network.image_size[0]}×"
                f"{network.image_size[1]}; pass such images."
            )
        codes = np.full(n, UNLABELLED) if y is None else check_known_labels(y, n, stream.classes)
    return LabelledImages(images, agreeing(network, codes))
