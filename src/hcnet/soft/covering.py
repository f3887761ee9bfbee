"""Compiled loops that explain a piece by several parts inside it (see `coding` for the arrays)."""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import entry, inlined
from hcnet.soft.coding import coded, draw

# The share of a part's ink that the piece may lack, that no other part may have claimed, and that
# may lie behind missing pixels; the share of the piece's ink that may be left over.
LOOSE = 0.15
CLAIM = 0.75
MOST_HIDDEN = 0.7
LEFT = 0.15
# Proposals of a piece, and bits that one may cost more before others explain what it cannot.
PROPOSALS = 2000
PENALTY = 60.0


@inlined
def _gain(pieces, i, parts, k, y0, x0, bits, cost, scratch, against):
    """Bits that a part saves with the corner of its box at a point of a piece."""
    sums, first, tall, wide, _, n, box, _, _ = parts
    h, w, W = pieces[2][i], pieces[3][i], wide[k]
    draw(pieces, i, box[k, 0] - y0, box[k, 2] - x0, tall[k], W, scratch)
    for y in range(box[k, 0], box[k, 1]):
        v = y - box[k, 0] + y0
        for x in range(box[k, 2], box[k, 3]):
            u = x - box[k, 2] + x0
            inside = 0 <= v < h and 0 <= u < w
            against[y * W + x] = bits[v * w + u] if inside else np.float32(0)
    area = box[k, 0], box[k, 1], box[k, 2], box[k, 3]
    none = np.zeros((0, 2))
    return -coded(sums, first[k], W, n[k], 0, scratch, area, cost, none, against)


@entry
def cover(which, pieces, hidden, parts, usable, assigned, template, alone, cost, total, found):
    """Explain pieces by several parts inside them.

    Writes rows of piece, part, and the corner of the part's box in the piece to `found`, as far as
    there is room.  Returns their number, and the bits that they save for every piece.  If `hidden`,
    which says of every pixel whether it is missing, is not empty, one part is enough.
    """
    ink, start, height, width, _ = pieces
    sums, first, tall, wide, _, n, box, mass, _ = parts
    scratch = np.zeros(np.max(tall * wide), np.uint8)
    against = np.zeros(scratch.size, np.float32)
    largest = 0
    for i in which:
        largest = max(largest, (height[i] + 1) * (width[i] + 1))
    bits = np.zeros(largest, np.float32)
    ink_to = np.zeros(largest, np.int64)
    free = np.zeros(largest, np.bool_)
    gain = np.zeros(PROPOSALS)
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
                c = 0
                for j in range(template.shape[0]):
                    v, u = y + template[j, 0], x + template[j, 1]
                    c *= 2
                    if 0 <= v < h and 0 <= u < w:
                        c += ink[start[i] + v * w + u]
                o = ink[start[i] + y * w + x]
                bits[y * w + x] = alone[c, o]
                free[y * w + x] = o
                if hidden.size and hidden[start[i] + y * w + x]:
                    bits[y * w + x] = -1.0
                q = (y + 1) * side + x + 1
                ink_to[q] = o + ink_to[q - 1] + ink_to[q - side] - ink_to[q - side - 1]
        count = 0
        for k in usable:
            tall_k, wide_k, W = box[k, 1] - box[k, 0], box[k, 3] - box[k, 2], wide[k]
            if k == assigned[i] or tall_k > h + 2 or wide_k > w + 2:
                continue
            least = (1 - LOOSE) * mass[k]
            for y0 in range(-1, h - tall_k + 2):
                for x0 in range(-1, w - wide_k + 2):
                    t, b = max(y0, 0), min(y0 + tall_k, h)
                    a, r = max(x0, 0), min(x0 + wide_k, w)
                    on = ink_to[b * side + r] - ink_to[t * side + r]
                    on += ink_to[t * side + a] - ink_to[b * side + a]
                    if on * n[k] < least and not hidden.size:
                        continue
                    hit = 0
                    for y in range(t, b):
                        at = first[k] + (y - y0 + box[k, 0]) * W + box[k, 2] - x0
                        for x in range(a, r):
                            hit += ink[start[i] + y * w + x] * sums[at + x]
                    needed = least
                    if hidden.size:
                        behind = 0
                        for y in range(t, b):
                            at = first[k] + (y - y0 + box[k, 0]) * W + box[k, 2] - x0
                            for x in range(a, r):
                                behind += hidden[start[i] + y * w + x] * sums[at + x]
                        if behind == 0 or behind > MOST_HIDDEN * mass[k]:
                            continue
                        needed -= behind
                    if hit < needed:
                        continue
                    g = _gain(pieces, i, parts, k, y0, x0, bits, cost, scratch, against)
                    if g > -PENALTY and count < PROPOSALS:
                        gain[count] = g - np.log2(total / n[k])
                        rows[count, 0], rows[count, 1], rows[count, 2] = k, y0, x0
                        count += 1
        before_i = written
        # The best first.  What it explains says nothing for or against the others.
        while True:
            best = -1
            for j in range(count):
                if gain[j] > 0 and (best < 0 or gain[j] > gain[best]):
                    best = j
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
                gain[kept] = g - np.log2(total / n[k])
                rows[kept, 0], rows[kept, 1], rows[kept, 2] = k, v, u
                kept += 1
            count = kept
        left = 0
        for q in range(h * w):
            left += free[q]
        several = written >= before_i + 2 and left <= LEFT * ink_to[h * side + w]
        if not several and not hidden.size:
            written, saved[i] = before_i, 0.0
    return written, saved
