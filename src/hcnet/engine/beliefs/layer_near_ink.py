"""A feature layer of which only trees near ink have messages; all others speak from beliefs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields
from hcnet.engine.beliefs import sums
from hcnet.engine.beliefs.sums import evidence_against, trees_without_ink
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.schedules import Batch, Schedule
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of

# A sweep is cut into so many blocks.  Before each, messages from trees without ink to weights move
# this share of the way; in full steps they oscillate, and nothing is learned.
BLOCKS = 10
# What they tell placements costs more, and moves further in every so many blocks only.
BLOCKS_PER_TURN = 2
# Leaves of listed trees that are worth a thread of their own.
_WORK = 2**20


class BeliefPassing(DensePassing):
    """Messages of one feature layer (`engine.base.FeaturePassing`).

    Trees near ink are updated as the dense engine does.  The others hear only evidence against
    their pixels, and what they say follows from it and from beliefs (`beliefs.sums`): their own
    messages are not taken out of these before.  Nor do they say anything to the pixels below.
    """

    def __init__(
        self,
        layer: FeatureLayer,
        ink: BoolArray,
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
        rng: np.random.Generator,
        same_order: bool = False,
    ) -> None:
        """All messages are 0.

        `ink` says which elements of R may ever hear that they are on, and have messages; evidence 0
        elsewhere is that of elements which are not observed.  The other arguments are those of
        `messages.start_messages`.
        """
        trees = trees_of(ink, rng, same_order)
        super().__init__(CPUEngine(), layer, trees, evidence, placement_prior, weight_prior)
        self._ink = ink
        m = self._messages
        self._sums_without_ink = np.zeros_like(m.field), np.zeros_like(m.kernel)
        self._without_ink = trees_without_ink(evidence_against(evidence, ink))

    def saved_fields(self, finished: bool) -> Fields:
        """Also the evidence and the sums of trees without ink."""
        evidence = kinds.array(FLOAT, self._without_ink.evidence.shape, finite=False)
        return {
            **super().saved_fields(finished),
            "_sums_without_ink": kinds.each_of([kinds.array_in_place(), kinds.array_in_place()]),
            "_without_ink": kinds.converted(
                evidence, lambda without_ink: without_ink.evidence, trees_without_ink
            ),
        }

    def set_evidence(self, evidence: FloatArray) -> None:
        """New evidence for R."""
        super().set_evidence(evidence)
        self._without_ink = trees_without_ink(evidence_against(evidence, self._ink))

    def _batches(
        self, schedule: Schedule, rng: np.random.Generator, damping: float
    ) -> Iterator[Batch]:
        m = self._messages
        for k, batch in in_blocks(schedule.batches(m.images, rng), m.n_trees):
            if k is not None:
                self._update_weight_sums(damping / BLOCKS)
                if k % BLOCKS_PER_TURN == 0:
                    self._update_placement_sums(damping * BLOCKS_PER_TURN / BLOCKS)
            yield batch

    def _add_unstored(self) -> None:
        field, kernel = self._sums_without_ink
        self._messages.field += field
        self._messages.kernel += kernel

    def _update_weight_sums(self, share: float) -> None:
        """Move what trees without ink tell weights, given the beliefs of placements."""
        m, without_ink = self._messages, self._without_ink.arrays
        shape, channels = m.layout.geometry, m.layout.layer.n_channels
        field, kernel = m.field.reshape(-1), m.kernel.reshape(-1)
        field_sums, kernel_sums = (array.reshape(-1) for array in self._sums_without_ink)
        how = FLOAT(share)
        if m.layout.kernel_is_weights:
            beliefs = field, kernel
            sums.kernel_sums_of_placements(channels, shape, without_ink, *beliefs, kernel_sums, how)
        else:
            total = self._of_common_evidence(kernel).reshape(-1, shape[2]).sum(axis=0, dtype=float)
            beliefs = kernel, field
            sums.field_sums_of_placements(
                channels, shape, without_ink, total, *beliefs, field_sums, how
            )

    def _update_placement_sums(self, share: float) -> None:
        """Move what trees without ink tell placements, given the beliefs of weights."""
        m, without_ink = self._messages, self._without_ink.arrays
        shape, images = m.layout.geometry, m.layout.n_images
        field, kernel = m.field.reshape(-1), m.kernel.reshape(-1)
        field_sums, kernel_sums = (array.reshape(-1) for array in self._sums_without_ink)
        how = FLOAT(share)
        if m.layout.kernel_is_weights:
            passed = self._of_common_evidence(kernel)
            window = passed.reshape(-1, *m.layout.kernel_size, shape[2]).sum(axis=0, dtype=float)
            corners = np.zeros((window.shape[0] + 1, window.shape[1] + 1, shape[2]))
            corners[1:, 1:] = window.cumsum(axis=0).cumsum(axis=1)
            work = len(self._without_ink.listed) * m.layout.leaves
            bands = int(np.clip(work // _WORK, 1, images * shape[0]))
            fixed = shape, without_ink, corners, passed
            sums.field_sums_of_weights(bands, bands, *fixed, kernel, field, field_sums, how)
        else:
            passed = self._of_common_evidence(field)
            total = passed.reshape(-1, shape[1] * shape[2]).sum(axis=0, dtype=float)
            total = total.reshape(-1, shape[2]).sum(axis=0)
            fixed = shape, without_ink, total, passed
            sums.kernel_sums_of_weights(images, *fixed, field, kernel, kernel_sums, how)

    def _of_common_evidence(self, beliefs: FloatArray) -> FloatArray:
        """What the common evidence becomes on its way past every variable."""
        out = np.empty_like(beliefs)
        sums.pass_on(beliefs, self._without_ink.common, out)
        return out


def in_blocks(batches: Iterable[Batch], n_trees: int) -> Iterator[tuple[int | None, Batch]]:
    """Batches, each with the number of the block that begins with it, if one does.

    A lane by itself is cut where blocks begin; other batches stay whole.
    """
    size = max(n_trees / BLOCKS, 1)
    seen, blocks = 0, 0
    for batch in batches:
        alone = len(batch.lanes) == 2 and not batch.simultaneous
        parts = np.array_split(batch.order, round(len(batch.order) / size) or 1) if alone else []
        for part in parts or [batch.order]:
            begins = seen + len(part) / 2 >= blocks * size  # most of it, at least
            piece = Batch(part, np.array([0, len(part)])) if alone else batch
            yield (blocks if begins else None), piece
            blocks += begins
            seen += len(part)


def belief_memory(layer: FeatureLayer, n_images: int, n_ink: int, lanes: int = 1) -> int:
    """Bytes that so many trees with messages take, and the others, known before a run starts.

    Beside what the dense engine counts: the sums of all messages and of those of trees without ink,
    what weights pass on; and for each tree evidence, where it is, if it is listed, and what it
    takes to list it.
    """
    layout = Layout(layer, n_images)
    beliefs = int(np.prod(layout.field_shape)) + int(np.prod(layout.kernel_shape))
    trees = n_images * layer.n_channels * int(np.prod(layer.image_size))
    return layout.memory(n_ink, lanes) + 3 * 4 * beliefs + 30 * trees
