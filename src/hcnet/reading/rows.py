"""Rows of characters from their boxes: the skew of the page, its columns, and its lines.

Lengths are measured in heights of letters, so that resolution and size of print do not matter.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
# Rows of top, left, bottom, right.
Boxes: TypeAlias = NDArray[np.int64]

# Slopes that a page may have, about two degrees.
MOST_SLOPE, SLOPES = 0.035, 141
# Of slopes that fit nearly as well, the smallest is taken: a few letters fit many.
NEARLY = 0.98
# In heights of letters: the narrowest gutter between columns, the least width and height of a
# column (a table has narrower ones, and is read line by line).
GUTTER, COLUMN_WIDTH, COLUMN_HEIGHT = 1.5, 12.0, 10.0
# Boxes below this share of the height of letters are dots, commas, dashes and accents.
SMALL = 0.55
# Boxes above this multiple of it are initials or letters of headlines.
TALL = 2.2
# Share of the lower of two heights that is common to boxes of the same line.
SAME_LINE = 0.5
FEW = 5  # times fewer characters
# Distance, in heights of letters, of an accent or dot from its letter.
ACCENT = 0.5


def straightened(boxes: Floats) -> Floats:
    """The boxes turned so that lines are level, by the slope at which most baselines agree."""
    height = float(np.median(boxes[:, 2] - boxes[:, 0]))
    y, x = (boxes[:, :2] + boxes[:, 2:]).T / 2
    slopes = np.linspace(-MOST_SLOPE, MOST_SLOPE, SLOPES)
    bins = np.rint((boxes[:, 2] - slopes[:, None] * x) / (height / 8)).astype(np.int64)
    bins -= bins.min()
    fit = np.array([(np.bincount(row) ** 2).sum() for row in bins])
    good = slopes[fit >= NEARLY * fit.max()]
    slope = good[np.abs(good).argmin()]
    level: Floats = boxes + np.stack([-slope * x, slope * y] * 2, axis=1)
    return level


def columns(boxes: Floats, members: NDArray[np.int64], letter: float) -> list[NDArray[np.int64]]:
    """Regions in reading order: a band that a gutter divides is read column by column."""
    if len(members) < 2:
        return [members]
    members = members[boxes[members, 0].argsort(kind="stable")]
    top, left, bottom, right = boxes[members].T
    # Strips of rows with ink, between blank rows.
    strips = np.cumsum(np.r_[0, top[1:] > np.maximum.accumulate(bottom)[:-1]])
    grid = letter / 4
    first = np.floor((left - left.min()) / grid).astype(int)
    last = np.ceil((right - left.min()) / grid).astype(int)
    inked = np.zeros((strips[-1] + 1, last.max()), bool)
    for strip, a, b in zip(strips, first, last, strict=True):
        inked[strip, a:b] = True
    regions: list[NDArray[np.int64]] = []
    flow: list[NDArray[np.int64]] = []  # strips of no column so far
    at = 0
    while at <= strips[-1]:
        end, gutter, union = at, None, inked[at].copy()
        for k in range(at, strips[-1] + 1):
            union |= inked[k]
            found = _gutter(union, GUTTER * letter / grid, COLUMN_WIDTH * letter / grid)
            if found is None and k > at:
                break
            if found is not None:
                end, gutter = k, found
        band = (strips >= at) & (strips <= end)
        sides = [band & (first < (gutter or 0)), band & (first >= (gutter or 0))]
        if gutter is not None and all(_is_column(boxes[members[s]], letter) for s in sides):
            regions += [np.concatenate(flow)] if flow else []
            flow = []
            for side in sides:
                regions += columns(boxes, members[side], letter)
        else:
            end = at
            flow.append(members[strips == at])
        at = end + 1
    return regions + ([np.concatenate(flow)] if flow else [])


def _gutter(inked: NDArray[np.bool_], least: float, side: float) -> int | None:
    """Middle of the widest blank run that is wide enough and has wide columns on both sides."""
    on = np.flatnonzero(inked)
    gaps = np.diff(on) - 1
    wide = (on[:-1] - on[0] >= side) & (on[-1] - on[1:] >= side)
    gaps = np.where(wide, gaps, 0)
    if not len(gaps) or gaps.max() < least:
        return None
    k = int(gaps.argmax())
    return int(on[k] + 1 + gaps[k] // 2)


def _is_column(boxes: Floats, letter: float) -> bool:
    if not len(boxes):
        return False
    (top, left), (bottom, right) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return bool(right - left >= COLUMN_WIDTH * letter and bottom - top >= COLUMN_HEIGHT * letter)


class _Row:
    """Characters of a line, and the rows between which its last letters lie."""

    def __init__(self, member: int, box: Floats) -> None:
        self.members = [member]
        self.top, self.bottom = float(box[0]), float(box[2])

    def overlap(self, top: float, bottom: float) -> float:
        """Common share of the lower of the two heights."""
        common = min(bottom, self.bottom) - max(top, self.top)
        return common / max(min(bottom - top, self.bottom - self.top), 1e-9)

    def add(self, member: int, box: Floats) -> None:
        self.members.append(member)
        if 0.5 < (box[2] - box[0]) / (self.bottom - self.top) < 2:  # an initial may be higher
            self.top += (box[0] - self.top) / 5
            self.bottom += (box[2] - self.bottom) / 5


def rows_of(boxes: Floats, region: NDArray[np.int64], letter: float) -> list[NDArray[np.int64]]:
    """The lines of a region, from the top: letters first, then dots, commas and accents."""
    region = region[boxes[region, 1].argsort(kind="stable")]
    heights = boxes[region, 2] - boxes[region, 0]
    letters, small = region[heights >= SMALL * letter], region[heights < SMALL * letter]
    tall = boxes[letters, 2] - boxes[letters, 0] > TALL * letter
    rows = _follow(boxes, letters[~tall], [])
    rows.sort(key=lambda row: row.top)  # an initial belongs to the first of its lines
    rows = _follow(boxes, letters[tall], rows)
    for row in rows:
        row.top, row.bottom = np.median(boxes[row.members][:, [0, 2]], axis=0)
    rows, marks = _without_marks(_merged(rows))
    small = np.concatenate([small, np.array(marks, np.int64)])
    letters = np.setdiff1d(letters, marks)
    of_letter = {member: row for row in rows for member in row.members}
    left_over: list[int] = []
    for member in small.tolist():
        owner = _row_of_mark(boxes, member, letters, rows, of_letter, letter)
        (left_over if owner is None else owner.members).append(member)
    rows += _follow(boxes, np.array(left_over, np.int64), [])  # a line of dots or dashes
    rows.sort(key=lambda row: row.bottom)
    return [np.array(row.members) for row in rows]


def _follow(boxes: Floats, members: NDArray[np.int64], rows: list[_Row]) -> list[_Row]:
    """Put boxes from left to right into the rows that they continue, or into new ones."""
    for member in members.tolist():
        box = boxes[member]
        shares = [row.overlap(box[0], box[2]) for row in rows]
        best = int(np.argmax(shares)) if rows else 0
        if rows and shares[best] > SAME_LINE:
            rows[best].add(member, box)
        else:
            rows.append(_Row(member, box))
    return rows


def _merged(rows: list[_Row]) -> list[_Row]:
    """Join rows that are the same line: quotation marks, raised numbers, a line begun twice.

    A few characters that reach into a line belong to it.
    """
    kept: list[_Row] = []
    for row in sorted(rows, key=lambda row: -len(row.members)):
        shares = [other.overlap(row.top, row.bottom) for other in kept]
        best = int(np.argmax(shares)) if kept else 0
        few = kept and len(row.members) <= max(3, len(kept[best].members) / FEW)
        if kept and shares[best] > (0 if few else SAME_LINE):
            kept[best].members += row.members
        else:
            kept.append(row)
    return kept


def _without_marks(rows: list[_Row]) -> tuple[list[_Row], list[int]]:
    """Rows without those that are dots and accents of a headline, and the members of these."""
    heights = np.array([row.bottom - row.top for row in rows])
    kept: list[_Row] = []
    marks: list[int] = []
    for row, height in zip(rows, heights, strict=True):
        near = [
            other.top - row.bottom < SMALL * size and row.top < other.bottom
            for other, size in zip(rows, heights, strict=True)
        ]
        if height < SMALL * max(heights[near]):
            marks += row.members
        else:
            kept.append(row)
    return kept, marks


def _row_of_mark(
    boxes: Floats,
    member: int,
    letters: NDArray[np.int64],
    rows: list[_Row],
    of_letter: dict[int, _Row],
    letter: float,
) -> _Row | None:
    """The line of a small box: that around it, that of the letter below it, or the next one."""
    if not rows:
        return None
    top, left, bottom, right = boxes[member]
    middle = (top + bottom) / 2
    sizes = [max(letter, row.bottom - row.top) for row in rows]
    distances = [
        max(row.top - middle, middle - row.bottom, 0.0) / size
        for row, size in zip(rows, sizes, strict=True)
    ]
    best = int(np.argmin(distances))
    if distances[best] > 0.15:  # not a comma or a dash
        at = boxes[letters]
        across = np.minimum(at[:, 3], right) - np.maximum(at[:, 1], left)
        gap = (at[:, 0] - bottom) / np.maximum(letter, at[:, 2] - at[:, 0])
        under = np.flatnonzero((across >= (right - left) / 2) & (np.abs(gap) <= ACCENT))
        if len(under):
            return of_letter[int(letters[under[gap[under].argmin()]])]
    return rows[best] if distances[best] <= 1 else None
