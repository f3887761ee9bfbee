"""Compiled loops: deforming examples, and matching images with their variants.

``start`` and ``where`` are the elements of all variants: those of variant t are ``where[start[t]]``
to ``where[start[t + 1]]``, as numbers in the flat image.  ``near`` (places, variants) is how near
each place of the image is to a variant, in steps of 1 / `STEPS`.
"""

from __future__ import annotations

import numpy as np

from hcnet.engine.cpu_compilation import kept
from hcnet.engine.threads import over_threads

# An edge this close to the middle between two channels, in their distance, is in both: about what
# `OrientedEdges(8, shared=0.9)` does.
BOTH = 0.16
# Nearness is stored in so many steps.
STEPS = 255
# Variants whose nearness is worked out at once.
BLOCK = 64


@over_threads
@kept(nogil=True)
def vary_all(first, last, own, size, linear, stroke, grids, spacing, turns, found, counts):
    """Write the elements of every variant to ``found``, and their number to ``counts``.

    ``own`` are the points of the examples; ``linear`` (variants, 4), ``stroke`` and ``grids`` are
    the deformations.
    """
    start, channel, row, column = own
    channels, height, width = size[0], size[1], size[2]
    n = len(start) - 1
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    per_turn = channels / (2 * np.pi)
    shift = np.zeros((3, 2))
    for v in range(first, last):
        seen = np.zeros(channels * height * width, np.bool_)
        a, b, c, d = linear[v, 0], linear[v, 1], linear[v, 2], linear[v, 3]
        for p in range(start[v % n], start[v % n + 1]):
            k, y, x = channel[p], row[p], column[p]
            down = right = 0.0
            if turns:
                down, right = np.sin(k / per_turn), np.cos(k / per_turn)
            y, x = y + stroke[v] * down, x + stroke[v] * right
            # Shifts here, and a pixel further along the edge.
            for e in range(2 if turns else 1):
                _shift(grids[v], y + e * right, x - e * down, spacing, shift[e])
            dy, dx = y - middle_y, x - middle_x
            new_y = middle_y + a * dy + b * dx + shift[0, 0]
            new_x = middle_x + c * dy + d * dx + shift[0, 1]
            i, j = int(np.floor(new_y + 0.5)), int(np.floor(new_x + 0.5))
            if not (0 <= i < height and 0 <= j < width):
                continue
            one = other = int(k)
            if turns:
                along_y = a * right - b * down + shift[1, 0] - shift[0, 0]
                along_x = c * right - d * down + shift[1, 1] - shift[0, 1]
                k = np.arctan2(-along_x, along_y) * per_turn
                part = k - np.floor(k)
                one = other = int(np.floor(k + 0.5)) % channels
                if abs(part - 0.5) < BOTH:
                    one = int(np.floor(k)) % channels
                    other = (one + 1) % channels
            for e in range(2):
                at = ((one if e == 0 else other) * height + i) * width + j
                if not seen[at]:
                    seen[at] = True
                    found[v, counts[v]] = at
                    counts[v] += 1


@kept(nogil=True)
def _shift(grid, y, x, spacing, result):
    """Shifts at a point, from a grid of them, by smooth steps between its nodes."""
    r, s = y / spacing + 1, x / spacing + 1
    i = min(max(int(r), 0), grid.shape[1] - 2)
    j = min(max(int(s), 0), grid.shape[2] - 2)
    r, s = min(max(r - i, 0.0), 1.0), min(max(s - j, 0.0), 1.0)
    r, s = r * r * (3 - 2 * r), s * s * (3 - 2 * s)
    for k in range(2):
        above = grid[k, i, j] * (1 - s) + grid[k, i, j + 1] * s
        below = grid[k, i + 1, j] * (1 - s) + grid[k, i + 1, j + 1] * s
        result[k] = above * (1 - r) + below * r


@kept(nogil=True)
def _spread(level, falloff, beside, other):
    """Nearness of every place to the elements that are 1 in ``level``, in place."""
    channels, height, width = level.shape
    reach = len(falloff) - 1
    for k in range(channels):
        for y in range(height):
            for x in range(width):
                value = level[k, y, x]
                if beside > 0:
                    around = max(level[k - 1, y, x], level[(k + 1) % channels, y, x])
                    value = max(value, beside * around)
                other[k, y, x] = value
    for k in range(channels):
        for y in range(height):
            row = level[k, y]
            row[:] = other[k, y]
            for d in range(1, reach + 1):
                if y >= d:
                    for x in range(width):
                        row[x] = max(row[x], falloff[d] * other[k, y - d, x])
                if y + d < height:
                    for x in range(width):
                        row[x] = max(row[x], falloff[d] * other[k, y + d, x])
        for y in range(height):
            source, row = level[k, y], other[k, y]
            row[:] = source
            for d in range(1, reach + 1):
                for x in range(d, width):
                    row[x] = max(row[x], falloff[d] * source[x - d])
                for x in range(width - d):
                    row[x] = max(row[x], falloff[d] * source[x + d])


@over_threads
@kept(nogil=True)
def near_all(first, last, start, where, size, falloff, beside, near):
    """Work out how near each place is to every variant, a block of variants after another."""
    shape = (size[0], size[1], size[2])
    level, other = np.empty(shape, np.float32), np.empty(shape, np.float32)
    block = np.empty((BLOCK, level.size), np.uint8)
    total = near.shape[1]
    for b in range(first, last):
        n = min(BLOCK, total - b * BLOCK)
        for v in range(n):
            t = b * BLOCK + v
            level[:] = 0
            flat = level.ravel()
            for e in range(start[t], start[t + 1]):
                flat[where[e]] = 1
            _spread(level, falloff, beside, other)
            result = other.ravel()
            for p in range(len(result)):
                block[v, p] = np.uint8(np.float32(STEPS) * result[p] + np.float32(0.5))
        for p in range(near.shape[0]):
            for v in range(n):
                near[p, b * BLOCK + v] = block[v, p]


@kept(nogil=True)
def _costs(pixels, on, weights, elements, near, how, scratch, cost):
    """The cost of an image with every variant, from both sides."""
    start, where = elements
    falloff, beside, lacking = how
    level, other = scratch
    places = len(pixels) // level.shape[0]
    cost[:] = 0
    flat = level.ravel()
    for p in range(len(pixels)):
        flat[p] = on[p]
        if pixels[p]:
            row, weight = near[p], weights[0, p // places] / np.float32(STEPS)
            for t in range(len(cost)):
                cost[t] += weight * np.float32(STEPS - row[t])
    _spread(level, falloff, beside, other)
    far = other.ravel()
    for p in range(len(far)):
        far[p] = lacking * weights[1, p // places] * (np.float32(1) - far[p])
    for t in range(len(cost)):
        total = np.float32(0)
        for e in range(start[t], start[t + 1]):
            total += far[where[e]]
        cost[t] += total


@over_threads
@kept(nogil=True)
def cost_all(first, last, seen, maybe, weights, elements, near, how, costs):
    """Costs of every image with every variant: (images, variants)."""
    shape = seen.shape[1:]
    scratch = np.empty(shape, np.float32), np.empty(shape, np.float32)
    for n in range(first, last):
        image = seen[n].ravel(), maybe[n].ravel(), weights[n]
        _costs(*image, elements, near, how, scratch, costs[n])


@over_threads
@kept(nogil=True)
def score_all(first, last, seen, maybe, weights, elements, near, how, votes, learned, scores):
    """Log-scores of the classes: the votes of the variants, and what was learned from them.

    ``votes`` are the class of each variant, and the nats per unit of cost; ``learned`` are some
    variants, their weights for each class, and how fast their influence falls with the cost.
    """
    shape = seen.shape[1:]
    scratch = np.empty(shape, np.float32), np.empty(shape, np.float32)
    codes, nats = votes
    which, influence, narrow = learned
    cost = np.empty(len(codes), np.float32)
    for n in range(first, last):
        image, score = (seen[n].ravel(), maybe[n].ravel(), weights[n]), scores[n]
        _costs(*image, elements, near, how, scratch, cost)
        least = np.full(len(score), np.inf)
        total = np.zeros(len(score))
        for t in range(len(cost)):
            least[codes[t]] = min(least[codes[t]], cost[t])
        for t in range(len(cost)):
            total[codes[t]] += np.exp(-nats * (cost[t] - least[codes[t]]))
        for k in range(len(score)):
            score[k] = np.log(total[k]) - nats * least[k]
        for r in range(len(which)):
            value = np.exp(-narrow * cost[which[r]])
            for k in range(len(score)):
                score[k] += value * influence[r, k]


@over_threads
@kept(nogil=True)
def place_all(first, last, seen, maybe, weights, elements, near, how, reach, step, gain, shifts):
    """The shift of each image at which some variant costs least: (images, 2).

    All shifts up to `reach` are tried in steps, then those around the best one.  An image stays
    where it is unless a shift saves `gain`.  What a shift moves out of the image is unexplained,
    and a variant lacks what is outside.
    """
    start, where = elements
    falloff, beside, lacking = how
    channels, height, width = seen.shape[1:]
    # Around the image there is paper, so that shifts only add to the numbers of elements.
    tall, wide = height + 2 * reach, width + 2 * reach
    level, other = np.empty((2, channels, height, width), np.float32)
    missing = np.empty((channels, tall, wide), np.float32)
    flat = missing.ravel()
    at = np.empty(len(where), np.int64)
    for e in range(len(where)):
        k, rest = where[e] // (height * width), where[e] % (height * width)
        at[e] = (k * tall + rest // width + reach) * wide + rest % width + reach
    cost = np.empty(near.shape[1], np.float32)
    coarse = reach // step
    for n in range(first, last):
        points = np.argwhere(seen[n])
        level[:] = maybe[n]
        _spread(level, falloff, beside, other)
        for k in range(channels):
            missing[k] = lacking * weights[n, 1, k]
            for y in range(height):
                for x in range(width):
                    missing[k, y + reach, x + reach] *= 1 - other[k, y, x]
        stays = least = np.float32(np.inf)
        middle_y = middle_x = best_y = best_x = 0
        for around in range(2):
            span = 1 if around else coarse
            by = 1 if around else step
            # The image as it is comes first; of equal costs, the first counts.
            for s in range(-1, (2 * span + 1) ** 2):
                down = right = 0
                if s >= 0:
                    down = middle_y + by * (s // (2 * span + 1) - span)
                    right = middle_x + by * (s % (2 * span + 1) - span)
                if abs(down) > reach or abs(right) > reach or (around and s < 0):
                    continue
                cost[:] = 0
                for p in range(len(points)):
                    k, y, x = points[p, 0], points[p, 1] + down, points[p, 2] + right
                    weight = weights[n, 0, k]
                    if not (0 <= y < height and 0 <= x < width):
                        cost += weight
                        continue
                    row, weight = near[(k * height + y) * width + x], weight / np.float32(STEPS)
                    for t in range(len(cost)):
                        cost[t] += weight * np.float32(STEPS - row[t])
                moved = down * wide + right
                for t in range(len(cost)):
                    if cost[t] >= least:
                        continue
                    total = np.float32(0)
                    for e in range(start[t], start[t + 1]):
                        total += flat[at[e] - moved]
                    if cost[t] + total < least:
                        least, best_y, best_x = cost[t] + total, down, right
                if s < 0:
                    stays = least
            middle_y, middle_x = best_y, best_x
        if least <= stays - gain:
            shifts[n] = best_y, best_x
