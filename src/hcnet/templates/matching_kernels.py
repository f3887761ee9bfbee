"""The loops of matching: follow each template down to the pixels, and count unexplained pixels.

The tables of `matching` are, in this order: ``lowest``, the messages to R¹, and ``messages``, those
up to all S but the templates, the level k from ``begins[k]`` on, per image; ``hidden``, per image
the threshold above which a feature below the templates counts as present; ``features``, ``pools``,
and ``depth``, the most features that are ever on the stack.

``features`` are all levels in flat arrays: the first feature of each level, the first element of
each feature, and the elements (channel, row, column).  ``pools`` are per level the window (height,
width, offset), the size of the grid below, the columns of R, and where its ``log_priors`` begin.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from hcnet.engine.threads import over_threads

_kernel: Any = nb.njit(nogil=True, cache=True)


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
    h, w, top, left = pools[0][0]
    height, width = mark.shape[1:]
    k, total = 1, 0.0
    while k:
        k -= 1
        level, f, r, c = stack[k, 0], stack[k, 1], stack[k, 2], stack[k, 3]
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
                stack[k, 0], stack[k, 1] = level - 1, a
                stack[k, 2], stack[k, 3] = row, column
                k += 1
                if member < shifts.shape[1]:
                    shifts[level, member] += 1
    return total


@_kernel
def _best_member(level, a, y, x, message, pools):
    """The best position of an element of R: its value, member, row and column; first of equals."""
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
