"""What the earlier copies of its part let expect of a copy, row by row.

Both sides know the copies so far, so parts need not be sent.  Earlier copies weigh the more, the
fewer pixels of the rows so far they have missed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.contexts import AS_DARK, NO_OWNER, RING, level_of, ring
from hcnet.codec.tables import FAR, STEPS
from hcnet.engine.cpu_compilation import inlined

# Earlier copies that are compared: the latest of the part, at least and at most so many (versions 1
# and 2 of the format always take the least), and those that come soon.
LEAST_BEFORE, MOST_BEFORE, AFTER = 128, 1000, 16
# Rows of a copy that are expected at once: the present one and the next two.
AHEAD = 3
# What a row has missed counts so many 256ths in the next row.
REMEMBERED = 243
# Bounds of the darkness of a copy: pixels of ink more than expected in the rows so far, in 65536ths
# (-4, -2, -0.7, 0.7, 2 and 4).
DARKNESS = np.array([-262144, -131072, -45875, 45876, 131072, 262144])


class Copies(NamedTuple):
    """Copies of parts, those of earlier pages first."""

    part: NDArray[np.int64]
    top: NDArray[np.int64]  # on the page with its margin, of copies of this page
    left: NDArray[np.int64]
    start: NDArray[np.int64]  # of its pixels in `ink`
    rows: NDArray[np.int64]  # how many are known
    ink: NDArray[np.uint8]
    rank: NDArray[np.int64]  # among the copies of its part
    missed: NDArray[np.int32]  # of this page's copies: pixels that each compared copy has missed
    dark: NDArray[np.int64]  # of this page's copies: ink more than expected so far


class Shapes(NamedTuple):
    """Parts: sizes, copies, and in how many copies each pixel is on."""

    height: NDArray[np.int64]
    width: NDArray[np.int64]
    start: NDArray[np.int64]  # of its pixels
    on: NDArray[np.int32]
    seen: NDArray[np.int32]
    first: NDArray[np.int64]  # of its copies in `members`, and one more
    members: NDArray[np.int64]


class Expected(NamedTuple):
    """Expectations of eight rows of a page, by pixel."""

    level: NDArray[np.uint8]  # 0 without a part, else 1 to 7
    share: NDArray[np.int32]  # of ink in the nearest copies
    mean: NDArray[np.int32]  # of ink in all copies
    seen: NDArray[np.uint8]  # confidence, by the number of copies
    nearest: NDArray[np.uint8]  # the pixel of the nearest copy
    second: NDArray[np.uint8]  # of the second nearest
    dark: NDArray[np.uint8]
    owner: NDArray[np.int32]  # the pixel of the part


def compared(version: int, n_pixels: int, n_copies: int) -> int:
    """How many copies each copy of a page is compared with, at most.

    On a page of several, more earlier copies tell more; what each of them has missed may take four
    bytes for every pixel of the page.
    """
    before = LEAST_BEFORE
    if version > 2:
        before = min(max(n_pixels // max(n_copies, 1), LEAST_BEFORE), MOST_BEFORE)
    return before + AFTER


def new_expected(width: int) -> Expected:
    """No expectations."""
    shape = RING, width
    return Expected(
        np.zeros(shape, np.uint8),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.uint8),
        np.zeros(shape, np.uint8),
        np.zeros(shape, np.uint8),
        np.full(shape, AS_DARK, np.uint8),
        np.full(shape, NO_OWNER, np.int32),
    )


@inlined
def clear(expected, y):
    """Expect nothing of a row."""
    r = ring(y)
    for x in range(expected.level.shape[1]):
        expected.level[r, x] = 0
        expected.share[r, x] = 0
        expected.mean[r, x] = 0
        expected.seen[r, x] = 0
        expected.nearest[r, x] = 0
        expected.second[r, x] = 0
        expected.dark[r, x] = AS_DARK
        expected.owner[r, x] = NO_OWNER


@inlined
def _window(copies, shapes, i):
    """The copies in `members` that are compared: where `missed` would begin, begin and end."""
    k, n = copies.part[i], copies.missed.shape[1]
    low = shapes.first[k] + copies.rank[i] - (n - AFTER)
    return low, max(low, shapes.first[k]), min(low + n, shapes.first[k + 1])


@inlined
def compare(copies, shapes, expected, i, base, y):
    """Compare the last row of a copy with that row of earlier copies."""
    k = copies.part[i]
    v, w = y - 1 - copies.top[i], shapes.width[k]
    r = ring(y - 1)
    own = copies.start[i] + v * w
    more = 0
    for u in range(w):
        x = copies.left[i] + u
        if 0 <= x < expected.level.shape[1] and expected.level[r, x] > 0:
            more += (np.int64(copies.ink[own + u]) << 16) - expected.share[r, x]
    copies.dark[i - base] = ((copies.dark[i - base] * 205) >> 8) + more
    low, begin, end = _window(copies, shapes, i)
    present = copies.ink[own : own + w]
    for j in range(begin, end):
        o = shapes.members[j]
        if o != i and copies.rows[o] > v:
            other = copies.start[o] + v * w
            row = copies.ink[other : other + w]
            d = np.int32(0)
            for u in range(w):
                d += np.int32(present[u] ^ row[u])
            m = np.int64(copies.missed[i - base, j - low])
            copies.missed[i - base, j - low] = ((m * REMEMBERED) >> 8) + STEPS * d


@inlined
def expect(copies, shapes, expected, tables, i, base, y, sums, nearby):
    """Expect the present and the next rows of a copy, from earlier copies."""
    k = copies.part[i]
    h, w = shapes.height[k], shapes.width[k]
    low, begin, end = _window(copies, shapes, i)
    now = y - copies.top[i]
    dark = 0
    for bound in DARKNESS:
        dark += copies.dark[i - base] >= bound
    # The copies that have rows to compare with: first row of pixels, rows that are known, misses.
    others, n_others = nearby, 0
    for j in range(begin, end):
        o = shapes.members[j]
        if o != i and copies.rows[o] > max(now, 0):
            others[n_others, 0], others[n_others, 1] = copies.start[o], copies.rows[o]
            others[n_others, 2] = copies.missed[i - base, j - low]
            n_others += 1
    for v in range(max(now, 0), min(now + AHEAD, h)):
        best, least, n = -1, 1 << 40, 0
        second, more = -1, 1 << 40
        for j in range(n_others):
            if others[j, 1] > v:
                n += 1
                if others[j, 2] <= least:
                    second, more = best, least
                    best, least = others[j, 0], others[j, 2]
                elif others[j, 2] <= more:
                    second, more = others[j, 0], others[j, 2]
        for u in range(w):
            sums[u] = 0
        weights = 0
        for j in range(n_others):
            d = others[j, 2] - least
            if d < FAR and others[j, 1] > v:
                weight = tables.weight[d]
                weights += weight
                other = others[j, 0] + v * w
                row = copies.ink[other : other + w]  # compiled to vectors, as an index is not
                for u in range(w):
                    sums[u] += weight * np.int32(row[u])
        r = ring(copies.top[i] + v)
        for u in range(w):
            f = shapes.start[k] + v * w + u
            x = copies.left[i] + u
            if not 0 <= x < expected.level.shape[1]:
                continue
            m = np.int64(shapes.seen[f])
            if n == 0 and m == 0:
                if expected.level[r, x] == 0:
                    expected.owner[r, x] = f
                continue
            # Half a copy says what all copies have, and 0.4 copies that a third of it is ink.
            mean = ((np.int64(shapes.on[f]) * 100 + 12) << 16) // (100 * m + 40)
            p = ((np.int64(sums[u]) << 16) + (mean << 15)) // (weights + 32768)
            p = min(p, 65535)
            if expected.level[r, x] == 0 or expected.owner[r, x] == f or p > expected.share[r, x]:
                expected.nearest[r, x] = mean > 32768
                if best >= 0:
                    expected.nearest[r, x] = copies.ink[best + v * w + u]
                expected.second[r, x] = expected.nearest[r, x]
                if second >= 0:
                    expected.second[r, x] = copies.ink[second + v * w + u]
                if v == now:
                    expected.dark[r, x] = dark
                expected.level[r, x] = level_of(p)
                expected.share[r, x] = p
                expected.mean[r, x] = min(mean, 65535)
                expected.seen[r, x] = tables.confidence[min(max(n, m), 255)]
                expected.owner[r, x] = f


@inlined
def remember(copies, shapes, i, page, y):
    """Keep a row of a copy that is complete."""
    k = copies.part[i]
    v, w = y - copies.top[i], shapes.width[k]
    for u in range(w):
        x = copies.left[i] + u
        o = page[y, x] if 0 <= x < page.shape[1] else np.uint8(0)
        copies.ink[copies.start[i] + v * w + u] = o
        f = shapes.start[k] + v * w + u
        shapes.on[f] += np.int32(o)
        shapes.seen[f] += np.int32(1)
    copies.rows[i] = v + 1
