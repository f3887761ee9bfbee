"""What the beliefs of many starts decode to, counted on the GPU.

Features are the fastest axis of field and kernel, so that a belief's number says which feature it
belongs to; a pixel is covered if both leaves of one of its ANDs are on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.arrays import DeviceArray, hold
from hcnet.engine.cuda.compilation import THREADS, blocks_for, kernel
from hcnet.engine.cuda.trees import field_at, kernel_at, threads_for
from hcnet.messages import Messages

IntArray = NDArray[np.int64]


def on_per_feature(m: Messages, weights: bool) -> IntArray:
    """How many placements, or weights, of every start and feature are on: (starts, features)."""
    beliefs = m.kernel if weights == m.layout.kernel_is_weights else m.field
    starts, features = m.layout.n_starts, m.layout.layer.n_features
    counts = hold(np.zeros((starts, features), np.int64))
    _count_on[blocks_for(beliefs.size), THREADS](beliefs, beliefs.size // starts, features, counts)
    return arrays.fetch(counts)


def tally(m: Messages, starts_of: DeviceArray) -> IntArray:
    """Observed pixels that are hit, missed, false and empty, of every start: (starts, 4).

    `starts_of` are the starts of the trees.
    """
    counts = hold(np.zeros((m.layout.n_starts, 4), np.int64))
    if m.n_trees and m.layout.leaves:
        threads, _ = threads_for(m.layout.leaves)
        _tally[blocks_for(m.n_trees, 1), threads](
            m.trees,
            m.evidence,
            m.layout.geometry,
            m.field,
            m.kernel,
            starts_of,
            counts,
        )
    return arrays.fetch(counts)


@kernel
def _count_on(beliefs: Any, size: Any, features: Any, counts: Any) -> None:
    for z in range(cuda.grid(1), beliefs.size, cuda.gridsize(1)):
        if beliefs[z] > np.float32(0):
            cuda.atomic.add(counts, (z // size, z % features), 1)


@kernel
def _tally(
    trees: Any,
    evidence: Any,
    shape: Any,
    field: Any,
    weights: Any,
    starts_of: Any,
    counts: Any,
) -> None:
    covered = cuda.shared.array(1, np.int32)
    width, row = np.uint64(shape[4]), np.uint64(shape[1] * shape[2])
    n = np.uint64(shape[3]) * width
    for number in range(cuda.blockIdx.x, trees.shape[0], cuda.gridDim.x):
        k = np.uint64(number)
        at, at_kernel = field_at(trees, k, shape), kernel_at(trees, k, n)
        if cuda.threadIdx.x == 0:
            covered[0] = 0
        cuda.syncthreads()
        for leaf in range(cuda.threadIdx.x, shape[3] * shape[4], cuda.blockDim.x):
            j = np.uint64(leaf)
            placed = field[at + j // width * row + j % width] > np.float32(0)
            if placed and weights[at_kernel + j] > np.float32(0):
                covered[0] = 1  # whoever says so says the same
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            on = evidence[k] > np.float32(0)
            kind = (0 if covered[0] else 1) if on else (2 if covered[0] else 3)
            cuda.atomic.add(counts, (starts_of[k], kind), 1)
        cuda.syncthreads()
