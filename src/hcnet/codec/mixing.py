"""Predictions of many contexts as one probability, by weights that are learned on the way.

Every context has a slot with the share of ink seen in it and with how often it was seen.  The
evidence of all slots is added up under several sets of weights, each selected by something else;
the sums are added up again, and two maps correct the result by what came true before.

A weight of some sets depends on the confidence in its input, too.  Such weights tell more but learn
more slowly: from version 2 of the format on, most sets do without.  They are called plain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.contexts import SETS, SIZES, contexts_of
from hcnet.codec.tables import CONFIDENCES, FINE, LIMIT, MIXTURE
from hcnet.engine.cpu_compilation import inlined, prefetch

SELECTIONS = 1024
# Sets of version 1; those of later versions that are not plain; sums of sets, of which the mean
# counts (version 1 has one).
FEWER, BY_CONFIDENCE, FINALS = 7, (0, 6), 4
# Evidence that counts less in plain sets, in 256ths: that of the highest confidence, since small
# neighbourhoods are seen most often.
LESS = 205
# Inputs before those of the contexts: a constant, the shares of ink in the nearest copies of a part
# and in all of them.
OTHERS = 3
MAPS, SELECTED, BINS = 2, 1 << 15, 33
# A slot has the share of ink in 22 bits and below it the count in 10.
SHARE = 22
# A share of one half is stored as 0: memory that no page uses is then never touched.
HALF = 1 << 31
# A row has the weights of all inputs for one confidence, in three lines of cache of 16 numbers.
# Small tables of contexts are soon full and of one confidence: their inputs come first in a row.
ROW, LINE = 48, 16
ORDER = np.argsort(np.argsort(OTHERS * [0] + list(SIZES), kind="stable"), kind="stable")
BLOCK = CONFIDENCES * ROW
# Weights in units of 2^-20: those of contexts add up to 2.2 at first, since contexts agree less
# than they would if they were independent.
UNIT = 20
FIRST = int(2.2 * 2**UNIT)
LARGEST = 1 << 26
# Weights do not learn from smaller errors (times the rate), which saves time: 0.0005 at the lowest.
TOO_SMALL = 1 << 13
# Rates of learning: of the weights of the sums, in 65536ths, and of the maps, in 256ths.
FINAL_RATE, MAP_RATE = 16, 3


class Mixture(NamedTuple):
    """What is learned."""

    slots: NDArray[np.uint32]
    # By set, selection, confidence and input.  Rows of an array would be objects to the compiler,
    # which take time for every pixel: hence all in one.
    weights: NDArray[np.int32]
    uses: NDArray[np.int16]  # set, selection
    final: NDArray[np.int32]  # sum of sets, selection, set
    maps: NDArray[np.int32]  # map, selection, bin: probabilities in units of 2^-22


class Scratch(NamedTuple):
    """Memory for one pixel."""

    slot: NDArray[np.int64]  # of every context of the pixel that comes
    used: NDArray[np.int64]  # the same of the pixel that was predicted last
    evidence: NDArray[np.int64]  # of every input
    scaled: NDArray[np.int64]  # the same for plain sets
    weight: NDArray[np.int64]  # of every input, by its confidence
    selection: NDArray[np.int64]  # of every set, then of every map, for the pixel that comes
    chosen: NDArray[np.int64]  # the same for the pixel that was predicted last
    total: NDArray[np.int64]  # of every set, then of all
    guess: NDArray[np.int64]  # of every set, then of every sum of sets: probabilities
    learns: NDArray[np.int64]  # whether the error of a set was large enough


def new_mixture(version: int, n_slots: int, evidence: NDArray[np.integer]) -> Mixture:
    """A mixture that has learned nothing; the maps pass on what they get (`evidence` per bin)."""
    n_inputs, n_sets = OTHERS + contexts_of(version)[1], SETS if version > 1 else FEWER
    maps = np.empty((MAPS * SELECTED, BINS), np.int32)
    maps[:] = evidence
    return Mixture(
        np.zeros(n_slots, np.uint32),
        _in_lines(n_sets * SELECTIONS * BLOCK, FIRST // n_inputs),
        np.zeros((n_sets, SELECTIONS), np.int16),
        np.full(FINALS * SELECTIONS * n_sets, (1 << UNIT) // n_sets, np.int32),
        maps.ravel(),
    )


def _in_lines(size: int, value: int) -> NDArray[np.int32]:
    """An array that begins with a line of cache."""
    array = np.full(size + LINE, value, np.int32)
    begin = -array.ctypes.data % (4 * LINE) // 4
    return array[begin : begin + size]


def new_scratch(version: int) -> Scratch:
    """Memory for one pixel."""
    n_inputs = OTHERS + contexts_of(version)[1]
    return Scratch(
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(SETS + MAPS, np.int64),
        np.zeros(SETS + MAPS, np.int64),
        np.zeros(SETS + 1, np.int64),
        np.zeros(SETS + FINALS, np.int64),
        np.zeros(SETS, np.int64),
    )


@inlined
def cut(x, most):
    """A number cut at -most and most."""
    return min(max(x, -most), most)


@inlined
def _map(selection, q):
    """Where the bins of a map begin."""
    return (q * SELECTED + selection[SETS + q]) * BINS


@inlined
def fetch(mixture, scratch, n_slots):
    """Have the slots and maps of a pixel brought into cache, while the pixel before is learned."""
    for m in range(n_slots):
        prefetch(mixture.slots, scratch.slot[m], np.uint64(1))
    for q in range(MAPS):
        prefetch(mixture.maps, np.uint64(_map(scratch.selection, q)), np.uint64(BINS))


@inlined
def _block(selection, q):
    """Where the weights of a set begin."""
    return np.uint64((q * SELECTIONS + selection[q]) * BLOCK)


@inlined
def _is_plain(version, q):
    """Whether the weights of a set do not depend on confidence."""
    return version > 1 and q != BY_CONFIDENCE[0] and q != BY_CONFIDENCE[1]


@inlined
def _selection_of(selection, k):
    """What selects the weights of a sum of sets."""
    return selection[(1, 0, 6, 4)[k]]


@inlined
def _add_up(version, weights, scratch, n_inputs, n_sets):
    """The totals of all sets."""
    for q in range(n_sets):
        base, t = _block(scratch.selection, q), np.int64(0)
        if _is_plain(version, q):
            for m in range(n_inputs):
                t += np.int64(weights[base + np.uint64(m)]) * scratch.scaled[m]
        else:
            for m in range(n_inputs):
                t += np.int64(weights[base + np.uint64(scratch.weight[m])]) * scratch.evidence[m]
        scratch.total[q] = t


@inlined
def predict(version, mixture, tables, scratch, n_slots):
    """The probability of ink, from the slots of all contexts and the other inputs in `scratch`."""
    slot, used, evidence, scaled, weight, selection, chosen, total, guess, _ = scratch
    n_inputs = OTHERS + n_slots
    n_sets, n_finals = SETS if version > 1 else FEWER, FINALS if version > 1 else 1
    for q in range(SETS + MAPS):
        chosen[q] = selection[q]
    for m in range(n_slots):
        used[m] = slot[m]
        s = np.int64(mixture.slots[slot[m]]) ^ HALF
        evidence[OTHERS + m] = tables.evidence[s >> (32 - FINE)]
        weight[OTHERS + m] = np.int64(tables.confidence[s & 1023]) * ROW + ORDER[OTHERS + m]
    if version > 1:
        for m in range(n_inputs):
            sure = weight[m] >= (CONFIDENCES - 1) * ROW
            scaled[m] = (evidence[m] * LESS) >> 8 if sure else evidence[m]
    _add_up(version, mixture.weights, scratch, n_inputs, n_sets)
    for q in range(n_sets):
        t = cut(total[q] >> UNIT, MIXTURE)
        total[q] = t
        guess[q] = tables.probability[t + MIXTURE]
    whole = 0
    for k in range(n_finals):
        begin = np.uint64((k * SELECTIONS + _selection_of(selection, k)) * n_sets)
        t = np.int64(0)
        for q in range(n_sets):
            t += np.int64(mixture.final[begin + np.uint64(q)]) * total[q]
        t = cut(t >> UNIT, MIXTURE)
        guess[SETS + k] = tables.probability[t + MIXTURE]
        whole += t
    t = whole >> 2 if version > 1 else whole
    total[SETS] = t
    p = 2 * np.int64(tables.probability[t + MIXTURE])
    # Maps have a bin every half, from -8 to 8.
    t = cut(t, 2047) + 2048
    low, part = t >> 7, t & 127
    for q in range(MAPS):
        r = _map(selection, q) + low
        a, b = np.int64(mixture.maps[r]), np.int64(mixture.maps[r + 1])
        p += (a * (128 - part) + b * part) >> 13
    return min(max(p >> 2, 1), 65535)


@inlined
def learn(version, mixture, tables, scratch, n_slots, bit):
    """Learn from a pixel after its prediction."""
    slot, evidence, scaled, weight = scratch.used, scratch.evidence, scratch.scaled, scratch.weight
    selection, total, guess = scratch.chosen, scratch.total, scratch.guess
    n_inputs = OTHERS + n_slots
    n_sets, n_finals = SETS if version > 1 else FEWER, FINALS if version > 1 else 1
    weights, whole = mixture.weights, np.int64(bit) << 16
    for q in range(n_sets):
        r = selection[q]
        uses = np.int64(mixture.uses[q, r])
        if uses < tables.rate.size - 1:
            mixture.uses[q, r] = np.int16(uses + 1)
        step = (whole - guess[q]) * np.int64(tables.rate[uses])
        if abs(step) < TOO_SMALL:
            scratch.learns[q] = 0
            continue
        scratch.learns[q] = 1
        base = _block(selection, q)
        if _is_plain(version, q):
            for m in range(n_inputs):
                a = base + np.uint64(m)
                change = (step * scaled[m] + (1 << 19)) >> 20
                weights[a] = np.int32(cut(np.int64(weights[a]) + change, LARGEST))
        else:
            for m in range(n_inputs):
                a = base + np.uint64(weight[m])
                change = (step * evidence[m] + (1 << 19)) >> 20
                weights[a] = np.int32(cut(np.int64(weights[a]) + change, LARGEST))
    for k in range(n_finals):
        error = (whole - guess[SETS + k]) * FINAL_RATE
        begin = np.uint64((k * SELECTIONS + _selection_of(selection, k)) * n_sets)
        for q in range(n_sets):
            if version > 1 or scratch.learns[q]:
                a = begin + np.uint64(q)
                final = np.int64(mixture.final[a]) + ((error * total[q] + (1 << 19)) >> 20)
                mixture.final[a] = np.int32(cut(final, LARGEST))
    for m in range(n_slots):
        s = np.int64(mixture.slots[slot[m]]) ^ HALF
        n = s & 1023
        p = s >> 10
        p += ((((1 << SHARE) - 1) * np.int64(bit) - p) * np.int64(tables.share[n])) >> 16
        mixture.slots[slot[m]] = np.uint32(((p << 10) | min(n + 1, LIMIT)) ^ HALF)
    t = cut(total[SETS], 2047) + 2048
    near = (t + 64) >> 7
    for q in range(MAPS):
        r = _map(selection, q) + near
        p = np.int64(mixture.maps[r])
        mixture.maps[r] += np.int32((((np.int64(bit) << SHARE) - p) * MAP_RATE) >> 8)
