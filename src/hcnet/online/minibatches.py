"""Streams as minibatches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hcnet.images import BoolArray, Images

Item = TypeVar("Item")


@dataclass(frozen=True)
class LabelledImages:
    """Images, and the templates that their labels allow (images, templates)."""

    images: Images
    allowed: BoolArray

    def arrays(self) -> tuple[BoolArray, ...]:
        """All that there is to it."""
        return *self.images.arrays(), self.allowed


def regroup(
    singles: Iterable[Item], size: int, join: Callable[[Sequence[Item]], Item]
) -> Iterator[Item]:
    """Single images into minibatches of so many; only the last may have fewer."""
    waiting: list[Item] = []
    for single in singles:
        waiting.append(single)
        if len(waiting) == size:
            yield join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)


def split(images: Images) -> list[Images]:
    """Images one by one."""
    pixels, observed = images.pixels, images.observed
    return [Images(pixels[k : k + 1], observed[k : k + 1]) for k in range(images.n_images)]


def split_labelled(batch: LabelledImages) -> list[LabelledImages]:
    """Labelled images one by one."""
    return [
        LabelledImages(image, batch.allowed[k : k + 1])
        for k, image in enumerate(split(batch.images))
    ]


def join(parts: Sequence[Images]) -> Images:
    """Images of different sizes side by side: what smaller ones lack counts as not observed."""
    height = max(part.size[0] for part in parts)
    width = max(part.size[1] for part in parts)

    def pad(array: BoolArray) -> BoolArray:
        h, w = height - array.shape[2], width - array.shape[3]
        return np.pad(array, ((0, 0), (0, 0), (0, h), (0, w)))

    return Images(
        np.concatenate([pad(part.pixels) for part in parts]),
        np.concatenate([pad(part.observed) for part in parts]),
    )


def join_labelled(parts: Sequence[LabelledImages]) -> LabelledImages:
    """Labelled images side by side."""
    allowed = np.concatenate([part.allowed for part in parts])
    return LabelledImages(join([part.images for part in parts]), allowed)


def shuffled(singles: Sequence[Item], epochs: int, rng: np.random.Generator) -> Iterator[Item]:
    """A batch as a stream: every image once per epoch, each epoch in another order."""
    for _ in range(epochs):
        for k in rng.permutation(len(singles)):
            yield singles[k]
