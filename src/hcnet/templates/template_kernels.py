"""Compiled loops: matching of images with templates, and the search for parts.

Matching follows each template down to the pixels, and counts unexplained pixels.
The tables of `matching` are, in this order: ``lowest``, the messages to R¹, and ``messages``, those
up to all S but the templates, the level k from ``begins[k]`` on, per image; ``hidden``, per image
the threshold above which a feature below the templates counts as present; ``features``, ``pools``,
and ``depth``, the most features that are ever on the stack.

``features`` are all levels in flat arrays: the first feature of each level, the first element of
each feature, and the elements (channel, row, column).  ``pools`` are per level the window (as in
`engine.planes`), features and size of the S below, and of its ``log_priors`` the shape and where
they begin.

The search explains an image by parts, and fits a part to its placements.
``on`` (channels, height, width) are the pixels of an image to explain; ``lacks`` (channels, rows,
columns of R) is True where an element of R has none of them in its window.  A part is a list of
elements of R; it explains the pixels in their windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hcnet.engine.cpu_compilation import compiled, kept
from hcnet.engine.threads import over_threads

_kernel: Any = kept(nogil=True)
_feature_below = compiled.feature_below


@over_threads
@_kernel
def match_all(first, last, pixels, tables, top_size, possible, costs, score):
    """Add to ``score`` the elements that each possible template lacks, and unexplained pixels.

    ``costs`` of unexplained pixels are per image and channel.
    """
    lowest, messages, begins, hidden, features, pools, depth = tables
    positions = top_size[0] * top_size[1]
    levels = len(features[0])
    for n in range(first, last):
        on = np.argwhere(pixels[n])
        # The last template that could explain a pixel.
        mark = np.full(pixels.shape[1:], -1, np.int32)
        stack = np.empty((depth, 4), np.int64)
        shifts = np.zeros((levels, 1), np.int64)
        for t in range(possible.shape[1]):
            if not possible[n, t]:
                continue
            stack[0, 0], stack[0, 1] = levels - 1, t // positions
            stack[0, 2], stack[0, 3] = t % positions // top_size[1], t % positions % top_size[1]
            score[n, t] += _follow(
                lowest[n], messages[n], begins, hidden[n], features, pools, stack, t, mark, shifts
            )
            for k in range(len(on)):
                if mark[on[k, 0], on[k, 1], on[k, 2]] != t:
                    score[n, t] -= costs[n, on[k, 0]]


@_kernel
def count_shifts(pixels, tables, templates, shifts):
    """Count in ``shifts`` (levels, members) the positions of the parts of each image's template."""
    lowest, messages, begins, hidden, features, pools, depth = tables
    mark = np.zeros(pixels.shape[1:], np.int32)
    stack = np.empty((depth, 4), np.int64)
    for n in range(len(pixels)):
        stack[0, 0], stack[0, 1] = len(features[0]) - 1, templates[n]
        stack[0, 2], stack[0, 3] = 0, 0
        _follow(lowest[n], messages[n], begins, hidden[n], features, pools, stack, n, mark, shifts)


@_kernel
def _follow(lowest, messages, begins, hidden, features, pools, stack, name, mark, shifts):
    """Mark the pixels that the template on the ``stack`` can explain; return its score."""
    first, start, elements = features
    # Read once: a view of an array costs more than the work on it.
    window = pools[0][0]
    h, w, top, left, deep = window[0], window[1], window[2], window[3], window[4]
    channels, height, width = mark.shape
    k, total = 1, 0.0
    while k:
        k -= 1
        level, f, r, c = stack[k, 0], stack[k, 1], stack[k, 2], stack[k, 3]
        f += first[level]
        below = messages[begins[max(level - 1, 0)] : begins[max(level, 1)]]
        for e in range(start[f], start[f + 1]):
            a, y, x = elements[e, 0], r + elements[e, 1], c + elements[e, 2]
            if level == 0:
                for d in range(deep):
                    b = _feature_below(window, a, d, channels)
                    if not 0 <= b < channels:
                        continue
                    for row in range(max(y - top, 0), min(y - top + h, height)):
                        for column in range(max(x - left, 0), min(x - left + w, width)):
                            mark[b, row, column] = name
                if len(first) == 1:
                    total += lowest[a, y, x]
                continue
            value, member, b, row, column = _best_member(level, a, y, x, below, pools)
            floor = hidden[first[level - 1] + a]
            if level == len(first) - 1:
                total += max(value, floor)
            if value > floor:
                stack[k, 0], stack[k, 1] = level - 1, b
                stack[k, 2], stack[k, 3] = row, column
                k += 1
                if member < shifts.shape[1]:
                    shifts[level, member] += 1
    return total


@_kernel
def _best_member(level, a, y, x, message, pools):
    """The best member for an element of R: value, number, feature, row, column; first of equals."""
    windows, below, priors, prior, log_priors = pools
    window = windows[level]
    h, w, top, left, depth = window[0], window[1], window[2], window[3], window[4]
    features, height, width = below[level, 0], below[level, 1], below[level, 2]
    channel = a % priors[level, 0]
    at = (channel * priors[level, 1] + y) * priors[level, 2] + x
    at = prior[level] + at * depth * h * w
    best, member, feature, row, column = -np.inf, 0, 0, 0, 0
    for d in range(depth):
        b = _feature_below(window, a, d, features)
        if not 0 <= b < features:
            continue
        for i in range(h):
            for j in range(w):
                r, c = y + i - top, x + j - left
                if not (0 <= r < height and 0 <= c < width):
                    continue
                m = (d * h + i) * w + j
                value = message[(b * height + r) * width + c] + log_priors[at + m]
                if value > best:
                    best, member, feature, row, column = value, m, b, r, c
    return best, member, feature, row, column


@over_threads
@_kernel
def explain_all(first, last, on, lacks, bits, reach, size, corner, costs, found, n, left):
    """Explain every image by parts, always the placement that gains most, until none gains.

    `bits` are the elements of the parts as (pointers, channels, rows, columns).  `reach` are the
    pixels that they explain, relative to `corner`, as (pointers per channel, parts, rows, columns)
    and as an array.  `found` (images, most, 3) receives part, row and column of the placements, `n`
    their number, and `left` the number of unexplained pixels.
    """
    for k in range(first, last):
        n[k], left[k] = _explain(on[k], lacks[k], bits, reach, size, corner, costs, found[k])


@_kernel
def _explain(on, lacks, bits, reach, size, corner, costs, found):
    n_parts = len(bits[0]) - 1
    gain = np.empty((n_parts, size[0], size[1]), np.float32)
    _without_explaining(lacks, bits, costs, gain)
    todo = np.argwhere(on)
    for k in range(len(todo)):
        _count(gain, todo[k], reach, corner, np.float32(1))
    open_ = np.ones(len(todo), np.bool_)
    left = len(todo)
    for n in range(len(found)):
        best = gain.ravel().argmax()
        if gain.ravel()[best] <= 0:
            return n, left
        f = best // (size[0] * size[1])
        r, c = best // size[1] % size[0], best % size[1]
        found[n, 0], found[n, 1], found[n, 2] = f, r, c
        for k in range(len(todo)):
            if open_[k] and _reaches(f, r, c, todo[k], reach, corner):
                open_[k] = False
                left -= 1
                _count(gain, todo[k], reach, corner, np.float32(-1))
    return len(found), left


@_kernel
def _without_explaining(lacks, bits, costs, gain):
    """The cost of every placement: a constant, and each of its elements that finds no pixel."""
    start, a, i, j = bits
    lacking, placement = costs
    for f in range(gain.shape[0]):
        gain[f] = -placement
        for b in range(start[f], start[f + 1]):
            for r in range(gain.shape[1]):
                for c in range(gain.shape[2]):
                    gain[f, r, c] -= lacking * lacks[a[b], r + i[b], c + j[b]]


@_kernel
def _count(gain, element, reach, corner, by):
    """Add `by` to the gain of every placement that explains this pixel."""
    start, part, i, j, _ = reach
    a, y, x = element[0], element[1] + corner[0], element[2] + corner[1]
    for b in range(start[a], start[a + 1]):
        r, c = y - i[b], x - j[b]
        if 0 <= r < gain.shape[1] and 0 <= c < gain.shape[2]:
            gain[part[b], r, c] += by


@_kernel
def _reaches(f, r, c, element, reach, corner):
    wide = reach[4]
    y, x = element[1] + corner[0] - r, element[2] + corner[1] - c
    return 0 <= y < wide.shape[2] and 0 <= x < wide.shape[3] and wide[f, element[0], y, x]


@over_threads
@_kernel
def fit_all(first, last, on, lacks, start, places, window, corner, costs, W):
    """Fit every part to its ``places`` (image, row, column), which are sorted by part."""
    for f in range(first, last):
        if start[f + 1] > start[f]:
            own = places[start[f] : start[f + 1]]
            _fit(on, lacks, own, window, corner, costs, W[f])


@_kernel
def _fit(on, lacks, places, window, corner, costs, W):
    """Choose the elements of a part one by one, always the one that explains most."""
    lacking, weight = costs
    channels, h, w = W.shape
    height, width = h + window[0] - 1, w + window[1] - 1
    open_ = np.zeros((len(places), channels, height, width), np.bool_)
    gain = np.zeros((channels, h, w), np.float32)
    for p in range(len(places)):
        n, r, c = places[p]
        for a in range(channels):
            for i in range(h):
                for j in range(w):
                    gain[a, i, j] -= lacking * lacks[n, a, r + i, c + j]
            for i in range(height):
                y = r + i - corner[0]
                for j in range(width):
                    x = c + j - corner[1]
                    if 0 <= y < on.shape[2] and 0 <= x < on.shape[3] and on[n, a, y, x]:
                        open_[p, a, i, j] = True
                        _share(gain[a], i, j, window, np.float32(1))
    W[:] = False
    for _ in range(W.size):
        best = gain.ravel().argmax()
        if gain.ravel()[best] <= weight:
            return
        a, i, j = best // (h * w), best // w % h, best % w
        W[a, i, j] = True
        gain[a, i, j] = -np.inf
        for p in range(len(places)):
            for y in range(i, i + window[0]):
                for x in range(j, j + window[1]):
                    if open_[p, a, y, x]:
                        open_[p, a, y, x] = False
                        _share(gain[a], y, x, window, np.float32(-1))


@_kernel
def _share(gain, y, x, window, by):
    """Add `by` to all elements of R in whose window this pixel is."""
    for i in range(max(y - window[0] + 1, 0), min(y + 1, gain.shape[0])):
        for j in range(max(x - window[1] + 1, 0), min(x + 1, gain.shape[1])):
            gain[i, j] += by
