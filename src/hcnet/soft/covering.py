"""Compiled loops that explain a piece by several parts inside it (see `coding` for the arrays)."""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined, n_bits
from hcnet.soft.coding import NO_ROW, RENDERINGS, coded, row_bits, template_context

# The share of a part's ink that the piece may lack (with 0.15, common letters that touch were not
# found), that no other part may have claimed, and that may lie behind missing pixels; the share of
# the piece's ink, more than a pixel away from its parts, that may be left over (with 0.12, E is F).
LOOSE = 0.25
CLAIM = 0.6
MOST_HIDDEN = 0.7
LEFT = 0.06
# Pixels by which the box of a part may reach over the piece: copies may be smaller.
OVER = 3
# Proposals of a piece, and bits that one may cost more before others explain what it cannot.
PROPOSALS = 2000
PENALTY = 60.0
# Least ink of a letter that no part explains.
LEAST = 30
# A position is priced if none beside it has so many times its hits.
NEAR = 1.04
# Of parts that save as much, the one with more ink is right: ink that is left costs so many bits.
PER_PIXEL = 0.7
# Of a pixel outside the piece: more than nothing, so that it is left out (see `coded`).
NO_BITS = np.float32(1e-9)


@called
def _gain(pieces, i, parts, k, y0, x0, bits, cost, scratch, against):
    """Bits that a part saves with the corner of its box at a point of a piece."""
    sums, first, _, wide, _, n, box, _, _, _ = parts
    base, h, w, W = pieces[1][i], pieces[2][i], pieces[3][i], wide[k]
    down, across = y0 - box[k, 0], x0 - box[k, 2]
    for y in range(box[k, 0] - 1, box[k, 1] + 1):
        v = y + down
        for x in range(box[k, 2] - 1, box[k, 3] + 1):
            u = x + across
            if 0 <= v < h and 0 <= u < w:
                scratch[y * W + x] = pieces[0][base + v * w + u]
                against[y * W + x] = bits[v * w + u]
            else:
                scratch[y * W + x] = 0
                against[y * W + x] = NO_BITS
    area = box[k, 0], box[k, 1], box[k, 2], box[k, 3]
    none = np.zeros((0, 2, RENDERINGS))
    bits, _ = coded(sums, first[k], W, n[k], 0, scratch, area, cost, none, against)
    return -bits


@called
def _pack(pixels, base, stride, h, w, least, over, into, at, words):
    """Write rows of pixels that are at least so large as bits, with so many pixels around them.

    Every row has so many words, from `at` on.
    """
    for q in range(at, at + (h + 2 * over) * words):
        into[q] = np.uint64(0)
    for y in range(h):
        for x in range(w):
            if pixels[base + y * stride + x] >= least:
                column = x + over
                q = at + (y + over) * words + (column >> 6)
                into[q] |= np.uint64(1) << np.uint64(column & 63)


@called
def _packed_parts(parts, usable):
    """The ink of some parts as bits, how many each word has, where parts begin, and all ink."""
    sums, first, _, wide, _, n, box, _, _, _ = parts
    start = np.zeros(usable.size + 1, np.int64)
    for j in range(usable.size):
        k = usable[j]
        words = (box[k, 3] - box[k, 2] + 63) >> 6
        start[j + 1] = start[j] + (box[k, 1] - box[k, 0]) * words
    packed, on = np.zeros(start[-1], np.uint64), np.zeros(start[-1], np.int64)
    mass = np.zeros(usable.size, np.int64)
    for j in range(usable.size):
        k = usable[j]
        h, w = box[k, 1] - box[k, 0], box[k, 3] - box[k, 2]
        base = first[k] + box[k, 0] * wide[k] + box[k, 2]
        most = (n[k] + 1) // 2
        _pack(sums, base, wide[k], h, w, most, 0, packed, start[j], (w + 63) >> 6)
        for q in range(start[j], start[j + 1]):
            on[q] = n_bits(packed[q])
            mass[j] += on[q]
    return packed, on, start, mass


@inlined
def _word(rows, q, x):
    """The 64 pixels from column x on, of the row that begins with word q."""
    q += x >> 6
    x = np.uint64(x & 63)
    return (rows[q] >> x) | ((rows[q + 1] << np.uint64(1)) << (np.uint64(63) - x))


@inlined
def _peak(hits, q, down, across):
    """Whether no position beside has clearly more hits."""
    for j in range(9):
        y, x = q // across + j // 3 - 1, q % across + j % 3 - 1
        if 0 <= y < down and 0 <= x < across and hits[y * across + x] > NEAR * hits[q]:
            return False
    return True


@called
def _mark(parts, rows, j, sign, h, w, taken):
    """Count one part more, or less, at the pixels of a piece that it and its edge explain."""
    sums, first, _, wide, _, n, box, _, _, _ = parts
    k, y0, x0 = rows[j, 1], rows[j, 2], rows[j, 3]
    for y in range(-1, box[k, 1] - box[k, 0] + 1):
        for x in range(-1, box[k, 3] - box[k, 2] + 1):
            v, u = y + y0, x + x0
            if 0 <= v < h and 0 <= u < w:
                q = first[k] + (y + box[k, 0]) * wide[k] + x + box[k, 2]
                on = 0
                for near in (q, q - 1, q + 1, q - wide[k], q + wide[k]):
                    on = max(on, sums[near])
                taken[v * w + u] += sign * (2 * on >= n[k])


@called
def _open_ink(ink, base, taken, h, w, left, right):
    """Ink between two columns of a piece, that without a part, and the rows it spans."""
    on = open_on = bottom = 0
    top = h
    for y in range(h):
        for x in range(max(left, 0), min(right, w)):
            o = ink[base + y * w + x]
            on += o
            if o and taken[y * w + x] == 0:
                open_on += 1
                top, bottom = min(top, y), max(bottom, y + 1)
    return on, open_on, bottom - top


@called
def _doubtful(ink, base, taken, h, w, rows, begin, end, box):
    """The part whose columns have the largest share of ink that is left; -1: none has too much."""
    worst, most = -1, LEFT
    for j in range(begin, end):
        k, x0 = rows[j, 1], rows[j, 3]
        on, left, _ = _open_ink(ink, base, taken, h, w, x0, x0 + box[k, 3] - box[k, 2])
        if left > most * on:
            worst, most = j, left / on
    return worst


@called
def _left_over(ink, base, taken, h, w, rows, begin, end, box):
    """Ink of a piece beside its parts that they should explain, and that of other letters.

    Columns between parts, with as much ink as a part and at least half as high as the piece, are
    other letters; they stay by themselves.
    """
    inside = np.zeros(w, np.bool_)
    for j in range(begin, end):
        k, x0 = rows[j, 1], rows[j, 3]
        for x in range(max(x0, 0), min(x0 + box[k, 3] - box[k, 2], w)):
            inside[x] = True
    left = other = 0
    x = 0
    while x < w:
        stop = x
        while stop < w and inside[stop] == inside[x]:
            stop += 1
        _, on, tall = _open_ink(ink, base, taken, h, w, x, stop)
        if not inside[x] and on >= LEAST and 2 * tall >= h:
            other += on
        else:
            left += on
        x = stop
    return left, other


@entry
def cover(which, pieces, hidden, parts, usable, assigned, alone, cost, place, found):
    """Explain pieces by several parts inside them.

    Writes rows of piece, part, and the corner of the part's box in the piece to `found`, as far as
    there is room.  Returns their number, and the bits that they save for every piece.  If `hidden`,
    which says of every pixel whether it is missing, is not empty, one part is enough.
    """
    ink, start, height, width, reference, row_of, known = pieces
    sums, first, tall, wide, centre, n, box, _, _, level = parts
    scratch = np.zeros(np.max(tall * wide), np.uint8)
    against = np.zeros(scratch.size, np.float32)
    packed, part_bits, part_start, part_ink = _packed_parts(parts, usable)
    largest = room = most_words = 0
    for i in which:
        h, w = height[i] + 2 * OVER, width[i] + 2 * OVER
        largest = max(largest, height[i] * width[i])
        room = max(room, (h + 1) * (w + 1))
        most_words = max(most_words, h * ((w >> 6) + 2))
    bits = np.zeros(largest, np.float32)
    free, taken = np.zeros(largest, np.bool_), np.zeros(largest, np.int64)
    gains = np.zeros(found.shape[0])
    ink_rows = np.zeros(most_words, np.uint64)
    hidden_rows = np.zeros(most_words if hidden.size else 0, np.uint64)
    hits = np.zeros(room, np.int64)
    gain = np.zeros(PROPOSALS)
    claim = np.zeros(PROPOSALS)
    names = np.zeros(PROPOSALS)
    rows = np.zeros((PROPOSALS, 3), np.int64)
    saved = np.zeros(start.size)
    written = 0
    for i in which:
        h, w = height[i], width[i]
        ink_i = 0
        for y in range(h):
            for x in range(w):
                q = start[i] + y * w + x
                o = ink[q]
                bits[y * w + x] = alone[template_context(ink, start[i], h, w, y, x), o]
                free[y * w + x] = o
                ink_i += o
                if (hidden.size and hidden[q]) or (known.size and known[q]):
                    bits[y * w + x] = -1.0
                taken[y * w + x] = bits[y * w + x] < 0
        words = ((w + 2 * OVER) >> 6) + 2
        _pack(ink, start[i], w, h, w, 1, OVER, ink_rows, 0, words)
        if hidden.size:
            _pack(hidden, start[i], w, h, w, 1, OVER, hidden_rows, 0, words)
        count = 0
        for j in range(usable.size):
            k, m = usable[j], part_ink[j]
            tall_k, wide_k = box[k, 1] - box[k, 0], box[k, 3] - box[k, 2]
            if k == assigned[i] or tall_k > h + 2 * OVER or wide_k > w + 2 * OVER:
                continue
            down, across = h - tall_k + 2 * OVER + 1, w - wide_k + 2 * OVER + 1
            words_k = (wide_k + 63) >> 6
            for q in range(down * across):
                at, x = (q // across) * words, q % across
                hit, left = 0, LOOSE * m
                p = part_start[j]
                while p < part_start[j + 1] and (left >= 0 or hidden.size):
                    for z in range(x, x + wide_k, 64):
                        own = n_bits(packed[p] & _word(ink_rows, at, z))
                        hit += own
                        left += own - part_bits[p]
                        p += 1
                    at += words
                if hidden.size:
                    hid, at = 0, (q // across) * words
                    for p in range(part_start[j], part_start[j + 1], words_k):
                        for z in range(words_k):
                            word = _word(hidden_rows, at, x + 64 * z)
                            hid += n_bits(packed[p + z] & word)
                        at += words
                    left += hid if 0 < hid <= MOST_HIDDEN * m else -m
                hits[q] = hit if left >= 0 else 0
            for q in range(down * across):
                if hits[q] == 0 or not _peak(hits, q, down, across) or count == PROPOSALS:
                    continue
                y0, x0 = q // across - OVER, q % across - OVER
                g = _gain(pieces, i, parts, k, y0, x0, bits, cost, scratch, against)
                if g > -PENALTY:
                    r = row_of[i]
                    if r != NO_ROW:
                        r += y0 + centre[k, 0] - box[k, 0] - reference[i, 0]
                    names[count] = row_bits(r, level[k, 0], level[k, 1]) - np.log2(n[k])
                    gain[count] = g - place[i] - names[count]
                    claim[count] = hits[q]
                    rows[count, 0], rows[count, 1], rows[count, 2] = k, y0, x0
                    count += 1
        before_i = written
        # The best first.  What it explains says nothing for or against the others.
        while True:
            best, most = -1, 0.0
            for j in range(count):
                worth = gain[j] + PER_PIXEL * claim[j]
                if gain[j] > 0 and (best < 0 or worth > most):
                    best, most = j, worth
            if best < 0 or written == found.shape[0]:
                break
            k, y0, x0 = rows[best, 0], rows[best, 1], rows[best, 2]
            found[written, 0], found[written, 1] = i, k
            found[written, 2], found[written, 3] = y0, x0
            gains[written] = gain[best]
            _mark(parts, found, written, 1, h, w, taken)
            written += 1
            end_y, end_x = y0 + box[k, 1] - box[k, 0], x0 + box[k, 3] - box[k, 2]
            for y in range(max(y0 - 1, 0), min(end_y + 1, h)):
                for x in range(max(x0 - 1, 0), min(end_x + 1, w)):
                    if taken[y * w + x]:
                        bits[y * w + x] = -1.0
            for y in range(max(y0, 0), min(end_y, h)):
                at = first[k] + (y - y0 + box[k, 0]) * wide[k] + box[k, 2] - x0
                for x in range(max(x0, 0), min(end_x, w)):
                    if 2 * sums[at + x] >= n[k]:
                        free[y * w + x] = False
            kept = 0
            for j in range(count):
                if j == best:
                    continue
                gain[kept], claim[kept], names[kept] = gain[j], claim[j], names[j]
                k, v, u = rows[j, 0], rows[j, 1], rows[j, 2]
                rows[kept, 0], rows[kept, 1], rows[kept, 2] = k, v, u
                kept += 1
                bottom, right = v + box[k, 1] - box[k, 0], u + box[k, 3] - box[k, 2]
                if v > end_y or u > end_x or bottom < y0 or right < x0:
                    continue  # the two lie apart
                mine = all_on = 0
                for y in range(max(v, 0), min(bottom, h)):
                    at = first[k] + (y - v + box[k, 0]) * wide[k] + box[k, 2] - u
                    for x in range(max(u, 0), min(right, w)):
                        if 2 * sums[at + x] >= n[k]:
                            all_on += 1
                            mine += free[y * w + x]
                if mine < CLAIM * all_on and not hidden.size:
                    kept -= 1
                    continue
                g = _gain(pieces, i, parts, k, v, u, bits, cost, scratch, against)
                gain[kept - 1], claim[kept - 1] = g - place[i] - names[j], mine
            count = kept
        while not hidden.size:
            worst = _doubtful(ink, start[i], taken, h, w, found, before_i, written, box)
            if worst < 0:
                break
            _mark(parts, found, worst, -1, h, w, taken)
            written -= 1
            for j in range(worst, written):
                gains[j] = gains[j + 1]
                for q in range(1, 4):
                    found[j, q] = found[j + 1, q]
        left, other = _left_over(ink, start[i], taken, h, w, found, before_i, written, box)
        several = written >= before_i + 2 or (written > before_i and other > 0)
        if not hidden.size and not (several and left <= LEFT * (ink_i - other)):
            written = before_i
        for j in range(before_i, written):
            saved[i] += gains[j]
    return written, saved
