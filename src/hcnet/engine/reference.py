"""The reference engine: plain Python over the factor functions, readable and slow.

It computes in double precision, one leaf at a time, and is what the other engines are
tested against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcnet import factors
from hcnet.engine import planes
from hcnet.engine.base import PoolUpdater
from hcnet.engine.driver import look
from hcnet.engine.schedules import Batch
from hcnet.grid import FLOAT, pool_share, to_steps
from hcnet.images import FloatArray
from hcnet.messages import Messages, PoolMessages

Array = NDArray[np.floating]

Item = TypeVar("Item")

_TO_STEPS = to_steps(np.double)


def _each(items: Iterable[Item]) -> Iterator[Item]:
    """One after the other; between two a run can be ended."""
    for item in items:
        look()
        yield item


class ReferenceEngine(PoolUpdater):
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
            for k in _each(batch.order[batch.lanes[lane] : batch.lanes[lane + 1]]):
                change = self._update_tree(m, int(k), field, kernel, damping)
                targets = [(m.field, m.kernel)]
                if not batch.simultaneous:
                    targets.append((field, kernel))
                for field_belief, kernel_belief in targets:
                    self._add(m, int(k), field_belief, kernel_belief, *change)

    def collect(self, messages: Messages) -> None:
        """Put the sums of all messages, without the priors, in place of the beliefs."""
        m = messages
        m.field[:] = 0
        m.kernel[:] = 0
        for k in _each(range(m.n_trees)):
            self._add(m, k, m.field, m.kernel, m.to_field[k], m.to_kernel[k])

    def trees_to_R(self, messages: Messages) -> FloatArray:
        """Messages from the trees to R, one per tree."""
        m, n = messages, messages.layout.leaves
        down = np.empty(m.n_trees, FLOAT)
        for k in _each(range(m.n_trees)):
            s = self._window(m, k, m.field).ravel() - m.to_field[k].astype(float)
            w = m.kernel[m.trees[k, 1]] - m.to_kernel[k].astype(float)
            down[k] = np.clip(factors.tree_down(s, w, [0.0] * n, n), -factors.HUGE, factors.HUGE)
        return down

    def or_to_U(self, pools: PoolMessages, below: FloatArray) -> None:
        """Messages from OR to U, given the messages up to the S below."""
        for n, b, y, x in _each(np.ndindex(below.shape)):
            image = below[n], pools.from_pool[n], pools.to_U[n]
            planes.or_to_U(b, y, x, *image, pools.window, _scratch(pools))

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Messages from POOL to R; the largest change of one."""
        before, share = pools.to_R.copy(), pool_share(damping)
        for n, a, r, c in _each(np.ndindex(before.shape)):
            planes.pool_to_R(a, r, c, pools.to_U[n], pools.log_prior, pools.to_R[n], share)
        return self.largest(pools.to_R - before)

    def pool_to_U(self, pools: PoolMessages, above: FloatArray) -> None:
        """Messages from POOL to U, given the messages that R sends down."""
        for n, a, r, c in _each(np.ndindex(above.shape)):
            image = pools.to_U[n], above[n], pools.log_prior, pools.from_pool[n]
            planes.pool_to_U(a, r, c, *image, _scratch(pools))

    def or_to_S(self, pools: PoolMessages) -> FloatArray:
        """Messages from OR down to the S below."""
        down = np.empty((len(pools.to_R), pools.layer.n_below, *pools.layer.below_size), FLOAT)
        for n, b, y, x in _each(np.ndindex(down.shape)):
            planes.or_to_S(b, y, x, pools.from_pool[n], down[n], pools.window, _scratch(pools))
        return down

    def class_to_S(self, log_prior: FloatArray, up: FloatArray, exclusive: bool) -> FloatArray:
        """Messages from the class layer to the templates, given those that come up."""
        down = up.reshape(len(up), -1).astype(FLOAT)
        for k in range(len(up)):
            planes.class_to_S(down[k], log_prior[k], exclusive)
        return down.reshape(up.shape)

    @staticmethod
    def _window(m: Messages, k: int, array: Array) -> Array:
        """The leaves of tree k in a field-shaped array, as (kernel height, run) view."""
        field, _, r, c = m.trees[k]
        F, (kh, kw) = m.layout.layer.n_features, m.layout.kernel_size
        return array[field, r : r + kh, c * F : (c + kw) * F]

    def _update_tree(
        self, m: Messages, k: int, field: Array, kernel: Array, damping: float
    ) -> tuple[Array, Array]:
        old_field: Any
        old_kernel: Any
        old_field, old_kernel = np.zeros((2, m.layout.leaves))
        if m.keeps_messages:
            old_field[:], old_kernel[:] = m.to_field[k], m.to_kernel[k]
        s: Any = self._window(m, k, field).ravel() - old_field
        w: Any = kernel[m.trees[k, 1]] - old_kernel
        n = m.layout.leaves
        factors.tree_messages(float(m.evidence[k]), s, w, [0.0] * n, n)
        # Of arrays as of numbers, and in double precision.
        new_field = factors.damped(old_field, s, damping, _TO_STEPS)
        new_kernel = factors.damped(old_kernel, w, damping, _TO_STEPS)
        if m.keeps_messages:
            m.to_field[k] = new_field
            m.to_kernel[k] = new_kernel
        return new_field - old_field, new_kernel - old_kernel

    def _add(
        self, m: Messages, k: int, field: Array, kernel: Array, d_field: Array, d_kernel: Array
    ) -> None:
        window = self._window(m, k, field)
        window += d_field.reshape(window.shape)
        kernel[m.trees[k, 1]] += d_kernel


def _scratch(pools: PoolMessages) -> list[float]:
    return [0.0] * pools.layer.n_members
