"""Learning a network from a stream: the online half of `HCN`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hcnet.archive.kinds import saveable
from hcnet.checkpoint import EVERY, Checkpoint, text_digest
from hcnet.estimators.base import Estimator
from hcnet.hierarchy.explaining import agreeing
from hcnet.images import Images
from hcnet.online.minibatches import Minibatch, grouped
from hcnet.online.network_stream import BATCH_SIZE, FORGETTING, NetworkStream
from hcnet.validation.images import check_images
from hcnet.validation.network import (
    UNLABELLED,
    Labels,
    check_known_labels,
    check_labels,
    check_stream_classes,
)
from hcnet.validation.streams import (
    check_item,
    check_reading,
    in_item,
    stream_items,
    stream_length,
)


class NetworkStreaming(Estimator):
    """The half of `HCN` that learns from streams."""

    _stream: NetworkStream | None = None

    if TYPE_CHECKING:  # of the estimator

        def __getattr__(self, name: str) -> Any: ...

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
        epochs : int or None, default=None
            None reads the source once, in its order.  A number reads all images into memory, and
            learns from each so many times, in random order.
        forgetting : float, default=0.7
            λ: share of the beliefs that the next minibatch starts from.
        checkpoint, every
            As in `fit`.  The same call must get the same images again: those that were learned
            from already are skipped.

        """
        reading = check_reading(batch_size, epochs, forgetting)
        data = None if classes is None else text_digest(repr(classes))
        settings = asdict(reading)
        with self._keeping(checkpoint, every, "fit_stream", data, settings) as keeper:
            items = _pairs(source)
            first = next(items, None)
            if first is None:
                raise ValueError("The stream holds no image; pass at least one.")
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

    def _start_stream(
        self,
        images: Images,
        y: ArrayLike | None,
        classes: ArrayLike | None,
        forgetting: float,
        keeper: Checkpoint | None = None,
    ) -> NetworkStream:
        if self.algorithm != "mpmp":
            raise ValueError(
                f"Only algorithm='mpmp' learns from a stream, got {self.algorithm!r}; change it "
                f"with set_params, or call fit with all images."
            )
        n, n_classes = images.n_images, self._n_classes()
        if classes is None:
            labels = check_labels(y, n, n_classes)
        else:
            labels = Labels(check_stream_classes(classes, n_classes), np.full(n, UNLABELLED))
        rng = saveable(self._generator(keeper))
        network, options = self._build(images, labels, rng)
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
        options = self._options(stream.options.damping, ready=True)
        stream.configure(options, forgetting)
        return stream

    def _structure(self) -> tuple[Any, ...]:
        """Parameters that must not change within a stream."""
        return list(self.layers), self.templates_per_class, self.p01, self.p10


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
) -> Minibatch:
    """Images with the templates that their labels allow; `number` is that of a stream's item."""
    network, n = stream.network, images.n_images
    with nullcontext() if number is None else in_item(number):
        if (images.n_channels, *images.size) != (network.n_channels, *network.image_size):
            raise ValueError(
                f"X has {images.n_channels} channels of {images.size[0]}×{images.size[1]} pixels, "
                f"but the stream so far had {network.n_channels} of {network.image_size[0]}×"
                f"{network.image_size[1]}; pass such images."
            )
        codes = np.full(n, UNLABELLED) if y is None else check_known_labels(y, n, stream.classes)
    return Minibatch(images, agreeing(network, codes))
