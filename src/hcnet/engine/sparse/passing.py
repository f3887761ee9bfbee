"""A feature layer that stores and updates only messages that are not zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.schedules import Schedule
from hcnet.engine.sparse.lists import enlist_all
from hcnet.engine.sparse.state import LANES, NEVER, NOTHING, Lists, Said, Scratch, Shape
from hcnet.engine.sparse.updates import run_trees
from hcnet.images import FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, start_messages

# Of what a tree tells the kernel, a list of one in so many leaves is stored as such.
SHARE = 16


class Room:
    """Memory for the messages of so many trees, one layer after the other: they are not cleared."""

    def __init__(self, layer: FeatureLayer, n_images: int, n_trees: int) -> None:
        """Nothing of it is touched before it is needed."""
        n = Layout(layer, n_images).leaves
        self.to_field = np.empty((n_trees + 1) * n, np.float32)
        self.to_kernel = np.empty(n_trees * n, np.float32)
        self.whom = np.empty(n_trees * _short(n), np.int32)
        self.what = np.empty(n_trees * _short(n), np.float32)


class SparsePassing:
    """Messages of one feature layer: those of `engine.dense`, tree after tree, undamped."""

    def __init__(
        self,
        layer: FeatureLayer,
        elements: NDArray[np.int32],
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
        room: Room,
    ) -> None:
        """All messages are 0; the other arguments are those of `messages.start_messages`."""
        start = layer, elements, evidence, placement_prior, weight_prior
        self._messages = m = start_messages(*start, keep=False)
        height, width, features, rows, run = m.layout.geometry
        n = m.layout.leaves
        self._shape = Shape(height, width * features, features, rows, run, n, _short(n))
        self._said = Said(
            room.to_field,
            np.full(m.n_trees, NOTHING, np.int32),
            np.full(m.n_trees, NEVER, np.int64),
            np.zeros(m.n_trees, np.int32),
            room.whom,
            room.what,
            room.to_kernel,
        )
        room.to_field[m.n_trees * n : (m.n_trees + 1) * n] = 0
        size, kernel_rows = m.kernel.size, len(m.kernel)
        self._lists = Lists(
            np.empty(size, np.uint32),
            np.empty(size, np.uint32),
            np.full(size, -1, np.int32),
            np.empty(size, np.float32),
            np.zeros(kernel_rows, np.int64),
            np.empty(size, np.uint32),
            np.zeros(kernel_rows, np.int64),
        )
        lanes, best = np.empty(LANES, np.float32), np.empty(rows, np.float32)
        numbers = np.zeros((10, n), np.float32), np.empty((2, n), np.int64)
        self._scratch = Scratch(lanes, best, *numbers[0], *numbers[1])
        self._reach = np.float32(max(-m.evidence.min(initial=0), 0))
        enlist_all(self._shape, m.kernel.reshape(-1), self._lists)

    def sweep(self, rng: np.random.Generator) -> None:
        """Update every tree once."""
        m = self._messages
        for batch in Schedule().batches(m.images, rng):
            run_trees(
                batch.order,
                m.trees,
                m.evidence,
                self._shape,
                m.field.reshape(-1),
                m.kernel.reshape(-1),
                self._said,
                self._lists,
                self._scratch,
                self._reach,
            )

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return self._messages.weight_beliefs()

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return self._messages.placement_beliefs()


def sparse_memory(layer: FeatureLayer, n_images: int, n_trees: int) -> int:
    """Bytes that a layer and its room take if no message is zero, known before a run starts."""
    layout = Layout(layer, n_images)
    n = layout.leaves
    trees = n_trees * (8 * _short(n) + 16)
    lists, scratch = 20 * int(np.prod(layout.kernel_shape)), (10 * 4 + 2 * 8 + 4) * n
    return layout.memory(n_trees) + trees + lists + scratch


def _short(leaves: int) -> int:
    return -(-leaves // SHARE)
