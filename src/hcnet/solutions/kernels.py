"""Compiled inner loops of the refinement: gains, greedy placement, exchange, weights.

Pixels are addressed in the flat padded images of `Canvas`.  A placement is a row (image,
feature, r, c).  ``cover`` counts the placements over each pixel; the gain of one more is
``k1`` for every uncovered on pixel and ``-k0`` for every uncovered off pixel below it.
``model`` is the offsets of all features, where those of each start, the geometry, k1, k0 and
the cost of a placement.
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet.engine.cpu_compilation import entry, in_pieces, inlined

# Compiling takes about 0.1 s for every function of NumPy that a kernel calls, and seconds for an
# assignment to a slice: kernels use loops instead, and return views where callers copy anyway.

BUCKETS = 1024
TIERS = 4


@entry
def locate(position, geometry):
    """Image, row and column of a position (or of many), counted through all of S."""
    hs, ws = geometry[2], geometry[3]
    return position // (hs * ws), position // ws % hs, position % ws


def find_candidates(sign, offsets, geometry, ratio, found):
    """Positions where a feature has more on pixels below it than ratio × off pixels.

    Writes them to `found` (as long as there are positions), and how well they fit: on pixels
    less ratio × off pixels.  Returns how many there are.
    """
    count = np.zeros(1, np.int64)
    _find_candidates(geometry[6] * geometry[2], sign, offsets, geometry, ratio, found, count)
    return count[0]


@in_pieces
def _find_candidates(first, last, sign, offsets, geometry, ratio, found, count):
    """Rows of S one after the other."""
    image, width, hs, ws, _, _, _ = geometry
    positions, fits = found
    on = np.empty(ws, np.int32)
    off = np.empty(ws, np.int32)
    for k in range(first, last):
        base = k // hs * image + k % hs * width
        for c in range(ws):
            on[c] = 0
            off[c] = 0
        for q in range(offsets.size):
            row = sign[base + offsets[q] : base + offsets[q] + ws]
            for c in range(ws):
                x = row[c]
                on[c] += x > 0
                off[c] += x < 0
        for c in range(ws):
            fit = on[c] - ratio * off[c]
            if fit > 0:
                positions[count[0]] = k * ws + c
                fits[count[0]] = fit
                count[0] += 1


def make_cover(placements, offsets, starts, geometry, size):
    """How many placements lie over each pixel."""
    cover = np.zeros(size, np.int16)
    _add_cover(placements, offsets, starts, geometry, cover)
    return cover


@entry
def _add_cover(placements, offsets, starts, geometry, cover):
    image, width = geometry[0], geometry[1]
    for z in range(placements.shape[0]):
        f = placements[z, 1]
        base = placements[z, 0] * image + placements[z, 2] * width + placements[z, 3]
        for q in range(starts[f], starts[f + 1]):
            cover[base + offsets[q]] += 1


@inlined
def _gain(sign, cover, base, offsets, a, b, k1, k0):
    on = 0
    off = 0
    for q in range(a, b):
        p = base + offsets[q]
        if cover[p] == 0:
            x = sign[p]
            on += x > 0
            off += x < 0
    return k1 * on - k0 * off


@inlined
def _change(cover, base, offsets, a, b, by):
    for q in range(a, b):
        cover[base + offsets[q]] += by


def bare_windows(sign, cover, geometry):
    """Uncovered on pixels in the window at every position."""
    _, width, hs, ws, h, _, n_images = geometry
    total = np.zeros((n_images, hs + h, width + 1), np.int32)
    bare = np.empty(n_images * hs * ws, np.int32)
    _count_bare(sign, cover, geometry, total, bare)
    return bare


@entry
def _count_bare(sign, cover, geometry, total, bare):
    image, width, hs, ws, h, w, n_images = geometry
    height = hs + h - 1
    channels = image // (height * width)
    for n in range(n_images):
        for y in range(height):
            along = 0
            for x in range(width):
                for a in range(channels):
                    p = n * image + (a * height + y) * width + x
                    along += (sign[p] > 0) & (cover[p] == 0)
                total[n, y + 1, x + 1] = total[n, y, x + 1] + along
    for n in range(n_images):
        for r in range(hs):
            for c in range(ws):
                bare[(n * hs + r) * ws + c] = (
                    total[n, r + h, c + w] - total[n, r, c + w] - total[n, r + h, c]
                ) + total[n, r, c]


def place_greedily(sign, cover, candidates, fits, owned, model):
    """Add the most gainful placement, again and again, while it gains more than it costs.

    Candidates come feature by feature, those of feature f from ``owned[f]`` on; k1 × `fits` is
    what each would gain if nothing were covered.

    Lazy: a candidate's gain is looked at only when it comes to the front of the queue, and
    falls back if other placements have covered its on pixels since.  Covering on pixels lowers
    gains, so a candidate still at the front is the best there is, to within a bucket.  (Where
    a placement covers off pixels, the gains of others there rise: those it may pass over;
    `exchange` looks at them again.)  Buckets are finer than the gain of half a pixel as long as
    no feature has more than BUCKETS / 2 pixels on.
    Candidates join the queue in a few tiers, the most gainful first, and at each tier those whose
    window holds too few uncovered pixels by then are left out.
    Returns the placements; `cover` changes in place.
    """
    _, _, geometry, k1, _, cost = model
    gains = k1 * fits
    scale = (BUCKETS - 1) / max(gains.max(initial=cost) - cost, 1e-9)
    # Covering more leaves fewer pixels bare, so that what has too few now is out for good.
    bare = bare_windows(sign, cover, geometry)
    left = np.flatnonzero((gains > cost) & (k1 * bare[candidates] > cost))
    which, owner = candidates[left], np.searchsorted(owned, left, side="right") - 1
    bucket = ((gains[left] - cost) * scale).astype(np.int64)
    head, after = np.full(BUCKETS, -1), np.empty(len(left), np.int64)
    placed = np.empty((len(left), 4), np.int64)
    state, seen = np.zeros(2, np.int64), 0
    for tier in range(TIERS - 1, -1, -1):
        if seen != state[0]:
            bare, seen = bare_windows(sign, cover, geometry), state[0]
        lowest, beyond = tier * BUCKETS // TIERS, (tier + 1) * BUCKETS // TIERS
        joins = (lowest <= bucket) & (bucket < beyond) & (k1 * bare[which] > cost)
        _join_queue(head, after, bucket, np.flatnonzero(joins))
        state[1] = BUCKETS - 1
        queue = head, after, lowest, scale
        _place_tier(sys.maxsize, sign, cover, which, owner, queue, model, placed, state)
    return placed[: state[0]]


@entry
def _join_queue(head, after, bucket, joins):
    """Each bucket is a linked list: `head` is its first candidate, `after` the next of each."""
    for x in range(joins.size):
        z = joins[x]
        after[z] = head[bucket[z]]
        head[bucket[z]] = z


@in_pieces
def _place_tier(first, last, sign, cover, which, owner, queue, model, placed, state):
    """Place from the queue, down to the lowest bucket of a tier; then return True.

    `state` is how many are placed, and the bucket.
    """
    offsets, starts, geometry, k1, k0, cost = model
    image, width = geometry[0], geometry[1]
    head, after, lowest, scale = queue
    count, b = state[0], state[1]
    for _ in range(first, last):
        while b >= lowest and head[b] < 0:
            b -= 1
        if b < lowest:
            break
        z = head[b]
        head[b] = after[z]
        f = owner[z]
        i, r, c = locate(which[z], geometry)
        base = i * image + r * width + c
        gain = _gain(sign, cover, base, offsets, starts[f], starts[f + 1], k1, k0)
        if gain <= cost + 1e-6:
            continue
        now = np.int64((gain - cost) * scale)
        if now < b:
            after[z] = head[now]
            head[now] = z
            continue
        _change(cover, base, offsets, starts[f], starts[f + 1], 1)
        placed[count, 0] = i
        placed[count, 1] = f
        placed[count, 2] = r
        placed[count, 3] = c
        count += 1
    state[0], state[1] = count, b
    return b < lowest


@entry
def tile_candidates(candidates, fits, geometry, ordered, begin):
    """Sort candidates of a feature by tiles of one window each, so that neighbours are found fast.

    Within a tile those that fit best come first.  Writes positions and fits to `ordered`, and to
    `begin`, one longer than there are tiles, where each tile begins.
    """
    _, _, hs, ws, h, w, _ = geometry
    rows = (hs + h - 1) // h
    cols = (ws + w - 1) // w
    positions, sorted_fits = ordered
    n = candidates.size
    tile = np.empty(n, np.int64)
    for t in range(begin.size):
        begin[t] = 0
    for z in range(n):
        i, r, c = locate(candidates[z], geometry)
        tile[z] = (i * rows + r // h) * cols + c // w
        begin[tile[z] + 1] += 1
    for t in range(begin.size - 1):
        begin[t + 1] += begin[t]
    count = np.empty(begin.size, np.int64)
    for t in range(begin.size):
        count[t] = 0
    for z in range(n):
        first = begin[tile[z]]
        x = first + count[tile[z]]
        while x > first and sorted_fits[x - 1] < fits[z]:
            positions[x] = positions[x - 1]
            sorted_fits[x] = sorted_fits[x - 1]
            x -= 1
        positions[x] = candidates[z]
        sorted_fits[x] = fits[z]
        count[tile[z]] += 1


def exchange(sign, cover, placements, turn, tiled, visited, changed, model):
    """Take out one placement at a time and put the best candidate near it in its place.

    `tiled` are candidates, how well they fit, where those of feature f in a tile begin (``begin[f,
    tile]``; those that fit best come first) and how well the first fits (``best_fits[tile, f]``).
    k1 × fit is what a candidate would gain if nothing were covered.  Of those that gain the same,
    the present one included, the one that fits best is taken: it covers most of what others
    cover, too, and leaves them free to change.
    `visited` says when each placement had its last turn, `changed` when something changed in each
    tile: where nothing has since, a placement would only come to the same end again.
    Returns which placements are left and how many changes there were; `placements` and `cover`
    change in place.
    """
    keep = np.ones(len(placements), np.bool_)
    bare = bare_windows(sign, cover, model[2])
    state = np.array([changed.max(initial=0), 0])
    known = turn, tiled, visited, changed, model, state
    _exchange(len(turn), sign, cover, bare, placements, keep, *known)
    return keep, int(state[1])


@in_pieces
def _exchange(
    first, last, sign, cover, bare, placements, keep, turn, tiled, visited, changed, model, state
):
    """`state` is the clock, and the number of changes."""
    offsets, starts, geometry, k1, k0, cost = model
    image, width, hs, ws, h, w, _ = geometry
    rows = (hs + h - 1) // h
    cols = (ws + w - 1) // w
    candidates, fits, begin, best_fits = tiled
    clock, changes = state[0], state[1]
    for y in range(first, last):
        z = turn[y]
        i, f0 = placements[z, 0], placements[z, 1]
        r0, c0 = placements[z, 2], placements[z, 3]
        # What covers the windows in reach of this one stands at most two tiles away.
        latest = -1
        for tr in range(max(0, r0 // h - 2), min(rows, r0 // h + 3)):
            for tc in range(max(0, c0 // w - 2), min(cols, c0 // w + 3)):
                latest = max(latest, changed[(i * rows + tr) * cols + tc])
        if latest < visited[z]:
            continue
        clock += 1
        visited[z] = clock
        base0 = i * image + r0 * width + c0
        _change(cover, base0, offsets, starts[f0], starts[f0 + 1], -1)
        best = _gain(sign, cover, base0, offsets, starts[f0], starts[f0 + 1], k1, k0)
        released = 0
        fit_of_best = 1e-6
        for q in range(starts[f0], starts[f0 + 1]):
            x = sign[base0 + offsets[q]]
            released += (cover[base0 + offsets[q]] == 0) & (x > 0)
            fit_of_best += k1 * (x > 0) - k0 * (x < 0)
        bf, br, bc = f0, r0, c0
        for tr in range(max(0, r0 // h - 1), min(rows, r0 // h + 2)):
            for tc in range(max(0, c0 // w - 1), min(cols, c0 // w + 2)):
                tile = (i * rows + tr) * cols + tc
                for f in range(begin.shape[0]):
                    if k1 * best_fits[tile, f] <= best + 1e-6:
                        continue
                    for x in range(begin[f, tile], begin[f, tile + 1]):
                        bound = k1 * fits[x]
                        if bound <= best + 1e-6:
                            break  # the rest of the tile gains less still
                        p = candidates[x]
                        # Not enough bare pixels in the window, even with those just released.
                        most = k1 * (bare[p] + released)
                        if most < best - 1e-6 or (most <= best + 1e-6 and bound <= fit_of_best):
                            continue
                        _, r, c = locate(p, geometry)
                        if abs(r - r0) >= h or abs(c - c0) >= w:
                            continue
                        base = i * image + r * width + c
                        gain = _gain(sign, cover, base, offsets, starts[f], starts[f + 1], k1, k0)
                        if gain > best + 1e-6 or (gain > best - 1e-6 and bound > fit_of_best):
                            best, bf, br, bc, fit_of_best = gain, f, r, c, bound + 1e-6
        if best <= cost + 1e-6:
            keep[z] = False
            changes += 1
            changed[(i * rows + r0 // h) * cols + c0 // w] = clock
            continue
        if bf != f0 or br != r0 or bc != c0:
            changes += 1
            changed[(i * rows + r0 // h) * cols + c0 // w] = clock
            changed[(i * rows + br // h) * cols + bc // w] = clock
        _change(cover, i * image + br * width + bc, offsets, starts[bf], starts[bf + 1], 1)
        placements[z, 1] = bf
        placements[z, 2] = br
        placements[z, 3] = bc
    state[0], state[1] = clock, changes


def supplant(sign, cover, placements, candidates, features, model):
    """Put in one candidate at a time, in order, and take out all that do not pay beside it.

    Kept where that gains.  (Where two placements together explain what one could, taking out
    either leaves the one nothing to gain: `exchange` does not find it.)
    Returns the placements that are left; `cover` changes in place.
    """
    _, _, hs, ws, h, w, n_images = model[2]
    n, most = len(placements), len(placements) + len(candidates)
    placed = np.concatenate([placements, np.empty((len(candidates), 4), np.int64)])
    keep = np.ones(most, np.bool_)
    head = np.full(n_images * -(-hs // h) * -(-ws // w), -1)
    after, out = np.empty((2, most), np.int64)
    state = np.array([n])
    given = candidates, features, model
    _supplant(len(candidates), sign, cover, placed, keep, head, after, out, *given, state)
    n = state[0]
    return placed[:n][keep[:n]]


@in_pieces
def _supplant(
    first, last, sign, cover, placed, keep, head, after, out, candidates, features, model, state
):
    """`head` is the first placement of each tile, `after` the next of each, `out` scratch space.

    `state` is the number of placements.
    """
    offsets, starts, geometry, k1, k0, cost = model
    image, width, hs, ws, h, w, _ = geometry
    rows = (hs + h - 1) // h
    cols = (ws + w - 1) // w
    n = state[0]
    if first == 0:
        for z in range(n):
            tile = (placed[z, 0] * rows + placed[z, 2] // h) * cols + placed[z, 3] // w
            after[z] = head[tile]
            head[tile] = z
    for x in range(first, last):
        i, r, c = locate(candidates[x], geometry)
        f = features[x]
        base = i * image + r * width + c
        total = _gain(sign, cover, base, offsets, starts[f], starts[f + 1], k1, k0) - cost
        _change(cover, base, offsets, starts[f], starts[f + 1], 1)
        gone = 0
        for tr in range(max(0, r // h - 1), min(rows, r // h + 2)):
            for tc in range(max(0, c // w - 1), min(cols, c // w + 2)):
                z = head[(i * rows + tr) * cols + tc]
                while z >= 0:
                    g, y0, x0 = placed[z, 1], placed[z, 2], placed[z, 3]
                    if keep[z] and abs(y0 - r) < h and abs(x0 - c) < w:
                        at = i * image + y0 * width + x0
                        _change(cover, at, offsets, starts[g], starts[g + 1], -1)
                        loss = _gain(sign, cover, at, offsets, starts[g], starts[g + 1], k1, k0)
                        if loss < cost - 1e-6:
                            total += cost - loss
                            keep[z] = False
                            out[gone] = z
                            gone += 1
                        else:
                            _change(cover, at, offsets, starts[g], starts[g + 1], 1)
                    z = after[z]
        if total > 1e-6:
            placed[n, 0] = i
            placed[n, 1] = f
            placed[n, 2] = r
            placed[n, 3] = c
            tile = (i * rows + r // h) * cols + c // w
            after[n] = head[tile]
            head[tile] = n
            n += 1
            continue
        _change(cover, base, offsets, starts[f], starts[f + 1], -1)
        for k in range(gone):
            z = out[k]
            g = placed[z, 1]
            at = i * image + placed[z, 2] * width + placed[z, 3]
            _change(cover, at, offsets, starts[g], starts[g + 1], 1)
            keep[z] = True
    state[0] = n


def fit_weights(sign, cover, W, placements, geometry, k1, k0, prior, sweeps):
    """Set every weight to its better value given all else; `W` and `cover` change in place.

    Returns which features have changed.
    """
    image, width, hs, _, h, _, _ = geometry
    of_feature = placements[np.argsort(placements[:, 1], kind="stable")]
    start = np.searchsorted(of_feature[:, 1], np.arange(len(W) + 1))
    base = of_feature[:, 0] * image + of_feature[:, 2] * width + of_feature[:, 3]
    changes = np.zeros(len(W), np.int64)
    size = hs + h - 1, width
    for _ in range(sweeps):
        before = changes.sum()
        _fit_weights(len(W), sign, cover, W, start, base, size, k1, k0, prior, changes)
        if changes.sum() == before:
            break
    return changes > 0


@in_pieces
def _fit_weights(first, last, sign, cover, W, start, base, size, k1, k0, prior, changes):
    """`base` are the placements of all features, those of feature f from ``start[f]`` on."""
    height, width = size
    _, A, h, w = W.shape
    for f in range(first, last):
        if start[f + 1] == start[f]:
            continue
        for a in range(A):
            for i in range(h):
                for j in range(w):
                    at = (a * height + i) * width + j
                    on = W[f, a, i, j]
                    votes_on = 0
                    votes_off = 0
                    for z in range(start[f], start[f + 1]):
                        p = base[z] + at
                        # This weight decides the pixel if nothing else covers it.
                        if cover[p] == on:
                            x = sign[p]
                            votes_on += x > 0
                            votes_off += x < 0
                    want = 1 if k1 * votes_on - k0 * votes_off + prior > 0 else 0
                    if want != on:
                        changes[f] += 1
                        W[f, a, i, j] = want
                        for z in range(start[f], start[f + 1]):
                            cover[base[z] + at] += want - on


def count_votes(sign, cover, weights, placements, geometry):
    """On and off pixels that a weight of one feature decides, also those outside its window.

    Both are (channels, 3 h - 2, 3 w - 2): all weights that a window can have which shares at
    least one with the present one, in the middle.  `placements` are those of the feature.
    """
    h, w = geometry[4], geometry[5]
    on, off = np.zeros((2, len(weights), 3 * h - 2, 3 * w - 2), np.int64)
    _add_votes(sign, cover, weights, placements, geometry, on, off)
    return on, off


@entry
def _add_votes(sign, cover, weights, placements, geometry, on, off):
    image, width, hs, _, h, w, _ = geometry
    height = hs + h - 1
    A = weights.shape[0]
    for z in range(placements.shape[0]):
        top, left = placements[z, 2] - h + 1, placements[z, 3] - w + 1
        for a in range(A):
            for i in range(max(0, -top), min(3 * h - 2, height - top)):
                row = placements[z, 0] * image + (a * height + top + i) * width + left
                for j in range(max(0, -left), min(3 * w - 2, width - left)):
                    own = 0
                    if h - 1 <= i < 2 * h - 1 and w - 1 <= j < 2 * w - 1:
                        own = weights[a, i - h + 1, j - w + 1]
                    if cover[row + j] == own:
                        on[a, i, j] += sign[row + j] > 0
                        off[a, i, j] += sign[row + j] < 0


@entry
def _neighbour_pairs(placements, geometry, F, pairs):
    """Write a number for each pair of placements in reach: which features, at which offset.

    Placements must be sorted by image and row.  Returns how many pairs there are, even if the
    array `pairs` has no room for them all.
    """
    h, w = geometry[4], geometry[5]
    n = placements.shape[0]
    count = 0
    for x in range(n):
        i, f = placements[x, 0], placements[x, 1]
        r, c = placements[x, 2], placements[x, 3]
        for y in range(x + 1, n):
            if placements[y, 0] != i or placements[y, 2] - r >= h:
                break
            g = placements[y, 1]
            dr = placements[y, 2] - r
            dc = placements[y, 3] - c
            if abs(dc) >= w:
                continue
            if count < pairs.size:
                if f > g:  # each pair of features in one order only
                    packed = ((g * F + f) * (2 * h - 1) - dr + h - 1) * (2 * w - 1) - dc
                else:
                    packed = ((f * F + g) * (2 * h - 1) + dr + h - 1) * (2 * w - 1) + dc
                pairs[count] = packed + w - 1
            count += 1
    return count


def neighbours(placements, geometry, F):
    """How often two features stand at the same offset: rows (f, g, dr, dc, times), f <= g.

    Only offsets that occur at least twice; placements must be sorted by image and row.
    """
    h, w = geometry[4], geometry[5]
    found = np.empty(_neighbour_pairs(placements, geometry, F, np.empty(0, np.int64)), np.int64)
    _neighbour_pairs(placements, geometry, F, found)
    pairs, times = np.unique(found, return_counts=True)
    rest, dc = np.divmod(pairs[times > 1], 2 * w - 1)
    rest, dr = np.divmod(rest, 2 * h - 1)
    columns = [rest // F, rest % F, dr - h + 1, dc - w + 1, times[times > 1]]
    return np.stack(columns, axis=1)
