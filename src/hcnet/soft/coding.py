"""Compiled loops over pieces and soft parts: the bits of a copy given its part, and by itself.

``pieces`` is (ink, start, height, width, reference, row, hidden): bitmaps one after the other;
`row` is that of the reference point below the line of text around it; if `hidden` is not empty, it
says which pixels something else explains already: they cost nothing.  ``parts`` is (sums, start,
height, width, reference, n, box, mass, side, level): a canvas per part, on which `sums` counts in
how many of its n copies a pixel is on; `box` bounds what is on in some copies, `mass` is the sum of
``sums``, `side` the height and width of a copy, `level` the sum of the rows of the copies in a
line, and their number.  A copy with the shift (dy, dx) lies with its reference point so far from
that of the part.
"""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import called, entry, inlined

LEVELS = 5
CONTEXTS = LEVELS * 256 * 16
# A shape comes out in several renderings: shifted by a fraction of a pixel, thin or bold.  A table
# has the bits of a pixel for each; its last row has the bits of the renderings themselves.
RENDERINGS = 11
TABLE = CONTEXTS + 1, 2, RENDERINGS
NOTHING = np.zeros(0, np.float32)
NO_TABLE = np.zeros((0, 2), np.float32)
NO_COUNTS = np.zeros((0, 2, RENDERINGS))
# The row of a piece that stands in no line of text.
NO_ROW = -(2**31)
# Rows that a copy may have in a line, and by how many copies of a part differ: lines are found to a
# pixel or two.
ROWS, NEAR_ROWS = 64, 2
# In median heights: how far the letters of a line are looked for, how much their lower edges may
# differ from that of a piece, and the least and largest height of a letter (dots have less).
AROUND, LOWER, LETTER, TALLEST = 6.0, 1.0, 0.5, 3.0
# So many letters around a piece are a line.
LETTERS = 3
# Earlier pixels of the page, as (rows, columns) from the pixel.
TEMPLATE = np.array(
    [(0, -x) for x in range(1, 5)]
    + [(-1, x) for x in range(-3, 4)]
    + [(-2, x) for x in range(-2, 3)]
)


@entry
def moments(ink, start, height, width):
    """Number of on pixels and centre of mass of all pieces."""
    n = start.size
    area = np.zeros(n, np.int64)
    reference = np.zeros((n, 2), np.int64)
    for i in range(n):
        sy = sx = m = 0
        for y in range(height[i]):
            for x in range(width[i]):
                if ink[start[i] + y * width[i] + x]:
                    m += 1
                    sy += y
                    sx += x
        area[i] = m
        if m:
            reference[i, 0] = (2 * sy + m) // (2 * m)
            reference[i, 1] = (2 * sx + m) // (2 * m)
    return area, reference


@entry
def cut(label, owner, low, sides, start):
    """Bitmaps of the pixels whose label each piece owns."""
    ink = np.zeros(start[-1], np.uint8)
    for i in range(low.shape[0]):
        q = start[i]
        for y in range(low[i, 0], low[i, 0] + sides[i, 0]):
            for x in range(low[i, 1], low[i, 1] + sides[i, 1]):
                ink[q] = owner[label[y, x]] == i
                q += 1
    return ink


@inlined
def template_context(ink, base, height, width, y, x):
    """The context of a pixel without its part, on the bitmap that begins at `base`."""
    c = 0
    for j in range(TEMPLATE.shape[0]):
        v, u = y + TEMPLATE[j, 0], x + TEMPLATE[j, 1]
        c *= 2
        if 0 <= v < height and 0 <= u < width:
            c += ink[base + v * width + u]
    return c


@entry
def template_counts(page, counts):
    """Count each pixel of a page in its context."""
    height, width = page.shape
    ink = page.ravel()
    for y in range(height):
        for x in range(width):
            counts[template_context(ink, 0, height, width, y, x), page[y, x]] += 1


@entry
def page_bits(page, cost):
    """Bits of a page by itself."""
    height, width = page.shape
    ink = page.ravel()
    bits = 0.0
    for y in range(height):
        for x in range(width):
            bits += cost[template_context(ink, 0, height, width, y, x), page[y, x]]
    return bits


@entry
def template_bits(pieces, cost):
    """Bits of each piece by itself, on an empty page."""
    ink, start, height, width, _, _, hidden = pieces
    bits = np.zeros(start.size)
    for i in range(start.size):
        h, w = height[i], width[i]
        for y in range(-1, h + 1):
            for x in range(-1, w + 1):
                o = 0
                if 0 <= y < h and 0 <= x < w:
                    o = ink[start[i] + y * w + x]
                    if hidden.size and hidden[start[i] + y * w + x]:
                        continue
                bits[i] += cost[template_context(ink, start[i], h, w, y, x), o]
    return bits


@entry
def added_bits(pieces, top, left, page, cost):
    """Bits that each piece adds to a page it lies on, which keeps its hidden pixels."""
    ink, start, height, width, _, _, hidden = pieces
    down, across = page.shape
    bits = np.zeros(start.size)
    for i in range(start.size):
        # Pixels up to four away see the piece, and the template of these reaches four further.
        h, w = height[i] + 16, width[i] + 16
        seen, rest = np.zeros(h * w, np.uint8), np.zeros(h * w, np.uint8)
        for y in range(h):
            for x in range(w):
                v, u = top[i] + y - 8, left[i] + x - 8
                if 0 <= v < down and 0 <= u < across:
                    seen[y * w + x] = rest[y * w + x] = page[v, u]
        for y in range(height[i]):
            for x in range(width[i]):
                q = start[i] + y * width[i] + x
                if ink[q] and not hidden[q]:
                    rest[(y + 8) * w + x + 8] = 0
        for y in range(8, h - 4):
            for x in range(4, w - 3):
                q = y * w + x
                bits[i] += cost[template_context(seen, 0, h, w, y, x), seen[q]]
                bits[i] -= cost[template_context(rest, 0, h, w, y, x), rest[q]]
    return bits


@inlined
def _level(on, m):
    """Level of a part pixel that is on in `on` of m copies."""
    p = (on + 0.12) / (m + 0.4)
    return (p >= 0.05) + (p >= 0.3) + (p >= 0.7) + (p >= 0.95)


@inlined
def _column(sums, base, q, W, own, scratch, m):
    """Which of three pixels below each other are on in most copies, as bits."""
    a = 2 * (sums[base + q - W] - own * scratch[q - W]) >= m
    b = 2 * (sums[base + q] - own * scratch[q]) >= m
    c = 2 * (sums[base + q + W] - own * scratch[q + W]) >= m
    return 4 * a + 2 * b + c


@inlined
def _context(sums, base, q, W, own, scratch, m, a, b, c):
    """The context of a pixel of a copy, whose columns of the part's majority are known."""
    around = a * 32 + (b >> 2) * 16 + (b & 1) * 8 + c
    before = scratch[q - 1] + 2 * scratch[q - W - 1] + 4 * scratch[q - W]
    before += 8 * scratch[q - W + 1]
    return (_level(sums[base + q] - own * scratch[q], m) * 256 + around) * 16 + before


@called
def coded(sums, base, W, m, own, scratch, area, cost, counts, against):
    """Bits of the pixels in an area (top, bottom, left, right) given its part; the rendering.

    The pixels have the probability of all renderings together, so that none has to be named.  The
    one that is returned is the most probable.

    The copy lies in `scratch`; with `own` = 1 it is one of the m + 1 copies that `sums` counts,
    and left out.  Counts the pixels by context in `counts`, if that is not empty, in each rendering
    with its probability.  If `against` is not empty, it has bits of each pixel that are subtracted,
    if they are positive; pixels away from the ink of the part are then left out, since they may
    belong to another.  Pixels where it is negative are left out.
    """
    top, bottom, left, right = area
    bits = cost[CONTEXTS, 1].copy()
    subtracted = 0.0
    weight = np.zeros(RENDERINGS)
    learn = counts.size > 0
    for again in range(1 + learn):
        for y in range(top, bottom):
            q = y * W + left - 1
            a = _column(sums, base, q, W, own, scratch, m)
            b = _column(sums, base, q + 1, W, own, scratch, m)
            for x in range(left, right):
                q = y * W + x
                c = _column(sums, base, q + 1, W, own, scratch, m)
                context = _context(sums, base, q, W, own, scratch, m, a, b, c)
                a, b = b, c
                o = scratch[q]
                if again:
                    for r in range(RENDERINGS):
                        counts[context, o, r] += weight[r]
                    continue
                if against.size:
                    if against[q] < 0 or (against[q] > 0 and context < 16):
                        continue
                    subtracted += against[q]
                for r in range(RENDERINGS):
                    bits[r] += cost[context, o, r]
        best = np.argmin(bits)
        total = 0.0
        for r in range(RENDERINGS):
            weight[r] = 2.0 ** (bits[best] - bits[r])
            total += weight[r]
        weight /= total
    if learn:
        for r in range(RENDERINGS):
            counts[CONTEXTS, 1, r] += weight[r]
    return bits[best] - np.log2(total) - subtracted, best


@called
def pixel_bits(sums, base, q, W, m, scratch, rendering, cost):
    """Bits of one pixel of a copy in a rendering."""
    a = _column(sums, base, q - 1, W, 0, scratch, m)
    b = _column(sums, base, q, W, 0, scratch, m)
    c = _column(sums, base, q + 1, W, 0, scratch, m)
    context = _context(sums, base, q, W, 0, scratch, m, a, b, c)
    return cost[context, scratch[q], rendering]


@inlined
def draw(pieces, i, y0, x0, H, W, scratch):
    """Draw a piece with its corner at a point of an empty canvas."""
    ink, start, height, width, _ = pieces[:5]
    h, w = height[i], width[i]
    for q in range(H * W):
        scratch[q] = 0
    for y in range(max(0, -y0), min(h, H - y0)):
        for x in range(max(0, -x0), min(w, W - x0)):
            scratch[(y + y0) * W + x + x0] = ink[start[i] + y * w + x]


@called
def _left_out(pieces, i, y0, x0, H, W):
    """-1 at the hidden pixels of a piece with its corner at a point of a canvas, else 0."""
    start, height, width, _, _, hidden = pieces[1:]
    w = width[i]
    found = np.zeros(H * W, np.float32)
    for y in range(max(0, -y0), min(height[i], H - y0)):
        for x in range(max(0, -x0), min(w, W - x0)):
            if hidden[start[i] + y * w + x]:
                found[(y + y0) * W + x + x0] = -1.0
    return found


@called
def copy_bits(pieces, i, parts, k, dy, dx, own, cost, counts, scratch):
    """Bits of a piece as a copy of a part, and its rendering; with `own` it is left out."""
    height, width, reference, _, hidden = pieces[2:]
    sums, first, tall, wide, centre, n, box, _, _, _ = parts
    H, W = tall[k], wide[k]
    y0 = centre[k, 0] + dy - reference[i, 0]
    x0 = centre[k, 1] + dx - reference[i, 1]
    draw(pieces, i, y0, x0, H, W, scratch)
    top, bottom = min(box[k, 0], y0) - 1, max(box[k, 1], y0 + height[i]) + 1
    left, right = min(box[k, 2], x0) - 1, max(box[k, 3], x0 + width[i]) + 1
    area = max(top, 1), min(bottom, H - 1), max(left, 1), min(right, W - 1)
    against = NOTHING
    if hidden.size:
        against = _left_out(pieces, i, y0, x0, H, W)
    return coded(sums, first[k], W, n[k] - own, own, scratch, area, cost, counts, against)


@called
def row_bits(row, total, n):
    """Bits of the row of a copy, given the rows of n others in lines of text and their sum.

    It is near their mean, or anywhere in a line: one of n + 1 copies is.  A copy that stands in no
    line has none.
    """
    if row == NO_ROW:
        return 0.0
    chance = 1.0 / ROWS
    if abs(n * row - total) <= NEAR_ROWS * n:
        chance += n / (2.0 * NEAR_ROWS + 1)
    return -np.log2(chance / (n + 1))


@entry
def rows_price(pieces, parts, assigned, shift):
    """Bits of the rows of all copies, each left out itself."""
    row, level = pieces[5], parts[9]
    bits = np.zeros(assigned.size)
    for i in range(assigned.size):
        k = assigned[i]
        if k >= 0:
            r, own = row[i], row[i] != NO_ROW
            r -= own * shift[i, 0]
            bits[i] = row_bits(r, level[k, 0] - own * r, level[k, 1] - own)
    return bits


@entry
def price(pieces, parts, assigned, shift, own, cost, counts):
    """Bits of every copy of a part, itself left out if it is its `own`; also counts contexts.

    Pieces that are assigned to -1 are left out.
    """
    n = parts[5]
    scratch = np.zeros(np.max(parts[2] * parts[3]), np.uint8)
    bits = np.zeros(assigned.size)
    for i in range(assigned.size):
        k = assigned[i]
        if k >= 0 and n[k] > own:
            bits[i], _ = copy_bits(
                pieces, i, parts, k, shift[i, 0], shift[i, 1], own, cost, counts, scratch
            )
    return bits


@entry
def differences(pieces, parts, assigned, shift):
    """In how many pixels each piece differs from the majority of its part."""
    ink, start, height, width, reference = pieces[:5]
    sums, first, tall, wide, centre, n, box, _, _, _ = parts
    found = np.zeros(assigned.size, np.int64)
    for i in range(assigned.size):
        k, h, w = assigned[i], height[i], width[i]
        y0 = centre[k, 0] + shift[i, 0] - reference[i, 0]
        x0 = centre[k, 1] + shift[i, 1] - reference[i, 1]
        for y in range(min(y0, box[k, 0]), max(y0 + h, box[k, 1])):
            for x in range(min(x0, box[k, 2]), max(x0 + w, box[k, 3])):
                a = b = False
                if 0 <= y < tall[k] and 0 <= x < wide[k]:
                    a = 2 * sums[first[k] + y * wide[k] + x] >= n[k]
                if y0 <= y < y0 + h and x0 <= x < x0 + w:
                    b = ink[start[i] + (y - y0) * w + x - x0] > 0
                found[i] += a != b
    return found


@entry
def lines(top, left, height, width, median):
    """The row that each piece stands on, and the columns between it and the piece to the left.

    The pieces are sorted by their left sides.
    """
    N = top.size
    line, gap = np.full(N, NO_ROW), np.full(N, NO_ROW)
    room = np.zeros(N, np.int64)
    first = 0
    for i in range(N):
        bottom, right = top[i] + height[i], left[i] + width[i]
        while left[first] < left[i] - 2 * AROUND * median:
            first += 1
        found = 0
        nearest = NO_ROW
        j = first
        while j < N and left[j] <= right + AROUND * median:
            below = top[j] + height[j]
            if j != i and height[j] >= LETTER * median and height[j] <= TALLEST * median:
                near = left[j] + width[j] >= left[i] - AROUND * median
                if near and abs(below - bottom) <= LOWER * median:
                    room[found] = below
                    found += 1
            common = min(below, bottom + median) - max(top[j], top[i] - median)
            if j < i and common > 0 and abs(below - bottom) <= LOWER * median:
                nearest = max(nearest, left[j] + width[j])
            j += 1
        if found >= LETTERS:
            line[i] = np.sort(room[:found])[found // 2]
            if nearest > NO_ROW:
                gap[i] = left[i] - nearest
    return line, gap
