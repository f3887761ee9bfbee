"""Fonts, their glyphs as coverage of pixels, and which glyphs look alike."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hcnet.images import BoolArray

Floats: TypeAlias = NDArray[np.float32]
# Coverage, and the row and column of its corner.
Outline: TypeAlias = tuple[NDArray[np.uint8], int, int]

SCALE = 8  # positions of glyphs are multiples of 1 / SCALE pixels
_COMPARED_EM = 44  # pixels per em at which glyphs are compared, if the page has fewer
_SAME_INK = 0.02  # shapes that differ in less of their ink are the same


@dataclass(frozen=True, slots=True)
class Font:
    """A style of text.

    Attributes:
        path: a font file that FreeType reads (.ttf, .otf, …); None for the font inside Pillow.
        points: size in points, 72 to the inch.
        slant: rightward lean, columns per row: 0.2 makes italics of an upright font.

    """

    path: str | os.PathLike[str] | None = None
    points: float = 10.5
    slant: float = 0.0


class Face:
    """A font at its size; renders glyphs at `SCALE` times the resolution."""

    def __init__(self, font: Font, index: int, dpi: int) -> None:
        self.index, self.slant = index, float(font.slant)
        self.em = font.points / 72 * dpi  # pixels
        self._upright: dict[str, Outline] = {}
        try:
            if font.path is None:
                self._font: Any = ImageFont.load_default(self.em * SCALE)
            else:
                self._font = ImageFont.truetype(
                    str(Path(font.path)), self.em * SCALE, layout_engine=ImageFont.Layout.BASIC
                )
        except ImportError:
            self._font = None
        except OSError as error:
            raise ValueError(
                f"The font {str(font.path)!r} could not be read ({error}); pass the path of a "
                f".ttf or .otf file, or None for the font inside Pillow."
            ) from None
        if not isinstance(self._font, ImageFont.FreeTypeFont):
            raise ValueError(
                "scanned_text needs a Pillow with FreeType, and this one was built without it; "
                "install Pillow from a wheel: pip install --force-reinstall pillow."
            )

    def advance(self, character: str) -> float:
        """Pixels from the origin of a character to that of the next."""
        return float(self._font.getlength(character)) / SCALE

    def has_ink(self, character: str) -> bool:
        """Whether a character shows on paper; a space does not."""
        return bool(self.outline(character)[0].any())

    def outline(self, character: str) -> Outline:
        """The character on a page that is not turned."""
        if character not in self._upright:
            self._upright[character] = self.turned(character, 0.0)
        return self._upright[character]

    def turned(self, character: str, skew: float) -> Outline:
        """Coverage of a character that is turned by `skew`, and the row and column of its corner.

        All in fine pixels, relative to the origin on the baseline.
        """
        left, top, right, bottom = map(int, self._font.getbbox(character, anchor="ls"))
        corners = [self._turn(x, y, skew) for x in (left, right) for y in (top, bottom)]
        x0, y0 = np.floor(np.min(corners, 0)).astype(int).tolist()
        x1, y1 = np.ceil(np.max(corners, 0)).astype(int).tolist()
        upright = Image.new("L", (right - left + 2, bottom - top + 2))
        ImageDraw.Draw(upright).text((1 - left, 1 - top), character, 255, self._font, "ls")
        # Where the pixel (x0 + u, y0 + v) comes from: the inverse of `_turn`.
        cos, sin = math.cos(skew), math.sin(skew)
        a, b = cos - self.slant * sin, sin + self.slant * cos
        matrix = (a, b, a * x0 + b * y0 - left + 1, -sin, cos, -sin * x0 + cos * y0 - top + 1)
        size = (max(x1 - x0, 1), max(y1 - y0, 1))
        affine, bilinear = Image.Transform.AFFINE, Image.Resampling.BILINEAR
        return np.asarray(upright.transform(size, affine, matrix, bilinear)), y0, x0

    def _turn(self, x: float, y: float, skew: float) -> tuple[float, float]:
        """Slanted to the right (rows grow downwards), then turned clockwise."""
        x -= self.slant * y
        return (x * math.cos(skew) - y * math.sin(skew), x * math.sin(skew) + y * math.cos(skew))

    def gap(self, character: str, other: Face, following: str) -> float:
        """Pixels between the ink of a character and the next, in the row where they are closest.

        Infinity if no row has ink of both.
        """
        ours, top, left = self.outline(character)
        theirs, their_top, their_left = other.outline(following)
        first, last = max(top, their_top), min(top + len(ours), their_top + len(theirs))
        if first >= last:
            return math.inf
        a = ours[first - top : last - top] > 127
        b = theirs[first - their_top : last - their_top] > 127
        both = a.any(1) & b.any(1)
        if not both.any():
            return math.inf
        ends = left + a.shape[1] - a[both, ::-1].argmax(1)
        starts = their_left + b[both].argmax(1)
        return self.advance(character) + float((starts - ends).min()) / SCALE


def coverage_of(outline: NDArray[np.uint8], down: int, right: int, scale: int = SCALE) -> Floats:
    """An outline moved by fine pixels, with `scale` of them to a pixel; by default, of the page."""
    height, width = (
        -(-(n + s) // scale) for n, s in zip(outline.shape, (down, right), strict=True)
    )
    fine = np.zeros((height * scale, width * scale), np.uint8)
    fine[down : down + outline.shape[0], right : right + outline.shape[1]] = outline
    blocks = fine.reshape(height, scale, width, scale)
    return np.asarray(blocks.mean(axis=(1, 3)) / 255, np.float32)


def shape_classes(kinds: list[tuple[Face, str]]) -> tuple[list[int], BoolArray, tuple[str, ...]]:
    """The shape of each kind of glyph, and the clean shapes in a common window with their names."""
    bitmaps = [_bitmap(face.outline(c), SCALE) for face, c in kinds]
    # At a low resolution all letters would differ in thin lines only.
    scale = min(max(round(SCALE * min(face.em for face, _ in kinds) / _COMPARED_EM), 1), SCALE)
    compared = [_bitmap(face.outline(c), scale) for face, c in kinds]
    parent = list(range(len(kinds)))
    for k, j in itertools.combinations(range(len(kinds)), 2):
        if parent[k] == k and parent[j] == j and look_alike(compared[k], compared[j]):
            parent[j] = k
    first = sorted(set(parent))
    labels = [first.index(k) for k in parent]
    names = []
    for shape in range(len(first)):
        having = dict.fromkeys(
            c for (_, c), label in zip(kinds, labels, strict=True) if label == shape
        )
        names.append("|".join(having))
    height = max(bitmaps[k].shape[0] for k in first)
    width = max(bitmaps[k].shape[1] for k in first)
    features = np.zeros((len(first), 1, height, width), bool)
    for feature, k in zip(features, first, strict=True):
        h, w = bitmaps[k].shape
        row, column = (height - h) // 2, (width - w) // 2
        feature[0, row : row + h, column : column + w] = bitmaps[k]
    return labels, features, tuple(names)


def _bitmap(outline: Outline, scale: int) -> BoolArray:
    """The clean shape, cropped to its ink."""
    image, top, left = outline
    bitmap: BoolArray = coverage_of(image, top % scale, left % scale, scale) >= 0.5
    if not bitmap.any():
        return np.ones((1, 1), bool)  # thinner than a pixel everywhere
    rows, columns = np.flatnonzero(bitmap.any(1)), np.flatnonzero(bitmap.any(0))
    return bitmap[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def look_alike(a: BoolArray, b: BoolArray) -> bool:
    """Whether two shapes differ in few pixels, or only in lines one pixel thin, at some offset."""
    sides = np.abs(np.subtract(a.shape, b.shape))
    if sides.max() > 2:
        return False
    pad = np.pad(a, 3)
    for down, right in itertools.product(range(1, 6), repeat=2):
        other = np.zeros_like(pad)
        h, w = (min(n, m - s) for n, m, s in zip(b.shape, pad.shape, (down, right), strict=True))
        if (h, w) != b.shape:
            continue
        other[down : down + h, right : right + w] = b
        differ = pad ^ other
        block = differ[1:, 1:] & differ[:-1, 1:] & differ[1:, :-1] & differ[:-1, :-1]
        if not block.any() or differ.sum() < _SAME_INK * min(a.sum(), b.sum()):
            return True
    return False
