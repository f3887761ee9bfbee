"""Lanes: trees that one warp visits one after the other, in a random order.

Trees are stored image by image.  A sweep goes through the trees of a lane in steps of a random
length that is coprime with their number, so that each tree is visited once, and a new order for
all lanes costs two random numbers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.cuda.arrays import DeviceArray, empty, hold
from hcnet.engine.cuda.compilation import THREADS, blocks_for, kernel

_LONGEST_STEP = 2**31


class Lanes:
    """All trees, cut into lanes; a lane is visited in `rounds` parts."""

    def __init__(self, firsts: NDArray[np.int64], rounds: int = 1) -> None:
        """``firsts[k]:firsts[k + 1]`` are the trees of lane k."""
        start, count = firsts[:-1], np.diff(firsts)
        cuts = [hold(start + count * k // rounds) for k in range(rounds + 1)]
        self.n = len(start)
        self.rounds = list(itertools.pairwise(cuts))  # first and last tree of all lanes
        self.order: DeviceArray = empty((int(firsts[-1]),), np.int64)
        self._begin, self._end = cuts[0], cuts[-1]
        self._most = int(count.max(initial=1))
        self._counts = [int(n) for n in np.unique(count) if n]

    def arrange(self, rng: np.random.Generator | None) -> None:
        """Put the trees of all lanes in a new order; without a generator, in that of storage."""
        step, ahead = 1, 0
        if rng is not None:
            step, ahead = (int(z) for z in rng.integers(1, _LONGEST_STEP, 2))
        while any(math.gcd(step, n) > 1 for n in self._counts):
            step += 1
        _arrange[(blocks_for(self._most), blocks_for(self.n, 1)), THREADS](
            self._begin, self._end, np.int64(step), np.int64(ahead), self.order
        )


@kernel
def _arrange(begin, end, step, ahead, order):
    # There may be more lanes than a grid has rows.
    for lane in range(cuda.blockIdx.y, begin.size, cuda.gridDim.y):
        first, n = begin[lane], end[lane] - begin[lane]
        for i in range(cuda.grid(1), n, cuda.gridDim.x * cuda.blockDim.x):
            # Lanes of the same length start at different trees.
            order[first + i] = first + (step * i + ahead * (lane + 1)) % n


@kernel
def copy_to_lanes(W, copies):
    """Make a copy of W for every lane."""
    for z in range(cuda.grid(1), copies.size, cuda.gridsize(1)):
        copies[z] = W[z % W.size]


@kernel
def merge_lanes(copies, W, again):
    """Add the changes that lanes made in their copies to W, in the order of the lanes.

    The copies are brought up to date if they are needed `again`.
    """
    for z in range(cuda.grid(1), W.size, cuda.gridsize(1)):
        before, total = W[z], np.float32(0)
        for copy in range(z, copies.size, W.size):
            total += copies[copy] - before
        W[z] = before + total
        if again:
            for copy in range(z, copies.size, W.size):
                copies[copy] = before + total
