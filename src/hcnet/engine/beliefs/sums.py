"""Sums of the messages from trees without ink to placements and weights, compiled.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import compiled, entry, inlined, larger, parallel
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray

_and_up = compiled.and_up

# Trees whose median evidence is called common.  Any would do, since trees with other evidence are
# listed; the more have it, the shorter the list.
_SAMPLE = 1001


@dataclass(frozen=True)
class TreesWithoutInk:
    """The evidence of trees without ink, and a list of those with another than most of them have.

    Trees that have messages are listed as well, with evidence 0: from here they say nothing.
    """

    evidence: FloatArray  # (images, channels, height, width); 0 where a tree says nothing
    common: np.float32
    lines: NDArray[np.int64]  # where each row of each plane begins in the two below
    columns: NDArray[np.int32]
    listed: FloatArray

    @property
    def arrays(self) -> tuple[Any, ...]:
        """For compiled code."""
        return self.evidence, self.common, self.lines, self.columns, self.listed


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


def evidence_against(evidence: FloatArray, has_messages: BoolArray) -> FloatArray:
    """Evidence of trees without ink, which cannot be for a pixel; 0 for trees with messages."""
    against = np.minimum(evidence, FLOAT(0), dtype=FLOAT)
    against[has_messages] = 0
    return np.ascontiguousarray(against)


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
