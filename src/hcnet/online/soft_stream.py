"""Soft parts from a stream: each page with the parts of the pages before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Node, restore
from hcnet.engine.driver import Measurement, look
from hcnet.online.stream import Beliefs, Minibatch, Stream
from hcnet.soft import coding
from hcnet.soft.denoising import without_noise
from hcnet.soft.lines import in_lines
from hcnet.soft.parts import canvas_of
from hcnet.soft.pieces import NO_GAPS, NO_LINES, IntArray, Pieces, find_pieces, joined, selected
from hcnet.soft.soft_model import SOFT_MODEL, SoftModel, model_of
from hcnet.soft.soft_search import Known, SoftSearch

# Copies of a part that are kept, drawn at random; and pixels of the canvases of all that is kept.
COPIES = 24
ROOM = 2**23
# A part, or a piece without one, with fewer uses than this (older ones weigh less) is dropped.
LEAST_USE = 0.5


class SoftOptions(NamedTuple):
    """Height and width of the largest part, and the largest number of parts."""

    largest: tuple[int, int] | None
    most: int | None


class SoftStream(Stream):
    """A stream that soft parts are learned from.

    Some copies of each part stand for all of them, in the search on the next pages.  Pieces that
    are no copies yet are kept as well: a letter may come once on each of two pages.
    """

    def __init__(self, options: SoftOptions, forgetting: float, rng: np.random.Generator) -> None:
        super().__init__(Beliefs([], forgetting), options, rng)
        self.known: Known | None = None
        self.uses = np.zeros(0)  # that each piece of `known` stands for
        self.counts = np.zeros((1 << len(coding.TEMPLATE), 2))  # of pixels without a part
        self.total = 0.0
        self.image_size = 1, 1
        self.found: SoftModel | None = None

    def memory(self, batch: Minibatch) -> int:
        """Bytes that a minibatch takes at its peak, about."""
        return 16 * batch.images.pixels.size + 8 * ROOM

    def learn(self, batch: Minibatch) -> Measurement:
        """Find the parts of the pages of a minibatch, old ones and new ones."""
        images, keep = batch.images, self.beliefs.forgetting
        largest, most = self.options
        if images.n_channels > 1:
            raise ValueError(
                f"X has {images.n_channels} channels, but the stream so far had 1; pass images "
                f"with 1."
            )
        pages, _ = without_noise(images)
        groups = []
        for number, page in enumerate(pages):
            groups.append(in_lines(find_pieces(page, number, largest)))
            look()
        counts = keep * self.counts
        seed = int(self.rng.integers(2**32))
        search = SoftSearch(pages, joined(groups), seed, self.known, counts)
        while search.step():
            look()
        before = len(self.uses)
        uses = np.ones(len(search.pieces))
        uses[:before] = keep * self.uses
        inside = search.covers[search.covers[:, 0] >= before, 1]
        of_part = np.asarray(np.bincount(search.assigned, uses, len(uses)), np.float64)
        of_part += np.bincount(inside, minlength=len(uses))
        value = -float(search.costs()[before:].sum()) * math.log(2)
        # From here on the minibatch counts.
        self.counts, self.total = counts, keep * self.total + search.total
        height, width = np.maximum(self.image_size, images.size).tolist()
        self.image_size = height, width
        model, *_ = model_of(search, self.image_size, largest, most, of_part)
        self.found = replace(model, total=self.total)
        self._keep(search, of_part)
        return self._counted(batch, value, 0, 0.0)

    def _keep(self, search: SoftSearch, uses: NDArray[np.float64]) -> None:
        """Keep some copies of each part, those of the most used parts first."""
        part, N = search.assigned, len(search.pieces)
        order = self.rng.permutation(N)
        order = order[np.argsort(part[order], kind="stable")]
        rank = np.arange(N) - np.searchsorted(part[order], part[order])
        wanted = (rank < COPIES) & (uses[part[order]] >= LEAST_USE)
        which = order[wanted & ~np.isin(order, search.covers[:, 0])]
        which = which[np.argsort(-uses[part[which]], kind="stable")]
        fits = np.cumsum(canvas_of(_sides(search.pieces)[which]).prod(axis=1)) <= ROOM
        which = np.sort(which[fits])
        # The canvas of a part is that of its first copy.
        _, first, inverse, n = np.unique(part[which], True, True, True)
        self.known = Known(
            # They lie on no page, and beside no other piece.
            replace(
                selected(search.pieces, which),
                page=-1 - np.arange(len(which)),
                line=NO_LINES,
                gap=NO_GAPS,
            ),
            first[inverse],
            search.shift[which],
            search.cost,
        )
        self.uses = uses[part[which]] / n[inverse]

    def model(self) -> SoftModel:
        """The parts found so far, the most used first."""
        assert self.found is not None
        return self.found

    def saved_fields(self, finished: bool) -> Fields:
        """Also the parts, what is kept of their copies, and the counts."""
        bounds = 0, kinds.LARGEST_COUNT
        return {
            **super().saved_fields(finished),
            "known": kinds.converted(_KNOWN, _KnownInFile, lambda known: known),
            "uses": kinds.array(np.float64, (None,), *bounds),
            "counts": kinds.array(np.float64, self.counts.shape, *bounds),
            "total": kinds.number(*bounds),
            "image_size": kinds.size(),
            "found": SOFT_MODEL,
        }

    @classmethod
    def read(cls, file: Node, options: SoftOptions) -> SoftStream:
        """The stream of a file."""
        stream = cls(options, 0.0, np.random.default_rng(0))
        restore(stream, file)
        return stream

    def after_restore(self, finished: bool) -> None:
        """Check that all belongs together."""
        assert self.known is not None
        assert self.found is not None
        if len(self.uses) != len(self.known.pieces):
            raise ValueError("its uses are not those of its pieces")
        if (self.found.sizes > self.image_size).any():
            raise ValueError("its parts are larger than its images")


class _KnownInFile:
    """Known parts as a file holds them."""

    def __init__(self, known: Known) -> None:
        self.sizes, self.ink = _sides(known.pieces), known.pieces.ink
        self.assigned, self.shift, self.cost = known.assigned, known.shift, known.cost


def _sides(pieces: Pieces) -> IntArray:
    return np.stack([pieces.height, pieces.width], axis=1)


def _known(sizes: IntArray, ink: NDArray[np.uint8], **rest: Any) -> Known:
    n, size = len(sizes), sizes.prod(axis=1)
    if (size > ink.size).any() or int(size.sum()) != ink.size:
        raise ValueError("its pieces do not have their sizes")
    if int(canvas_of(sizes).prod(axis=1).sum()) > ROOM:
        raise ValueError("its pieces are too many")
    part, shift = rest["assigned"], rest["shift"]
    if len(part) != n or len(shift) != n or (part >= n).any() or (part[part] != part).any():
        raise ValueError("its copies are of unknown parts")
    if n and (np.abs(shift) > canvas_of(sizes).max()).any():
        raise ValueError("its copies lie outside their parts")
    none, start = np.zeros(n, np.int64), np.cumsum(size) - size
    height, width = sizes[:, 0].copy(), sizes[:, 1].copy()
    return Known(Pieces(-1 - np.arange(n), none, none, height, width, start, ink), **rest)


_KNOWN = kinds.object_of(
    _known,
    sizes=kinds.array(np.int64, (None, 2), 1, kinds.LARGEST_SIDE),
    ink=kinds.binary_array((None,), np.uint8),
    assigned=kinds.array(np.int64, (None,), 0),
    shift=kinds.array(np.int64, (None, 2), -kinds.LARGEST_SIDE, kinds.LARGEST_SIDE),
    cost=kinds.array(np.float32, coding.TABLE, 0, 1000),
)
