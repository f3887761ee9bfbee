"""In which order trees are updated, and which of them see each other's messages.

A sweep updates every tree once.  A schedule cuts it into batches.  Within a batch the trees
lie in lanes: a lane works through its trees one after the other, seeing what it has already
changed; what other lanes change is seen when the batch is over.  A batch's result therefore
depends on its lanes and not on how many threads work on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.driver import look
from hcnet.names import SCHEDULE_NAMES as SCHEDULE_NAMES
from hcnet.names import ScheduleName as ScheduleName

# A graphics card needs many trees to work on at the same time.
GPU_SCHEDULE: ScheduleName = "per-image"
# Rounds per sweep in which images exchange what they learned about W.  At 14×14 pixels this
# lets each image run about ten trees ahead of the others: benchmarks/NOTES.md has the figures.
ROUNDS = 20
# Trees that a block updates at once.  Undamped, blocks of 100 learn worse than one tree at a time,
# and all trees at once learn nothing: benchmarks/NOTES.md has the figures.
BLOCK_SIZE = 100
# Trees are stored in random order; a sweep visits runs of this many neighbours in a new random
# order, so that memory is read in long stretches (30 % faster than tree by tree).
RUN = 16
# Runs that are listed at a time; between two a sweep can be ended.
CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class Batch:
    """Trees updated together.

    ``order[lanes[k]:lanes[k+1]]`` is lane k.  A ``simultaneous`` batch has one tree a lane;
    otherwise no two lanes hold trees of the same image.
    """

    order: NDArray[np.int64]
    lanes: NDArray[np.int64]
    simultaneous: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a sweep is cut into batches."""

    name: ScheduleName = "sequential"
    rounds: int = ROUNDS
    block_size: int = BLOCK_SIZE
    shuffle: bool = True  # otherwise trees come in the order in which they are stored
    # Nobody asked for it: an engine may take one that suits it better.  What is kept for a schedule
    # is the same, whoever has chosen it.
    preset: bool = field(default=False, compare=False)

    def lanes(self, n_images: int) -> int:
        """Most lanes of a batch that have beliefs of W of their own."""
        return n_images if self.name == "per-image" else 1

    def batches(self, owners: NDArray[np.int32], rng: np.random.Generator) -> Iterator[Batch]:
        """Batches of one sweep; ``owners[k]`` is the image of tree k."""
        order = _shuffled_runs(len(owners), rng) if self.shuffle else np.arange(len(owners))
        whole = np.array([0, len(order)])
        if self.name == "sequential":
            yield Batch(order, whole)
        elif self.name == "blocks":
            for start in range(0, len(order), self.block_size):
                block = order[start : start + self.block_size]
                yield Batch(block, np.arange(len(block) + 1), simultaneous=True)
        else:
            yield from self._per_image(order[np.argsort(owners[order], kind="stable")], owners)

    def _per_image(self, by_image: NDArray[np.int64], owners: NDArray[np.int32]) -> Iterator[Batch]:
        counts = np.bincount(owners)
        starts = np.cumsum(counts) - counts
        if np.count_nonzero(counts) <= 1:  # nobody to exchange with
            yield Batch(by_image, np.array([0, len(by_image)]))
            return
        for k in range(self.rounds):
            first = starts + counts * k // self.rounds
            last = starts + counts * (k + 1) // self.rounds
            parts = [by_image[a:b] for a, b in zip(first, last, strict=True) if b > a]
            if parts:
                lanes = np.cumsum([0] + [len(part) for part in parts])
                yield Batch(np.concatenate(parts), lanes)


def _shuffled_runs(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    run = RUN if n > 64 * RUN else 1
    starts = rng.permutation(-(-n // run)) * run
    parts = [np.empty(0, np.int64)]
    for k in range(0, len(starts), CHUNK):
        look()
        part = (starts[k : k + CHUNK, None] + np.arange(run)).ravel()
        parts.append(part[part < n])
    return np.concatenate(parts)
