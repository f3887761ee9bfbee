"""How well learned parts match known ones, wherever each sits in its window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.signal import fftconvolve

from hcnet.images import BoolArray


def part_iou(part: BoolArray, other: BoolArray) -> float:
    """Intersection over union of two parts (channels, height, width) at their best offset."""
    a, b = int(part.sum()), int(other.sum())
    if a == 0 or b == 0:
        return float(a == b)
    shared = 0.0
    for channel in range(part.shape[0]):
        x, y = part[channel].astype(float), other[channel].astype(float)
        shared = shared + fftconvolve(x, y[::-1, ::-1])
    best = round(float(np.max(shared)))
    return best / (a + b - best)


def matched_iou(learned: BoolArray, true: BoolArray) -> NDArray[np.float64]:
    """IoU of every true part with the learned part that stands for it, one for each.

    Parts are matched one to one so that the sum is largest; a true part without a partner
    gets 0.  Both arrays are (parts, channels, height, width).
    """
    table = np.array([[part_iou(t, w) for w in learned] for t in true]).reshape(
        len(true), len(learned)
    )
    rows, columns = linear_sum_assignment(-table)
    matched = np.zeros(len(true))
    matched[rows] = table[rows, columns]
    return matched
