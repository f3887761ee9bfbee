"""Learning a network from a stream: the online half of `HCN`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hcnet.engine.driver import Record
from hcnet.hierarchy.explaining import agreeing
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.network import Network
from hcnet.images import Images
from hcnet.online.minibatches import (
    LabelledImages,
    join_labelled,
    regroup,
    shuffled,
    split_labelled,
)
from hcnet.online.network import BATCH_SIZE, NetworkStream
from hcnet.online.process import HISTORY, feed
from hcnet.progress import Bar, Silence
from hcnet.validation.images import check_images
from hcnet.validation.network import Labels, check_known_labels, check_labels
from hcnet.validation.parameters import (
    check_count,
    check_needed,
    check_positive,
    check_random_state,
    check_share,
)
from hcnet.validation.streams import check_item, stream_items


class NetworkStreaming:
    """What `HCN` can do with a stream."""

    _stream: NetworkStream | None = None

    if TYPE_CHECKING:  # of the estimator
        classes_: Any
        n_images_seen_: int
        n_iter_: int
        history_: list[Record]
        status_: str

        def __getattr__(self, name: str) -> Any: ...

    def fit_stream(self, source: Iterable[Any], classes: ArrayLike | None = None) -> Self:
        """Learn from images that come one after the other, in memory that does not grow.

        `source` is an array (memory-mapped, too), or yields images, alone or with their labels,
        ``(X, y)``; -1 is no label, NaN is missing.  `classes` are all labels that may come; without
        them those of the first item.  Every image is seen once, in minibatches of `batch_size`,
        with `max_iter` passes (None: 20) over each.
        """
        self._stream = None
        items = self._labelled_items(source, classes)
        first = next(items, None)
        if first is None:
            raise ValueError("The stream holds no image; pass at least one.")
        total = (
            -(-len(source) // self._minibatch_size()) if isinstance(source, np.ndarray) else None
        )
        singles = (one for item in itertools.chain([first], items) for one in split_labelled(item))
        return self._learn_stream(singles, total)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Go on learning with some more images, in minibatches of `batch_size`.

        `classes` are all labels that may come, in the first call; without them those of its y.
        """
        images = check_images(X, mask).images
        batch = self._labelled(images, y, classes)
        return self._learn_stream(iter(split_labelled(batch)), None)

    def _fit_minibatches(self, images: Images, labels: Labels) -> Self:
        self._stream = None
        epochs, size = check_needed("epochs", self.epochs), self._minibatch_size()
        order = np.random.default_rng(check_random_state(self.random_state).integers(2**32))
        self._start_stream(images, labels)
        singles = split_labelled(
            LabelledImages(images, agreeing(self._streaming_network(), labels.codes))
        )
        total = -(-len(singles) * epochs // size)
        return self._learn_stream(shuffled(singles, epochs, order), total)

    def _minibatch_size(self) -> int:
        return check_count("batch_size", self.batch_size, 1, "None for 50") or BATCH_SIZE

    def _labelled_items(self, source: Any, classes: ArrayLike | None) -> Iterator[LabelledImages]:
        channels = None
        for number, item in enumerate(stream_items(source)):
            X, y = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
            images = check_item(X, number, channels)
            channels = images.n_channels
            yield self._labelled(images, y, classes)

    def _labelled(
        self, images: Images, y: ArrayLike | None, classes: ArrayLike | None
    ) -> LabelledImages:
        """Images with what their labels allow; the first ones start the stream."""
        n = images.n_images
        if self._stream is None:
            if classes is None:
                known = check_labels(y, n, self._n_classes())
            else:
                names = np.unique(np.asarray(classes))
                known = Labels(names, np.full(n, -1))
            self._start_stream(images, known)
        network = self._streaming_network()
        if (images.n_channels, *images.size) != (network.n_channels, *network.image_size):
            raise ValueError(
                f"X has {images.n_channels} channels of {images.size[0]}×{images.size[1]} pixels, "
                f"but the stream so far had {network.n_channels} of {network.image_size[0]}×"
                f"{network.image_size[1]}; pass such images."
            )
        codes = np.full(n, -1) if y is None else check_known_labels(y, n, self._stream_classes)
        return LabelledImages(images, agreeing(network, codes))

    def _streaming_network(self) -> Network:
        assert self._stream is not None
        return self._stream.network

    def _start_stream(self, images: Images, labels: Labels) -> None:
        rng = check_random_state(self.random_state)
        network, options = self._build(images, labels, rng)
        forgetting = check_share("forgetting", self.forgetting)
        self._stream = NetworkStream(network, options, forgetting, rng)
        self._stream_classes = labels.classes

    def _learn_stream(self, singles: Iterable[LabelledImages], total: int | None) -> Self:
        stream = self._stream
        assert stream is not None
        history = list(getattr(self, "history_", [])) if stream.n_batches else []
        progress = Bar() if self.verbose else Silence()
        status = ""
        try:
            outcome = feed(
                stream,
                regroup(singles, self._minibatch_size(), join_labelled),
                progress,
                total=total,
                max_seconds=check_positive("max_seconds", self.max_seconds),
                max_memory=check_count("max_memory", self.max_memory, 1, "None for no limit"),
            )
            history, status = [*history, *outcome.history][-HISTORY:], outcome.status.value
        finally:
            progress.close()
            if stream.n_batches:  # also if an item in the middle could not be read
                model = NetworkModel(stream.network, stream.weights(), self._stream_classes)
                self._publish(model)
                self.n_images_seen_, self.n_iter_ = stream.n_images, stream.n_batches
                self.history_, self.status_ = history, status
        return self
