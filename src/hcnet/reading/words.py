"""Text of rows of characters: pieces that are one character, and the gaps between words."""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from hcnet.reading.rows import SMALL, Boxes, Floats, columns, rows_of, straightened

# Words are at least so much further apart than letters, in heights of letters.
WORD_GAP = 0.2
# Height of capitals among all heights, and how much higher those of a headline are.
HIGH, LARGER = 0.9, 1.3
WIDEST_GAP = 1.2  # wider gaps are those of tables and columns, and decide nothing
CLEARLY = 0.75  # gaps within words are below this share of the split

# Pieces one above the other (the lower one first) that are one character.
STACKS = {
    (".", "."): ":",
    (",", "."): ";",
    ("-", "-"): "=",
    ("–", "–"): "=",
    ("ı", "."): "i",
    ("i", "."): "i",
    ("ȷ", "."): "j",
    ("j", "."): "j",
    (".", "?"): "?",
    (".", "!"): "!",
    **{(".", stroke): "!" for stroke in ("i", "ı", "l", "I", "|", "'")},
    ("?", "."): "¿",
}
# Marks above a letter, and below it, as combining characters.
ABOVE = {"´": "\u0301", "'": "\u0301", "’": "\u0301", "`": "\u0300", "^": "\u0302", "¨": "\u0308",
         '"': "\u0308", "~": "\u0303", "˜": "\u0303", "°": "\u030a", "ˇ": "\u030c", "¯": "\u0304",
         ".": "\u0307", "˙": "\u0307"}  # fmt: skip
BELOW = {",": "\u0327", "¸": "\u0327", ".": "\u0323", "˛": "\u0328"}


def page_lines(boxes: Boxes, texts: NDArray[np.object_]) -> list[str]:
    """The lines of a page whose characters have these boxes and texts.

    A text of white space prints nothing, but its box is ink between its neighbours.
    """
    inked = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    if not inked.any():
        return []
    level, texts = straightened(boxes[inked].astype(np.float64)), texts[inked]
    letter = float(np.median(level[:, 2] - level[:, 0]))
    # Specks and dots that print nothing must not divide the gap between words.
    blank = np.array([not text.strip() for text in texts], bool)
    kept = ~blank | (level[:, 2] - level[:, 0] >= SMALL * letter)
    level, texts = level[kept], texts[kept]
    high = np.quantile(level[:, 2] - level[:, 0], HIGH) if len(level) else letter
    lines = [
        _Line(level[row], texts[row], letter, high)
        for region in columns(level, np.arange(len(level)), letter)
        for row in rows_of(level, region, letter)
    ]
    if not lines:
        return []
    split = _word_gap(np.concatenate([line.gaps for line in lines]))
    _even_out(lines, split)
    split = _word_gap(np.concatenate([line.gaps for line in lines]))
    printed = [line.text(split) for line in lines]
    return [line for line in printed if line]


class _Line:
    """Characters in order, and the gaps between them in heights of letters."""

    def __init__(
        self, boxes: Floats, texts: NDArray[np.object_], letter: float, high: float
    ) -> None:
        # A headline is measured by its own letters.
        larger = float(np.quantile(boxes[:, 2] - boxes[:, 0], HIGH)) / high
        size = letter * (larger if larger > LARGER else 1)
        order = (boxes[:, 1] + boxes[:, 3]).argsort(kind="stable")
        stacks: list[list[int]] = []
        for k in order.tolist():
            if stacks and all(_stacked(boxes[k], boxes[other]) for other in stacks[-1]):
                stacks[-1].append(k)
            else:
                stacks.append([k])
        self.texts = [
            _composed([str(texts[k]).strip() for k in sorted(stack, key=lambda k: -boxes[k, 2])])
            for stack in stacks
        ]
        left = np.array([boxes[stack, 1].min() for stack in stacks])
        right = np.array([boxes[stack, 3].max() for stack in stacks])
        self.gaps: Floats = (left[1:] - np.maximum.accumulate(right)[:-1]) / size
        # Figures are set to the same width, so that the gaps beside a 1 are wide.
        figures = np.array([text.isdecimal() and len(text) == 1 for text in self.texts])
        if figures.any():
            narrow = ((right - left)[figures].max() - (right - left)) / size
            narrow = np.where(figures, np.maximum(narrow, 0), 0)
            self.gaps -= (narrow[1:] + narrow[:-1]) / 2 * (figures[1:] & figures[:-1])
        sides = [unicodedata.bidirectional(one) for text in self.texts for one in text]
        if 2 * sum(side in ("R", "AL") for side in sides) > len(sides):  # Hebrew, Arabic
            self.texts, self.gaps = self.texts[::-1], self.gaps[::-1]

    def text(self, split: float) -> str:
        """The line, with spaces at gaps above a split near this one."""
        if split > 0:  # where no gap is wider than none, there is no other split
            near = np.sort(self.gaps[(self.gaps > 0.6 * split) & (self.gaps < 1.5 * split)])
            near = np.r_[0.6 * split, near, 1.5 * split]
            widest = int(np.diff(np.log(near)).argmax())
            split = float(np.sqrt(near[widest] * near[widest + 1]))
        words = [self.texts[0]]
        for gap, text in zip(self.gaps, self.texts[1:], strict=True):
            words.append(f" {text}" if gap > split else text)
        return " ".join("".join(words).split())


def _stacked(box: Floats, other: Floats) -> bool:
    """Whether two boxes lie one above the other."""
    across = min(box[3], other[3]) - max(box[1], other[1])
    common = min(box[2], other[2]) - max(box[0], other[0])
    lower, narrower = (
        min(box[2] - box[0], other[2] - other[0]),
        min(box[3] - box[1], other[3] - other[1]),
    )
    return bool(across > narrower / 2 and common < lower / 4)


def _composed(texts: list[str]) -> str:
    """Texts of pieces from the lowest to the highest, as one character where there is one."""
    found = texts[0]
    for text in texts[1:]:
        if (found, text) in STACKS:
            found = STACKS[found, text]
            continue
        if text in ABOVE and found not in BELOW:
            one = unicodedata.normalize("NFC", found + ABOVE[text])
        else:
            one = unicodedata.normalize("NFC", text + BELOW.get(found, found))
        found = one if len(one) == len(found) == 1 else found + text
    return found


def _even_out(lines: list[_Line], split: float) -> None:
    """Take from each gap what its two characters add to all their gaps within words.

    The arm of an f reaches into the gap behind it, and 1 stands in a wide box of its own.
    """
    pairs = [
        (before, after, gap)
        for line in lines
        for before, after, gap in zip(line.texts, line.texts[1:], line.gaps, strict=False)
        if gap < CLEARLY * split
    ]
    if not pairs:
        return
    usual = float(np.median([gap for *_, gap in pairs]))
    sides = []
    for side in (0, 1):
        gaps: dict[str, list[float]] = {}
        for pair in pairs:
            gaps.setdefault(pair[side], []).append(pair[2])
        # Of a rare character little is known.
        sides.append({k: (np.median(v) - usual) * len(v) / (len(v) + 2) for k, v in gaps.items()})
    for line in lines:
        more = [
            sides[0].get(before, 0.0) + sides[1].get(after, 0.0)
            for before, after in zip(line.texts, line.texts[1:], strict=False)
        ]
        line.gaps = line.gaps - np.array(more)


def _word_gap(gaps: Floats) -> float:
    """The gap that best divides those between letters from those between words (Otsu's)."""
    values = np.sort(np.maximum(gaps[gaps < WIDEST_GAP], -0.5))
    if len(values) < 2:
        return WIDEST_GAP / 2
    n = np.arange(1, len(values))
    sums = values.cumsum()[:-1]
    low, high = sums / n, (values.sum() - sums) / (len(values) - n)
    k = int((n * (len(values) - n) * (high - low) ** 2).argmax())
    if high[k] - low[k] < WORD_GAP:
        return WIDEST_GAP
    return float(values[k : k + 2].mean())
