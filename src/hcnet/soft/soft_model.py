"""Soft parts as a model: the same parts in other pages, denoising, and its part of a file."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet import objective
from hcnet.archive import kinds
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.model import PARTS_MODEL
from hcnet.soft import coding, copying
from hcnet.soft.channel import Table, bits_of, chances
from hcnet.soft.denoising import flip_rates, without_flips, without_noise
from hcnet.soft.lines import in_lines, places
from hcnet.soft.parts import Parts, cover
from hcnet.soft.pieces import (
    IntArray,
    Pieces,
    best_pairs,
    find_pieces,
    joined,
    neighbours,
    selected,
    smallest_box,
    unions,
    with_cracked,
)
from hcnet.soft.soft_search import COPIES, GAP, PIXELS, SEVERAL, SoftSearch
from hcnet.soft.windows import LENGTHS as LINES
from hcnet.soft.windows import cut_pieces, ink_of

# Pixels of all windows together in a file: so many, and so many more for each pixel of the parts.
LARGEST, LARGER = 2**26, 64

# Denoising warns if the parts explain less than this share of the ink.
LITTLE = 0.5
# How much more probable a part is than other ink, where ink of the size of parts is left over.
MORE_PROBABLE = 1000


@dataclass(frozen=True, eq=False)
class SoftExplanation:
    """Placements of parts in pages, and the bits of the pages given the parts."""

    placements: IntArray  # page, part, row and column of the part's window, from the overhang on
    bits: float

    @property
    def used(self) -> IntArray:
        """The parts that have a placement."""
        return np.unique(self.placements[:, 1])


@dataclass(frozen=True, eq=False)
class SoftModel:
    """Soft parts of different sizes, one after the other, and the channel they are seen through."""

    counts: NDArray[np.int32]  # in how many copies each pixel is on
    sizes: IntArray  # (F, 2): height and width
    copies: IntArray  # (F,)
    alone: NDArray[np.float64]  # (F,): bits of a copy by itself
    total: float  # pixels that the parts were learned from, times e
    levels: IntArray  # (F, 2): sum of rows of copies' corners in lines of text, and their number
    chance: NDArray[np.float32]  # that a pixel is on, by its context with a part
    chance_alone: NDArray[np.float32]  # and without one
    image_size: tuple[int, int]

    border: ClassVar[Border] = "full"

    @cached_property
    def cost(self) -> Table:
        """Bits of pixels given their part."""
        return bits_of(self.chance)

    @cached_property
    def cost_alone(self) -> Table:
        """Bits of pixels without a part."""
        return bits_of(self.chance_alone)

    @cached_property
    def window(self) -> tuple[int, int]:
        """Height and width of a window for all parts."""
        h, w = self.sizes.max(axis=0, initial=1).tolist()
        return h, w

    def part(self, f: int) -> NDArray[np.float32]:
        """Share of the copies in which each pixel of a part is on."""
        size, ends = self.sizes.prod(axis=1), np.cumsum(self.sizes.prod(axis=1))
        own = self.counts[ends[f] - size[f] : ends[f]].reshape(self.sizes[f])
        return (own / np.float32(self.copies[f])).astype(np.float32)

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """All parts (F, 1, height, width), each in the middle of a common window."""
        found = np.zeros((len(self.sizes), 1, *self.window), np.float32)
        for f, at in enumerate(self._inside):
            found[f, 0][at] = self.part(f)
        return found

    @cached_property
    def features(self) -> BoolArray:
        """Pixels that are on in most copies (F, 1, height, width)."""
        found = np.zeros((len(self.sizes), 1, *self.window), bool)
        for f, at in enumerate(self._inside):
            found[f, 0][at] = self.part(f) >= 0.5
        return found

    @property
    def _inside(self) -> Iterator[tuple[slice, slice]]:
        """Where each part lies in its window."""
        for (h, w), (y, x) in zip(self.sizes, self._corners, strict=True):
            yield slice(y, y + h), slice(x, x + w)

    @property
    def _corners(self) -> IntArray:
        return (np.array(self.window) - self.sizes) // 2

    def layer(self, image_size: tuple[int, int]) -> FeatureLayer:
        """The layer of these features for images of a size."""
        return FeatureLayer(len(self.sizes), 1, self.window, image_size, "full")

    @cached_property
    def _parts(self) -> Parts:
        """The parts on canvases; their reference points are their centres of mass."""
        reference = np.zeros((len(self.sizes), 2), np.int64)
        for f in range(len(self.sizes)):
            p = self.part(f)
            rows, columns = np.indices(p.shape)
            mass = max(float(p.sum()), 1e-9)
            reference[f] = np.rint([(rows * p).sum() / mass, (columns * p).sum() / mass])
        parts = Parts(self.sizes, reference)
        parts.level[:] = self.levels
        parts.level[:, 0] += self.levels[:, 1] * reference[:, 0]
        parts.n[:], parts.side = self.copies, np.maximum(self.sizes - 2, 1)  # without the margin
        at = 0
        for f, (h, w) in enumerate(self.sizes.tolist()):
            own = self.counts[at : at + h * w].reshape(h, w)
            y, x = parts.reference[f] - reference[f]
            canvas = parts.sums[parts.start[f] :][: parts.height[f] * parts.width[f]]
            canvas.reshape(parts.height[f], parts.width[f])[y : y + h, x : x + w] = own
            parts.mass[f], parts.box[f] = own.sum(), (y, y + h, x, x + w)
            at += h * w
        return parts

    def explain(
        self, images: Images, rng: object = None, max_memory: int | None = None
    ) -> SoftExplanation:
        """Find the parts in pages: pieces as copies of a part, or as several parts."""
        pages, bits = without_noise(images)
        rows = [np.zeros((0, 4), np.int64)]
        for number, (page, seen) in enumerate(zip(pages, images.observed[:, 0], strict=True)):
            more, copies, rest = self._explain_page(page, number)
            bits += copies
            if not seen.all():
                more = more[self._beside(more, seen)]
                more = np.concatenate([more, self._behind(page, seen, number)])
                rest = self.residue(page, more)
            rows.append(more)
            bits += rest
        return SoftExplanation(self.windows(np.concatenate(rows), images.size), bits)

    def guess(self, images: Images) -> SoftExplanation:
        """As `explain` for ink that most probably is of parts: positions cost nothing, names do."""
        return replace(self, total=float(self.copies.sum()) / MORE_PROBABLE).explain(images)

    def _explain_page(self, page: BoolArray, number: int) -> tuple[IntArray, float, float]:
        """Rows of page, part and corner, the bits of what they explain, and those of the rest.

        What is left is cut at lines, as in learning, if that saves bits.
        """
        pieces = in_lines(find_pieces(page, number))
        alone = coding.template_bits(pieces.arrays(), self.cost_alone)
        rows, bits, pieces, which = self._explain_pieces(pieces, alone)
        left = page & ~ink_of(pieces, which, page, number)
        rest = float(coding.page_bits(left.view(np.uint8), self.cost_alone))
        best = rows, bits, rest
        for length in LINES if len(self.sizes) else ():
            cut = cut_pieces(left, number, length, None, self.cost_alone)
            if cut is None:
                break
            more, also, pieces, which = self._explain_pieces(cut.pieces, cut.bits)
            unexplained = left & ~ink_of(pieces, which, page, number) | cut.lines
            rest = float(coding.page_bits(unexplained.view(np.uint8), self.cost_alone))
            if bits + also + rest < best[1] + best[2]:
                best = np.concatenate([rows, more]), bits + also, rest
            elif length == LINES[0]:
                break
        return best

    def _explain_pieces(
        self, pieces: Pieces, alone: NDArray[np.float64]
    ) -> tuple[IntArray, float, Pieces, IntArray]:
        """Rows of page, part and corner, the bits of what they explain, and the explained pieces.

        A piece has `alone` bits without parts.  Broken pieces are put together: the pieces that are
        returned are those that the last array numbers.
        """
        if not (len(pieces) and len(self.sizes)):
            return np.zeros((0, 4), np.int64), 0.0, pieces, np.zeros(0, np.int64)
        parts, place = self._parts, self._places(pieces)
        given = pieces.arrays(), parts.arrays(), alone, self.cost, place, coding.NO_TABLE
        part, shift, bits = copying.match(*given, np.zeros(len(pieces)))
        if not pieces.hidden.size:
            pieces, part, shift, bits = self._mended(pieces, part, shift, bits)
        copies = np.flatnonzero(part >= 0)
        k = part[copies]
        corner = (
            pieces.reference[copies] - parts.reference[k] - shift[copies] + parts.box[k][:, ::2]
        )
        rest = np.flatnonzero((part < 0) & (pieces.area >= SEVERAL))
        place = self._places(pieces)
        usable = np.flatnonzero((parts.n >= COPIES) & (parts.mass >= PIXELS * parts.n))
        tables = self.cost_alone, self.cost, np.minimum(place, np.median(place))
        covers, saved = cover(rest, pieces, parts, usable, part, *tables)
        which = np.concatenate([copies, covers[:, 0]])
        found = np.stack(
            [
                pieces.page[which],
                np.concatenate([k, covers[:, 1]]),
                *(
                    np.concatenate([corner, covers[:, 2:]])
                    + np.stack([pieces.top, pieces.left], axis=1)[which]
                ).T,
            ],
            axis=1,
        )
        which = np.unique(which)
        return found, float((bits - saved)[which].sum()), pieces, which

    def _places(self, pieces: Pieces) -> NDArray[np.float64]:
        return places(pieces, self.total, float(self.copies.sum()))

    def _mended(
        self, pieces: Pieces, part: IntArray, shift: IntArray, bits: NDArray[np.float64]
    ) -> tuple[Pieces, IntArray, IntArray, NDArray[np.float64]]:
        """Pieces with broken copies put together, their parts, their shifts and their bits."""
        height = float(np.median(pieces.height))
        pairs = neighbours(pieces, GAP * height)
        pairs, lacking = with_cracked(pairs[(part[pairs] < 0).any(axis=1)], part < 0)
        if not len(pairs):
            return pieces, part, shift, bits
        both = unions(pieces, pairs)
        alone = coding.template_bits(both.arrays(), self.cost_alone)
        tables = alone, self.cost, self._places(both), self.cost_alone, lacking
        found, moved, cost = copying.match(both.arrays(), self._parts.arrays(), *tables)
        before = np.where(pairs[:, 0] == pairs[:, 1], bits[pairs[:, 0]], bits[pairs].sum(axis=1))
        chosen = best_pairs(pairs, np.where(found < 0, 0, before - cost))
        left = np.setdiff1d(np.arange(len(pieces)), pairs[chosen])
        return (
            joined([selected(pieces, left), selected(both, chosen)]),
            np.concatenate([part[left], found[chosen]]),
            np.concatenate([shift[left], moved[chosen]]),
            np.concatenate([bits[left], cost[chosen]]),
        )

    def residue(self, page: BoolArray, rows: IntArray) -> float:
        """Bits of the pixels of a page outside the boxes of copies."""
        left = page.copy()
        for _, f, y, x in rows:
            h, w = self.sizes[f]
            at = slice(max(y - 1, 0), max(y + h + 1, 0)), slice(max(x - 1, 0), max(x + w + 1, 0))
            left[at] = False
        return float(coding.page_bits(left.view(np.uint8), self.cost_alone))

    def windows(self, rows: IntArray, image_size: tuple[int, int]) -> IntArray:
        """Corners of parts as corners of their windows, counted from the overhang on.

        A window may not leave the page by more than its size less one.
        """
        layer = self.layer(image_size)
        found = rows.copy()
        found[:, 2:] += np.array(layer.overhang) - self._corners[rows[:, 1]]
        np.clip(found[:, 2:], 0, np.array(layer.placement_size) - 1, out=found[:, 2:])
        return np.unique(found, axis=0)

    def _behind(self, page: BoolArray, seen: BoolArray, number: int) -> IntArray:
        """Rows of parts that lie behind missing pixels in part."""
        label, n = ndimage.label(~seen, np.ones((3, 3), bool))
        crops, hidden = [], []
        h, w = self.window
        for rows, columns in ndimage.find_objects(label):
            at = (
                slice(max(rows.start - h, 0), rows.stop + h),
                slice(max(columns.start - w, 0), columns.stop + w),
            )
            crops.append((at, page[at].astype(np.uint8)))
            hidden.append((~seen[at]).astype(np.uint8).ravel())
        if not (n and len(self.sizes)):
            return np.zeros((0, 4), np.int64)
        sides = np.array([crop.shape for _, crop in crops])
        pieces = Pieces(
            np.full(n, number),
            np.array([at[0].start for at, _ in crops]),
            np.array([at[1].start for at, _ in crops]),
            sides[:, 0].copy(),
            sides[:, 1].copy(),
            np.cumsum(sides.prod(axis=1)) - sides.prod(axis=1),
            np.concatenate([crop.ravel() for _, crop in crops]),
        )
        parts, none = self._parts, np.full(n, -1)
        usable = np.flatnonzero(parts.mass >= PIXELS * parts.n)
        place = places(pieces, self.total, 1)
        tables = self.cost_alone, self.cost, place, np.concatenate(hidden)
        covers, _ = cover(np.arange(n), pieces, parts, usable, none, *tables)
        corner = covers[:, 2:] + np.stack([pieces.top, pieces.left], axis=1)[covers[:, 0]]
        return np.concatenate(
            [np.stack([np.full(len(covers), number), covers[:, 1]], axis=1), corner], axis=1
        )

    def _beside(self, rows: IntArray, seen: BoolArray) -> BoolArray:
        """Which rows are of parts that no missing pixel touches."""
        ends = rows[:, 2:] + self.sizes[rows[:, 1]]
        clear = np.ones(len(rows), bool)
        for q, ((y, x), (v, u)) in enumerate(
            zip(np.maximum(rows[:, 2:] - 1, 0), ends + 1, strict=True)
        ):
            clear[q] = seen[y:v, x:u].all()
        return clear

    def reconstruct(
        self, placements: IntArray, n_images: int, image_size: tuple[int, int]
    ) -> BoolArray:
        """Pages that the parts make, without what no part explains."""
        layer = self.layer(image_size)
        (H, W), (oh, ow) = image_size, layer.overhang
        h, w = self.window
        board = np.zeros((n_images, 1, H + 2 * oh, W + 2 * ow), bool)
        for n, f, r, c in placements:
            board[n, 0, r : r + h, c : c + w] |= self.features[f, 0]
        return board[:, :, oh : oh + H, ow : ow + W]

    def chances_on(self, page: BoolArray, placements: IntArray) -> NDArray[np.float32]:
        """How probable the other copies of their part make the pixels of a page; -1 without."""
        layer = self.layer(page.shape)
        (H, W), (oh, ow) = page.shape, layer.overhang
        inside = slice(oh, oh + H), slice(ow, ow + W)
        board = np.full((H + 2 * oh, W + 2 * ow), -1, np.float32)
        ink = np.zeros(board.shape, bool)
        ink[inside] = page
        shares = [self.part(f) for f in range(len(self.sizes))]
        corners = self._corners
        for f, r, c in placements:
            n, (y, x), (h, w) = self.copies[f], corners[f] + (r, c), self.sizes[f]
            own = ink[y : y + h, x : x + w]
            share = shares[f][: own.shape[0], : own.shape[1]]
            # A copy that the part was learned from has no pixel off that all copies have on.
            if n > 1 and not (~own & (share == 1)).any():
                share = np.clip((share * n - own) / (n - 1), 0, 1)
            at = board[y : y + h, x : x + w]
            np.maximum(at, share, out=at)
        return board[inside]

    def fill(self, images: Images, found: SoftExplanation) -> BoolArray:
        """Pages with their missing pixels as the parts have them."""
        made = self.reconstruct(found.placements, images.n_images, images.size)
        return np.where(images.observed, images.pixels, made)

    def denoise(self, images: Images, found: SoftExplanation) -> BoolArray:
        """Pages without flips: pixels that their part and their neighbours contradict."""
        cleaned, (clean, _) = self.fill(images, found), without_noise(images)
        for n in range(images.n_images):
            mine = found.placements[found.placements[:, 0] == n, 1:]
            level = self.chances_on(clean[n], mine)
            cleaned[n, 0] = without_flips(cleaned[n, 0], flip_rates(cleaned[n, 0]), level)
        ink = cleaned & images.observed
        made = ink & self.reconstruct(found.placements, images.n_images, images.size)
        if made.sum() < LITTLE * ink.sum():
            warnings.warn(
                f"The parts explain {made.sum() / ink.sum():.0%} of the ink of X; the rest is "
                f"cleaned by the pixels around alone. Learn the parts from X itself, or from pages "
                f"in its type and resolution.",
                UserWarning,
                stacklevel=3,
            )
        return cleaned

    def bits_saved(self, images: Images, placements: IntArray) -> NDArray[np.float64]:
        """Bits that each placement saves: of its pixels by themselves less those given the part."""
        rows = placements.copy()
        layer = self.layer(images.size)
        rows[:, 2:] += self._corners[rows[:, 1]] - np.array(layer.overhang)
        saved = np.zeros(len(rows))
        for number, page in enumerate(without_noise(images)[0]):
            page = np.pad(page, max(self.window) + 2)
            which = np.flatnonzero(rows[:, 0] == number)
            if len(which):
                saved[which] = self._bits_saved(page, rows[which], max(self.window) + 2)
        return saved

    def _bits_saved(self, page: BoolArray, rows: IntArray, margin: int) -> NDArray[np.float64]:
        parts, f = self._parts, rows[:, 1]
        sides = self.sizes[f] + 2
        top, left = (rows[:, 2:] - 1 + margin).T
        crops = [
            page[y : y + h, x : x + w].ravel()
            for y, x, (h, w) in zip(top.tolist(), left.tolist(), sides.tolist(), strict=True)
        ]
        start = np.cumsum(sides.prod(axis=1)) - sides.prod(axis=1)
        ink = np.concatenate([np.zeros(0, np.uint8), *crops]).astype(np.uint8)
        pieces = Pieces(rows[:, 0], top, left, sides[:, 0].copy(), sides[:, 1].copy(), start, ink)
        pieces = in_lines(pieces)
        shift = parts.box[f][:, ::2] - 1 - parts.reference[f] + pieces.reference
        alone = coding.template_bits(pieces.arrays(), self.cost_alone)
        given = pieces.arrays(), parts.arrays(), f.copy(), shift, 0, self.cost, coding.NO_COUNTS
        place = places(pieces, self.total, float(self.copies.sum())) - np.log2(self.copies[f])
        place += coding.rows_price(*given[:4])
        return np.asarray(alone - coding.price(*given) - place)

    @cached_property
    def priors(self) -> objective.Priors:
        """The priors that exact parts with these majorities would have."""
        each = np.repeat(self.copies, self.sizes.prod(axis=1))
        on = 2 * self.counts >= each
        missing = (each - self.counts)[on].sum() + 1
        extra = self.counts[~on].sum() + 1
        return objective.Priors(
            p_S=min(max(self.copies.sum(), 1) * math.e / self.total, kinds.BELOW_HALF),
            p_W=min(max(float(on.mean()) if len(on) else 0.5, 0.02), 0.6),
            p01=min(float(missing / (each[on].sum() + 2)), kinds.BELOW_HALF),
            p10=min(float(extra / (each[~on].sum() + 2)), kinds.BELOW_HALF),
        )

    def log_joint(self, found: SoftExplanation) -> float:
        """Log-probability of pages given the parts."""
        return -found.bits * math.log(2)

    def compression_ratio(self, images: Images, found: SoftExplanation) -> float:
        """Bits of pages and of the parts used in them, divided by the bits of their pixels."""
        plain = objective.image_bits(images)
        bits = found.bits + float(self.alone[found.used].sum())
        return bits / plain if plain > 0 else 1.0


def model_of(
    search: SoftSearch,
    image_size: tuple[int, int],
    largest: tuple[int, int] | None = None,
    most: int | None = None,
    uses: NDArray[np.float64] | None = None,
) -> tuple[SoftModel, IntArray, float, IntArray]:
    """The parts of a search, rows of page, part and corner; the bits of copies, and their pieces.

    No part is larger than the images and than `largest`; only the `most` used ones are kept.
    If `uses` are given, the copies stand for so many.
    """
    parts, pieces, (cost, bits) = search.parts, search.pieces, search.channel()
    shared = np.flatnonzero(parts.n > 1)
    copied = parts.n if uses is None else np.maximum(np.rint(uses), 1).astype(np.int64)
    placed = parts.n + np.bincount(search.covers[:, 1], minlength=len(parts.n))
    by_use = np.argsort(-(placed if uses is None else uses)[shared], kind="stable")
    shared = shared[by_use][:most]
    boxes = np.array(
        [smallest_box(2 * parts.counts(k) >= parts.n[k]) for k in shared.tolist()], np.int64
    ).reshape(-1, 4)
    # One pixel around the majority holds nearly all that is ever on.
    cut = [
        _cut(parts.counts(k), box, np.minimum(image_size, largest or image_size).tolist())
        for k, box in zip(shared.tolist(), boxes, strict=True)
    ]
    scaled = [
        np.rint(own.ravel() * share).astype(np.int32)
        for (own, _), share in zip(cut, (copied / np.maximum(parts.n, 1))[shared], strict=True)
    ]
    number = np.full(len(parts.n), -1)
    number[shared] = np.arange(len(shared))
    copies = np.flatnonzero(search.shared)
    copies = copies[number[search.assigned[copies]] >= 0]
    k = search.assigned[copies]
    first = np.bincount(k, search.alone[copies], len(parts.n)) / np.maximum(parts.n, 1)
    lost = search.covers[number[search.covers[:, 1]] < 0, 0]
    covers = search.covers[~np.isin(search.covers[:, 0], lost)]
    offset = np.array([corner for _, corner in cut], np.int64).reshape(-1, 2)
    levels = parts.level[shared]
    levels[:, 0] -= levels[:, 1] * (parts.reference - parts.box[:, ::2])[shared, 0]
    levels[:, 0] += levels[:, 1] * offset[:, 0]
    model = SoftModel(
        counts=np.concatenate([np.zeros(0, np.int32), *scaled]),
        sizes=np.array([own.shape for own, _ in cut], np.int64).reshape(-1, 2),
        copies=copied[shared],
        alone=first[shared],
        total=search.total,
        levels=levels,
        chance=chances(cost),
        chance_alone=chances(search.cost_alone),
        image_size=image_size,
    )
    corner = (
        pieces.reference[copies] - parts.reference[k] - search.shift[copies] + parts.box[k][:, ::2]
    )
    which = np.concatenate([copies, covers[:, 0]])
    part = number[np.concatenate([k, covers[:, 1]])]
    corner = np.concatenate([corner, covers[:, 2:]]) + offset[part]
    corner += np.stack([pieces.top, pieces.left], axis=1)[which]
    rows = np.concatenate([np.stack([pieces.page[which], part], axis=1), corner], axis=1)
    which = np.unique(which)
    # The first copy of a part is the part itself.
    once = np.bincount(k, bits[copies], len(parts.n)) / np.maximum(parts.n, 1)
    return model, rows, float(search.costs(bits)[which].sum() - once.sum()), which


def _cut(
    counts: NDArray[np.int32], box: IntArray, most: list[int]
) -> tuple[NDArray[np.int32], tuple[int, int]]:
    """Counts with a margin of a pixel around a box, unless that is too large; where they begin."""
    sides = []
    for low, high, n in zip(box[::2].tolist(), box[1::2].tolist(), most, strict=True):
        margin = int(high - low + 2 <= n)
        low = max(low - margin, 0)
        sides.append(slice(low, min(high + margin, low + n)))
    return counts[sides[0], sides[1]], (sides[0].start, sides[1].start)


def _checked(**attributes: Any) -> SoftModel:
    model = SoftModel(**attributes)
    F = len(model.sizes)
    if (
        not (len(model.copies) == len(model.alone) == len(model.levels) == F)
        or (model.sizes < 1).any()
    ):
        raise ValueError("its parts have no sizes")
    if (model.levels[:, 1] < 0).any():
        raise ValueError("its copies stand in no lines")
    if (model.sizes > model.image_size).any():
        raise ValueError("its parts are larger than its images")
    if F * math.prod(model.window) > LARGEST + LARGER * len(model.counts):
        raise ValueError("its parts are too many for their sizes")
    size = model.sizes.prod(axis=1)
    if (size > len(model.counts)).any() or int(size.sum()) != len(model.counts):
        raise ValueError("its counts are not those of its parts")
    each = np.repeat(model.copies, size)
    if (model.copies < 1).any() or (model.counts > each).any():
        raise ValueError("its counts exceed its copies")
    return model


SOFT_MODEL = kinds.object_of(
    _checked,
    counts=kinds.array(np.int32, (None,), 0),
    sizes=kinds.array(np.int64, (None, 2), 1, kinds.LARGEST_SIDE),
    copies=kinds.array(np.int64, (None,), 1, kinds.LARGEST_COUNT),
    alone=kinds.array(np.float64, (None,), 0, 1e12),
    total=kinds.number(1, kinds.LARGEST_COUNT),
    levels=kinds.array(np.int64, (None, 2), -kinds.LARGEST_COUNT, kinds.LARGEST_COUNT),
    chance=kinds.array(np.float32, coding.TABLE[::2], 0, 1),
    chance_alone=kinds.array(np.float32, (1 << len(coding.TEMPLATE),), 0, 1),
    image_size=kinds.size(),
)
# A model with parts that repeat exactly, or with soft ones.
ANY_MODEL = kinds.Kind(
    lambda model: (SOFT_MODEL if isinstance(model, SoftModel) else PARTS_MODEL).write(model),
    lambda node, now: (SOFT_MODEL if "copies" in node else PARTS_MODEL).read(node),
)
