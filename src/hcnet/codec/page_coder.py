"""One page as bytes: places of parts first, then all pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.codec import arithmetic, lines
from hcnet.codec.contexts import MARGIN, N_SLOTS, contexts_of
from hcnet.codec.copies import Copies, Shapes, compared, new_expected
from hcnet.codec.mixing import BINS, SHARE, new_mixture, new_scratch
from hcnet.codec.pixels import code_rows, events_of, new_progress, new_quiet
from hcnet.codec.places import IntArray, Places, fitting
from hcnet.codec.symbols import Stream
from hcnet.codec.tables import MIXTURE, tables
from hcnet.engine.driver import look
from hcnet.images import BoolArray
from hcnet.memory import check_memory

# Pixels that are coded between two looks at the clock.
CHUNK = 1 << 16
# Bytes that a copy of a part takes beside what others have missed of it: its first events; for each
# of its rows, the two events and the copies that sorting makes of them.
PER_COPY, PER_ROW = 400, 240


class State:
    """What the pages of one document share: statistics, and the copies of parts so far.

    `version` is that of the format.
    """

    def __init__(self, version: int) -> None:
        evidence = tables().probability[
            np.clip(128 * np.arange(BINS) - 2048, -2047, 2047) + MIXTURE
        ]
        self.version = version
        self.mixture = new_mixture(version, N_SLOTS, evidence.astype(np.int64) << (SHARE - 16))
        self.quiet = new_quiet()
        self.places = Places(version)
        self.part = np.zeros(0, np.int64)  # of every copy
        self.ink = np.zeros(0, np.uint8)  # of all copies
        self.on = np.zeros(0, np.int32)  # of all pixels of parts
        self.seen = np.zeros(0, np.int32)


def encode_page(
    page: BoolArray, placements: IntArray, sizes: IntArray, state: State, fast: bool = False
) -> bytes:
    """A page as bytes, given the parts on it: rows of part, top and left, and sizes of parts."""
    stream = Stream(arithmetic.encoder(), np.zeros(1 << 16, np.uint8), False, page.size)
    stream.number(int(fast), 2)
    placements = fitting(placements, sizes, page.shape, len(state.places.sizes))
    rows = state.places.code(stream, page.shape, lines.lines_of(placements, sizes), sizes)
    canvas = np.zeros((page.shape[0] + 2 * MARGIN, page.shape[1] + 2 * MARGIN), np.uint8)
    canvas[MARGIN:-MARGIN, MARGIN:-MARGIN] = page
    _code_pixels(stream, canvas, rows, state, fast)
    return arithmetic.finish(stream.coder, stream.data)


def decode_page(data: bytes, shape: tuple[int, int], state: State) -> BoolArray:
    """The page of so many rows and columns that bytes stand for."""
    array = np.frombuffer(data, np.uint8).copy()  # compiled code takes writable arrays
    stream = Stream(arithmetic.decoder(array), array, True, shape[0] * shape[1])
    none = np.zeros((0, 2), np.int64)
    fast = bool(stream.number(0, 2))
    rows = state.places.code(stream, shape, [], none)
    canvas = np.zeros((shape[0] + 2 * MARGIN, shape[1] + 2 * MARGIN), np.uint8)
    _code_pixels(stream, canvas, rows, state, fast)
    return canvas[MARGIN:-MARGIN, MARGIN:-MARGIN].astype(bool)


def _code_pixels(
    stream: Stream, canvas: NDArray[np.uint8], rows: IntArray, state: State, fast: bool
) -> None:
    height = canvas.shape[0] - 2 * MARGIN
    base, n = len(state.part), len(rows)
    sizes = np.array(state.places.sizes, np.int64).reshape(-1, 2)
    area = sizes.prod(axis=1)
    if area.sum() >= 1 << 31:  # pixels of parts have numbers of 32 bits
        raise ValueError("its parts have too many pixels")
    n_rows = int(sizes[rows[:, 0], 0].sum())
    n_compared = compared(state.version, stream.n_pixels, n)
    needed = (
        (4 * n_compared + PER_COPY) * n
        + PER_ROW * n_rows
        + int(9 * area.sum() + area[rows[:, 0]].sum())
    )
    check_memory("The copies of parts on a page", needed, None, "use a larger machine")
    state.part = np.concatenate([state.part, rows[:, 0]])
    part = state.part
    own = area[part]
    start = np.cumsum(own) - own
    state.ink = _grown(state.ink, int(own.sum()))
    state.on, state.seen = _grown(state.on, int(area.sum())), _grown(state.seen, int(area.sum()))
    members = np.argsort(part, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=len(sizes)))])
    rank = np.empty(len(part), np.int64)
    rank[members] = np.arange(len(part)) - first[part[members]]
    known = np.where(np.arange(len(part)) < base, sizes[part, 0], 0)
    top, left = (np.concatenate([np.zeros(base, np.int64), rows[:, c] + MARGIN]) for c in (1, 2))
    copies = Copies(
        part,
        top,
        left,
        start,
        known,
        state.ink,
        rank,
        np.zeros((n, n_compared), np.int32),
        np.zeros(n, np.int64),
    )
    shapes = Shapes(
        sizes[:, 0].copy(),
        sizes[:, 1].copy(),
        np.cumsum(area) - area,
        state.on,
        state.seen,
        first,
        members,
    )
    of_page = sizes[rows[:, 0]]
    events = events_of(top[base:], left[base:], of_page[:, 0], of_page[:, 1], height)
    width = canvas.shape[1]
    progress, expected, scratch = (
        new_progress(width),
        new_expected(width),
        new_scratch(state.version),
    )
    sums = np.zeros(int(sizes[:, 1].max(initial=1)), np.int32)
    n_slots = contexts_of(state.version)[len(events) > 0]
    step = max(CHUNK // width, 1)
    for begin in range(0, height, step):
        look()
        end = min(begin + step, height)
        stream.room((end - begin) * (width + 1))
        code_rows(
            state.version,
            n_slots,
            begin,
            end,
            canvas,
            stream.decode,
            fast,
            stream.coder,
            stream.data,
            state.mixture,
            state.quiet,
            tables(),
            scratch,
            progress,
            events,
            copies,
            shapes,
            expected,
            base,
            sums,
        )


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array with zeros at its end."""
    return np.concatenate([array, np.zeros(size - len(array), array.dtype)])
