"""The loops of matching: templates worked out down to the pixels, and what they leave unexplained.

``features`` are all levels in flat arrays: the first feature of each level, the first element of
each feature, and the elements (channel, row, column).  ``pools`` are per level the window (height,
width, offset), the size of the grid below, the columns of R, and where its ``log_priors`` begin.
``lowest`` are the messages to R¹ of an image, and ``messages`` those up to all S but the templates,
one level after the other from ``begins`` on; ``hidden`` is, for every feature below the templates,
what it must exceed to count as there.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from hcnet.engine.threads import over_threads

_kernel: Any = nb.njit(nogil=True, cache=True)


@over_threads
@_kernel
def match_all(
    first: Any,
    last: Any,
    pixels: Any,
    lowest: Any,
    messages: Any,
    begins: Any,
    hidden: Any,
    features: Any,
    pools: Any,
    depth: Any,
    top_size: Any,
    possible: Any,
    costs: Any,
    score: Any,
) -> None:
    """Add to ``score`` what all possible templates lack, and what they leave unexplained.

    ``costs`` of unexplained pixels are per image and channel; ``depth`` features may wait to be
    worked out at most.
    """
    positions = top_size[0] * top_size[1]
    levels = len(features[0])
    for n in range(first, last):
        on = np.argwhere(pixels[n])
        # The last template that could explain a pixel.
        mark = np.full(pixels.shape[1:], -1, np.int32)
        todo = np.empty((depth, 4), np.int64)
        shifts = np.zeros((levels, 1), np.int64)
        for t in range(possible.shape[1]):
            if not possible[n, t]:
                continue
            todo[0, 0], todo[0, 1] = levels - 1, t // positions
            todo[0, 2], todo[0, 3] = t % positions // top_size[1], t % positions % top_size[1]
            score[n, t] += _work_out(
                lowest[n], messages[n], begins, hidden[n], features, pools, todo, t, mark, shifts
            )
            for k in range(len(on)):
                if mark[on[k, 0], on[k, 1], on[k, 2]] != t:
                    score[n, t] -= costs[n, on[k, 0]]


@_kernel
def count_shifts(
    pixels: Any,
    lowest: Any,
    messages: Any,
    begins: Any,
    hidden: Any,
    features: Any,
    pools: Any,
    depth: Any,
    templates: Any,
    shifts: Any,
) -> None:
    """Count in ``shifts`` (levels, members) where the parts of the template of each image are."""
    mark = np.zeros(pixels.shape[1:], np.int32)
    todo = np.empty((depth, 4), np.int64)
    for n in range(len(pixels)):
        todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = len(features[0]) - 1, templates[n], 0, 0
        _work_out(lowest[n], messages[n], begins, hidden[n], features, pools, todo, n, mark, shifts)


@_kernel
def _work_out(
    lowest: Any,
    messages: Any,
    begins: Any,
    hidden: Any,
    features: Any,
    pools: Any,
    todo: Any,
    name: Any,
    mark: Any,
    shifts: Any,
) -> Any:
    """Mark the pixels that the template in ``todo`` may explain; return what it gains.

    Of the features below it, the one that was found last goes first.
    """
    first, start, elements = features
    # Read once: a view of an array costs more than what is done with it.
    h, w, top, left = pools[0][0]
    height, width = mark.shape[1:]
    waiting, total = 1, 0.0
    while waiting:
        waiting -= 1
        level, f, r, c = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        f += first[level]
        below = messages[begins[max(level - 1, 0)] : begins[max(level, 1)]]
        for e in range(start[f], start[f + 1]):
            a, y, x = elements[e, 0], r + elements[e, 1], c + elements[e, 2]
            if level == 0:
                for row in range(max(y - top, 0), min(y - top + h, height)):
                    for column in range(max(x - left, 0), min(x - left + w, width)):
                        mark[a, row, column] = name
                if len(first) == 1:
                    total += lowest[a, y, x]
                continue
            value, member, row, column = _best_member(level, a, y, x, below, pools)
            floor = hidden[first[level - 1] + a]
            if level == len(first) - 1:
                total += max(value, floor)
            if value > floor:
                todo[waiting, 0], todo[waiting, 1] = level - 1, a
                todo[waiting, 2], todo[waiting, 3] = row, column
                waiting += 1
                if member < shifts.shape[1]:
                    shifts[level, member] += 1
    return total


@_kernel
def _best_member(level: Any, a: Any, y: Any, x: Any, message: Any, pools: Any) -> Any:
    """Where an element of R is best: what it gains, the member, row and column; first of equals."""
    window, below, columns, prior, log_priors = pools
    h, w, top, left = window[level, 0], window[level, 1], window[level, 2], window[level, 3]
    height, width = below[level, 0], below[level, 1]
    at = prior[level] + (y * columns[level] + x) * h * w
    best, member, row, column = -np.inf, 0, 0, 0
    for i in range(h):
        for j in range(w):
            r, c = y + i - top, x + j - left
            if not (0 <= r < height and 0 <= c < width):
                continue
            value = message[(a * height + r) * width + c] + log_priors[at + i * w + j]
            if value > best:
                best, member, row, column = value, i * w + j, r, c
    return best, member, row, column
