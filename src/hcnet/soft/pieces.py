"""Pieces of ink: the proposals for copies of parts, and the bits that each costs by itself.

A piece is a connected component of a page, or a small component with the one above or below it (the
dot of an i).  Pieces only propose: whether a piece is a copy of a part, is made of several parts or
stays by itself is decided in bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.engine.driver import look
from hcnet.images import BoolArray
from hcnet.soft import coding, copying
from hcnet.soft.rules import without_lines

IntArray = NDArray[np.int64]

# Components with fewer pixels are not copied: an address costs as much as the pixels do.
SMALLEST = 6
# Components larger than so many median heights are pictures and rules, not letters.
LARGEST = 7.0
MOST_SIDE = 400
# A component up to this share of the median height may belong to one above or below it that is at
# most so many median heights away, a dot to another dot.
DOT, GAP, DOTS, WIDE = 0.5, 0.55, 0.9, 4.0
# With fewer components of so many pixels, parts are not soft.
MANY, LARGE = 60, 20
# Lines of so many pixels may hold pieces together.
LINE = 96


NO_LINES, NO_GAPS = np.zeros(0, np.int64), np.zeros(0)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Bitmaps of different sizes one after the other, and where they lie on the pages.

    If `hidden` is not empty, it says which pixels cost nothing: something else explains them.
    """

    page: IntArray
    top: IntArray
    left: IntArray
    height: IntArray
    width: IntArray
    start: IntArray  # of each bitmap in `ink`
    ink: NDArray[np.uint8]
    line: IntArray = field(
        default_factory=NO_LINES.copy
    )  # row on which the letters around stand (see `lines`)
    gap: NDArray[np.float64] = field(
        default_factory=NO_GAPS.copy
    )  # bits of the columns to the letter on the left
    hidden: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    area: IntArray = field(init=False)
    reference: IntArray = field(init=False)  # (n, 2): the centre of mass, in the bitmap

    def __post_init__(self) -> None:
        area, reference = coding.moments(self.ink, self.start, self.height, self.width)
        object.__setattr__(self, "area", area)
        object.__setattr__(self, "reference", reference)
        if len(self.line) != len(area):
            object.__setattr__(self, "line", np.full(len(area), coding.NO_ROW))
            object.__setattr__(self, "gap", np.full(len(area), np.nan))

    def __len__(self) -> int:
        """Number of pieces."""
        return len(self.page)

    def bitmap(self, i: int) -> NDArray[np.uint8]:
        """The pixels of one piece."""
        h, w = self.height[i], self.width[i]
        return self.ink[self.start[i] : self.start[i] + h * w].reshape(h, w)

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The bitmaps as compiled loops take them."""
        row = np.where(
            self.line > coding.NO_ROW, self.top + self.reference[:, 0] - self.line, coding.NO_ROW
        )
        return self.ink, self.start, self.height, self.width, self.reference, row, self.hidden


def selected(pieces: Pieces, which: IntArray) -> Pieces:
    """A selection of pieces."""
    size = pieces.height[which] * pieces.width[which]
    start = np.concatenate([[0], np.cumsum(size)])
    at = [slice(a, a + n) for a, n in zip(pieces.start[which], size, strict=True)]
    ink, hidden = (
        np.concatenate([np.zeros(0, np.uint8), *(pixels[one] for one in at)])
        for pixels in (pieces.ink, pieces.hidden)
    )
    names = "page", "top", "left", "height", "width", "line", "gap"
    page, top, left, height, width, line, gap = (getattr(pieces, name)[which] for name in names)
    return Pieces(page, top, left, height, width, start[:-1], ink, line, gap, hidden)


def joined(groups: list[Pieces]) -> Pieces:
    """The pieces of several pages, one after the other."""
    shifts = np.cumsum([0] + [g.ink.size for g in groups[:-1]])
    start = [g.start + s for g, s in zip(groups, shifts, strict=True)]
    names = "page", "top", "left", "height", "width", "ink", "line", "gap"
    page, top, left, height, width, ink, line, gap = (
        np.concatenate([getattr(g, name) for g in groups]) for name in names
    )
    hidden = np.zeros(0, np.uint8)
    if any(g.hidden.size for g in groups):
        none = [np.zeros(g.ink.size, np.uint8) for g in groups]
        hidden = np.concatenate(
            [g.hidden if g.hidden.size else n for g, n in zip(groups, none, strict=True)]
        )
    return Pieces(page, top, left, height, width, np.concatenate(start), ink, line, gap, hidden)


def many_pieces(pages: list[BoolArray]) -> bool:
    """Whether pages have so many pieces, perhaps on lines, that some may be copies of others."""
    return _n_pieces(pages) >= MANY or (
        _n_pieces([without_lines(page, LINE)[0] for page in pages]) >= MANY
    )


def largest_copy(pages: list[BoolArray]) -> tuple[int, int]:
    """Height and width of the largest part that may occur twice: those of the second largest piece.

    (0, 0) if there is none.
    """
    sizes = [(0, 0), (0, 0)]
    for page in pages:
        label, _ = ndimage.label(page, np.ones((3, 3), bool))
        boxes = ndimage.find_objects(label)
        sizes += [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in boxes]
    return sorted(sizes, key=lambda size: size[0] * size[1])[-2]


def _n_pieces(pages: list[BoolArray]) -> int:
    n = 0
    for page in pages:
        label, _ = ndimage.label(page, np.ones((3, 3), bool))
        n += int((np.bincount(label.ravel())[1:] >= LARGE).sum())
    return n


def find_pieces(page: BoolArray, number: int = 0, largest: tuple[int, int] | None = None) -> Pieces:
    """The pieces of a page; those over `largest` (height, width) are left out."""
    label, n = ndimage.label(page, np.ones((3, 3), bool))
    boxes = np.array(
        [(a.start, a.stop, b.start, b.stop) for a, b in ndimage.find_objects(label)], np.int64
    ).reshape(-1, 4)
    size = np.bincount(label.ravel(), minlength=n + 1)[1:]
    h, w = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    letters = (h * w > 60) & (np.maximum(h, w) <= MOST_SIDE)
    median = float(np.median(h[letters])) if letters.any() else 20.0
    group = _with_dots(boxes, median)
    # Boxes of groups, from those of their components.
    first, inverse = np.unique(group, return_inverse=True)
    low = np.full((len(first), 2), np.iinfo(np.int64).max)
    high = np.zeros((len(first), 2), np.int64)
    np.minimum.at(low, inverse, boxes[:, ::2])
    np.maximum.at(high, inverse, boxes[:, 1::2])
    mass = np.bincount(inverse, size, len(first))
    sides = high - low
    limit = np.array(largest if largest else 2 * [min(max(64.0, LARGEST * median), MOST_SIDE)])
    kept = np.flatnonzero((mass >= SMALLEST) & (sides <= limit).all(axis=1))
    low, high = low[kept], high[kept]
    which = np.full(n + 1, -1)
    rank = np.full(len(first), -1)
    rank[kept] = np.arange(len(kept))
    which[1:] = rank[inverse]
    sides = high - low
    start = np.cumsum(np.concatenate([[0], sides.prod(axis=1)]))
    ink = coding.cut(label, which, low, sides, start)
    return Pieces(
        np.full(len(kept), number),
        low[:, 0],
        low[:, 1],
        sides[:, 0].copy(),
        sides[:, 1].copy(),
        start[:-1],
        ink,
    )


def _with_dots(boxes: IntArray, median: float) -> IntArray:
    """A number per component, the same for a dot and the component above or below it."""
    group = np.arange(len(boxes))
    top, bottom, left, right = boxes.T
    h, w = bottom - top, right - left
    small = (np.maximum(h, w) <= DOT * median) & (np.minimum(h, w) >= 2)
    large = (h >= 0.15 * median) & (h <= 3 * median) & (w <= WIDE * median)
    order = np.argsort(left, kind="stable")
    lefts = left[order]
    widest = WIDE * median
    taken = np.zeros(len(boxes), bool)
    for n, i in enumerate(np.flatnonzero(small)):
        if n % 1000 == 0:
            look()
        if taken[i]:
            continue
        near = order[np.searchsorted(lefts, left[i] - widest) : np.searchsorted(lefts, right[i])]
        gap = np.maximum(top[near] - bottom[i], top[i] - bottom[near])
        shared = np.minimum(right[near], right[i]) - np.maximum(left[near], left[i])
        farthest = np.where(small[near], DOTS, GAP) * median
        fits = large[near] & ~taken[near] & (near != i) & (gap >= 0) & (gap <= farthest)
        fits &= shared >= 0.4 * np.minimum(w[near], w[i])
        if fits.any():
            j = near[fits][np.argmin(gap[fits])]
            group[max(i, j)] = min(i, j)
            taken[i] = taken[j] = True
    return group


def neighbours(pieces: Pieces, gap: float) -> IntArray:
    """Pairs (i, j) of pieces of one page whose boxes are at most so far apart."""
    order = np.lexsort((pieces.left, pieces.page))
    page, left = pieces.page[order], pieces.left[order]
    right = left + pieces.width[order]
    top = pieces.top[order]
    bottom = top + pieces.height[order]
    pairs = []
    step = 1
    alive = np.arange(len(order) - 1)
    # Lists by the left side end where the next piece begins too far to the right.
    while len(alive):
        other = alive + step
        near = (page[other] == page[alive]) & (left[other] - right[alive] <= gap)
        alive = alive[near]
        other = alive + step
        apart = np.maximum(top[other] - bottom[alive], top[alive] - bottom[other])
        fits = apart <= gap
        pairs.append(np.stack([order[alive[fits]], order[other[fits]]], axis=1))
        step += 1
        alive = alive[alive + step < len(order)]
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)


def unions(pieces: Pieces, pairs: IntArray) -> Pieces:
    """The pieces that pairs of pieces make together."""
    i, j = pairs.T
    top, left = np.minimum(pieces.top[i], pieces.top[j]), np.minimum(pieces.left[i], pieces.left[j])
    bottom = np.maximum(pieces.top[i] + pieces.height[i], pieces.top[j] + pieces.height[j])
    right = np.maximum(pieces.left[i] + pieces.width[i], pieces.left[j] + pieces.width[j])
    height, width = bottom - top, right - left
    start = np.concatenate([[0], np.cumsum(height * width)])
    ink = np.zeros(start[-1], np.uint8)
    for q, pair in enumerate(pairs):
        canvas = ink[start[q] : start[q + 1]].reshape(height[q], width[q])
        for one in pair:
            y, x = pieces.top[one] - top[q], pieces.left[one] - left[q]
            canvas[y : y + pieces.height[one], x : x + pieces.width[one]] |= pieces.bitmap(one)
    # The larger piece tells the line, the left one its gap.
    line = pieces.line[np.where(pieces.area[i] >= pieces.area[j], i, j)]
    gap = pieces.gap[np.where(pieces.left[i] <= pieces.left[j], i, j)]
    return Pieces(pieces.page[i], top, left, height, width, start[:-1], ink, line, gap)


def with_cracked(pairs: IntArray, which: BoolArray) -> tuple[IntArray, NDArray[np.float64]]:
    """Pairs of pieces and single ones, as pairs with themselves; the ink that each may lack."""
    single = np.flatnonzero(which)
    lacking = np.repeat([copying.LACKING, copying.CRACKED], [len(pairs), len(single)])
    return np.concatenate([pairs, np.stack([single, single], axis=1)]), lacking


def best_pairs(pairs: IntArray, gain: NDArray[np.float64]) -> IntArray:
    """Which pairs to put together: those that gain most first, and no piece twice."""
    taken, chosen = np.zeros(int(pairs.max(initial=-1)) + 1, bool), []
    for q in np.argsort(-gain, kind="stable").tolist():
        if gain[q] > 0 and not taken[pairs[q]].any():
            taken[pairs[q]] = True
            chosen.append(q)
    return np.array(chosen, np.int64)


def smallest_box(pixels: BoolArray) -> IntArray:
    """Top, bottom, left and right of the on pixels of a bitmap; of all of it, if none is on."""
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return np.array([0, pixels.shape[0], 0, pixels.shape[1]])
    return np.array([rows[0], rows[-1] + 1, columns[0], columns[-1] + 1])
