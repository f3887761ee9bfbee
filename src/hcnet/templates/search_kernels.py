"""The loops of the search for parts: explain an image by parts, and fit a part to its placements.

``on`` (channels, height, width) are the pixels of an image to explain; ``lacks`` (channels, rows,
columns of R) is True where an element of R has none of them in its window.  A part is a list of
elements of R; it explains the pixels in their windows.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from hcnet.engine.threads import over_threads

_kernel: Any = nb.njit(nogil=True, cache=True)


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
