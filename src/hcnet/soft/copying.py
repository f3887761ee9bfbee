"""Compiled loops that decide which piece is a copy of which part (see `coding` for the arrays).

During learning part k lives on the canvas of piece k, which is one of its copies.
"""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined
from hcnet.soft.coding import (
    NO_ROW,
    NO_TABLE,
    RENDERINGS,
    copy_bits,
    pixel_bits,
    row_bits,
    template_context,
)

# Shifts of copies around the centres of mass, and candidates that are priced in bits.
FARTHEST = 3
CANDIDATES = 6
# A pixel is surely on if it is on in this share of the copies.
SURE = 0.8
# A copy does not join a part from which it surely differs in a square of so many strokes.  The
# width of a stroke is twice the area divided by the edge.
JOINED = 0.75
# Pieces are not gathered, and parts are not merged, if they surely differ in a square of so many.
APART = 0.35
# A broken copy may lack ink in rectangles, whose corners cost so many bits: up to this share if
# it is in pieces, and if it hangs together.  P is no R that lacks its leg.
CORNERS, LACKING, CRACKED = 18.0, 0.3, 0.1


@called
def add(pieces, i, parts, k, dy, dx, sign):
    """Add a copy to a part, or take it away."""
    ink, start, height, width, reference, row = pieces[:6]
    sums, first, tall, wide, centre, n, box, mass, _, level = parts
    y0 = centre[k, 0] + dy - reference[i, 0]
    x0 = centre[k, 1] + dx - reference[i, 1]
    h, w = height[i], width[i]
    for y in range(max(0, -y0), min(h, tall[k] - y0)):
        for x in range(max(0, -x0), min(w, wide[k] - x0)):
            o = ink[start[i] + y * w + x]
            sums[first[k] + (y + y0) * wide[k] + x + x0] += sign * o
            mass[k] += sign * o
    if n[k] == 0:
        box[k, 0], box[k, 1], box[k, 2], box[k, 3] = tall[k], 0, wide[k], 0
    if sign > 0:  # the pixels around a box are on the canvas
        box[k, 0] = min(box[k, 0], max(y0, 1))
        box[k, 1] = max(box[k, 1], min(y0 + h, tall[k] - 1))
        box[k, 2] = min(box[k, 2], max(x0, 1))
        box[k, 3] = max(box[k, 3], min(x0 + w, wide[k] - 1))
    n[k] += sign
    if row[i] != NO_ROW:
        level[k, 0] += sign * (row[i] - dy)
        level[k, 1] += sign


@inlined
def distance_to(pieces, i, parts, k, dy, dx):
    """Mean number of pixels in which a piece differs from the copies of a part."""
    ink, start, height, width, reference = pieces[:5]
    sums, first, tall, wide, centre, n, _, mass, _, _ = parts
    y0 = centre[k, 0] + dy - reference[i, 0]
    x0 = centre[k, 1] + dx - reference[i, 1]
    h, w, m = height[i], width[i], n[k]
    d = mass[k]
    left, right = max(0, -x0), min(w, wide[k] - x0)
    for y in range(max(0, -y0), min(h, tall[k] - y0)):
        a = start[i] + y * w
        b = first[k] + (y + y0) * wide[k] + x0
        copy, part = ink[a + left : a + right], sums[b + left : b + right]
        inside = on = np.int32(0)
        for x in range(right - left):
            on += np.int32(copy[x])
            inside += np.int32(copy[x]) * np.int32(part[x])
        d += m * on - 2 * np.int64(inside)
    return d / m


@called
def _best_shift(pieces, i, parts, k, most):
    """The shift with the smallest distance, by hill climbing from none; far parts are left."""
    by = bx = 0
    d = distance_to(pieces, i, parts, k, 0, 0)
    while d <= 2.5 * most:
        cy, cx = by, bx
        for step in range(8):
            j = step + (step >= 4)
            y, x = cy + j // 3 - 1, cx + j % 3 - 1
            if abs(y) <= FARTHEST and abs(x) <= FARTHEST:
                e = distance_to(pieces, i, parts, k, y, x)
                if e < d:
                    d, by, bx = e, y, x
        if by == cy and bx == cx:
            break
    return d, by, bx


@inlined
def similar(a, b):
    """Whether pieces of these heights, or widths, may be copies of one part."""
    return abs(a - b) <= max(3.0, 0.15 * b)


@called
def _nearest(pieces, i, parts, area, first, near, distance, shifts):
    """The parts that a piece differs least from, nearest first; returns how many.

    Part `first` comes first, -1 is none: the nearer it is, the sooner others are left.
    """
    h, w = pieces[2][i], pieces[3][i]
    n, mass, side = parts[5], parts[7], parts[8]
    found = 0
    for q in range(-1, n.size):
        k = first if q < 0 else q
        if k < 0 or n[k] == 0 or q == first:
            continue
        if not similar(side[k, 0], h) or not similar(side[k, 1], w):
            continue
        most = 0.5 * area + 4
        if found:
            most = min(most, 1.5 * distance[0] + 4)
        if found == CANDIDATES:
            most = min(most, distance[found - 1])
        if abs(mass[k] / n[k] - area) > most:
            continue
        d, y, x = _best_shift(pieces, i, parts, k, most)
        if d > most:
            continue
        found = min(found + 1, CANDIDATES)
        j = found - 1
        while j > 0 and distance[j - 1] > d:
            distance[j], near[j] = distance[j - 1], near[j - 1]
            shifts[j, 0], shifts[j, 1] = shifts[j - 1, 0], shifts[j - 1, 1]
            j -= 1
        distance[j], near[j], shifts[j, 0], shifts[j, 1] = d, k, y, x
    return found


@called
def _extent(pieces, i):
    """Number of on pixels of a piece, and the length of its edge."""
    ink, start, height, width, _ = pieces[:5]
    h, w = height[i], width[i]
    area = edges = 0
    for y in range(h):
        for x in range(w):
            q = start[i] + y * w + x
            if ink[q]:
                area += 1
                edges += 4
                if x > 0 and ink[q - 1]:
                    edges -= 2
                if y > 0 and ink[q - w]:
                    edges -= 2
    return area, max(edges, 1)


@inlined
def square(now, x, above, last, corner):
    """Side of the largest square of differing pixels that ends here."""
    return 1 + min(above[x], last, corner) if now else 0


@called
def _copy_differs(pieces, i, parts, o, dy, dx, block, above, broken):
    """Whether a piece surely differs from a part in a square of pixels.

    A broken one may lack ink; what it has must fit.
    """
    ink, start, height, width, reference = pieces[:5]
    sums, first, tall, wide, centre, n, box, _, _, _ = parts
    h, w = height[i], width[i]
    oy = centre[o, 0] + dy - reference[i, 0]
    ox = centre[o, 1] + dx - reference[i, 1]
    top, bottom = min(0, box[o, 0] - oy), max(h, box[o, 1] - oy)
    left, right = min(0, box[o, 2] - ox), max(w, box[o, 3] - ox)
    for x in range(right - left):
        above[x] = 0
    for y in range(top, bottom):
        last = corner = 0
        for x in range(left, right):
            a = b = 0
            if 0 <= y < h and 0 <= x < w:
                a = ink[start[i] + y * w + x]
            if 0 <= y + oy < tall[o] and 0 <= x + ox < wide[o]:
                b = sums[first[o] + (y + oy) * wide[o] + x + ox]
            now = b < (1 - SURE) * n[o] if a else b > SURE * n[o] and not broken
            last, corner = square(now, x - left, above, last, corner), above[x - left]
            if last >= block:
                return True
            above[x - left] = last
    return False


@called
def move_out(pieces, parts, k, assigned, shift):
    """Give part k, which its piece has left, to the canvas of another of its copies; return it."""
    sums, first, tall, wide, centre, n, box, mass, _, level = parts
    j = -1
    for i in range(assigned.size):
        if assigned[i] == k:
            if j < 0:
                j = i
            assigned[i] = j
            add(pieces, i, parts, j, shift[i, 0], shift[i, 1], 1)
    for q in range(tall[k] * wide[k]):
        sums[first[k] + q] = 0
    mass[k] = n[k] = level[k, 0] = level[k, 1] = 0
    oy, ox = centre[j, 0] - centre[k, 0], centre[j, 1] - centre[k, 1]
    box[j, 0], box[j, 1] = max(box[k, 0] + oy, 1), min(box[k, 1] + oy, tall[j] - 1)
    box[j, 2], box[j, 3] = max(box[k, 2] + ox, 1), min(box[k, 3] + ox, wide[j] - 1)
    return j


@called
def _cheapest(pieces, i, parts, near, shifts, found, block, cost, place, alone, lacking, work):
    """Of the nearest parts, the one that a piece costs least as a copy of, and the bits.

    A piece is no copy of a part from which it surely differs in a block of pixels.  If `alone`, the
    bits of pixels without a part, is not empty, the piece may be broken.
    """
    scratch, above, none, patch = work
    level = parts[9]
    broken = alone.size > 0
    best, bits = -1, np.inf
    for j in range(found):
        k, dy, dx = near[j], shifts[j, 0], shifts[j, 1]
        b, rendering = copy_bits(pieces, i, parts, k, dy, dx, 0, cost, none, scratch)
        r = pieces[5][i]
        r -= dy if r != NO_ROW else 0
        b += place + row_bits(r, level[k, 0], level[k, 1]) - np.log2(parts[5][k])
        if broken:
            b -= _lacking(parts, k, rendering, cost, alone, lacking, scratch, patch)
        if b < bits and not _copy_differs(pieces, i, parts, k, dy, dx, block, above, broken):
            best, bits = j, b
    return best, bits


@called
def _lacking(parts, k, rendering, cost, alone, share, scratch, patch):
    """Bits saved if rectangles of a copy without ink are coded without its part, the best first.

    The copy lies in `scratch`.
    """
    sums, first, H, W, n = parts[0], parts[1][k], parts[2][k], parts[3][k], parts[5][k]
    for y in range(1, H - 1):
        for x in range(1, W - 1):
            q = y * W + x
            if scratch[q]:
                patch[q] = -16.0
                continue
            bits = pixel_bits(sums, first, q, W, n, scratch, rendering, cost)
            patch[q] = bits - alone[template_context(scratch, 0, H, W, y, x), 0]
    saved, lost = 0.0, 0
    while True:
        most, gone, top, bottom, left, right = _rectangle(
            parts, k, patch, share * parts[7][k] - lost
        )
        if most <= CORNERS:
            return saved
        saved, lost = saved + most - CORNERS, lost + gone
        for y in range(top, bottom):
            for x in range(left, right):
                patch[y * W + x] = 0.0


@called
def _rectangle(parts, k, patch, room):
    """The rectangle with the largest sum, its ink in all copies, at most `room`, and its bounds."""
    sums, first, H, W = parts[0], parts[1][k], parts[2][k], parts[3][k]
    most, best = 0.0, (0, 0, 0, 0, 0)
    columns = np.zeros(W)
    for top in range(1, H - 1):
        for x in range(W):
            columns[x] = 0.0
        for bottom in range(top, H - 1):
            run, left = 0.0, 1
            for x in range(1, W - 1):
                columns[x] += patch[bottom * W + x]
                if run <= 0.0:
                    run, left = 0.0, x
                run += columns[x]
                if run > most:
                    gone = 0
                    for y in range(top, bottom + 1):
                        for u in range(left, x + 1):
                            gone += sums[first + y * W + u]
                    if gone <= room:
                        most, best = run, (gone, top, bottom + 1, left, x + 1)
    return most, *best


@inlined
def _workspace(pieces, parts):
    """Memory for the price of a copy."""
    scratch = np.zeros(np.max(parts[2] * parts[3]), np.uint8)
    above = np.zeros(np.max(parts[3]) + np.max(pieces[3]), np.int64)
    return scratch, above, np.zeros((0, 2, RENDERINGS)), np.zeros(scratch.size)


@entry
def match(pieces, parts, alone, cost, place, cost_alone, lacking):
    """The part that each piece costs least with (-1: by itself), its shift, and the bits.

    Pieces may be broken if `cost_alone`, the bits of pixels without a part, is not empty; they may
    lack so large a share of their ink.
    """
    work = _workspace(pieces, parts)
    near = np.zeros(CANDIDATES, np.int64)
    distance = np.zeros(CANDIDATES)
    shifts = np.zeros((CANDIDATES, 2), np.int64)
    part = np.full(alone.size, -1)
    shift = np.zeros((alone.size, 2), np.int64)
    bits = alone.copy()
    for i in range(alone.size):
        area, edges = _extent(pieces, i)
        block = max(2.0, 2 * JOINED * area / edges)
        found = _nearest(pieces, i, parts, area, -1, near, distance, shifts)
        given = near, shifts, found, block, cost, place[i], cost_alone, lacking[i], work
        j, b = _cheapest(pieces, i, parts, *given)
        if b < bits[i]:
            part[i], bits[i] = near[j], b
            shift[i, 0], shift[i, 1] = shifts[j, 0], shifts[j, 1]
    return part, shift, bits


@entry
def reassign(order, pieces, parts, alone, assigned, shift, cost, threshold, place):
    """Take each copy out of its part and put it where it costs least.

    With a threshold it joins the nearest part instead that differs in less than this share of its
    pixels.
    """
    n = parts[5]
    work = _workspace(pieces, parts)
    near = np.zeros(CANDIDATES, np.int64)
    distance = np.zeros(CANDIDATES)
    shifts = np.zeros((CANDIDATES, 2), np.int64)
    for i in order:
        old = assigned[i]
        if old >= 0:
            add(pieces, i, parts, old, shift[i, 0], shift[i, 1], -1)
            assigned[i] = -1
            if old == i and n[old] > 0:
                old = move_out(pieces, parts, old, assigned, shift)
        area, edges = _extent(pieces, i)
        block = max(2.0, 2 * JOINED * area / edges)
        found = _nearest(pieces, i, parts, area, old, near, distance, shifts)
        best = -1
        if threshold > 0:
            block = max(2.0, 2 * APART * area / edges)
            for j in range(found):
                k, dy, dx = near[j], shifts[j, 0], shifts[j, 1]
                if distance[j] < threshold * area and not _copy_differs(
                    pieces, i, parts, k, dy, dx, block, work[1], False
                ):
                    best = j
                    break
        else:
            given = near, shifts, found, block, cost, place[i], NO_TABLE, 0.0, work
            best, b = _cheapest(pieces, i, parts, *given)
            if b >= alone[i]:
                best = -1
        new = i
        shift[i, 0] = shift[i, 1] = 0
        if best >= 0:
            new = near[best]
            shift[i, 0], shift[i, 1] = shifts[best, 0], shifts[best, 1]
        add(pieces, i, parts, new, shift[i, 0], shift[i, 1], 1)
        assigned[i] = new


@entry
def realign(which, pieces, parts, assigned, shift, cost):
    """Shift each copy by at most a pixel to where it costs least."""
    n = parts[5]
    scratch = np.zeros(np.max(parts[2] * parts[3]), np.uint8)
    none = np.zeros((0, 2, RENDERINGS))
    for i in which:
        k = assigned[i]
        if n[k] < 3:
            continue
        add(pieces, i, parts, k, shift[i, 0], shift[i, 1], -1)
        best, by, bx = np.inf, 0, 0
        for j in range(9):
            y, x = shift[i, 0] + j // 3 - 1, shift[i, 1] + j % 3 - 1
            if max(abs(y), abs(x)) <= FARTHEST + 1:
                b, _ = copy_bits(pieces, i, parts, k, y, x, 0, cost, none, scratch)
                if b < best:
                    best, by, bx = b, y, x
        shift[i, 0], shift[i, 1] = by, bx
        add(pieces, i, parts, k, by, bx, 1)


@entry
def tighten(parts):
    """Bound each part anew by the pixels that are on in a twentieth of its copies."""
    sums, first, tall, wide, _, n, box, _, _, _ = parts
    for k in range(n.size):
        if n[k] == 0:
            continue
        box[k, 0], box[k, 1], box[k, 2], box[k, 3] = tall[k], 0, wide[k], 0
        for y in range(1, tall[k] - 1):
            for x in range(1, wide[k] - 1):
                if 20 * sums[first[k] + y * wide[k] + x] >= n[k]:
                    box[k, 0], box[k, 1] = min(box[k, 0], y), max(box[k, 1], y + 1)
                    box[k, 2], box[k, 3] = min(box[k, 2], x), max(box[k, 3], x + 1)


@entry
def release(which, pieces, parts, assigned, shift):
    """Take copies out of their parts: each is by itself then."""
    for i in which:
        old = assigned[i]
        add(pieces, i, parts, old, shift[i, 0], shift[i, 1], -1)
        assigned[i] = -1
        if old == i and parts[5][old] > 0:
            move_out(pieces, parts, old, assigned, shift)
        shift[i, 0] = shift[i, 1] = 0
        add(pieces, i, parts, i, 0, 0, 1)
        assigned[i] = i


@entry
def fill(pieces, parts, assigned, shift):
    """Add every piece to its part."""
    for i in range(assigned.size):
        add(pieces, i, parts, assigned[i], shift[i, 0], shift[i, 1], 1)
