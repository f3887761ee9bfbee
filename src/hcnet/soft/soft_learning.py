"""Learning soft parts from pages, as the driver runs it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hcnet import objective
from hcnet.engine.driver import (
    Keeper,
    Limits,
    Measurement,
    Record,
    Status,
    bounded,
    interruptible,
    run,
)
from hcnet.images import BoolArray, Images
from hcnet.progress import Progress
from hcnet.soft import coding
from hcnet.soft.denoising import without_noise
from hcnet.soft.lines import in_lines
from hcnet.soft.pieces import find_pieces, joined, largest_copy, many_pieces
from hcnet.soft.sizes import largest_of
from hcnet.soft.soft_model import SoftExplanation, SoftModel, model_of
from hcnet.soft.soft_search import SoftSearch
from hcnet.soft.windows import LENGTHS, WindowSearch, ink_of, window_search

# Repetition is approximate if fewer copies are equal, and if soft parts need less than this share
# of the bits.
MOST_EQUAL, CHEAPER = 0.3, 0.9
# Pixels of the images × pixels of the largest part, or of a window that holds any letter, beyond
# which parts are soft in any case: the search for exact ones would take many minutes, or hours.
EXACT_WORK, LETTER = 2**29, 2**10
OF_EXACT_PARTS = "p_S", "p_W", "p01", "p10", "n_init", "max_iter"


@dataclass
class SoftLearned:
    """What learning returns."""

    model: SoftModel
    explanation: SoftExplanation
    ratio: float
    status: Status
    n_iter: int
    seconds: float
    history: list[Record]
    soft: bool | None  # whether parts should be soft; None: too little repeats to say

    @property
    def repeated(self) -> tuple[int, int] | None:
        """Height and width of the largest part, if most of the ink repeats."""
        if self.soft is None or not len(self.model.sizes):
            return None
        return largest_of(list(self.model.features[:, 0]))


def may_be_soft(estimator: Any, images: Images) -> bool:
    """Whether an estimator asks for soft parts, or leaves the algorithm open where they may be."""
    algorithm, channels = estimator.algorithm, images.n_channels
    if algorithm == "soft" and channels > 1:
        raise ValueError(
            f"algorithm='soft' learns from images with one channel, and X has {channels}; use "
            f"algorithm='refined'."
        )
    given = [name for name in OF_EXACT_PARTS if getattr(estimator, name) is not None]
    given += ["border"] * (estimator.border != "full")
    if algorithm == "soft" and given:
        raise ValueError(
            f"{given[0]} is for parts that repeat exactly; leave it out, or use "
            f"algorithm='refined' instead of 'soft'."
        )
    if algorithm != "auto":
        return bool(algorithm == "soft")
    if given or estimator.feature_size is not None or channels > 1:
        return False
    pages = without_noise(images)[0]
    return many_pieces(pages) or too_much(images, largest_copy(pages))


def too_much(images: Images, part: tuple[int, int]) -> bool:
    """Whether a search for exact parts of such a height and width would take too long."""
    return images.n_observed * max(part[0] * part[1], LETTER) > EXACT_WORK


def learn_soft(
    images: Images,
    largest: tuple[int, int] | None,
    max_features: int | None,
    max_seconds: float | None,
    rng: np.random.Generator,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
) -> SoftLearned:
    """Learn soft parts from pages; `largest` is the height and width of the largest part."""
    progress = progress or Progress()
    began = time.perf_counter()
    deadline = None if max_seconds is None else began + max_seconds
    pages, noise = without_noise(images)
    with bounded(deadline) as setting_up:
        found = [in_lines(find_pieces(page, n, largest)) for n, page in enumerate(pages)]
    if setting_up.status is not None:  # parts of nothing
        found = [find_pieces(np.zeros_like(page), n) for n, page in enumerate(pages)]
    seed = int(rng.integers(2**32))
    search = SoftSearch(pages, joined(found), seed)

    def now(status: Status) -> SoftLearned:
        return finished(search, images, (pages, noise), largest, max_features, status)

    def report(iteration: int, measurement: Measurement, seconds: float) -> None:
        progress.step(measurement, lambda: now(Status.RUNNING), search.expected_steps)

    progress.stage("Soft parts", search.expected_steps)
    left = None if max_seconds is None else max(max_seconds - (time.perf_counter() - began), 1e-3)
    with closing(progress), interruptible():
        if setting_up.status is not None:
            return replace(now(setting_up.status), seconds=time.perf_counter() - began)
        outcome = run(search, Limits(max_seconds=left), report, keeper)
        learned = now(outcome.status)
        learned.n_iter, learned.history = outcome.n_iter, list(outcome.history)
        first, soft = search, learned.soft
        for length in LENGTHS if soft is not False else ():
            if learned.status.cut_short:
                break
            cut = window_search(pages, first, length, largest, seed)
            if cut is None:
                break
            search = cut
            progress.stage("Parts on lines", search.expected_steps)
            if max_seconds is not None:
                left = max(max_seconds - (time.perf_counter() - began), 1e-3)
            outcome = run(search, Limits(max_seconds=left), report, keeper)
            other = now(outcome.status)
            better = other.ratio < learned.ratio
            if better:
                other.n_iter, other.history = learned.n_iter, learned.history
                learned, learned.soft = other, other.soft if soft is None else soft
            learned.status = outcome.status
            if not better and length == LENGTHS[0]:
                break
    learned.seconds = time.perf_counter() - began
    return learned


def finished(
    search: SoftSearch,
    images: Images,
    clean: tuple[list[BoolArray], float],
    largest: tuple[int, int] | None,
    max_features: int | None,
    status: Status,
) -> SoftLearned:
    """The parts of a search, their places, and the bits of the pages with them."""
    model, rows, bits, which = model_of(search, images.size, largest, max_features)
    pages, noise = clean
    bits += noise
    for number, page in enumerate(pages):
        left = page & ~ink_of(search.pieces, which, page, number)
        if isinstance(search, WindowSearch):
            left |= search.lines[number]
        bits += coding.page_bits(left.view(np.uint8), model.cost_alone)
    found = SoftExplanation(model.windows(rows, images.size), bits)
    ratio = model.compression_ratio(images, found)
    flips = [c ^ p for c, p in zip(pages, images.pixels[:, 0] & images.observed[:, 0], strict=True)]
    soft = approximate(search, flips)
    if len(model.sizes) and too_much(images, largest_of(list(model.features[:, 0]))):
        soft = True
    return SoftLearned(model, found, ratio, status, 0, 0.0, [], soft)


def approximate(search: SoftSearch, flips: list[BoolArray]) -> bool | None:
    """Whether the copies of parts differ by more than flips; None if they hold little of the ink.

    Copies that are equal pixel by pixel repeat exactly.  The bits of others are compared with their
    bits under one flip rate everywhere.  `flips` are those that were taken back before.
    """
    pieces, shared, area = search.pieces, search.shared, search.pieces.area
    if not shared.any() or 2 * area[shared].sum() < area.sum():
        return None
    ink, noise = pieces.ink.copy(), 0
    for i in np.flatnonzero(shared).tolist():
        (y, x), (h, w) = (pieces.top[i], pieces.left[i]), pieces.bitmap(i).shape
        own = flips[pieces.page[i]][y : y + h, x : x + w]
        ink[pieces.start[i] :][: own.size] ^= own.ravel()
        noise += int(own.sum())
    given = (ink, *pieces.arrays()[1:]), search.parts.arrays(), search.assigned, search.shift
    different = coding.differences(*given)[shared]
    size = int((pieces.height * pieces.width)[shared].sum())
    uniform = objective.entropy_bits(int(different.sum()), size)
    soft = search.bits[shared].sum() + objective.entropy_bits(noise, size)
    return bool((different == 0).mean() < MOST_EQUAL and soft < CHEAPER * uniform)
