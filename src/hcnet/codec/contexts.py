"""Contexts of a pixel: earlier pixels of the page around it, and what its part lets expect.

The page is coded row by row.  The pixels around are kept as bits of one number per row (`rows`): of
the seven rows above from 15 to the left to 15 to the right, of the present row those to the left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import inlined

REACH = 15  # columns to either side that are kept
ABOVE = 7  # rows above
MARGIN = REACH + 1  # pixels around a page
RING = 8  # rows of expectations that are kept
# Bits of the number of a slot, for each context: of the page alone, then with parts; then those
# that version 1 of the format lacks.
PAGE = (10, 16, 22, 21, 21, 11, 16, 21, 21, 21, 21, 21, 21, 21)
PARTS = (14, 19, 17, 21, 19, 21, 21, 20, 16, 21)
MORE_PAGE, MORE_PARTS = (20, 20, 20, 20, 18), (20, 20, 20)
N_PAGE, N_PARTS = len(PAGE), len(PARTS)
SIZES = PAGE + PARTS + MORE_PAGE + MORE_PARTS
START = np.concatenate([[0], np.cumsum(1 << np.array(SIZES))])
N_SLOTS = int(START[-1])
HASHED = 21
# Pixels to either side that may be equal to the pixel above, at most.
FARTHEST = 12
NO_OWNER = -1
# Sets of weights, whose selections come first; those of maps follow.
SETS = 10
# Darkness of a copy that is as dark as its part, in steps from 0 to 6.
AS_DARK = 3
_MIX = np.uint64(0x9E3779B97F4A7C15)


def contexts_of(version: int) -> tuple[int, int]:
    """How many contexts a pixel has without parts on its page, and with."""
    if version == 1:
        return N_PAGE, N_PAGE + N_PARTS
    return N_PAGE + len(MORE_PAGE), len(SIZES)


class Runs(NamedTuple):
    """Lengths of runs of pixels of one colour that reach the pixel above."""

    right: NDArray[np.int32]  # from it to the right
    down: NDArray[np.int32]  # from above to it


@inlined
def ring(y):
    """Where a row is among those that are kept."""
    return y & (RING - 1)


@inlined
def hashed(c):
    """The number of a slot for a context of up to 64 bits."""
    return np.int64((np.uint64(c) * _MIX) >> np.uint64(64 - HASHED))


@inlined
def span(row, a, b):
    """Pixels a to b to the right of this one, of a row above."""
    return (row >> (REACH - b)) & ((1 << (b - a + 1)) - 1)


@inlined
def page_contexts(rows, runs, x, run, slot):
    """Contexts of the page alone; returns the selection of weights by runs.

    The nearest 10, 16, 22, 32, 46 and more pixels, columns, rows, diagonals, and lengths of runs.
    """
    r0, r1, r2, r3, r4, r5 = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    c = (r0 & 3) | (span(r1, -2, 2) << 2) | (span(r2, -1, 1) << 7)
    slot[0] = c
    d = (r0 & 7) | (span(r1, -3, 3) << 3) | (span(r2, -2, 2) << 10) | (span(r3, 0, 0) << 15)
    slot[1] = START[1] + d
    d = (r0 & 7) | (span(r1, -3, 3) << 3) | (span(r2, -3, 3) << 10) | (span(r3, -2, 2) << 17)
    slot[2] = START[2] + d
    d = (r0 & 15) | (span(r1, -4, 4) << 4) | (span(r2, -4, 4) << 13) | (span(r3, -3, 3) << 22)
    d |= span(r4, -1, 1) << 29
    slot[3] = START[3] + hashed(d)
    d = (r0 & 31) | (span(r1, -5, 5) << 5) | (span(r2, -5, 5) << 16) | (span(r3, -4, 4) << 27)
    d |= (span(r4, -3, 3) << 36) | (span(r5, -1, 1) << 43)
    slot[4] = START[4] + hashed(d)
    d = (r0 & 3) | (span(r1, -1, 1) << 2)
    for k in range(2, 8):
        d |= span(rows[k], 0, 0) << (k + 3)
    slot[5] = START[5] + d
    slot[6] = START[6] + ((r0 & 127) | (span(r1, -3, 5) << 7))
    w = r0 & 1
    right, down = runs.right, runs.down
    a = min(np.int64(right[x]), 15)
    b = min(np.int64(right[x + a]), 15) if a < 15 else 0
    d = a | (b << 4) | (min(run, 31) << 8) | (w << 13) | (span(r1, -1, 1) << 14)
    by_runs = (a << 4 | min(np.int64(down[x]), 15)) * 4 + w * 2 + (run >= 4)
    slot[7] = START[7] + hashed(d | (min(np.int64(down[x]), 15) << 17))
    d = min(np.int64(down[x]), 31) | (min(np.int64(down[x + 1]), 31) << 5)
    d |= (min(np.int64(down[x - 1]), 31) << 10) | (min(np.int64(down[x + 2]), 15) << 15)
    slot[8] = START[8] + hashed(d | ((r0 & 3) << 19) | (span(r1, -2, 2) << 21))
    d = (r0 & 32767) | (span(r1, -7, 12) << 15)
    slot[9] = START[9] + hashed(d | (np.int64(1) << 50))
    d = (r0 & 127) | (span(r1, -6, 6) << 7) | (span(r2, -6, 6) << 20) | (span(r3, -5, 5) << 33)
    d |= (span(r4, -4, 4) << 44) | (span(r5, -3, 3) << 53)
    e = r0 & 3
    for k in range(1, 8):
        e |= span(rows[k], -1, 1) << (3 * k - 1)
    slot[11] = START[11] + hashed(e | (np.int64(3) << 50))
    e = (r0 & 15) | (span(r1, -2, 2) << 4) | (span(r2, 0, 0) << 9)
    for k in range(2, 8):
        e |= (span(rows[k], -k, -k) | (span(rows[k], k, k) << 1)) << (2 * k + 6)
    slot[12] = START[12] + hashed(e | (np.int64(5) << 50))
    e = (r0 & 3) | (span(r1, -2, 9) << 2) | (span(r2, -1, 10) << 14) | (span(r3, 2, 9) << 26)
    slot[13] = START[13] + hashed(e | (np.int64(7) << 50))
    slot[10] = START[10] + hashed(d ^ (span(rows[6], -2, 2) * np.int64(0x1D872B41D872B41)))
    return by_runs


@inlined
def _equal(tables, row):
    """How many pixels to the right and left of the middle of a row are equal to it; its colour."""
    colour = (row >> REACH) & 1
    other = row ^ -colour
    right = (other >> (REACH - FARTHEST)) & ((1 << FARTHEST) - 1)
    left = (other >> (REACH + 1)) & ((1 << FARTHEST) - 1)
    n_right = FARTHEST - np.int64(tables.digits[right])
    n_left = np.int64(tables.digits[left & -left]) - 1 if left else FARTHEST
    return (n_right << 5) | (n_left << 1) | colour


@inlined
def more_page_contexts(tables, rows, runs, x, run, slot, selection):
    """Contexts and selections that version 1 lacks: long runs, every second pixel, edges above."""
    r0, r1 = rows[0], rows[1]
    w = r0 & 1
    at = START[N_PAGE + N_PARTS :]
    right, down = np.int64(runs.right[x]), np.int64(runs.down[x])
    d = (r0 & 3) | (span(r1, -1, 1) << 2) | (min(down, 31) << 5)
    slot[N_PAGE] = at[0] + (hashed(d | (min(run, 63) << 10) | (min(right, 31) << 16)) >> 1)
    d = w | (span(r1, -1, 1) << 1)
    for k in range(7):
        u = 2 * k - 6
        d |= ((r0 >> (2 * k + 1)) & 1) << (4 + k)
        d |= span(rows[2], u, u) << (11 + k)
        d |= span(rows[4], u, u) << (18 + k)
        d |= span(rows[6], u, u) << (25 + k)
    slot[N_PAGE + 1] = at[1] + (hashed(d) >> 1)
    one = _equal(tables, r1)
    d = one | (_equal(tables, rows[2]) << 9) | (min(run, 15) << 18) | (w << 22)
    slot[N_PAGE + 2] = at[2] + (hashed(d) >> 1)
    d = one | (_equal(tables, rows[4]) << 9) | (_equal(tables, rows[7]) << 18)
    slot[N_PAGE + 3] = at[3] + (hashed(d | ((r0 & 3) << 27)) >> 1)
    d = min(run, 255) | (w << 8) | (right << 9) | (span(r1, 0, 0) << 17)
    slot[N_PAGE + 4] = at[4] + d
    a, b = np.int64(tables.ones[r0 & 127]), np.int64(tables.ones[span(r1, -3, 3)])
    c = np.int64(tables.ones[span(rows[2], -3, 3)]) + np.int64(tables.ones[span(rows[3], -3, 3)])
    selection[7] = 0
    selection[8] = a | (b << 3) | ((c >> 1) << 6)
    selection[9] = span(rows[4], -2, 2) | (span(rows[6], -2, 2) << 5)


@inlined
def page_selections(rows, slot, selection):
    """Selections of weights and maps on a page without parts, but for that by runs."""
    near = (rows[0] & 3) | (span(rows[1], -1, 1) << 2) | (span(rows[2], 0, 0) << 5)
    selection[0] = 0
    selection[1] = near * 8
    selection[2] = slot[0]
    selection[3] = slot[5] & 511
    selection[4] = slot[0]
    selection[5] = (slot[6] - START[6]) & 1023
    selection[SETS] = slot[0] * 8
    selection[SETS + 1] = (((slot[1] - START[1]) >> 4) & 4095) * 8


@inlined
def level_of(p):
    """Seven levels of the probability of ink, from 1."""
    return 1 + (p >= 1966) + (p >= 7864) + (p >= 22938) + (p >= 42598) + (p >= 57672) + (p >= 63570)


@inlined
def _cross(nine):
    """Of nine pixels the middle one and those above, below and beside."""
    return ((nine >> 1) & 1) | (((nine >> 3) & 7) << 1) | (((nine >> 7) & 1) << 4)


@inlined
def part_contexts(version, rows, expected, y, x, slot, selection):
    """Contexts with what parts let expect; also selects weights by it."""
    first = N_PAGE + len(MORE_PAGE) if version > 1 else N_PAGE
    level = expected.level
    here, up, down = ring(y), ring(y - 1), ring(y + 1)
    r0, r1, r2 = rows[0], rows[1], rows[2]
    w, n, nw, ne = r0 & 1, span(r1, 0, 0), span(r1, -1, -1), span(r1, 1, 1)
    before = w | (n << 1) | (nw << 2) | (ne << 3)
    ww, nn = (r0 >> 1) & 1, span(r2, 0, 0)
    own = np.int64(level[here, x])
    lw, le, ln, ls = (
        np.int64(level[here, x - 1]),
        np.int64(level[here, x + 1]),
        np.int64(level[up, x]),
        np.int64(level[down, x]),
    )
    lnw, lne = np.int64(level[up, x - 1]), np.int64(level[up, x + 1])
    lsw, lse = np.int64(level[down, x - 1]), np.int64(level[down, x + 1])
    have = np.int64(own > 0)
    nine = (np.int64(lnw >= 4) << 8) | (np.int64(ln >= 4) << 7) | (np.int64(lne >= 4) << 6)
    nine |= (np.int64(lw >= 4) << 5) | (np.int64(own >= 4) << 4) | (np.int64(le >= 4) << 3)
    nine |= (np.int64(lsw >= 4) << 2) | (np.int64(ls >= 4) << 1) | np.int64(lse >= 4)
    # Errors of the part beside the pixel: 0 for ink that is missing, 2 for ink too much.
    ew, en = 1 + w - np.int64(lw >= 4), 1 + n - np.int64(ln >= 4)
    enw, ene = 1 + nw - np.int64(lnw >= 4), 1 + ne - np.int64(lne >= 4)
    seen = min(np.int64(expected.seen[ring(y), x]), 7)
    fine = np.int64(expected.share[ring(y), x]) >> 11
    dark = np.int64(expected.dark[ring(y), x])
    at = START[N_PAGE:]
    slot[first] = at[0] + ((before << 10) | (nine << 1) | have)
    slot[first + 1] = at[1] + (
        own | (lw << 3) | (ln << 6) | (le << 9) | (ls << 12) | (before << 15)
    )
    errors = ew | (en << 2) | (enw << 4) | (ene << 6)
    slot[first + 2] = at[2] + ((fine << 12) | (errors << 4) | (seen << 1) | have)
    c = (before << 1) | have
    for v in range(-2, 3):
        for u in range(-2, 3):
            if abs(u) + abs(v) < 4:
                c = (c << 1) | np.int64(level[ring(y + v), x + u] >= 4)
    slot[first + 3] = at[3] + hashed(c)
    slot[first + 4] = at[4] + (slot[0] | (own << 10) | (le << 13) | (ls << 16))
    owner = np.int64(expected.owner[ring(y), x])
    if owner >= 0 and own > 0:  # noqa: SIM108
        c = (owner << 3) | (w << 2) | (n << 1) | ne
    else:
        c = -1 - before
    slot[first + 5] = at[5] + hashed(c)
    c = before | (ww << 4) | (nn << 5) | (own << 6)
    c |= (min((lw + 1) >> 1, 3) << 9) | (min((ln + 1) >> 1, 3) << 11)
    c |= (min((le + 1) >> 1, 3) << 13) | (min((ls + 1) >> 1, 3) << 15)
    c |= (min((lne + 1) >> 1, 3) << 17) | (min((lse + 1) >> 1, 3) << 19)
    c |= (min((lsw + 1) >> 1, 3) << 21) | (min((lnw + 1) >> 1, 3) << 23)
    slot[first + 6] = at[6] + hashed(c)
    mean = level_of(expected.mean[ring(y), x]) if own > 0 else 0
    c = own | (mean << 3) | (dark << 6) | (ew << 9) | (en << 11) | (le << 13) | (ls << 16)
    slot[first + 7] = at[7] + (c | (ne << 19))
    near = expected.nearest
    c = 0
    for v in range(-1, 2):
        for u in range(-1, 2):
            c = (c << 1) | np.int64(near[ring(y + v), x + u])
    kept = c
    slot[first + 8] = at[8] + ((((c << 4) | before) << 3) | own)
    c = fine | (dark << 5) | (before << 8) | (ww << 12) | (nn << 13) | (le << 14) | (lsw << 17)
    slot[first + 9] = at[9] + (c | (have << 20))
    selection[0] = (own * 8 + seen) * 2 + (owner >= 0)
    selection[1] = (before | (ww << 4) | (nn << 5)) * 8 + own
    selection[2] = (((ew * 3 + en) * 3 + enw) * 3 + ene) * 8 + own
    selection[3] = (dark * 8 + ls) * 8 + le
    selection[4] = slot[0]
    selection[5] = kept * 2 + have
    selection[SETS] = slot[0] * 8 + own
    selection[SETS + 1] = (((slot[1] - START[1]) >> 4) & 4095) * 8 + own
    if version > 1:
        i, j = first + N_PARTS, N_PAGE + N_PARTS + len(MORE_PAGE)
        second = 0
        for v in range(-1, 2):
            for u in range(-1, 2):
                second = (second << 1) | np.int64(expected.second[ring(y + v), x + u])
        c = kept | (np.int64(near[ring(y - 2), x]) << 9) | (np.int64(near[here, x - 2]) << 10)
        c |= (np.int64(near[here, x + 2]) << 11) | (np.int64(near[ring(y + 2), x]) << 12)
        slot[i] = START[j] + (c | (before << 13) | (ww << 17) | (nn << 18) | (have << 19))
        c = kept | (second << 9) | (before << 18) | (have << 22)
        slot[i + 1] = START[j + 1] + (hashed(c) >> 1)
        if owner >= 0 and own > 0:  # noqa: SIM108
            c = (owner << 4) | dark
        else:
            c = -1 - dark
        slot[i + 2] = START[j + 2] + (hashed(c) >> 1)
        selection[7] = _cross(kept) | (_cross(second) << 5)
    return own
