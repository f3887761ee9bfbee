"""Streams of images as minibatches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcnet.images import BoolArray, Images


@dataclass(frozen=True)
class Minibatch:
    """Images that are learned from together.

    In a network, `allowed` (images, templates) are the templates that their labels allow.
    """

    images: Images
    allowed: BoolArray | None = None

    def arrays(self) -> tuple[BoolArray | None, ...]:
        """All its arrays."""
        return *self.images.arrays(), self.allowed

    def split(self) -> list[Minibatch]:
        """The images one by one."""

        def cut(array: Any, k: int) -> Any:
            return None if array is None else array[k : k + 1]

        pixels, observed = self.images.arrays()
        return [
            Minibatch(Images(cut(pixels, k), cut(observed, k)), cut(self.allowed, k))
            for k in range(self.images.n_images)
        ]


@dataclass(frozen=True)
class Reading:
    """How a stream is read, and how fast it is forgotten."""

    batch_size: int
    epochs: int | None  # None: once, in the order of the stream
    forgetting: float

    def minibatches(
        self, singles: Iterable[Minibatch], n_images: int | None, rng: np.random.Generator
    ) -> tuple[Iterator[Minibatch], int | None]:
        """Single images as minibatches, and the number of minibatches if it is known."""
        if self.epochs is not None:
            every = list(singles)
            n_images = len(every) * self.epochs
            order = np.random.default_rng(rng.integers(2**32))
            epochs = range(self.epochs)  # in each another order
            singles = (every[k] for _ in epochs for k in order.permutation(len(every)))
        total = None if n_images is None else -(-n_images // self.batch_size)
        return grouped(singles, self.batch_size), total


def grouped(singles: Iterable[Minibatch], size: int) -> Iterator[Minibatch]:
    """Single images in minibatches of `size`; only the last may be smaller."""
    waiting: list[Minibatch] = []
    for single in singles:
        waiting.append(single)
        if len(waiting) == size:
            yield join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)


def join(batches: Sequence[Minibatch]) -> Minibatch:
    """One minibatch of several; smaller images are padded with pixels that are not observed."""
    height, width = (max(batch.images.size[k] for batch in batches) for k in (0, 1))

    def pad(array: BoolArray) -> BoolArray:
        h, w = height - array.shape[2], width - array.shape[3]
        return np.pad(array, ((0, 0), (0, 0), (0, h), (0, w)))

    images = Images(
        np.concatenate([pad(batch.images.pixels) for batch in batches]),
        np.concatenate([pad(batch.images.observed) for batch in batches]),
    )
    allowed = [batch.allowed for batch in batches if batch.allowed is not None]
    return Minibatch(images, np.concatenate(allowed) if allowed else None)
