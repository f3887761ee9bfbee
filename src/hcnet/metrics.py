"""Agreement of learned with known parts, and the code length of the known parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.signal import fftconvolve

from hcnet.datasets.parts_data import PartsData
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.objective import Priors, image_bits
from hcnet.solutions.explanation import Canvas, Explanation
from hcnet.solutions.improver import Improver
from hcnet.validation.images import check_binary
from hcnet.validation.parameters import check_feature_size

PART = "channels, height, width"  # the axes of a part


def part_iou(part: BoolArray, other: BoolArray) -> float:
    """Intersection over union of two parts (channels, height, width) at their best offset."""
    part, other = check_binary("part", part, PART), check_binary("other", other, PART)
    if len(part) != len(other):
        raise ValueError(
            f"Parts must have the same channels to be compared, got {len(part)} and {len(other)}; "
            f"pass parts of the same images."
        )
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
    ours, theirs = _parts("learned", learned), _parts("true", true)
    table = np.array([[part_iou(t, w) for w in ours] for t in theirs])
    table = table.reshape(len(theirs), len(ours))
    rows, columns = linear_sum_assignment(-table)
    matched = np.zeros(len(theirs))
    matched[rows] = table[rows, columns]
    return matched


def _parts(name: str, parts: ArrayLike) -> list[BoolArray]:
    if np.ndim(parts) == 0 and not isinstance(parts, list | tuple):
        raise TypeError(
            f"{name} must be parts of shape (parts, channels, height, width), got "
            f"{type(parts).__name__}; pass an array."
        )
    return [check_binary(f"{name}[{k}]", part, PART) for k, part in enumerate(parts)]  # type: ignore[arg-type]


def true_compression(
    data: PartsData, feature_size: tuple[int, int], border: Border = "full"
) -> float:
    """Compression ratio of the true parts at their true places, the target of learning.

    Learned parts can be slightly better, because flipped pixels make other placements pay.
    With ``border="valid"`` placements whose window leaves the image are left out.
    """
    improver, found = true_explanation(data, feature_size, border)
    return found.bits / image_bits(improver.canvas.images)


def true_explanation(
    data: PartsData, feature_size: tuple[int, int], border: Border = "full"
) -> tuple[Improver, Explanation]:
    """The true parts at their true places, and an `Improver` for the same images."""
    h, w = check_feature_size(feature_size, data.images.shape[2:], border)
    true_h, true_w = data.feature_size
    if h < true_h or w < true_w:
        raise ValueError(
            f"feature_size {h}×{w} cannot hold the true parts; they need {true_h}×{true_w}: pass "
            f"at least that."
        )
    images = Images(data.images, np.ones(data.images.shape, bool))
    parts = np.zeros((*data.features.shape[:2], h, w), bool)
    parts[:, :, :true_h, :true_w] = data.features  # the corner of the window stays the same
    layer = FeatureLayer(len(parts), images.n_channels, (h, w), images.size, border)
    placements = data.placements + np.array([0, 0, *layer.overhang])
    improver = Improver(Canvas(layer, images), Priors())
    features = [improver.feature(part) for part in parts]
    placements = placements[improver.canvas.inside(placements)]
    return improver, improver.evaluate(features, placements, prune=False)
