"""The CUDA engine: what the other engines do, with all arrays in the memory of a GPU.

Arrays of messages and beliefs are runs of numbers there; `Layout` says what is where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hcnet.engine.cuda import arrays, trees
from hcnet.engine.cuda.arrays import DeviceArray, flat, hold
from hcnet.engine.cuda.compilation import THREADS, blocks_for, resident_blocks
from hcnet.engine.cuda.orders import Blocks, Lanes
from hcnet.engine.cuda.pools import CUDAPools
from hcnet.engine.schedules import Batch
from hcnet.messages import MOST_AT_ONCE, Messages

# What becomes of changes of the field and of the kernel.
Changes = tuple[trees.Change, trees.Change]
# Field and kernel, each followed by where those of a lane begin.
Beliefs = tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]


def on_device(messages: Messages) -> Messages:
    """The same messages on the GPU; those of trees that keep none begin with 0."""
    m = messages
    edges = m.n_trees * m.layout.leaves
    kept = m.keeps_messages and m.n_trees > 0
    field_prior, kernel_prior = flat(hold(m.field_prior)), flat(hold(m.kernel_prior))
    return replace(
        m,
        trees=hold(m.trees),
        evidence=hold(m.evidence),
        field_prior=field_prior,
        kernel_prior=kernel_prior,
        field=flat(hold(m.field)),
        kernel=flat(hold(m.kernel)),
        to_field=flat(hold(m.to_field)) if kept else arrays.zeros((edges,)),
        to_kernel=flat(hold(m.to_kernel)) if kept else arrays.zeros((edges,)),
    )


class CUDAEngine(CUDAPools):
    """One GPU.

    Lanes that share weights have copies of them, and what each has changed is added up in their
    order; or, unless it is to be `deterministic`, they add to the same weights at the same time.
    """

    def __init__(self, deterministic: bool = True) -> None:
        self.deterministic = deterministic
        self._room: DeviceArray = None
        self._offsets: dict[tuple[int, int, int], DeviceArray] = {}

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Update the messages of the trees of a batch and the beliefs that they enter."""
        if len(batch.order) == 0 or messages.layout.leaves == 0:
            return
        if batch.simultaneous:
            self.simultaneous(messages, hold(batch.order), damping)
            return
        self.lanes(messages, [Lanes.of(batch.order, batch.lanes)], damping)

    def lanes(self, m: Messages, rounds: Sequence[Lanes], damping: float) -> None:
        """Lanes at the same time; each works through its trees one after the other.

        After each round they hear of each other, unless they add to the same beliefs anyway.
        """
        sharing = rounds[0].sharing
        shared: trees.Change = "shared" if sharing > 1 and not self.deterministic else "own"
        weights_in_kernel = m.layout.kernel_is_weights
        changes: Changes = ("own", shared) if weights_in_kernel else (shared, "own")
        beliefs, merge = self._copies(m, rounds[0], self.deterministic)
        for k, lanes in enumerate(rounds):
            self._run(m, lanes, changes, beliefs, (m.field, m.field), damping)
            merge(k + 1 < len(rounds))

    def blocks(self, m: Messages, blocks: Blocks, sequence: DeviceArray, damping: float) -> None:
        """Blocks one after the other; the trees of each at the same time."""
        held = self._space(blocks.largest * m.layout.leaves)
        trees.blocks_kernel()[resident_blocks(), trees.BLOCK_THREADS](
            sequence,
            blocks.first,
            blocks.order,
            m.trees,
            m.evidence,
            m.layout.geometry,
            m.field,
            m.kernel,
            m.to_field,
            m.to_kernel,
            held,
            np.float32(damping),
        )

    def simultaneous(self, m: Messages, order: DeviceArray, damping: float) -> None:
        """All trees at once, from the same beliefs."""
        seen_field, seen_kernel = m.field, m.kernel
        if order.size > MOST_AT_ONCE:  # later chunks must not see what earlier ones changed
            seen_field, seen_kernel = arrays.copied(seen_field), arrays.copied(seen_kernel)
        for first in range(0, order.size, MOST_AT_ONCE):
            chunk = order[first : first + MOST_AT_ONCE]
            self._chunk(m, chunk, seen_field, seen_kernel, damping)

    def collect(self, messages: Messages, lanes: Lanes | None = None) -> None:
        """Put the sums of all messages, without the priors, in place of the beliefs."""
        m = messages
        if lanes is None:
            lanes = Lanes.of(np.arange(m.n_trees), np.array([0, m.n_trees]))
        arrays.clear(m.field)
        arrays.clear(m.kernel)
        if m.n_trees == 0 or m.layout.leaves == 0:
            return
        threads, _ = trees.threads_for(m.layout.leaves)
        beliefs, merge = self._copies(m, lanes)
        which = lanes.order, lanes.begin, lanes.end, m.trees, m.layout.geometry
        trees.add_messages[lanes.begin.size, threads](*which, *beliefs, m.to_field, m.to_kernel)
        merge(False)

    def trees_to_R(self, messages: Messages) -> DeviceArray:
        """Messages from the trees to R, one per tree."""
        m = messages
        out = arrays.empty((m.n_trees,))
        threads, _ = trees.threads_for(m.layout.leaves)
        if m.n_trees:
            trees.trees_to_R[blocks_for(m.n_trees, 1), threads](
                m.trees, m.layout.geometry, m.field, m.kernel, m.to_field, m.to_kernel, out
            )
        return out

    def _copies(
        self, m: Messages, lanes: Lanes, wanted: bool = True
    ) -> tuple[Beliefs, Callable[[bool], None]]:
        """Beliefs for lanes to work on, of which those that lanes share are copies.

        Field and kernel, each with the offset at which those of a lane begin; and what merges the
        copies into the beliefs, and makes them copies again if there is more to come.
        """
        nowhere = self._numbers(lanes.begin.size, 0, 1)
        whole = m.kernel if m.layout.kernel_is_weights else m.field
        copies, own, merge = self.copies(whole, m.layout.n_starts, lanes, wanted)
        if m.layout.kernel_is_weights:
            return (m.field, nowhere, copies, own), merge
        return (copies, own, m.kernel, nowhere), merge

    def copies(
        self, whole: DeviceArray, n_starts: int, lanes: Lanes, wanted: bool = True
    ) -> tuple[DeviceArray, DeviceArray, Callable[[bool], None]]:
        """Copies of what the lanes of a start share, if they are wanted and it is shared.

        With the offset at which those of a lane begin, and what merges them into the whole.
        """
        if lanes.sharing == 1 or not wanted:
            return whole, self._numbers(lanes.begin.size, 0, 1), lambda again: None
        size = whole.size // n_starts
        copies = self._space(lanes.begin.size * size)
        trees.spread[blocks_for(copies.size), THREADS](whole, lanes.sharing, size, copies)

        def merge(again: bool) -> None:
            across = blocks_for(whole.size)
            trees.merge[across, THREADS](copies, lanes.sharing, size, whole, again)

        return copies, self._numbers(lanes.begin.size, size, lanes.sharing), merge

    def _chunk(
        self,
        m: Messages,
        order: DeviceArray,
        seen_field: DeviceArray,
        seen_kernel: DeviceArray,
        damping: float,
    ) -> None:
        n, count = m.layout.leaves, order.size
        space = self._space(2 * count * n)
        held_field, held_kernel = space[: count * n], space[count * n :]
        numbers, nowhere = self._numbers(count + 1, 1, count + 1), self._numbers(count, 0, 1)
        lanes = Lanes(order, numbers[:-1], numbers[1:], 1)
        beliefs = (seen_field, nowhere, seen_kernel, nowhere)
        self._run(m, lanes, ("held", "held"), beliefs, (held_field, held_kernel), damping)
        trees.add_held_kernel[blocks_for(m.kernel.size), THREADS](
            order, m.trees, held_kernel, n, m.kernel
        )
        trees.add_held_field[blocks_for(m.field.size), THREADS](
            order, m.trees, held_field, m.layout.geometry, m.field
        )

    def _run(
        self,
        m: Messages,
        lanes: Lanes,
        changes: Changes,
        beliefs: Beliefs,
        held: tuple[DeviceArray, DeviceArray],
        damping: float,
    ) -> None:
        threads, leaves = trees.threads_for(m.layout.leaves)
        even = threads * leaves == m.layout.leaves
        trees.lane_kernel(threads, leaves, even, *changes)[lanes.begin.size, threads](
            lanes.order,
            lanes.begin,
            lanes.end,
            m.trees,
            m.evidence,
            m.layout.geometry,
            *beliefs,
            m.to_field,
            m.to_kernel,
            *held,
            np.float32(damping),
        )

    def _numbers(self, count: int, step: int, group: int) -> DeviceArray:
        """Where the copies of lanes begin, so many numbers apart, less where those of a start do.

        The lanes of a group share the weights of one start.
        """
        key = count, step, group
        if key not in self._offsets:
            lane = np.arange(count)
            self._offsets[key] = hold((lane - lane // group) * step)
        return self._offsets[key]

    def _space(self, size: int) -> DeviceArray:
        """Room for so many numbers, kept for the next time."""
        if self._room is None or self._room.size < size:
            self._room = None  # not both at a time
            self._room = arrays.empty((size,))
        return self._room[:size]
