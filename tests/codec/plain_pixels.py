"""The pixels of a page, read from the payload of an `.hcz` file after the places of its parts.

Written from docs/codec-format.md alone, as `plain_decoder`.
"""

import numpy as np
from plain_places import (
    CONFIDENCE,
    EVIDENCE,
    MARGIN,
    N_CONFIDENCES,
    PROBABILITY,
    RATE,
    SHARE,
    WEIGHT,
    Copy,
    PlaceDecoder,
    clip,
    hashed,
    join,
    level_of,
)

HASHED = {3, 4, 7, 8, 9, 10, 11, 12, 13, 17, 19, 20}
HASHED_20 = {24, 25, 26, 27, 30, 31}
NEW_SLOT = 2**21 << 8
PROBABILITY_ARRAY = np.array(PROBABILITY, np.int64)
RATE_ARRAY = np.array(RATE, np.int64)


class ExpectedRow:
    """The seven expectations of each pixel of one row of the canvas."""

    def __init__(self, width):
        """Begin without expectations."""
        self.level, self.prob, self.mean = [0] * width, [0] * width, [0] * width
        self.sure, self.nearest, self.second = [0] * width, [0] * width, [0] * width
        self.dark, self.owner = [3] * width, [-1] * width


class PageDecoder(PlaceDecoder):
    """Decodes one page; changes the kept state as it goes."""

    def decode(self):
        """Decode everything and return the pixels of the page as a boolean array."""
        self.fast = self.bits.number(1)
        top = 0
        for _ in range(self.bits.number(20)):
            begin = len(self.copies)
            self.decode_line(top)
            if len(self.copies) > begin:
                top = self.copies[begin][1]
            self.kept.n_lines += 1
        self.begin_pixels()
        for y in range(MARGIN, MARGIN + self.H):
            self.decode_row(y)
        canvas = np.array([np.frombuffer(row, np.uint8) for row in self.ink])
        return canvas[MARGIN:-MARGIN, MARGIN:-MARGIN].astype(bool)

    # ---- copies and events

    def begin_pixels(self):
        """Prepare everything that belongs to the pixels of the page."""
        kept = self.kept
        self.base = len(kept.copies)
        self.back = 128  # how many earlier copies are compared, at most
        if kept.version > 2:
            self.back = clip(self.H * self.W // max(len(self.copies), 1), 128, 1000)
        for part, top, left in self.copies:
            rank = len(kept.ranks[part])
            kept.ranks[part].append(len(kept.copies))
            size = kept.sizes[part]
            copy = Copy(part, rank, top + MARGIN, left + MARGIN, size, self.back + 16)
            kept.copies.append(copy)
        self.events = self.find_events()
        self.parts = len(self.events) > 0
        self.event = 0
        self.without, self.after_empty = 7, 1
        self.last_row = [0] * self.wide
        self.down, self.right = [255] * self.wide, [0] * self.wide
        self.ink = [bytearray(self.wide) for _ in range(self.H + 2 * MARGIN)]
        # The same rows as numbers: the last pixel of the canvas is the lowest bit.
        self.numbers = [0] * (self.H + 2 * MARGIN)

    def find_events(self):
        """Return all events (row, column, kind, copy) of the page in their order."""
        kept, found = self.kept, []
        for i in range(self.base, len(kept.copies)):
            c = kept.copies[i]
            h, w = kept.sizes[c.part]
            for y in range(c.top - 2, c.top + h):
                found.append((y, max(c.left - 3, 0), 0, i))
            for y in range(c.top, c.top + h):
                found.append((y, c.left + w, 1, i))
        return sorted(e for e in found if MARGIN <= e[0] < MARGIN + self.H)

    def happen(self, event):
        """Let an event take place: expect rows of a copy, or remember one."""
        y, _, kind, i = event
        if kind == 1:
            self.remember(i, y)
            return
        if y > self.kept.copies[i].top and y > MARGIN:
            self.compare(i, y)
        self.expect(i, y)

    def remember(self, i, y):
        """Take row y of the canvas into the pixels of copy i and the counts of its part."""
        kept, c = self.kept, self.kept.copies[i]
        v, row = y - c.top, self.ink[y]
        for u in range(kept.sizes[c.part][1]):
            x = c.left + u
            bit = row[x] if 0 <= x < self.wide else 0
            c.pixels[v, u] = bit
            kept.on[c.part][v, u] += bit
            kept.seen[c.part][v, u] += 1
        c.rows = v + 1

    def others(self, i, v):
        """Return pairs (j, copy): the copies near copy i by rank that know their row v."""
        copies, c = self.kept.copies, self.kept.copies[i]
        same = self.kept.ranks[c.part]
        ranks = range(max(c.rank - self.back, 0), min(c.rank + 16, len(same)))
        return [
            (r - c.rank + self.back, copies[same[r]])
            for r in ranks
            if r != c.rank and copies[same[r]].rows > v
        ]

    def compare(self, i, y):
        """Compare row y - 1 of copy i with its expectation and with other copies."""
        c = self.kept.copies[i]
        v, w = y - 1 - c.top, self.kept.sizes[c.part][1]
        expected, more = self.rows[y - 1], 0
        own = c.pixels[v]
        for u in range(w):
            x = c.left + u
            if 0 <= x < self.wide and expected.level[x] > 0:
                more += int(own[u]) * 65536 - expected.prob[x]
        c.dark = ((c.dark * 205) >> 8) + more
        for j, other in self.others(i, v):
            d = int(np.count_nonzero(own != other.pixels[v]))
            c.missed[j] = ((c.missed[j] * 243) >> 8) + 16 * d

    def expect(self, i, y):
        """Set the expectations of the rows y to y + 2 where copy i knows better."""
        kept, c = self.kept, self.kept.copies[i]
        k = c.part
        h, w = kept.sizes[k]
        now = y - c.top
        bounds = (-262144, -131072, -45875, 45876, 131072, 262144)
        darkness = sum(c.dark >= bound for bound in bounds)
        for v in range(max(now, 0), min(now + 3, h)):
            others = self.others(i, v)
            best, least, second, more = None, None, None, None
            for j, other in others:
                if least is None or c.missed[j] <= least:
                    second, more = best, least
                    best, least = other, c.missed[j]
                elif more is None or c.missed[j] <= more:
                    second, more = other, c.missed[j]
            sums, weights = np.zeros(w, np.int64), 0
            for j, other in others:
                d = c.missed[j] - least
                if d < 320:
                    weights += WEIGHT[d]
                    sums += WEIGHT[d] * other.pixels[v]
            nearest = best, second
            self.expect_row(c, v, v == now, darkness, len(others), nearest, sums, weights)

    def expect_row(self, c, v, present, darkness, n, nearest, sums, weights):
        """Set the expectations of row v of a copy, from what `expect` found."""
        kept, k = self.kept, c.part
        w = kept.sizes[k][1]
        row = self.rows[c.top + v]
        on, seen, sums = kept.on[k][v].tolist(), kept.seen[k][v].tolist(), sums.tolist()
        near, then = (None if one is None else one.pixels[v].tolist() for one in nearest)
        for u in range(w):
            x = c.left + u
            if not 0 <= x < self.wide:
                continue
            f = kept.first_pixel[k] + v * w + u
            m = seen[u]
            if n == 0 and m == 0:
                if row.level[x] == 0:
                    row.owner[x] = f
                continue
            average = ((100 * on[u] + 12) * 65536) // (100 * m + 40)
            p = (sums[u] * 65536 + average * 32768) // (weights + 32768)
            if row.level[x] == 0 or row.owner[x] == f or p > row.prob[x]:
                row.level[x] = level_of(p)
                row.prob[x] = p
                row.mean[x] = average
                row.sure[x] = CONFIDENCE[min(max(n, m), 255)]
                row.nearest[x] = int(average > 32768) if near is None else near[u]
                row.second[x] = row.nearest[x] if then is None else then[u]
                row.owner[x] = f
                if present:
                    row.dark[x] = darkness

    # ---- rows

    def events_until(self, y, x):
        """Let the events of row y with a column up to x take place; all if x is None."""
        while self.event < len(self.events) and self.events[self.event][0] == y:
            if x is not None and self.events[self.event][1] > x:
                return
            self.happen(self.events[self.event])
            self.event += 1

    def decode_row(self, y):
        """Decode the pixels of row y of the canvas."""
        kept = self.kept
        here = self.event < len(self.events) and self.events[self.event][0] == y
        if self.without >= 7 and not here:
            bit = self.bits.rare(kept.row, kept.row_n, self.after_empty)
            self.after_empty = 1 - bit
            if not bit:
                self.without += 1
                return
        self.after_empty = 0
        for old in [one for one in self.rows if one < y - 2]:
            del self.rows[old]
        for one in range(y - 2, y + 3):
            if one not in self.rows:
                self.rows[one] = ExpectedRow(self.wide)
        self.count_runs(y)
        row, last, run, any_ink = self.ink[y], -100, 16, 0
        self.left = 0  # the pixels of the row so far; the last one is the lowest bit
        for x in range(MARGIN, MARGIN + self.W):
            self.events_until(y, x)
            bit = self.decode_pixel(y, x, last, run)
            row[x] = bit
            self.left = 2 * self.left + bit
            if bit:
                last, any_ink = x, 1
                self.last_row[x] = y
            run = run + 1 if row[x - 1] == bit else 1
        self.numbers[y] = self.left << MARGIN
        self.events_until(y, None)
        self.without = 0 if any_ink else self.without + 1

    def decode_pixel(self, y, x, last, run):
        """Decode one pixel as quiet, calm or mixed; last is the last column with ink."""
        kept = self.kept
        if self.is_quiet(y, x, last):
            a = min((x - last).bit_length(), 15)
            seen = max(self.last_row[x - 3], self.last_row[x], self.last_row[x + 3])
            b = min((y - seen).bit_length(), 15)
            return self.bits.rare(kept.quiet, kept.quiet_n, 16 * a + b)
        if self.is_calm(y, x):
            level = self.rows[y].level
            beside = max(level[x + 1], self.rows[y + 1].level[x])
            a = join(
                (min(self.right[x], 15), 4),
                (min(run.bit_length(), 7), 3),
                (min(self.down[x], 15), 4),
                (level[x], 1),
                (beside, 1),
            )
            return self.bits.rare(kept.calm, kept.calm_n, a)
        return self.mixed(y, x, run)

    def is_quiet(self, y, x, last):
        """Tell whether there is neither ink nor an expectation around."""
        if x - last <= 7:
            return False
        level = self.rows[y].level
        if self.parts and (level[x] or level[x + 1] or self.rows[y + 1].level[x]):
            return False
        return not any(self.row_of(y, x, d, -7, 7)[0] for d in range(1, 8))

    def is_calm(self, y, x):
        """Tell whether there is no ink around and paper is expected."""
        if not self.fast and self.rows[y].level[x] == 0:
            return False
        if self.left & 7 or self.row_of(y, x, 1, -3, 3)[0] or self.row_of(y, x, 2, -3, 3)[0]:
            return False
        if self.row_of(y, x, 3, -2, 2)[0]:
            return False
        return all(max(self.rows[y + v].level[x - 1 : x + 2]) <= 1 for v in (-1, 0, 1))

    def count_runs(self, y):
        """Count the runs to the right in the row above, and down to the row above."""
        above, over = self.ink[y - 1], self.ink[y - 2]
        right, down = self.right, self.down
        right[self.wide - 1] = 255
        for x in reversed(range(self.wide - 1)):
            right[x] = min(right[x + 1] + 1, 255) if above[x] == above[x + 1] else 1
        for x in range(self.wide):
            if self.without >= 7:
                down[x] = max(down[x], self.without)
            down[x] = min(down[x] + 1, 255) if above[x] == over[x] else 1

    # ---- contexts

    def left_of(self, n):
        """Return n pixels to the left, the nearest as the lowest bit, and n."""
        return self.left & ((1 << n) - 1), n

    def row_of(self, y, x, d, a, b):
        """Return the pixels x + a to x + b, d rows above, the last as the lowest bit."""
        n = b - a + 1
        return (self.numbers[y - d] >> (self.wide - 1 - x - b)) & ((1 << n) - 1), n

    def inputs(self, y, x, run):
        """Return slots, selections, evidences and confidences for a mixed pixel."""
        windows = [0] + [self.row_of(y, x, d, -7, 12)[0] for d in range(1, 8)]
        left = self.left_of

        def row(d, a, b):
            return (windows[d] >> (12 - b)) & ((1 << (b - a + 1)) - 1), b - a + 1

        a = min(self.right[x], 15)
        b = min(self.right[x + a], 15) if a < 15 else 0
        w, ww = self.left & 1, self.left >> 1 & 1
        n, nn, nw, ne = row(1, 0, 0)[0], row(2, 0, 0)[0], row(1, -1, -1)[0], row(1, 1, 1)[0]
        up = [min(self.down[x + u], 31) for u in (-1, 0, 1, 2)]
        up15 = min(up[1], 15)

        column = [row(d, 0, 0) for d in range(2, 8)]
        narrow = [row(d, -1, 1) for d in range(1, 8)]
        rays = [row(d, u, u) for d in range(3, 8) for u in (-d, d)]
        wide = [row(1, -6, 6), row(2, -6, 6), row(3, -5, 5), row(4, -4, 4), row(5, -3, 3)]
        c = [
            join(left(2), row(1, -2, 2), row(2, -1, 1)),
            join(left(3), row(1, -3, 3), row(2, -2, 2), row(3, 0, 0)),
            join(left(3), row(1, -3, 3), row(2, -3, 3), row(3, -2, 2)),
            join(left(4), row(1, -4, 4), row(2, -4, 4), row(3, -3, 3), row(4, -1, 1)),
            join(left(5), row(1, -5, 5), row(2, -5, 5), row(3, -4, 4), row(4, -3, 3),
                 row(5, -1, 1)),
            join(left(2), row(1, -1, 1), *column),
            join(left(7), row(1, -3, 5)),
            join((a, 4), (b, 4), (min(run, 31), 5), (w, 1), row(1, -1, 1), (up15, 4)),
            join((up[1], 5), (up[2], 5), (up[0], 5), (min(up[3], 15), 4), left(2),
                 row(1, -2, 2)),
            join(left(15), row(1, -7, 12)) + (1 << 50),
            join(left(7), *wide) ^ (row(6, -2, 2)[0] * 0x1D872B41D872B41),
            join(left(2), *narrow) + (3 << 50),
            join(left(4), row(1, -2, 2), row(2, 0, 0), row(2, -2, -2), row(2, 2, 2), *rays)
            + (5 << 50),
            join(left(2), row(1, -2, 9), row(2, -1, 10), row(3, 2, 9)) + (7 << 50),
        ]  # fmt: skip
        selection = [
            0,
            join(left(2), row(1, -1, 1), row(2, 0, 0)) * 8,
            c[0],
            c[5] % 512,
            c[0],
            c[6] % 1024,
            (a * 16 + up15) * 4 + w * 2 + (run >= 4),
            c[0] * 8,
            (c[1] >> 4) * 8,
        ]
        if self.parts:
            self.add_expected(y, x, (w, ww, n, nn, nw, ne), c, selection)
        c = dict(enumerate(c))
        if self.kept.version > 1:
            self.add_second_version(y, x, run, row, c, selection)
        slot = {}
        for k, one in c.items():
            slot[k] = hashed(one) if k in HASHED else hashed(one) >> 1 if k in HASHED_20 else one
        e, s = [77, 0, 0], [0, 0, 0]
        expected = self.rows[y]
        if expected.level[x] > 0:
            e[1] = EVIDENCE[clip(expected.prob[x], 131, 65405) >> 4]
            e[2] = EVIDENCE[clip(expected.mean[x], 131, 65405) >> 4]
            s[1] = s[2] = expected.sure[x]
        for k, one in slot.items():
            both = self.kept.slots[k].get(one, NEW_SLOT)
            e.append(EVIDENCE[both >> 18])
            s.append(CONFIDENCE[both & 255])
        return slot, selection, e, s

    def add_expected(self, y, x, pixels, c, selection):
        """Add the ten contexts from the expectations to c and change the selections."""
        w, ww, n, nn, nw, ne = pixels
        rows = [self.rows[y + v] for v in range(-2, 3)]
        present = rows[2]
        lnw, ln, lne = rows[1].level[x - 1 : x + 2]
        lw, own, le = present.level[x - 1 : x + 2]
        lsw, ls, lse = rows[3].level[x - 1 : x + 2]
        have = int(own > 0)
        before = join((w, 1), (n, 1), (nw, 1), (ne, 1))
        nine = join(*[(one >= 4, 1) for one in (lse, ls, lsw, le, own, lw, lne, ln, lnw)])
        cross = 0
        for v in range(-2, 3):
            for u in range(-2, 3):
                if abs(u) + abs(v) < 4:
                    cross = 2 * cross + (rows[v + 2].level[x + u] >= 4)
        ew, en = 1 + w - (lw >= 4), 1 + n - (ln >= 4)
        enw, ene = 1 + nw - (lnw >= 4), 1 + ne - (lne >= 4)
        seen = min(present.sure[x], 7)
        fine = present.prob[x] >> 11
        dk = present.dark[x]
        mn = level_of(present.mean[x]) if have else 0
        near = 0
        for v in (-1, 0, 1):
            for u in (-1, 0, 1):
                near = 2 * near + rows[v + 2].nearest[x + u]

        def half(one):
            return min((one + 1) >> 1, 3), 2

        if have and present.owner[x] >= 0:
            pixel = 8 * present.owner[x] + 4 * w + 2 * n + ne
        else:
            pixel = -1 - before
        halves = [half(one) for one in (lw, ln, le, ls, lne, lse, lsw, lnw)]
        c += [
            join((have, 1), (nine, 9), (before, 4)),
            join((own, 3), (lw, 3), (ln, 3), (le, 3), (ls, 3), (before, 4)),
            join((have, 1), (seen, 3), (ew, 2), (en, 2), (enw, 2), (ene, 2), (fine, 5)),
            join((cross, 21), (have, 1), (before, 4)),
            join((c[0], 10), (own, 3), (le, 3), (ls, 3)),
            pixel,
            join((before, 4), (ww, 1), (nn, 1), (own, 3), *halves),
            join((own, 3), (mn, 3), (dk, 3), (ew, 2), (en, 2), (le, 3), (ls, 3), (ne, 1)),
            join((own, 3), (before, 4), (near, 9)),
            join((fine, 5), (dk, 3), (before, 4), (ww, 1), (nn, 1), (le, 3), (lsw, 3),
                 (have, 1)),
        ]  # fmt: skip
        selection[0] = (own * 8 + seen) * 2 + (present.owner[x] >= 0)
        selection[1] = join((before, 4), (ww, 1), (nn, 1)) * 8 + own
        selection[2] = (((ew * 3 + en) * 3 + enw) * 3 + ene) * 8 + own
        selection[3] = (dk * 8 + ls) * 8 + le
        selection[5] = near * 2 + have
        selection[7] = c[0] * 8 + own
        selection[8] = (c[1] >> 4) * 8 + own

    def add_second_version(self, y, x, run, row, c, selection):
        """Add the contexts and selections that version 1 lacks."""
        left = self.left_of
        w, right, down = self.left & 1, self.right[x], self.down[x]

        def equal(d):
            colour = row(d, 0, 0)[0]
            to_right = to_left = 0
            while to_right < 12 and row(d, to_right + 1, to_right + 1)[0] == colour:
                to_right += 1
            while to_left < 12 and self.ink[y - d][x - to_left - 1] == colour:
                to_left += 1
            return join((colour, 1), (to_left, 4), (to_right, 4)), 9

        every_second = [((self.left >> (2 * k + 1)) & 1, 1) for k in range(7)]
        every_second += [row(d, u, u) for d in (2, 4, 6) for u in range(-6, 7, 2)]
        c[24] = join(left(2), row(1, -1, 1), (min(down, 31), 5), (min(run, 63), 6),
                     (min(right, 31), 5))  # fmt: skip
        c[25] = join((w, 1), row(1, -1, 1), *every_second)
        c[26] = join(equal(1), equal(2), (min(run, 15), 4), (w, 1))
        c[27] = join(equal(1), equal(4), equal(7), left(2))
        c[28] = join((min(run, 255), 8), (w, 1), (right, 8), row(1, 0, 0))
        ones = [left(7)[0].bit_count(), *(row(d, -3, 3)[0].bit_count() for d in (1, 2, 3))]
        maps = selection[7:]
        selection[7:] = [
            0,
            join((ones[0], 3), (ones[1], 3), ((ones[2] + ones[3]) >> 1, 3)),
            join(row(4, -2, 2), row(6, -2, 2)),
            *maps,
        ]
        if not self.parts:
            return
        rows = [self.rows[y + v] for v in range(-2, 3)]
        near = second = 0
        for v in (1, 2, 3):
            for u in (-1, 0, 1):
                near = 2 * near + rows[v].nearest[x + u]
                second = 2 * second + rows[v].second[x + u]
        own, owner, dark = rows[2].level[x], rows[2].owner[x], rows[2].dark[x]
        have = (int(own > 0), 1)
        before = (join((w, 1), row(1, 0, 0), row(1, -1, -1), row(1, 1, 1)), 4)
        far = [rows[0].nearest[x], rows[2].nearest[x - 2], rows[2].nearest[x + 2],
               rows[4].nearest[x]]  # fmt: skip
        c[29] = join((near, 9), *((one, 1) for one in far), before, (left(2)[0] >> 1, 1),
                     row(2, 0, 0), have)  # fmt: skip
        c[30] = join((near, 9), (second, 9), before, have)
        c[31] = 16 * owner + dark if own > 0 and owner >= 0 else -1 - dark

        def cross(nine):
            return join((nine >> 1 & 1, 1), (nine >> 3 & 7, 3), (nine >> 7 & 1, 1)), 5

        selection[7] = join(cross(near), cross(second))

    # ---- mixing

    def mixed(self, y, x, run):
        """Decode a pixel by mixing all inputs, and learn from it."""
        kept = self.kept
        second = kept.version > 1
        slot, selection, e, s = self.inputs(y, x, run)
        n_sets = kept.uses.shape[0]
        sets, maps = np.arange(n_sets), selection[n_sets:]
        number = np.array([0, 1, 2, *(3 + k for k in slot)]) * N_CONFIDENCES
        evidence = np.tile(np.array(e, np.int64), (n_sets, 1))
        places = np.tile(number + np.array(s), (n_sets, 1))
        if second:
            less = [(one * 205) >> 8 if sure == 9 else one for one, sure in zip(e, s, strict=True)]
            plain = [q for q in range(n_sets) if q not in (0, 6)]
            evidence[plain], places[plain] = less, number
        chosen = np.array(selection[:n_sets])
        at = (sets[:, None], chosen[:, None], places)
        weights = kept.weights[at]
        total = np.clip((weights * evidence).sum(axis=1) >> 20, -2800, 2800)
        guess = PROBABILITY_ARRAY[total + 2800]
        of_sums = [selection[q] for q in (1, 0, 6, 4)][: len(kept.final)]
        sums = [
            clip(int(kept.final[k, one] @ total) >> 20, -2800, 2800)
            for k, one in enumerate(of_sums)
        ]
        t = sum(sums) >> (2 if second else 0)
        middle = clip(t, -2047, 2047) + 2048
        low, part = middle >> 7, middle & 127
        p = 2 * PROBABILITY[t + 2800]
        for q in range(2):
            m = kept.maps[q, maps[q]]
            p += (int(m[low]) * (128 - part) + int(m[low + 1]) * part) >> 13
        bit = self.bits.get(clip(p >> 2, 1, 65535))

        uses = kept.uses[sets, chosen]
        kept.uses[sets, chosen] = np.minimum(uses + 1, 2999)
        change = (bit * 65536 - guess) * RATE_ARRAY[uses]
        learns = np.abs(change) >= 8192
        change = np.where(learns, change, 0)  # then `more` is 0, too: 524288 >> 20 is 0
        more = (change[:, None] * evidence + 524288) >> 20
        kept.weights[at] = np.clip(weights + more, -(2**26), 2**26)
        for k, one in enumerate(of_sums):
            more = ((bit * 65536 - PROBABILITY[sums[k] + 2800]) * total * 16 + 524288) >> 20
            more = np.where(learns | second, more, 0)
            kept.final[k, one] = np.clip(kept.final[k, one] + more, -(2**26), 2**26)
        for k, one in slot.items():
            both = kept.slots[k].get(one, NEW_SLOT)
            old, n = both >> 8, both & 255
            old += ((4194303 * bit - old) * SHARE[n]) >> 16
            kept.slots[k][one] = old << 8 | min(n + 1, 250)
        near = (middle + 64) >> 7
        for q in range(2):
            m = kept.maps[q, maps[q]]
            m[near] += ((4194304 * bit - int(m[near])) * 3) >> 8
        return bit
