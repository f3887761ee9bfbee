"""The pixels of a page, coded row by row given the parts that are placed on it.

One loop both writes and reads: what it knows of a pixel before it is coded is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.arithmetic import code
from hcnet.codec.contexts import (
    ABOVE,
    MARGIN,
    REACH,
    Runs,
    more_page_contexts,
    page_contexts,
    page_selections,
    part_contexts,
    ring,
    span,
)
from hcnet.codec.copies import AHEAD, clear, compare, expect, remember
from hcnet.codec.mixing import OTHERS, ROW, fetch, learn, predict
from hcnet.engine.cpu_compilation import entry, inlined

# Probabilities of quiet pixels have 40 bits: most are far below those of the coder.
EXACT = 40
# They begin as if so many pixels had been seen, and remember so many.
ASSUMED, REMEMBERED = 300, 50_000
# Pixels around with any ink in these columns are not quiet.
NEAR = 7
SEEN = (1 << (2 * REACH + 1)) - 1
# Runs are not counted beyond.
LONGEST = 255
# Evidence that is always there.
CONSTANT = 77
EXPECT, REMEMBER = 0, 1
# The set of weights that runs select.
BY_RUNS = 6
# Columns before a copy at which its row is expected.
EARLY = 3


class Quiet(NamedTuple):
    """Pixels far from ink and parts, by the distance to ink on the left and above; empty rows."""

    ink: NDArray[np.int64]  # probability of ink
    n: NDArray[np.int64]
    row_ink: NDArray[np.int64]  # that a row is not empty, after one that is not, or is
    row_n: NDArray[np.int64]
    calm: NDArray[np.int64]  # that a pixel is ink where neither ink nor a part is near
    calm_n: NDArray[np.int64]


class Progress(NamedTuple):
    """Where the coding of a page is."""

    column: NDArray[np.uint8]  # ink of each column in the last seven rows
    above: NDArray[np.int64]  # the last row with ink of each column
    at: NDArray[np.int64]  # the next event, rows without ink, whether the last row was empty
    runs: Runs


def new_quiet() -> Quiet:
    """Nothing seen."""
    return Quiet(
        np.full(256, (1 << EXACT) // 2000),
        np.zeros(256, np.int64),
        np.full(2, 1 << (EXACT - 1)),
        np.zeros(2, np.int64),
        np.full(1 << 13, (1 << EXACT) // 2000),
        np.zeros(1 << 13, np.int64),
    )


def new_progress(width: int) -> Progress:
    """The beginning of a page of this width with its margins."""
    runs = Runs(np.zeros(width, np.int32), np.full(width, LONGEST, np.int32))
    at = np.array([0, ABOVE, 1])
    return Progress(np.zeros(width, np.uint8), np.zeros(width, np.int64), at, runs)


def events_of(
    top: NDArray[np.int64],
    left: NDArray[np.int64],
    height: NDArray[np.int64],
    width: NDArray[np.int64],
    rows: int,
) -> NDArray[np.int64]:
    """When copies are expected and when their rows are complete: row, column, what, copy."""
    found = [np.zeros((0, 4), np.int64)]
    for what, early in ((EXPECT, AHEAD - 1), (REMEMBER, 0)):
        n = height + early
        copy = np.repeat(np.arange(len(top)), n)
        y = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + (top - early)[copy]
        x = np.maximum(left - EARLY, 0) if what == EXPECT else left + width
        found.append(np.stack([y, x[copy], np.full(len(y), what), copy], axis=1))
    events = np.concatenate(found)
    events = events[(events[:, 0] >= MARGIN) & (events[:, 0] < rows + MARGIN)]
    return events[np.lexsort((events[:, 3], events[:, 2], events[:, 1], events[:, 0]))]


@inlined
def _rare(coder, data, decode, bit, ink, n, a):
    """Code a bit that is seldom 1, with a probability of its own."""
    p = ink[a]
    bit = code(coder, data, decode, bit, min(max(p >> (EXACT - 16), 1), 65535))
    n[a] = min(n[a] + 1, REMEMBERED)
    p += ((np.int64(bit) << EXACT) - p) // (n[a] + ASSUMED)
    ink[a] = min(max(p, 1 << (EXACT - 20)), 1 << (EXACT - 1))
    return bit


@inlined
def _count_runs(runs, page, y, empty):
    """Runs of pixels that reach the row above; `empty` rows before it have no ink."""
    right, down = runs.right, runs.down
    n = right.size
    right[n - 1] = LONGEST
    for x in range(n - 2, -1, -1):
        same = page[y - 1, x] == page[y - 1, x + 1]
        right[x] = min(right[x + 1] + 1, LONGEST) if same else 1
    for x in range(n):
        if empty >= ABOVE:
            down[x] = max(down[x], empty)
        same = page[y - 1, x] == page[y - 2, x]
        down[x] = min(down[x] + 1, LONGEST) if same else 1


@inlined
def _calm(expected, y, x):
    """Whether no part expects ink here or beside."""
    for v in range(-1, 2):
        r = ring(y + v)
        if max(expected.level[r, x - 1], expected.level[r, x], expected.level[r, x + 1]) > 1:
            return False
    return True


@inlined
def _digits(tables, n):
    """Digits of a number in binary, at most 15."""
    return np.int64(tables.digits[min(n, tables.digits.size - 1)])


@inlined
def _within(p):
    """A probability within 0.002 and 0.998."""
    return min(max(np.int64(p), 131), 65405)


@inlined
def _event(event, page, copies, shapes, expected, tables, base, y, sums, nearby):
    """Expect the rows of a copy, or keep one that is complete."""
    i = base + event[3]
    if event[2] == EXPECT:
        if y > copies.top[i] and y > MARGIN:
            compare(copies, shapes, expected, i, base, y)
        expect(copies, shapes, expected, tables, i, base, y, sums, nearby)
    else:
        remember(copies, shapes, i, page, y)


@entry
def code_rows(
    version,
    n_slots,
    first,
    last,
    page,
    decode,
    brisk,
    coder,
    data,
    mixture,
    quiet,
    tables,
    scratch,
    progress,
    events,
    copies,
    shapes,
    expected,
    base,
    sums,
):
    """Read or write rows of a page with margins; copies from `base` on are those of this page.

    `brisk` takes a short way wherever nothing lets expect ink, not only where a part says so.
    """
    column, above, at, runs = progress
    width = page.shape[1] - 2 * MARGIN
    parts = events.shape[0] > 0
    rows = np.zeros(ABOVE + 1, np.int64)
    nearby = np.zeros((copies.missed.shape[1], 3), np.int64)
    slot, selection = scratch.slot, scratch.selection
    evidence, weight = scratch.evidence, scratch.weight
    unlearned = -1  # the pixel that was predicted last, until it is learned
    evidence[0] = CONSTANT
    for y in range(first + MARGIN, last + MARGIN):
        e = at[0]
        if parts:
            clear(expected, y + AHEAD - 1)
        here = e < events.shape[0] and events[e, 0] == y
        if at[1] >= ABOVE and not here:
            ink = False
            if not decode:
                for x in range(MARGIN, MARGIN + width):
                    ink |= page[y, x] > 0
            bit = _rare(coder, data, decode, np.int64(ink), quiet.row_ink, quiet.row_n, at[2])
            at[2] = 1 - bit
            if not bit:
                at[1] += 1
                continue
        at[2] = 0
        near = 0
        for x in range(page.shape[1]):
            if at[1] >= ABOVE:  # rows were left out
                column[x] = 0
            else:
                column[x] = column[x] + page[y - 1, x] - page[y - ABOVE - 1, x]
        for x in range(MARGIN - NEAR, MARGIN + NEAR):
            near += column[x]
        for d in range(1, ABOVE + 1):
            rows[d] = 0
            for x in range(MARGIN - REACH, MARGIN + REACH + 1):
                rows[d] = (rows[d] << 1) | page[y - d, x]
        rows[0] = 0
        last_ink, any_ink, run = -100, False, MARGIN
        _count_runs(runs, page, y, at[1])
        r, below = ring(y), ring(y + 1)
        for x in range(MARGIN, MARGIN + width):
            near += column[x + NEAR]
            if x > MARGIN:
                near -= column[x - NEAR - 1]
            while e < events.shape[0] and events[e, 0] == y and events[e, 1] <= x:
                _event(events[e], page, copies, shapes, expected, tables, base, y, sums, nearby)
                e += 1
            bit = np.int64(page[y, x])
            if (
                near == 0
                and x - last_ink > NEAR
                and (
                    not parts
                    or (
                        expected.level[r, x] == 0
                        and expected.level[r, x + 1] == 0
                        and expected.level[below, x] == 0
                    )
                )
            ):
                a = _digits(tables, x - last_ink)
                b = _digits(tables, y - max(above[x], max(above[x + 3], above[x - 3])))
                bit = _rare(coder, data, decode, bit, quiet.ink, quiet.n, 16 * a + b)
            elif (
                (brisk or expected.level[r, x] > 0)
                and (rows[0] & 7) == 0
                and span(rows[1], -3, 3) == 0
                and span(rows[2], -3, 3) == 0
                and span(rows[3], -2, 2) == 0
                and _calm(expected, y, x)
            ):
                a = min(np.int64(runs.right[x]), 15) | (min(_digits(tables, run), 7) << 4)
                a |= min(np.int64(runs.down[x]), 15) << 7
                a |= np.int64(expected.level[r, x]) << 11
                a |= np.int64(max(expected.level[r, x + 1], expected.level[below, x])) << 12
                bit = _rare(coder, data, decode, bit, quiet.calm, quiet.calm_n, a)
            else:
                selection[BY_RUNS] = page_contexts(rows, runs, x, run, slot)
                level = 0
                if version > 1:
                    more_page_contexts(tables, rows, runs, x, run, slot, selection)
                if parts:
                    level = part_contexts(version, rows, expected, y, x, slot, selection)
                else:
                    page_selections(rows, slot, selection)
                # Memory is waited for meanwhile: the last pixel is learned only now.
                fetch(mixture, scratch, n_slots)
                if unlearned >= 0:
                    learn(version, mixture, tables, scratch, n_slots, unlearned)
                for q in range(1, OTHERS):
                    evidence[q] = 0
                    weight[q] = q
                if level > 0:
                    evidence[1] = tables.evidence[_within(expected.share[r, x]) >> 4]
                    evidence[2] = tables.evidence[_within(expected.mean[r, x]) >> 4]
                    weight[1] += ROW * np.int64(expected.seen[r, x])
                    weight[2] += ROW * np.int64(expected.seen[r, x])
                p = predict(version, mixture, tables, scratch, n_slots)
                bit = code(coder, data, decode, bit, p)
                unlearned = bit
            if decode:
                page[y, x] = bit
            if bit:
                last_ink, any_ink = x, True
                above[x] = y
            run = run + 1 if (rows[0] & 1) == bit else 1
            rows[0] = ((rows[0] << 1) | bit) & SEEN
            for d in range(1, ABOVE + 1):
                rows[d] = ((rows[d] << 1) | page[y - d, x + REACH + 1]) & SEEN
        while e < events.shape[0] and events[e, 0] == y:
            _event(events[e], page, copies, shapes, expected, tables, base, y, sums, nearby)
            e += 1
        at[0] = e
        at[1] = 0 if any_ink else at[1] + 1
    if unlearned >= 0:
        learn(version, mixture, tables, scratch, n_slots, unlearned)
