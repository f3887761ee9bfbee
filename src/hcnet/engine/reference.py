"""The reference engine: plain Python over the factor functions, readable and slow.

It computes in double precision, one leaf at a time, and is what the other engines are
tested against.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet import factors
from hcnet.engine.schedules import Batch
from hcnet.messages import Messages

Array = NDArray[np.floating]


class ReferenceEngine:
    """Plain Python; for tests and for reading."""

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Update the messages of the trees of a batch and the beliefs that they enter."""
        m = messages
        seen_field, seen_kernel = m.field.copy(), m.kernel.copy()
        shared_is_kernel = m.layout.kernel_is_weights
        for lane in range(len(batch.lanes) - 1):
            # What this lane sees: the beliefs at the start of the batch, then its own changes.
            field, kernel = seen_field, seen_kernel
            if not batch.simultaneous:
                # Placements belong to one lane alone; weights are shared by all of them.
                field = seen_field.copy() if not shared_is_kernel else seen_field
                kernel = seen_kernel.copy() if shared_is_kernel else seen_kernel
            for k in batch.order[batch.lanes[lane] : batch.lanes[lane + 1]]:
                change = self._update_tree(m, int(k), field, kernel, damping)
                targets = [(m.field, m.kernel)]
                if not batch.simultaneous:
                    targets.append((field, kernel))
                for field_belief, kernel_belief in targets:
                    self._add(m, int(k), field_belief, kernel_belief, *change)

    def rebuild(self, messages: Messages) -> None:
        """Recompute the beliefs from the messages."""
        m = messages
        m.field[:] = m.field_prior
        m.kernel[:] = m.kernel_prior
        for k in range(m.n_trees):
            self._add(m, k, m.field, m.kernel, m.to_field[k], m.to_kernel[k])

    @staticmethod
    def _window(m: Messages, k: int, array: Array) -> Array:
        """The leaves of tree k in a field-shaped array, as (kernel height, run) view."""
        field, _, r, c = m.trees[k]
        F, (kh, kw) = m.layout.layer.n_features, m.layout.kernel_size
        return array[field, r : r + kh, c * F : (c + kw) * F]

    def _update_tree(
        self, m: Messages, k: int, field: Array, kernel: Array, damping: float
    ) -> tuple[Array, Array]:
        old_field = m.to_field[k].astype(float)
        old_kernel = m.to_kernel[k].astype(float)
        s = self._window(m, k, field).ravel() - old_field
        w = kernel[m.trees[k, 1]] - old_kernel
        n = m.layout.leaves
        factors.tree_messages(float(m.evidence[k]), s, w, [0.0] * n, n)
        new_field = (1 - damping) * old_field + damping * s
        new_kernel = (1 - damping) * old_kernel + damping * w
        m.to_field[k] = new_field
        m.to_kernel[k] = new_kernel
        return new_field - old_field, new_kernel - old_kernel

    def _add(
        self, m: Messages, k: int, field: Array, kernel: Array, d_field: Array, d_kernel: Array
    ) -> None:
        window = self._window(m, k, field)
        window += d_field.reshape(window.shape)
        kernel[m.trees[k, 1]] += d_kernel
