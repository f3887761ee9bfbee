"""In which order blocks of threads work through trees, decided on the GPU.

Trees are stored start by start and image by image, in random order within each.  A sweep goes
through the trees of a lane in steps of a random length that has no divisor in common with their
number, so that each comes once, from a random one on: a new order costs two random numbers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.cuda.arrays import DeviceArray, empty, hold
from hcnet.engine.cuda.compilation import THREADS, blocks_for, kernel
from hcnet.engine.schedules import Schedule
from hcnet.messages import Messages

_LONGEST_STEP = 2**31
# Schedules whose lanes are the same in every sweep; others make their batches anew.
IN_LANES = ("sequential", "per-image")


@dataclass(frozen=True, eq=False)
class Lanes:
    """Trees that blocks of threads work through at the same time.

    Trees ``order[begin[k]:end[k]]`` are lane k; so many lanes in a row share the weights of a
    start.
    """

    order: DeviceArray
    begin: DeviceArray
    end: DeviceArray
    sharing: int

    @classmethod
    def of(cls, order: NDArray[np.int64], firsts: NDArray[np.int64]) -> Lanes:
        """Lanes of one start: trees ``order[firsts[k]:firsts[k + 1]]`` are lane k."""
        return cls(hold(order), hold(firsts[:-1]), hold(firsts[1:]), len(firsts) - 1)


@dataclass(eq=False)
class Order:
    """The lanes of a sweep.  ``first[k]:first[k + 1]`` are the trees of lane k."""

    first: NDArray[np.int64]
    sharing: int
    rounds: int  # after which lanes hear of each other
    _begin: list[DeviceArray] = field(init=False)

    def __post_init__(self) -> None:
        start, count = self.first[:-1], np.diff(self.first)
        cuts = [start + count * k // self.rounds for k in range(self.rounds + 1)]
        self._begin = [hold(cut) for cut in cuts]
        self._order = empty((int(self.first[-1]),), np.int64)
        self._counts = [int(n) for n in np.unique(count) if n]

    def whole(self) -> Lanes:
        """All trees of every lane, in the order in which they are stored."""
        self._fill(1, 0)
        return Lanes(self._order, self._begin[0], self._begin[-1], self.sharing)

    def rounds_of(self, rng: np.random.Generator | None) -> list[Lanes]:
        """The rounds of a sweep: in a new order, or without a generator as trees are stored."""
        step, ahead = 1, 0
        if rng is not None:
            step, ahead = (int(z) for z in rng.integers(1, _LONGEST_STEP, 2))
        while any(math.gcd(step, n) > 1 for n in self._counts):
            step += 1
        self._fill(step, ahead)
        return [
            Lanes(self._order, begin, end, self.sharing)
            for begin, end in itertools.pairwise(self._begin)
        ]

    def _fill(self, step: int, ahead: int) -> None:
        lanes = len(self.first) - 1
        most = int(np.diff(self.first).max(initial=1))
        _fill_order[(blocks_for(most), blocks_for(lanes, 1)), THREADS](
            self._begin[0], self._begin[-1], np.int64(step), np.int64(ahead), self._order
        )


@kernel
def _fill_order(begin: Any, end: Any, step: Any, ahead: Any, order: Any) -> None:
    # There may be more lanes than a grid can be high.
    for lane in range(cuda.blockIdx.y, begin.size, cuda.gridDim.y):
        first, n = begin[lane], end[lane] - begin[lane]
        for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
            # Lanes of the same length begin at different places.
            order[first + i] = first + (step * i + ahead * (lane + 1)) % n


def order_of(
    schedule: Schedule, owners: NDArray[np.int32], n_images: int, n_starts: int, copying: bool
) -> Order:
    """The lanes of a schedule; `owners` are the images of all trees, which are sorted by them.

    With `copying`, lanes that share weights hear of each other after every round.
    """
    if schedule.name == "per-image":
        firsts = np.searchsorted(owners, np.arange(n_starts * n_images + 1))
        return Order(firsts, n_images, schedule.rounds if copying and n_images > 1 else 1)
    return Order(np.searchsorted(owners, np.arange(n_starts + 1) * n_images), 1, 1)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Trees that are updated at the same time: ``order[first[c]:first[c + 1]]`` are block c."""

    order: DeviceArray
    first: DeviceArray
    largest: int

    @property
    def n(self) -> int:
        """Number of blocks."""
        return int(self.first.size) - 1


def colours(m: Messages, most: int, rng: np.random.Generator) -> Blocks:
    """Blocks of at most so many trees of which no two share a placement; W must be the kernel.

    They are of the same channel, and their pixels lie a whole number of windows apart.
    """
    order = rng.permutation(m.n_trees)
    (height, width), trees = m.layout.kernel_size, m.trees[order]
    colour = (trees[:, 1] * height + trees[:, 2] % height) * width + trees[:, 3] % width
    by_colour = np.argsort(colour, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(colour[by_colour])) + 1, m.n_trees)
    first = [0]
    for end in ends.tolist():
        first += [*range(first[-1] + most, end, most), end]
    largest = int(np.diff(first).max(initial=1))
    return Blocks(hold(order[by_colour]), hold(np.array(first)), largest)
