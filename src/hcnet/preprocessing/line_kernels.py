"""The loops over straight lines: which of them are bright from side to side."""

from __future__ import annotations

from typing import Any

import numba as nb

from hcnet.engine.threads import over_threads

# Steps per pixel in which the ends of lines are tried.  With whole pixels, lines one pixel wide
# are lost between two of those that are tried; with thirds it takes twice as long as with halves.
STEPS = 2

_kernel: Any = nb.njit(nogil=True, cache=True)


@over_threads
@_kernel
def mark_lines(
    first: Any, last: Any, bright: Any, share: Any, shortest: Any, marked: Any
) -> None:
    """Mark the pixels of all lines that run through the columns of an image and are bright.

    Of slopes up to one pixel per column; ``bright`` and ``marked`` are (images, height, width).  A
    line has one pixel in each column that it meets, at least ``shortest`` of them, and at least a
    ``share`` of them is bright.
    """
    height, width = bright.shape[1:]
    across = max(width - 1, 1)
    top, bottom, steepest = 0, STEPS * (height - 1), STEPS * across
    most_dark = width - share * width
    for n in range(first, last):
        for start in range(top - steepest, bottom + steepest + 1):
            for rise in range(-steepest, steepest + 1):
                end = start + rise
                if max(start, end) < top or min(start, end) > bottom:
                    continue
                length = dark = 0
                for x in range(width):
                    y = _row(start, rise, x, across)
                    if 0 <= y < height:
                        length += 1
                        if not bright[n, y, x]:
                            dark += 1
                            if dark > most_dark:
                                break
                if length < shortest or length - dark < share * length:
                    continue
                for x in range(width):
                    y = _row(start, rise, x, across)
                    if 0 <= y < height:
                        marked[n, y, x] = True


@_kernel
def _row(start: Any, rise: Any, x: Any, across: Any) -> Any:
    """The nearest row, halves upwards, of a line at column x of ``across``; exact."""
    whole = STEPS * across
    return (2 * (start * across + rise * x) + whole) // (2 * whole)
