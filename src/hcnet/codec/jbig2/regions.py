"""Bitmaps in JBIG2: generic regions (T.88, 6.2) and refinements of a reference (6.3), compiled.

A pixel's context is a number whose bits are pixels around it, on a board with empty pixels around:
`offsets` says where each lies from the pixel, in the flattened board.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.codec.jbig2.arithmetic import code, finished, new_coder
from hcnet.engine.cpu_compilation import called, entry
from hcnet.images import BoolArray

# Empty pixels around a bitmap on its board: a context reaches so far.
MARGIN = 4
# The pixels (row, column) of each generic template, the lowest bit first; the adaptive pixels are
# where the standard puts them unless told otherwise.
GENERIC: tuple[tuple[tuple[int, int], ...], ...] = (
    (
        *((0, -1), (0, -2), (0, -3), (0, -4), (-1, 3), (-1, 2), (-1, 1), (-1, 0)),
        *((-1, -1), (-1, -2), (-1, -3), (-2, 2), (-2, 1), (-2, 0), (-2, -1), (-2, -2)),
    ),
    (
        *((0, -1), (0, -2), (0, -3), (-1, 3), (-1, 2), (-1, 1), (-1, 0), (-1, -1), (-1, -2)),
        *((-2, 2), (-2, 1), (-2, 0), (-2, -1)),
    ),
    (
        *((0, -1), (0, -2), (-1, 2), (-1, 1), (-1, 0), (-1, -1), (-1, -2)),
        *((-2, 1), (-2, 0), (-2, -1)),
    ),
    (
        *((0, -1), (0, -2), (0, -3), (0, -4)),
        *((-1, 2), (-1, 1), (-1, 0), (-1, -1), (-1, -2), (-1, -3)),
    ),
)
# The same adaptive pixels as (column, row), in signed bytes, as a segment has them.
ADAPTIVE = (b"\x03\xff\xfd\xff\x02\xfe\xfe\xfe", b"\x03\xff", b"\x02\xff", b"\x02\xff")
# The context in which a generic region says that a row is equal to the one above.
SAME_ROW = (0x9B25, 0x0795, 0x00E5, 0x0195)
# The same for refinements: pixels of the bitmap itself, and of the reference.  The last of the
# first template's is adaptive.  Two rows above it tells more than the standard's corner (-1, -1),
# which nearly follows from the pixels around it: 0.8 % fewer bytes of instances.
OWN = (((0, -1), (-1, 1), (-1, 0), (-1, -1)),) * 2
REFERENCE = (
    ((1, 1), (1, 0), (1, -1), (0, 1), (0, 0), (0, -1), (-1, 1), (-1, 0), (-2, 0)),
    ((1, 1), (1, 0), (0, 1), (0, 0), (0, -1), (-1, 0)),
)
REFINED_ADAPTIVE = (b"\xff\xff\x00\xfe", b"")


def as_array(pixels: tuple[tuple[int, int], ...]) -> NDArray[np.int64]:
    """The pixels of a context as compiled loops take them."""
    return np.array(pixels, np.int64)


def generic_contexts(template: int) -> NDArray[np.uint8]:
    """New contexts of a generic template."""
    return np.zeros(1 << len(GENERIC[template]), np.uint8)


def refinement_contexts(template: int) -> NDArray[np.uint8]:
    """New contexts of a refinement template."""
    return np.zeros(1 << len(OWN[template] + REFERENCE[template]), np.uint8)


def generic_region(page: BoolArray, template: int, typical: bool) -> bytes:
    """The coded pixels of a page; `typical`: rows say first if they are equal to the one above."""
    board = np.pad(page, MARGIN).view(np.uint8)
    coder = new_coder(page.size + page.shape[0])
    contexts, pixels = generic_contexts(template), as_array(GENERIC[template])
    _code_page(coder, contexts, board, pixels, SAME_ROW[template] if typical else -1)
    return finished(coder)


@called
def offsets_of(pixels, stride):
    """Where the pixels of a context lie on a flattened board."""
    offsets = np.zeros(pixels.shape[0], np.int64)
    for j in range(pixels.shape[0]):
        offsets[j] = pixels[j, 0] * stride + pixels[j, 1]
    return offsets


@called
def context_of(board, q, offsets):
    """The context of a pixel."""
    context = np.int64(0)
    for j in range(offsets.size):
        context |= np.int64(board[q + offsets[j]]) << j
    return context


@called
def code_row(coder, contexts, board, first, width, offsets):
    """Code the pixels of a row of a generic region."""
    for q in range(first, first + width):
        code(coder, contexts, context_of(board, q, offsets), board[q])


@entry
def _code_page(coder, contexts, page, pixels, same_row):
    height, stride = page.shape[0] - 2 * MARGIN, page.shape[1]
    width = stride - 2 * MARGIN
    board, offsets = page.ravel(), offsets_of(pixels, stride)
    before = False
    for y in range(MARGIN, MARGIN + height):
        first = y * stride + MARGIN
        same = same_row >= 0
        for q in range(first, first + width):
            if not same:
                break
            same = board[q] == board[q - stride]
        if same_row >= 0:
            code(coder, contexts, same_row, np.int64(same != before))
        before = same
        if not same:
            code_row(coder, contexts, board, first, width, offsets)


@called
def draw(bitmaps, k, board, height, width, top, left):
    """Draw a bitmap with its corner at a point of a board that is empty elsewhere."""
    ink, start, tall, wide = bitmaps
    stride = width + 2 * MARGIN
    for q in range((height + 2 * MARGIN) * stride):
        board[q] = 0
    top, left = top + MARGIN, left + MARGIN
    for y in range(max(0, -top), min(tall[k], height + 2 * MARGIN - top)):
        for x in range(max(0, -left), min(wide[k], stride - left)):
            board[(y + top) * stride + x + left] = ink[start[k] + y * wide[k] + x]


@called
def code_bitmap(coder, contexts, board, height, width, pixels):
    """Code a bitmap that was drawn on a board."""
    stride = width + 2 * MARGIN
    offsets = offsets_of(pixels, stride)
    for y in range(MARGIN, MARGIN + height):
        code_row(coder, contexts, board, y * stride + MARGIN, width, offsets)


@called
def code_refined(coder, contexts, board, reference, height, width, own, others):
    """Code a bitmap given a reference, both drawn on boards of the bitmap's size."""
    stride = width + 2 * MARGIN
    near, far = offsets_of(own, stride), offsets_of(others, stride)
    for y in range(MARGIN, MARGIN + height):
        first = y * stride + MARGIN
        for q in range(first, first + width):
            context = context_of(board, q, near) | (context_of(reference, q, far) << near.size)
            code(coder, contexts, context, board[q])
