"""A feature layer all of whose messages are stored: the reference of the active set."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Stateful
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.driver import look
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import Batch, Schedule
from hcnet.factors import HUGE
from hcnet.images import FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Messages, chunks, filled, start_messages

# Beliefs are running sums of float32 messages; every so many sweeps they are added up anew.
REBUILD_EVERY = 10
# A float32 belief of this size still holds its messages to a thousandth.
LARGEST_EXACT = 1e4

# Attributes of `Messages` that a run changes.
_SAVED = (
    *("evidence", "field_prior", "kernel_prior"),
    *("field", "kernel", "to_field", "to_kernel", "quiet"),
)


TreeEngine = CPUEngine | ReferenceEngine
Step = tuple[Callable[[float], None], float]  # a function and the share that it takes


def rebuild(engine: TreeEngine, messages: Messages) -> None:
    """Recompute the beliefs from the messages, against the drift of float32."""
    engine.collect(messages)
    messages.add_priors()


class DensePassing(Stateful):
    """Messages of one feature layer (`engine.base.FeaturePassing`)."""

    def __init__(
        self,
        engine: TreeEngine,
        layer: FeatureLayer,
        elements: NDArray[np.int32],
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
        keep: bool = True,
        memory: FloatArray | None = None,
    ) -> None:
        """All messages are 0; the arguments are those of `messages.start_messages`."""
        self._engine = engine
        self._shape = evidence.shape
        self._elements = np.empty(len(elements), np.int64)
        for rows in chunks(len(elements)):
            self._elements[rows] = np.ravel_multi_index(tuple(elements[rows].T), evidence.shape)
        self._messages = start_messages(
            layer, elements, evidence, placement_prior, weight_prior, keep, memory
        )
        self._sweeps = 0
        self._fresh = True  # the beliefs have been added up since the last sweep
        self._sums = np.zeros_like(self._messages.field), np.zeros_like(self._messages.kernel)

    def saved_fields(self, finished: bool) -> Fields:
        """All messages and beliefs."""
        return {
            "_sweeps": kinds.whole_number(),
            "_fresh": kinds.flag(),
            "_messages": kinds.attributes({name: kinds.array_in_place() for name in _SAVED}),
            "_sums": kinds.each_of([kinds.array_in_place(), kinds.array_in_place()]),
        }

    def set_evidence(self, evidence: FloatArray) -> None:
        """New evidence for R."""
        flat = evidence.reshape(-1)
        for rows in chunks(len(self._elements)):
            self._messages.evidence[rows] = flat[self._elements[rows]]

    def set_placement_prior(self, placement_prior: FloatArray) -> None:
        """Another prior of S."""
        m = self._messages
        m.field[:], m.kernel[:] = self._sums
        m.set_placement_prior(placement_prior)
        m.add_priors()

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        m = self._messages
        if self._sweeps and self._sweeps % REBUILD_EVERY == 0 and not self._fresh:
            rebuild(self._engine, m)
            self._add_unstored()
        look()
        field, kernel = m.field.copy(), m.kernel.copy()
        for first, batch in self._batches(schedule, rng, damping):
            for update, share in first:
                update(share)
            self._engine.update(m, batch, damping)
        self._sweeps += 1
        self._fresh = m.fresh = False
        field -= m.field
        kernel -= m.kernel
        return float(max(max(d.max(initial=0), -d.min(initial=0)) for d in (field, kernel)))

    def _batches(
        self, schedule: Schedule, rng: np.random.Generator, damping: float
    ) -> Iterator[tuple[list[Step], Batch]]:
        """The trees to update, all of them once, each batch with the steps that come before it."""
        for batch in schedule.batches(self._messages.images, rng):
            yield [], batch

    def _add_unstored(self) -> None:
        """Add what was said without a message to beliefs that were added up anew: here nothing."""

    def up(self) -> FloatArray:
        """Sums of the messages to S: (images, features, height, width).

        Beliefs minus priors, unless a prior is so large that it has swallowed messages; and added
        up anew every so often, against the drift of float32.
        """
        m, layout = self._messages, self._messages.layout
        priors = layout.from_field(m.field_prior), layout.from_kernel(m.kernel_prior)
        small = max(float(np.abs(prior).max()) for prior in priors) < LARGEST_EXACT
        if small and self._sweeps % REBUILD_EVERY:
            m.field -= m.field_prior
            m.kernel -= m.kernel_prior
        else:
            self._engine.collect(m)
            self._add_unstored()
            self._fresh = True
        sums = np.array(m.placement_beliefs(), order="C")
        self._sums = m.field.copy(), m.kernel.copy()
        m.add_priors()
        return sums

    def down(self, least: float = -HUGE) -> FloatArray:
        """Messages to R: (images, channels, height, width); minus infinity without a tree."""
        out, down = filled(self._shape, -HUGE), self._engine.trees_to_R(self._messages)
        flat = out.reshape(-1)
        for rows in chunks(len(down)):
            flat[self._elements[rows]] = down[rows]
        return out

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return self._messages.placement_beliefs()

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return self._messages.weight_beliefs()

    def placements(self) -> NDArray[np.int64]:
        """(placements, 4): image, feature, row and column of the S that are on."""
        return np.argwhere(self.placement_beliefs() > 0).astype(np.int64)
