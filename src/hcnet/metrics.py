"""Agreement of learned with known parts and of read with known text; the code of known parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.signal import fftconvolve

from hcnet.checks import as_numbers, check_count
from hcnet.datasets.parts_data import IntArray, PartsData
from hcnet.datasets.scanned_text import ScannedText
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.objective import Priors, image_bits
from hcnet.solutions.explanation import Canvas, Explanation
from hcnet.solutions.improver import Improver
from hcnet.validation.images import check_binary
from hcnet.validation.parameters import check_feature_size

PART = "channels, height, width"  # the axes of a part

PURE = 0.99  # a part is pure if at least this share of the glyphs it stands for have one shape


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
    table, rows, columns = _matched(learned, true)
    matched = np.zeros(len(table))
    matched[rows] = table[rows, columns]
    return matched


def groups_found(learned: BoolArray, true: BoolArray, variants: int) -> int:
    """The number of groups of so many true parts that are one group of learned parts.

    The variants of a group follow each other, in both arrays (parts, channels, height, width), in
    any order.  Parts are matched as in `matched_iou`; one counts if its partner resembles no other
    true part more.
    """
    variants = check_count("variants", variants)
    table, rows, columns = _matched(learned, true)
    for name, n in zip(("true", "learned"), table.shape, strict=True):
        if n % variants:
            raise ValueError(
                f"{name} must hold groups of {variants} variants each, got {n} parts; pass all of "
                f"them."
            )
    found: list[set[int]] = [set() for _ in range(len(table) // variants)]
    for true_part, part in zip(rows.tolist(), columns.tolist(), strict=True):
        close = 0 < table[true_part, part] == table[:, part].max()
        found[true_part // variants].add(part // variants if close else -1)
    for true_part in {*range(len(table))} - {*rows.tolist()}:  # too few parts were learned
        found[true_part // variants].add(-1)
    return sum(len(group) == 1 and -1 not in group for group in found)


def _matched(learned: BoolArray, true: BoolArray) -> tuple[NDArray[np.float64], IntArray, IntArray]:
    """IoU of all pairs (true, learned), and the pairs that belong together."""
    ours, theirs = _parts("learned", learned), _parts("true", true)
    table = np.array([[part_iou(t, w) for w in ours] for t in theirs])
    table = table.reshape(len(theirs), len(ours))
    return table, *linear_sum_assignment(-table)


def _parts(name: str, parts: ArrayLike) -> list[BoolArray]:
    if np.ndim(parts) == 0 and not isinstance(parts, list | tuple):
        raise TypeError(
            f"{name} must be parts of shape (parts, channels, height, width), got "
            f"{type(parts).__name__}; pass an array."
        )
    return [check_binary(f"{name}[{k}]", part, PART) for k, part in enumerate(parts)]  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class GlyphScores:
    """How well parts at their places explain the glyphs of a page; see `glyph_scores`.

    Attributes:
        in_pure_parts: share of glyphs in pure parts; glyphs whose shape occurs once do not count.
        parts_per_shape: shared parts, divided by the number of shapes that they stand for.
        placements_per_glyph: placements, divided by the number of glyphs.
        missing: share of glyphs that no placement stands for.
        part_shapes: int64 (F,), the commonest shape of the glyphs that each part stands for, or -1.
        part_purity: float64 (F,), the share of that shape; 0 for parts without a placement.

    """

    in_pure_parts: float
    parts_per_shape: float
    placements_per_glyph: float
    missing: float
    part_shapes: IntArray
    part_purity: NDArray[np.float64]


def glyph_scores(placements: ArrayLike, features: ArrayLike, truth: ScannedText) -> GlyphScores:
    """Compare learned parts at their places with the glyphs of `hcnet.datasets.scanned_text`.

    A placement *covers* the pixels of its part's ink. It stands for every glyph at least half of
    whose clean ink it covers; if there is none, for the one whose ink it covers most of (in
    pixels); if it covers no glyph at all, it stands for no shape.

    - The *purity* of a part is the share of its commonest shape among all that its placements
      stand for; a placement that stands for none counts as a shape of its own. So a part for two
      letters at once has a purity of one half, and a dot that is used for full stops and for
      parts of an i is not pure, either.
    - A part is *shared* if it has at least two placements, and *pure* if it is shared and its
      purity is at least 99 %.
    - A glyph is *in* the part of the placement that stands for it and covers most of it. It counts
      as in a pure part if the part is pure and its commonest shape is the glyph's.

    Args:
        placements: (K, 4), rows image, part, row and column of the window's corner, as in
            `FeatureLearner.placements_`.
        features: bool (F, channels, height, width), as in `FeatureLearner.features_`.
        truth: the pages with their glyphs.

    Returns:
        Shares and ratios over all pages.

    """
    if not isinstance(truth, ScannedText):
        raise TypeError(
            f"truth must be pages with known glyphs, got {type(truth).__name__}; pass the result "
            f"of hcnet.datasets.scanned_text."
        )
    parts: list[NDArray[Any]] = [np.any(part, axis=0) for part in _parts("features", features)]
    rows = _placement_rows(placements, len(parts), len(truth.images))
    part_of, shape_of = rows[:, 1], truth.shapes
    placement, glyph, covered = _overlaps(rows, parts, truth.owners)
    ink = np.bincount(truth.owners[truth.owners >= 0], minlength=len(shape_of))
    stands = 2 * covered >= ink[glyph]
    # Where a placement covers no glyph by half, the one that it covers most of.
    order = np.lexsort((glyph, -covered, placement))
    first = order[np.unique(placement[order], return_index=True)[1]]
    satisfied = np.zeros(len(rows), bool)
    satisfied[placement[stands]] = True
    stands[first] |= ~satisfied[placement[first]]
    placement, glyph, covered = placement[stands], glyph[stands], covered[stands]

    n_shapes = len(truth.features)
    votes = np.zeros((len(parts), n_shapes + 1), np.int64)
    np.add.at(votes, (part_of[placement], shape_of[glyph]), 1)
    on_nothing = np.setdiff1d(np.arange(len(rows)), placement)
    votes[:, n_shapes] = np.bincount(part_of[on_nothing], minlength=len(parts))
    part_shapes = votes[:, :n_shapes].argmax(axis=1)
    most = votes[np.arange(len(parts)), part_shapes]
    purity = most / np.maximum(votes.sum(axis=1), 1)
    part_shapes[most == 0] = -1
    shared = np.bincount(part_of, minlength=len(parts)) >= 2

    home = np.full(len(shape_of), -1)
    order = np.lexsort((-placement, covered))  # the last one stays: most covered, then the first
    home[glyph[order]] = part_of[placement[order]]
    repeated = np.bincount(shape_of, minlength=n_shapes)[shape_of] >= 2
    good = np.append(shared & (purity >= PURE), False)[home]
    good &= np.append(part_shapes, -1)[home] == shape_of
    represented = part_shapes[shared & (part_shapes >= 0)]
    return GlyphScores(
        in_pure_parts=float(good[repeated].mean()) if repeated.any() else 1.0,
        parts_per_shape=len(represented) / max(len(np.unique(represented)), 1),
        placements_per_glyph=len(rows) / len(shape_of),
        missing=float((home < 0).mean()),
        part_shapes=part_shapes,
        part_purity=purity,
    )


def _placement_rows(placements: ArrayLike, n_parts: int, n_images: int) -> IntArray:
    rows = as_numbers("placements", placements)
    if rows.size == 0:
        return np.zeros((0, 4), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 4 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"placements must be whole numbers of shape (placements, 4), got {rows.dtype} of shape "
            f"{rows.shape}; pass rows of image, part, row and column."
        )
    rows = rows.astype(np.int64)
    for name, column, count in (("images", 0, n_images), ("parts", 1, n_parts)):
        if rows[:, column].min() < 0 or rows[:, column].max() >= count:
            raise ValueError(
                f"placements must have {name} from 0 to {count - 1} in column {column}, got "
                f"{rows[:, column].min()} to {rows[:, column].max()}; pass the features and the "
                f"pages that they belong to."
            )
    return rows


def _overlaps(
    rows: IntArray, parts: list[NDArray[Any]], owners: NDArray[np.int32]
) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of placement and glyph that share pixels, and how many."""
    pairs = [np.zeros(0, np.int64)]
    n_glyphs = int(owners.max(initial=-1)) + 1
    height, width = owners.shape[1:]
    for f, part in enumerate(parts):
        y, x = np.nonzero(part)
        which = np.flatnonzero(rows[:, 1] == f)
        at_y, at_x = rows[which, 2:3] + y, rows[which, 3:4] + x
        inside = (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
        image, placement = np.broadcast_to(rows[which, :1], inside.shape), which[:, None] + 0 * y
        found = owners[image[inside], at_y[inside], at_x[inside]].astype(np.int64)
        pairs.append((placement[inside] * n_glyphs + found)[found >= 0])
    keys, counts = np.unique(np.concatenate(pairs), return_counts=True)
    return keys // max(n_glyphs, 1), keys % max(n_glyphs, 1), counts


def character_error_rate(read: str, true: str) -> float:
    """Fewest characters to insert, delete or exchange in `read`, by the length of `true`."""
    for name, text in (("read", read), ("true", true)):
        if not isinstance(text, str):
            raise TypeError(
                f"{name} must be a text, got {type(text).__name__}; join lines with '\\n'.join."
            )
    ours, theirs = (np.frombuffer(t.encode("utf-32-le", "replace"), "<u4") for t in (read, true))
    edges = np.arange(len(theirs) + 1)
    costs = edges  # of the first k characters of the true text
    for n, character in enumerate(ours, 1):
        exchanged = costs[:-1] + (theirs != character)
        best = np.r_[n, np.minimum(exchanged, costs[1:] + 1)]
        costs = np.minimum.accumulate(best - edges) + edges  # or insert what comes before
    return int(costs[-1]) / max(len(theirs), 1)


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
