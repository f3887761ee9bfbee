"""Soft parts by hand: pieces from bitmaps, and bits by plain Python."""

import math

import numpy as np

from hcnet.soft import copying
from hcnet.soft.coding import CONTEXTS, NO_ROW, RENDERINGS, TEMPLATE
from hcnet.soft.parts import Parts
from hcnet.soft.pieces import Pieces

LEVELS = (0.05, 0.3, 0.7, 0.95)


def pieces_of(bitmaps, corners=None, page=0):
    """Pieces with these bitmaps, and with these corners on their page."""
    n = len(bitmaps)
    corners = np.zeros((n, 2), np.int64) if corners is None else np.array(corners)
    sides = np.array([np.shape(one) for one in bitmaps], np.int64).reshape(-1, 2)
    start = np.cumsum(sides.prod(axis=1)) - sides.prod(axis=1)
    ink = np.concatenate([np.asarray(one, np.uint8).ravel() for one in bitmaps])
    top, left = corners[:, 0].copy(), corners[:, 1].copy()
    height, width = sides[:, 0].copy(), sides[:, 1].copy()
    return Pieces(np.full(n, page), top, left, height, width, start, ink)


def parts_of(pieces, assigned, shift):
    """The parts that copies make, each on the canvas of the piece of its number."""
    parts = Parts(np.stack([pieces.height, pieces.width], axis=1), pieces.reference)
    copying.fill(pieces.arrays(), parts.arrays(), np.asarray(assigned), np.asarray(shift))
    return parts


def shapes(rng, n, kinds=2, side=12):
    """Noisy copies of a few blots."""
    blots = []
    for k in range(kinds):
        y, x = np.mgrid[:side, : side - k]
        centre, radius = rng.uniform(4, 7, 2), rng.uniform(2, 5, 2)
        blot = (((y - centre[0]) / radius[0]) ** 2 + ((x - centre[1]) / radius[1]) ** 2) < 1
        blot[k % side, :] = blot[:, -1] = blot[0, 0] = True
        blots.append(blot)
    return [blots[i % kinds] ^ (rng.random(blots[i % kinds].shape) < 0.04) for i in range(n)]


def row_bits(pieces, i, parts, k, shift):
    """Bits of the row of a piece in its line as a copy of a part that it is not in."""
    if pieces.line[i] == NO_ROW:
        return 0.0
    row = pieces.top[i] + pieces.reference[i, 0] - shift[0] - pieces.line[i]
    total, n = parts.level[k].tolist()
    near = n > 0 and abs(row - total / n) <= 2
    return -math.log2((n * near / 5 + 1 / 64) / (n + 1))


def canvas(parts, k):
    h, w = parts.height[k], parts.width[k]
    return parts.sums[parts.start[k] : parts.start[k] + h * w].reshape(h, w)


def drawn(pieces, i, parts, k, shift):
    """A piece on the canvas of a part, as far as it lies on it."""
    found = np.zeros((parts.height[k], parts.width[k]), np.int64)
    corner = parts.reference[k] + shift - pieces.reference[i]
    for (y, x), on in np.ndenumerate(pieces.bitmap(i)):
        y, x = y + corner[0], x + corner[1]
        if 0 <= y < found.shape[0] and 0 <= x < found.shape[1]:
            found[y, x] = on
    return found, corner


def copy_contexts(sums, m, copy, area):
    """Pixels in an area (top, bottom, left, right): their contexts and values."""
    top, bottom, left, right = area
    majority = 2 * sums >= m
    for y in range(top, bottom):
        for x in range(left, right):
            p = (sums[y, x] + 0.12) / (m + 0.4)
            level = sum(p >= bound for bound in LEVELS)
            around = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]
            code = 0
            for v, u in around:
                code = 2 * code + int(majority[y + v, x + u])
            before = [(0, -1), (-1, -1), (-1, 0), (-1, 1)]
            seen = sum(int(copy[y + v, x + u]) << j for j, (v, u) in enumerate(before))
            yield (level * 256 + code) * 16 + seen, int(copy[y, x])


def copy_area(pieces, i, parts, k, corner):
    """The pixels that are coded: those of the box and of the copy, and one more around."""
    box, (h, w) = parts.box[k], (pieces.height[i], pieces.width[i])
    H, W = parts.height[k], parts.width[k]
    top, bottom = min(box[0], corner[0]) - 1, max(box[1], corner[0] + h) + 1
    left, right = min(box[2], corner[1]) - 1, max(box[3], corner[1] + w) + 1
    return max(top, 1), min(bottom, H - 1), max(left, 1), min(right, W - 1)


def rendering_bits(pieces, i, parts, k, shift, own, cost):
    """Bits of a piece in each rendering of a part, from which it is left out if it is its own."""
    copy, corner = drawn(pieces, i, parts, k, shift)
    area = copy_area(pieces, i, parts, k, corner)
    contexts = copy_contexts(canvas(parts, k) - own * copy, parts.n[k] - own, copy, area)
    pixels = [cost[context, value].astype(float) for context, value in contexts]
    return np.sum([cost[CONTEXTS, 1].astype(float), *pixels], axis=0)


def copy_bits(*given):
    """The same in all renderings together."""
    return float(-np.logaddexp2.reduce(-rendering_bits(*given)))


def one_rendering(cost):
    """A table of pixels for all renderings alike, of which the first costs nothing."""
    name = np.zeros((1, 2, RENDERINGS))
    name[:, :, 1:] = 1000
    pixels = np.repeat(np.asarray(cost)[:, :, None], RENDERINGS, axis=2)
    return np.concatenate([pixels, name]).astype(np.float32)


def template_contexts(page):
    """Pixels of a page: the 16 earlier ones as a number, and their values."""
    H, W = page.shape
    for y in range(H):
        for x in range(W):
            code = 0
            for v, u in TEMPLATE:
                inside = 0 <= y + v < H and 0 <= x + u < W
                code = 2 * code + int(inside and page[y + v, x + u])
            yield code, int(page[y, x])
