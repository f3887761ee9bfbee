"""Compiled loops that put two soft parts together (see `coding` for the arrays)."""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined
from hcnet.soft.coding import NO_ROW, RENDERINGS, copy_bits, row_bits
from hcnet.soft.copying import FARTHEST, add, similar

# Copies of a part that are priced when it may be merged with a smaller one.
SAMPLE = 24
# Parts are not merged if they differ so much on average in a square of so many strokes.
DIFFERENT, SQUARE = 0.43, 0.6


@called
def _overlay(parts, k, o, dy, dx):
    """Mean number of pixels in which the majority of part k differs from the copies of part o."""
    sums, first, tall, wide, centre, n, box, mass, _, _ = parts
    oy, ox = centre[o, 0] - centre[k, 0] + dy, centre[o, 1] - centre[k, 1] + dx
    d = mass[o]
    left, right = max(box[k, 2], -ox), min(box[k, 3], wide[o] - ox)
    for y in range(max(box[k, 0], -oy), min(box[k, 1], tall[o] - oy)):
        a = first[k] + y * wide[k]
        b = first[o] + (y + oy) * wide[o] + ox
        for x in range(left, right):
            d += (2 * sums[a + x] >= n[k]) * (n[o] - 2 * sums[b + x])
    return d / n[o]


@called
def _parts_differ(parts, k, o, dy, dx, side):
    """Whether two parts differ in a square of pixels by more than their edges do.

    The difference of the shares of copies in which a pixel is on, averaged over the square, tells a
    stroke, wherever its edges are, from an edge that has moved.
    """
    sums, first, tall, wide, centre, n, box, _, _, _ = parts
    oy, ox = centre[o, 0] - centre[k, 0] + dy, centre[o, 1] - centre[k, 1] + dx
    top, bottom = min(box[k, 0], box[o, 0] - oy), max(box[k, 1], box[o, 1] - oy)
    left, right = min(box[k, 2], box[o, 2] - ox), max(box[k, 3], box[o, 3] - ox)
    width = right - left + 1
    # Sums of differences above and to the left of each pixel.
    total = np.zeros((bottom - top + 1) * width)
    for y in range(top, bottom):
        for x in range(left, right):
            d = 0.0
            if 0 <= y < tall[k] and 0 <= x < wide[k]:
                d += sums[first[k] + y * wide[k] + x] / n[k]
            if 0 <= y + oy < tall[o] and 0 <= x + ox < wide[o]:
                d -= sums[first[o] + (y + oy) * wide[o] + x + ox] / n[o]
            q = (y - top + 1) * width + x - left + 1
            total[q] = d + total[q - 1] + total[q - width] - total[q - width - 1]
    for y in range(side, bottom - top + 1):
        for x in range(side, width):
            q = y * width + x
            d = total[q] - total[q - side] - total[q - side * width]
            if abs(d + total[q - side * width - side]) > DIFFERENT * side * side:
                return True
    return False


@called
def _pour(pieces, i, following, parts, o, shift, dy, dx, sign):
    """Add copy i and those that follow it to part o, or take them away; its box stays."""
    box = parts[6]
    top, bottom, left, right = box[o, 0], box[o, 1], box[o, 2], box[o, 3]
    while i >= 0:
        add(pieces, i, parts, o, shift[i, 0] + dy, shift[i, 1] + dx, sign)
        i = following[i]
    box[o, 0], box[o, 1], box[o, 2], box[o, 3] = top, bottom, left, right


@inlined
def _energy(n, alone, bits, places):
    """Bits of a part and its copies: of the first by itself, of the others given the part."""
    if n == 1:
        return alone
    return alone / n + (1 - 1 / n) * bits + places - n * np.log2(n)


@inlined
def _rows(level, k, o, dy, n):
    """Bits of the rows of the n copies of part k as copies of part o, shifted by dy."""
    m, own = level[k, 1], k == o
    row = level[k, 0] // m - dy if m else NO_ROW
    return n * row_bits(row, level[o, 0] - own * row, level[o, 1] - own * (m > 0))


@entry
def merge(order, pieces, parts, alone, assigned, shift, bits, cost, slack, place):
    """Put each part into a larger one, if both together then cost less.

    With a slack, variants of a part are put together: up to so many bits per pixel of the edge and
    copy more, if only their edges differ.  Returns how many were merged.
    """
    sums, first, tall, wide, _, n, box, _, side, level = parts
    scratch = np.zeros(np.max(tall * wide), np.uint8)
    none = np.zeros((0, 2, RENDERINGS))
    head = np.full(n.size, -1)
    following = np.full(assigned.size, -1)
    for i in range(assigned.size - 1, -1, -1):
        following[i] = head[assigned[i]]
        head[assigned[i]] = i
    near = np.zeros(3, np.int64)
    distance = np.zeros(3)
    shifts = np.zeros((3, 2), np.int64)
    saved = np.zeros(4, np.int64)
    merged = 0
    for k in order:
        if n[k] == 0:
            continue
        area = edges = 0
        for y in range(box[k, 0], box[k, 1]):
            for x in range(box[k, 2], box[k, 3]):
                q = first[k] + y * wide[k] + x
                on = 2 * sums[q] >= n[k]
                area += on
                edges += (on != (2 * sums[q - 1] >= n[k])) + (on != (2 * sums[q - wide[k]] >= n[k]))
        found = 0
        for o in range(n.size):
            if (
                o == k
                or n[o] < max(n[k], 2)
                or not similar(side[o, 0], side[k, 0])
                or not similar(side[o, 1], side[k, 1])
            ):
                continue
            d = _overlay(parts, k, o, 0, 0)
            by = bx = 0
            while True:
                cy, cx = by, bx
                for step in range(8):
                    j = step + (step >= 4)
                    y, x = cy + j // 3 - 1, cx + j % 3 - 1
                    if abs(y) <= FARTHEST and abs(x) <= FARTHEST:
                        e = _overlay(parts, k, o, y, x)
                        if e < d:
                            d, by, bx = e, y, x
                if by == cy and bx == cx:
                    break
            if d > 0.6 * area + 4 or (found == 3 and d >= distance[2]):
                continue
            found = min(found + 1, 3)
            j = found - 1
            while j > 0 and distance[j - 1] > d:
                distance[j], near[j] = distance[j - 1], near[j - 1]
                shifts[j, 0], shifts[j, 1] = shifts[j - 1, 0], shifts[j - 1, 1]
                j -= 1
            distance[j], near[j], shifts[j, 0], shifts[j, 1] = d, o, by, bx
        for j in range(found):
            o, dy, dx = near[j], shifts[j, 0], shifts[j, 1]
            square = max(3, int(SQUARE * 2 * area / edges + 0.5))
            if _parts_differ(parts, k, o, dy, dx, square):
                continue
            nk, no = n[k], n[o]
            oy, ox = parts[4][o, 0] - parts[4][k, 0] + dy, parts[4][o, 1] - parts[4][k, 1] + dx
            if (
                box[k, 0] + oy < 1
                or box[k, 2] + ox < 1
                or box[k, 1] + oy >= tall[o]
                or box[k, 3] + ox >= wide[o]
            ):
                continue
            rows_k, rows_o = _rows(level, k, k, 0, nk), _rows(level, k, o, dy, nk)
            for q in range(4):
                saved[q] = box[o, q]
            _pour(pieces, head[k], following, parts, o, shift, dy, dx, 1)
            box[o, 0], box[o, 1] = min(box[o, 0], box[k, 0] + oy), max(box[o, 1], box[k, 1] + oy)
            box[o, 2], box[o, 3] = min(box[o, 2], box[k, 2] + ox), max(box[o, 3], box[k, 3] + ox)
            alone_k = alone_o = bits_k = bits_o = new_k = new_o = old_o = 0.0
            place_k = place_o = 0.0
            i, seen = head[k], 0
            while i >= 0:
                alone_k += alone[i]
                place_k += place[i]
                bits_k += bits[i]
                if seen < 2 * SAMPLE:
                    y, x = shift[i, 0] + dy, shift[i, 1] + dx
                    more, _ = copy_bits(pieces, i, parts, o, y, x, 1, cost, none, scratch)
                    new_k += more
                    seen += 1
                i = following[i]
            new_k *= nk / max(seen, 1)
            i, step, members = head[o], 0, 0
            every = max(no // SAMPLE, 1)
            seen = 0
            while i >= 0:
                alone_o += alone[i]
                place_o += place[i]
                bits_o += bits[i]
                members += 1
                if step % every == 0:
                    y, x = shift[i, 0], shift[i, 1]
                    more, _ = copy_bits(pieces, i, parts, o, y, x, 1, cost, none, scratch)
                    new_o += more
                    old_o += bits[i]
                    seen += 1
                step += 1
                i = following[i]
            gain = members / max(seen, 1)
            both = bits_o + (new_o - old_o) * gain + new_k
            before = _energy(nk, alone_k, bits_k, place_k + rows_k)
            before += _energy(no, alone_o, bits_o, place_o)
            after = _energy(nk + no, alone_k + alone_o, both, place_k + place_o + rows_o)
            if after >= before + slack * edges * nk:
                _pour(pieces, head[k], following, parts, o, shift, dy, dx, -1)
                for q in range(4):
                    box[o, q] = saved[q]
                continue
            i = head[k]
            while True:
                assigned[i] = o
                shift[i, 0] += dy
                shift[i, 1] += dx
                bits[i] = new_k / nk
                if following[i] < 0:
                    break
                i = following[i]
            following[i] = head[o]
            head[o], head[k] = head[k], -1
            n[k] = 0
            parts[7][k] = level[k, 0] = level[k, 1] = 0
            for q in range(tall[k] * wide[k]):
                sums[first[k] + q] = 0
            merged += 1
            break
    return merged
