"""Compiled loops that explain a piece by several parts inside it (see `coding` for the arrays)."""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined
from hcnet.soft.coding import NO_ROW, coded, draw, row_bits, template_context

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
    sums, first, tall, wide, _, n, box, _, _, _ = parts
    h, w, W = pieces[2][i], pieces[3][i], wide[k]
    draw(pieces, i, box[k, 0] - y0, box[k, 2] - x0, tall[k], W, scratch)
    for y in range(box[k, 0], box[k, 1]):
        v = y - box[k, 0] + y0
        for x in range(box[k, 2], box[k, 3]):
            u = x - box[k, 2] + x0
            inside = 0 <= v < h and 0 <= u < w
            against[y * W + x] = bits[v * w + u] if inside else NO_BITS
    area = box[k, 0], box[k, 1], box[k, 2], box[k, 3]
    none = np.zeros((0, 2))
    return -coded(sums, first[k], W, n[k], 0, scratch, area, cost, none, against)


@inlined
def _peak(hits, q, down, across):
    """Whether no position beside has clearly more hits."""
    for j in range(9):
        y, x = q // across + j // 3 - 1, q % across + j % 3 - 1
        if 0 <= y < down and 0 <= x < across and hits[y * across + x] > NEAR * hits[q]:
            return False
    return True


@called
def _left_over(ink, base, bits, h, w, rows, box):
    """Ink of a piece beside its parts that they should explain, and that of other letters.

    Columns between parts, with as much ink as a part and at least half as high as the piece, are
    other letters; they stay by themselves.
    """
    inside = np.zeros(w, np.bool_)
    for j in range(rows.shape[0]):
        k, x0 = rows[j, 1], rows[j, 3]
        for x in range(max(x0, 0), min(x0 + box[k, 3] - box[k, 2], w)):
            inside[x] = True
    left = other = 0
    x = 0
    while x < w:
        end, on, top, bottom = x, 0, h, 0
        while end < w and inside[end] == inside[x]:
            for y in range(h):
                if ink[base + y * w + end] and bits[y * w + end] >= 0:
                    on += 1
                    top, bottom = min(top, y), max(bottom, y + 1)
            end += 1
        if not inside[x] and on >= LEAST and 2 * (bottom - top) >= h:
            other += on
        else:
            left += on
        x = end
    return left, other


@entry
def cover(which, pieces, hidden, parts, usable, assigned, alone, cost, place, found):
    """Explain pieces by several parts inside them.

    Writes rows of piece, part, and the corner of the part's box in the piece to `found`, as far as
    there is room.  Returns their number, and the bits that they save for every piece.  If `hidden`,
    which says of every pixel whether it is missing, is not empty, one part is enough.
    """
    ink, start, height, width, reference, row_of, known = pieces
    sums, first, tall, wide, centre, n, box, mass, _, level = parts
    scratch = np.zeros(np.max(tall * wide), np.uint8)
    against = np.zeros(scratch.size, np.float32)
    largest = room = 0
    for i in which:
        largest = max(largest, (height[i] + 1) * (width[i] + 1))
        room = max(room, (height[i] + 2 * OVER + 1) * (width[i] + 2 * OVER + 1))
    bits = np.zeros(largest, np.float32)
    ink_to = np.zeros(largest, np.int64)
    free = np.zeros(largest, np.bool_)
    row_mass = np.zeros(np.max(tall), np.int64)
    hits = np.zeros(room, np.int64)
    gain = np.zeros(PROPOSALS)
    claim = np.zeros(PROPOSALS)
    names = np.zeros(PROPOSALS)
    rows = np.zeros((PROPOSALS, 3), np.int64)
    saved = np.zeros(start.size)
    written = 0
    for i in which:
        h, w = height[i], width[i]
        side = w + 1
        for q in range((h + 1) * side):
            ink_to[q] = 0
        for y in range(h):
            for x in range(w):
                o = ink[start[i] + y * w + x]
                bits[y * w + x] = alone[template_context(ink, start[i], h, w, y, x), o]
                free[y * w + x] = o
                q = start[i] + y * w + x
                if (hidden.size and hidden[q]) or (known.size and known[q]):
                    bits[y * w + x] = -1.0
                q = (y + 1) * side + x + 1
                ink_to[q] = o + ink_to[q - 1] + ink_to[q - side] - ink_to[q - side - 1]
        count = 0
        for k in usable:
            tall_k, wide_k, W = box[k, 1] - box[k, 0], box[k, 3] - box[k, 2], wide[k]
            if k == assigned[i] or tall_k > h + 2 * OVER or wide_k > w + 2 * OVER:
                continue
            down, across = h - tall_k + 2 * OVER + 1, w - wide_k + 2 * OVER + 1
            for y in range(tall_k):
                row_mass[y] = 0
                for x in range(box[k, 2], box[k, 3]):
                    row_mass[y] += sums[first[k] + (y + box[k, 0]) * W + x]
            for q in range(down * across):
                y0, x0 = q // across - OVER, q % across - OVER
                t, b = max(y0, 0), min(y0 + tall_k, h)
                a, r = max(x0, 0), min(x0 + wide_k, w)
                hits[q] = 0
                on = ink_to[b * side + r] - ink_to[t * side + r]
                on += ink_to[t * side + a] - ink_to[b * side + a]
                if on * n[k] < (1 - LOOSE) * mass[k] and not hidden.size:
                    continue
                hit = hid = lost = 0
                for y in range(t, b):
                    at = first[k] + (y - y0 + box[k, 0]) * W + box[k, 2] - x0
                    row = 0
                    for x in range(a, r):
                        row += ink[start[i] + y * w + x] * sums[at + x]
                    hit += row
                    lost += row_mass[y - y0] - row
                    if hidden.size:
                        for x in range(a, r):
                            hid += hidden[start[i] + y * w + x] * sums[at + x]
                    if lost - hid > LOOSE * mass[k]:
                        break
                if lost - hid > LOOSE * mass[k] or mass[k] - hit - hid > LOOSE * mass[k]:
                    continue
                if hidden.size and (hid == 0 or hid > MOST_HIDDEN * mass[k]):
                    continue
                hits[q] = hit
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
                    claim[count] = hits[q] / n[k]
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
            written += 1
            saved[i] += gain[best]
            for y in range(-1, box[k, 1] - box[k, 0] + 1):
                for x in range(-1, box[k, 3] - box[k, 2] + 1):
                    v, u = y + y0, x + x0
                    if 0 <= v < h and 0 <= u < w:
                        q = first[k] + (y + box[k, 0]) * wide[k] + x + box[k, 2]
                        on = 0
                        for near in (q, q - 1, q + 1, q - wide[k], q + wide[k]):
                            on = max(on, sums[near])
                        if 2 * on >= n[k]:
                            bits[v * w + u] = -1.0
                        if 2 * sums[q] >= n[k]:
                            free[v * w + u] = False
            kept = 0
            for j in range(count):
                k, v, u = rows[j, 0], rows[j, 1], rows[j, 2]
                if j == best or gain[j] < -1e8:
                    continue
                mine = all_on = 0
                for y in range(max(v, 0), min(v + box[k, 1] - box[k, 0], h)):
                    at = first[k] + (y - v + box[k, 0]) * wide[k] + box[k, 2] - u
                    for x in range(max(u, 0), min(u + box[k, 3] - box[k, 2], w)):
                        if 2 * sums[at + x] >= n[k]:
                            all_on += 1
                            mine += free[y * w + x]
                if mine < CLAIM * all_on and not hidden.size:
                    continue
                g = _gain(pieces, i, parts, k, v, u, bits, cost, scratch, against)
                names[kept] = names[j]
                gain[kept] = g - place[i] - names[j]
                claim[kept] = mine
                rows[kept, 0], rows[kept, 1], rows[kept, 2] = k, v, u
                kept += 1
            count = kept
        left, other = _left_over(ink, start[i], bits, h, w, found[before_i:written], box)
        ink_i = ink_to[h * side + w] - other
        several = written >= before_i + 2 and left <= LEFT * ink_i
        if not several and not hidden.size:
            written, saved[i] = before_i, 0.0
    return written, saved
