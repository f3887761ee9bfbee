"""A feature layer of which only trees near ink have messages; all others speak from beliefs.

The OR of a tree without ink passes its evidence e on to all its ANDs as it is: the message to a
placement is ``and_up(W, e)``, that to a weight ``and_up(S, e)``.  With the beliefs of S and W, in
which the tree's own messages are contained, these are sums for which nothing has to be stored.

If all trees had the *common* evidence, the sum of the messages to a placement would be the same
sum over its weights everywhere, less what lies beyond the border; *listed* trees correct that.
Only placements that are on send messages to weights, and these are few.

Sums move a share of the way from what they were to what the beliefs make of them, and the beliefs
that contain them move along.  There is a function for each direction and each layout
(`messages.Layout`); a job of a loop owns the sums that it moves, so that threads do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields
from hcnet.engine.cpu import CPUEngine, flat
from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger, parallel
from hcnet.engine.dense import DensePassing, Step
from hcnet.engine.schedules import Batch, Schedule
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of

_and_up = compiled.and_up

# A sweep is cut into so many blocks.  Before each, messages from trees without ink to weights move
# this share of the way; in full steps they oscillate, and nothing is learned.
BLOCKS = 10
# What they tell placements costs more, and moves further in every so many blocks only.
BLOCKS_PER_TURN = 2
# Leaves of listed trees that are worth a thread of their own.
_WORK = 2**20

# Trees whose median evidence is called common.  Any would do, since trees with other evidence are
# listed; the more have it, the shorter the list.
_SAMPLE = 1001


class TreesWithoutInk(NamedTuple):
    """The evidence of trees without ink, and a list of those with another than most of them have.

    Trees that have messages are listed as well, with evidence 0: from here they say nothing.
    """

    evidence: FloatArray  # (images, channels, height, width); 0 where a tree says nothing
    common: np.float32
    lines: NDArray[np.int64]  # where each row of each plane begins in the two below
    columns: NDArray[np.int32]
    listed: FloatArray


def trees_without_ink(evidence: FloatArray) -> TreesWithoutInk:
    """All of it is against the pixels; 0 is none, and of trees that have messages."""
    against = evidence[evidence < 0]
    sample = np.sort(against[:: max(len(against) // _SAMPLE, 1)])
    common = sample[len(sample) // 2] if len(sample) else FLOAT(0)
    rows, width = int(np.prod(evidence.shape[:3])), evidence.shape[3]
    flat = evidence.reshape(-1)
    found = np.flatnonzero(flat != common)
    lines = np.searchsorted(found, np.arange(rows + 1) * width)
    return TreesWithoutInk(evidence, common, lines, (found % width).astype(np.int32), flat[found])


@inlined
def _highest(field, at, n):
    """The largest belief of a run of the field."""
    first = FLOAT(-HUGE)
    for j in range(n):
        first = larger(first, field[at + j])
    return first


@entry
def pass_on(beliefs, e, out):
    """What evidence e becomes on its way past every variable."""
    for k in range(beliefs.size):
        out[k] = _and_up(beliefs[k], e)


@inlined
def _move(sums, beliefs, at, new, n, share):
    """Sums of messages, and the beliefs that they are part of, a share of the way."""
    for j in range(n):
        change = share * (new[j] - sums[at + j])
        sums[at + j] += change
        beliefs[at + j] += change


@inlined
def _correct(beliefs, of_common, at, e, out, out_at, n):
    """Take from some sums what a tree would say as common, and add what it says with evidence e."""
    for j in range(n):
        out[out_at + j] -= of_common[at + j]
    if e < 0:
        for j in range(n):
            out[out_at + j] += _and_up(beliefs[at + j], e)


@parallel
def field_sums_of_weights(
    first, last, bands, shape, without_ink, corners, of_common, kernel, field, sums, share
):
    """Placements, in the field, hear of weights, in the kernel; a job is a band of rows.

    `of_common` is what each weight passes on of the common evidence, `corners` (height + 1,
    width + 1, features) its sum over all channels up to a row and a column of the flipped window.
    """
    evidence, _, lines, columns, listed = without_ink
    height, width, F, rows, run = shape
    images, channels, H, W = evidence.shape
    new = np.empty(width * F, FLOAT)
    for line in range(first * images * height // bands, last * images * height // bands):
        n, y = line // height, line % height
        top, bottom = max(y - H + 1, 0), min(y + 1, rows)
        for x in range(width):
            left, right = max(x - W + 1, 0), min(x + 1, run // F)
            for f in range(F):
                total = corners[bottom, right, f] - corners[top, right, f]
                total += corners[top, left, f] - corners[bottom, left, f]
                new[x * F + f] = total
        for a in range(channels):
            for i in range(top, bottom):
                plane_row = (n * channels + a) * H + y - i
                source = np.uint64((a * rows + i) * run)
                for z in range(lines[plane_row], lines[plane_row + 1]):
                    target = np.uint64(columns[z] * F)
                    _correct(kernel, of_common, source, listed[z], new, target, np.uint64(run))
        _move(sums, field, np.uint64(line * width * F), new, np.uint64(width * F), share)


@parallel
def kernel_sums_of_weights(
    first, last, shape, without_ink, total, of_common, field, kernel, sums, share
):
    """Placements, in the kernel, hear of weights, in the field; a job is an image.

    Here all windows lie on the image: the sum over all trees with the common evidence is the same
    for all positions, `total`, one for each feature.
    """
    evidence, _, lines, columns, listed = without_ink
    height, width, F, rows, run = shape
    channels, H = evidence.shape[1], evidence.shape[2]
    leaves = np.uint64(rows * run)
    new = np.empty(leaves, FLOAT)
    for n in range(first, last):
        for j in range(rows * run // F):
            for f in range(F):
                new[j * F + f] = total[f]
        for a in range(channels):
            for r in range(H):
                plane_row = (n * channels + a) * H + r
                for z in range(lines[plane_row], lines[plane_row + 1]):
                    for i in range(rows):
                        source = np.uint64(((a * height + r + i) * width + columns[z]) * F)
                        target = np.uint64(i * run)
                        _correct(field, of_common, source, listed[z], new, target, np.uint64(run))
        _move(sums, kernel, np.uint64(n) * leaves, new, leaves, share)


@parallel
def kernel_sums_of_placements(first, last, shape, without_ink, field, kernel, sums, share):
    """Weights, in the kernel, hear of placements, in the field; a job is a channel."""
    evidence = without_ink[0]
    height, width, F, rows, run = shape
    images, _, H, W = evidence.shape
    leaves = np.uint64(rows * run)
    for a in range(first, last):
        new = np.zeros(leaves, FLOAT)
        for place in range(images * height * width):
            at = np.uint64(place * F)
            if _highest(field, at, np.uint64(F)) <= 0:
                continue
            x, y, n = place % width, place // width % height, place // (width * height)
            for f in range(F):
                s = field[at + np.uint64(f)]
                if s <= 0:
                    continue
                for i in range(max(y - H + 1, 0), min(y + 1, rows)):
                    for j in range(max(x - W + 1, 0), min(x + 1, run // F)):
                        new[i * run + j * F + f] += _and_up(s, evidence[n, a, y - i, x - j])
        _move(sums, kernel, np.uint64(a) * leaves, new, leaves, share)


@parallel
def field_sums_of_placements(first, last, shape, without_ink, total, kernel, field, sums, share):
    """Weights, in the field, hear of placements, in the kernel; a job is a channel.

    Here all windows lie on the image: with the common evidence everywhere, all placements of a
    feature would tell all its weights the same, `total`.
    """
    evidence, common, lines, columns, listed = without_ink
    height, width, F, rows, run = shape
    images, channels, H = evidence.shape[0], evidence.shape[1], evidence.shape[2]
    size = height * width * F
    for a in range(first, last):
        new = np.empty(size, FLOAT)
        for k in range(height * width):
            for f in range(F):
                new[k * F + f] = total[f]
        for k in range(images * rows * run):
            s = kernel[k]
            if s <= 0:
                continue
            n, i, x = k // (rows * run), k // run % rows, k % run
            of_common = _and_up(s, common)
            for r in range(H):
                plane_row = (n * channels + a) * H + r
                at = (r + i) * width * F + x
                for z in range(lines[plane_row], lines[plane_row + 1]):
                    new[at + columns[z] * F] += _and_up(s, listed[z]) - of_common
        _move(sums, field, np.uint64(a * size), new, np.uint64(size), share)


class BeliefPassing(DensePassing):
    """Messages of one feature layer (`engine.base.FeaturePassing`).

    Trees near ink are updated as the dense engine does.  The others hear only evidence against
    their pixels, and what they say follows from it and from beliefs (see above): their own
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
        self.set_evidence(evidence)

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
        """New evidence for R; that of trees without ink cannot be for a pixel."""
        super().set_evidence(evidence)
        against = np.minimum(evidence, FLOAT(0), dtype=FLOAT)
        against[self._ink] = 0
        self._without_ink = trees_without_ink(np.ascontiguousarray(against))

    def _batches(
        self, schedule: Schedule, rng: np.random.Generator, damping: float
    ) -> Iterator[tuple[list[Step], Batch]]:
        m = self._messages
        for k, batch in in_blocks(schedule.batches(m.images, rng), m.n_trees):
            first: list[Step] = []
            if k is not None:
                first.append((self._update_weight_sums, damping / BLOCKS))
                if k % BLOCKS_PER_TURN == 0:
                    share = damping * BLOCKS_PER_TURN / BLOCKS
                    first.append((self._update_placement_sums, share))
            yield first, batch

    def _add_unstored(self) -> None:
        field, kernel = self._sums_without_ink
        self._messages.field += field
        self._messages.kernel += kernel

    def _update_weight_sums(self, share: float) -> None:
        """Move what trees without ink tell weights, given the beliefs of placements."""
        m, without_ink = self._messages, self._without_ink
        shape, channels = m.layout.geometry, m.layout.layer.n_channels
        field, kernel = flat(m.field, m.kernel)
        (field_sums, kernel_sums), how = flat(*self._sums_without_ink), FLOAT(share)
        if m.layout.kernel_is_weights:
            beliefs = field, kernel
            kernel_sums_of_placements(channels, shape, without_ink, *beliefs, kernel_sums, how)
        else:
            total = self._of_common_evidence(kernel).reshape(-1, shape[2]).sum(axis=0, dtype=float)
            beliefs = kernel, field
            field_sums_of_placements(channels, shape, without_ink, total, *beliefs, field_sums, how)

    def _update_placement_sums(self, share: float) -> None:
        """Move what trees without ink tell placements, given the beliefs of weights."""
        m, without_ink = self._messages, self._without_ink
        shape, images = m.layout.geometry, m.layout.n_images
        field, kernel = flat(m.field, m.kernel)
        (field_sums, kernel_sums), how = flat(*self._sums_without_ink), FLOAT(share)
        if m.layout.kernel_is_weights:
            passed = self._of_common_evidence(kernel)
            window = passed.reshape(-1, *m.layout.kernel_size, shape[2]).sum(axis=0, dtype=float)
            corners = np.zeros((window.shape[0] + 1, window.shape[1] + 1, shape[2]))
            corners[1:, 1:] = window.cumsum(axis=0).cumsum(axis=1)
            work = len(self._without_ink.listed) * m.layout.leaves
            bands = int(np.clip(work // _WORK, 1, images * shape[0]))
            fixed = shape, without_ink, corners, passed
            field_sums_of_weights(bands, bands, *fixed, kernel, field, field_sums, how)
        else:
            passed = self._of_common_evidence(field)
            total = passed.reshape(-1, shape[1] * shape[2]).sum(axis=0, dtype=float)
            total = total.reshape(-1, shape[2]).sum(axis=0)
            fixed = shape, without_ink, total, passed
            kernel_sums_of_weights(images, *fixed, field, kernel, kernel_sums, how)

    def _of_common_evidence(self, beliefs: FloatArray) -> FloatArray:
        """What the common evidence becomes on its way past every variable."""
        out = np.empty_like(beliefs)
        pass_on(beliefs, self._without_ink.common, out)
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
