"""Predictions of many contexts as one probability, by weights that are learned on the way.

Every context has a slot with the share of ink seen in it and with how often it was seen.  The
evidence of all slots is added up under seven sets of weights, each selected by something else; the
sums are added up again, and two maps correct the result by what came true before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.contexts import SIZES
from hcnet.codec.tables import CONFIDENCES, FINE, LIMIT, MIXTURE
from hcnet.engine.cpu_compilation import inlined, prefetch

SETS, SELECTIONS = 7, 1024
# Inputs before those of the contexts: a constant, the shares of ink in the nearest copies of a part
# and in all of them.
OTHERS = 3
MAPS, SELECTED, BINS = 2, 1 << 15, 33
# A slot has the share of ink in 22 bits and below it the count in 10.
SHARE = 22
# A share of one half is stored as 0: memory that no page uses is then never touched.
HALF = 1 << 31
# A row has the weights of all inputs for one confidence, in two lines of cache of 16 numbers.
# Small tables of contexts are soon full and of one confidence: their inputs come first in a row.
ROW, LINE = 32, 16
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
    final: NDArray[np.int32]  # selection of the second set, set
    maps: NDArray[np.int32]  # map, selection, bin: probabilities in units of 2^-22


class Scratch(NamedTuple):
    """Memory for one pixel."""

    slot: NDArray[np.int64]  # of every context of the pixel that comes
    used: NDArray[np.int64]  # the same of the pixel that was predicted last
    evidence: NDArray[np.int64]  # of every input
    weight: NDArray[np.int64]  # of every input, by its confidence
    selection: NDArray[np.int64]  # of every set, then of every map, for the pixel that comes
    chosen: NDArray[np.int64]  # the same for the pixel that was predicted last
    total: NDArray[np.int64]  # of every set, then of all
    guess: NDArray[np.int64]  # the same as probabilities


def new_mixture(n_slots: int, n_inputs: int, evidence: NDArray[np.integer]) -> Mixture:
    """A mixture that has learned nothing; the maps pass on what they get (`evidence` per bin)."""
    maps = np.empty((MAPS * SELECTED, BINS), np.int32)
    maps[:] = evidence
    return Mixture(
        np.zeros(n_slots, np.uint32),
        _in_lines(SETS * SELECTIONS * BLOCK, FIRST // n_inputs),
        np.zeros((SETS, SELECTIONS), np.int16),
        np.full((SELECTIONS, SETS), (1 << UNIT) // SETS, np.int32),
        maps.ravel(),
    )


def _in_lines(size: int, value: int) -> NDArray[np.int32]:
    """An array that begins with a line of cache."""
    array = np.full(size + LINE, value, np.int32)
    begin = -array.ctypes.data % (4 * LINE) // 4
    return array[begin : begin + size]


def new_scratch(n_inputs: int) -> Scratch:
    """Memory for one pixel."""
    return Scratch(
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(n_inputs, np.int64),
        np.zeros(SETS + MAPS, np.int64),
        np.zeros(SETS + MAPS, np.int64),
        np.zeros(SETS + 1, np.int64),
        np.zeros(SETS + 1, np.int64),
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
def _add_up(weights, scratch, n_inputs):
    """The totals of all sets.

    One set after the other would be compiled to vectors that gather weights, which takes longer
    than weight by weight for all seven sets at once.
    """
    selection = scratch.selection
    a, b, c = _block(selection, 0), _block(selection, 1), _block(selection, 2)
    d, e = _block(selection, 3), _block(selection, 4)
    f, g = _block(selection, 5), _block(selection, 6)
    ta = tb = tc = td = te = tf = tg = np.int64(0)
    for m in range(n_inputs):
        w, x = np.uint64(scratch.weight[m]), np.int64(scratch.evidence[m])
        ta += np.int64(weights[a + w]) * x
        tb += np.int64(weights[b + w]) * x
        tc += np.int64(weights[c + w]) * x
        td += np.int64(weights[d + w]) * x
        te += np.int64(weights[e + w]) * x
        tf += np.int64(weights[f + w]) * x
        tg += np.int64(weights[g + w]) * x
    for q, t in enumerate((ta, tb, tc, td, te, tf, tg)):
        scratch.total[q] = t


@inlined
def predict(mixture, tables, scratch, n_slots):
    """The probability of ink, from the slots of all contexts and the other inputs in `scratch`."""
    slot, used, evidence, weight, selection, chosen, total, guess = scratch
    n_inputs = OTHERS + n_slots
    for q in range(SETS + MAPS):
        chosen[q] = selection[q]
    for m in range(n_slots):
        used[m] = slot[m]
        s = np.int64(mixture.slots[slot[m]]) ^ HALF
        evidence[OTHERS + m] = tables.evidence[s >> (32 - FINE)]
        weight[OTHERS + m] = np.int64(tables.confidence[s & 1023]) * ROW + ORDER[OTHERS + m]
    all_sets = 0
    _add_up(mixture.weights, scratch, n_inputs)
    for q in range(SETS):
        t = cut(total[q] >> UNIT, MIXTURE)
        total[q] = t
        guess[q] = tables.probability[t + MIXTURE]
        all_sets += np.int64(mixture.final[selection[1], q]) * t
    t = cut(all_sets >> UNIT, MIXTURE)
    p = np.int64(tables.probability[t + MIXTURE])
    total[SETS] = t
    guess[SETS] = p
    # Maps have a bin every half, from -8 to 8.
    t = cut(t, 2047) + 2048
    low, part = t >> 7, t & 127
    p *= 2
    for q in range(MAPS):
        r = _map(selection, q) + low
        a, b = np.int64(mixture.maps[r]), np.int64(mixture.maps[r + 1])
        p += (a * (128 - part) + b * part) >> 13
    return min(max(p >> 2, 1), 65535)


@inlined
def learn(mixture, tables, scratch, n_slots, bit):
    """Learn from a pixel after its prediction."""
    slot, evidence, weight = scratch.used, scratch.evidence, scratch.weight
    selection, total, guess = scratch.chosen, scratch.total, scratch.guess
    n_inputs = OTHERS + n_slots
    error = (np.int64(bit) << 16) - guess[SETS]
    for q in range(SETS):
        r = selection[q]
        uses = np.int64(mixture.uses[q, r])
        if uses < tables.rate.size - 1:
            mixture.uses[q, r] = np.int16(uses + 1)
        step = ((np.int64(bit) << 16) - guess[q]) * np.int64(tables.rate[uses])
        if abs(step) < TOO_SMALL:
            continue
        base = (q * SELECTIONS + r) * BLOCK
        for m in range(n_inputs):
            a = base + weight[m]
            change = (step * evidence[m] + (1 << 19)) >> 20
            mixture.weights[a] = np.int32(cut(np.int64(mixture.weights[a]) + change, LARGEST))
        final = np.int64(mixture.final[selection[1], q])
        final += (error * total[q] * FINAL_RATE + (1 << 19)) >> 20
        mixture.final[selection[1], q] = np.int32(cut(final, LARGEST))
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
