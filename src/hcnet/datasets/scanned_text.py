"""Pages of text as a scanner sees them, with the truth about every glyph."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from hcnet.checks import (
    RandomState,
    check_count,
    check_number,
    check_pair,
    check_random_state,
    check_share,
)
from hcnet.datasets.parts_data import IntArray
from hcnet.datasets.typefaces import SCALE, Face, Floats, Font, Outline, coverage_of, shape_classes
from hcnet.images import BoolArray

Box = tuple[int, int, int, int]

# Commonest first: a word's probability falls with its rank.
_WORDS = """
the of and to in a is that for it was on with as by at be this from are have not or which one
were all there when can more an if will would about other time some into only new could these two
may first then do any my now such like our over man me even most made after also many before
must through years where much your way well down should because each just those people how too
little state good very make world still own see men work long get here between both life being
under never day same another know while last might great old year off come since against go came
right used take three small large next early course change question kind system quite exactly
example number point line page letter figure measure object value equal size experiment mixture
job zero index axis quiet expect project magazine extra junction maximum frequency velocity
hypothesis judge square subject unique require exchange oxygen language knowledge following
library evidence weight window paper copy machine garden bridge river mountain bicycle kitchen
"""

_LEADING = 1.22  # from baseline to baseline, in units of the size of the font
_MOST_SKEW = math.radians(0.5)
_DESCENT = 0.3  # room below the last baseline, in units of the size of the font
_WIDE_PARAGRAPHS = 100  # after so many in which no word fits into a line, none will

# Degradation at strength 1, in pixels and probabilities.  Chosen so that the copies of a letter
# differ as much as they do on ordinary office scans at 300 dpi, where about 0.13 of the pixels at
# the edge of the majority shape and 0.001 elsewhere differ from it (benchmarks/NOTES.md).
_BLUR = 0.55  # standard deviation of the point spread
_THRESHOLD = 0.04  # standard deviation between pages
_INK, _LEAST_INK = 0.04, 0.8  # standard deviation between glyphs; faint ones do not vanish
# Flips have the probability _FLIP_AT_EDGE * exp(-_FALL * (distance² - 1)) + _FLIP_ANYWHERE.
_FLIP_AT_EDGE, _FALL, _FLIP_ANYWHERE = 0.04, 2.0, 0.00002
_REACH = 10  # largest squared distance with flips that depend on it


@dataclass(frozen=True, slots=True, eq=False)
class ScannedText:
    """Scanned pages, K glyphs on them in reading order, and F shapes of glyphs.

    Glyphs that look alike (an I and an l in many fonts) have the same shape: their clean
    renderings differ, at the best offset, in less than 2 % of their ink or in no 2×2 block of
    pixels. (Fonts of less than 44 pixels per em are compared at about that size.)

    Attributes:
        images: bool (N, 1, H, W), what is observed.
        clean: bool (N, 1, H, W), the same glyphs at the same sub-pixel places, neither blurred nor
            noisy.
        owners: int32 (N, H, W), the glyph that each pixel of `clean` belongs to; -1 elsewhere.
        characters: str (K,), the character of each glyph.
        pages, fonts, shapes: int64 (K,), page, font (index into the argument `fonts`) and shape of
            each glyph.
        boxes: int64 (K, 4), the row, column, height and width of the glyph's clean ink.
        lines, positions: int64 (K,), the line on the page, and the index in the text of that line.
        text: the text of each line of each page.
        features: bool (F, 1, h, w), the clean shapes, each centred in a common window.
        names: one per shape, the characters that have it: "I|l".
        skew: float64 (N,), the rotation of each page in degrees.

    """

    images: BoolArray
    clean: BoolArray
    owners: NDArray[np.int32]
    characters: NDArray[np.str_]
    pages: IntArray
    fonts: IntArray
    shapes: IntArray
    boxes: IntArray
    lines: IntArray
    positions: IntArray
    text: tuple[tuple[str, ...], ...]
    features: BoolArray
    names: tuple[str, ...]
    skew: NDArray[np.float64]


def scanned_text(
    *,
    n_pages: int = 1,
    size: tuple[int, int] | None = None,
    dpi: int = 300,
    fonts: Font | str | os.PathLike[str] | Sequence[Font | str | os.PathLike[str]] | None = None,
    text: str | Sequence[str] | None = None,
    strength: float = 1.0,
    touching: float = 0.01,
    broken: float = 0.005,
    random_state: RandomState = None,
) -> ScannedText:
    """Pages of text as a scanner sees them.

    Glyphs lie at fractions of a pixel on a page that is turned by up to half a degree. Their ink
    varies, some touch the next one and some are broken. The page is blurred and thresholded; then
    pixels are flipped as in the document degradation model of Kanungo et al. (1993): with a
    probability that falls with the squared distance to the edge, before a closing.

    The first font sets the text. A larger font sets headlines, one above each paragraph; any
    other sets a few words within the lines. Pages are the same for the same seed and the same
    version of FreeType.

    Args:
        n_pages: how many pages.
        size: height and width in pixels; None for letter paper (8.5 × 11 inches).
        dpi: pixels per inch.
        fonts: a `Font`, a font file, or several of them; None for the font inside Pillow.
        text: the text, or one string per paragraph, set once; None for random sentences that fill
            the pages. Characters that leave no ink are spaces; text beyond the last page is left
            out.
        strength: scales all degradation. 0 is a clean rendering, in which all copies of a glyph
            are equal; 1 is like an ordinary office scan at 300 dpi.
        touching: the share of letters that touch the next one, at strength 1.
        broken: the share of letters with a gap, at strength 1.
        random_state: seed.

    Returns:
        The pages, with place, character, font and shape of every glyph.

    Raises:
        ValueError: if an argument is out of range, a font cannot be read, or no word fits.

    """
    n_pages = check_count("n_pages", n_pages)
    dpi = check_count("dpi", dpi, 20, most=4800)
    strength = check_number("strength", strength, least=0, most=20)
    touching = check_share("touching", touching) * strength
    broken = check_share("broken", broken) * strength
    shape = (11 * dpi, 17 * dpi // 2) if size is None else check_pair("size", size, single=False)
    rng = check_random_state(random_state)
    faces = [Face(font, index, dpi) for index, font in enumerate(_check_fonts(fonts))]
    paragraphs = _random_paragraphs(faces, rng) if text is None else _check_text(text)
    pages = list(_set_pages(faces, paragraphs, n_pages, shape, dpi, touching, rng))
    if not any(pages):
        raise ValueError(
            f"No word fits on a page of {shape[0]} x {shape[1]} pixels at {dpi} dpi: pass a larger "
            f"size, a smaller font, or a text with ink."
        )
    pages += [[]] * (n_pages - len(pages))
    images = np.zeros((n_pages, 1, *shape), bool)
    clean = np.zeros_like(images)
    owners = np.full((n_pages, *shape), -1, np.int32)
    boxes: list[Box] = []
    skews = _MOST_SKEW * min(strength, 1) * rng.uniform(-1, 1, n_pages)
    for page, skew in enumerate(skews):
        laid = [glyph for line in pages[page] for glyph in line]
        grey = _draw(laid, float(skew), strength, broken, owners[page], boxes, rng)
        clean[page, 0] = owners[page] >= 0
        images[page, 0] = _scan(grey, strength, rng) if strength else clean[page, 0]
    glyphs = [
        (p, k, g) for p, page in enumerate(pages) for k, line in enumerate(page) for g in line
    ]
    kinds = sorted({(g.face.index, g.character) for *_, g in glyphs})
    labels, features, names = shape_classes([(faces[f], c) for f, c in kinds])
    number = dict(zip(kinds, labels, strict=True))
    return ScannedText(
        images=images,
        clean=clean,
        owners=owners,
        characters=np.array([g.character for *_, g in glyphs], "U1"),
        pages=np.array([page for page, *_ in glyphs], np.int64),
        fonts=np.array([g.face.index for *_, g in glyphs], np.int64),
        shapes=np.array([number[g.face.index, g.character] for *_, g in glyphs], np.int64),
        boxes=np.array(boxes, np.int64).reshape(-1, 4),
        lines=np.array([line for _, line, _ in glyphs], np.int64),
        positions=np.array([g.position for *_, g in glyphs], np.int64),
        text=tuple(tuple(_read(line) for line in page) for page in pages),
        features=features,
        names=names,
        skew=np.degrees(skews),
    )


# --- arguments --------------------------------------------------------------------------------


def _check_fonts(fonts: Any) -> list[Font]:
    alone = fonts is None or isinstance(fonts, Font | str | os.PathLike)
    several = [Font() if fonts is None else fonts] if alone else fonts
    if not isinstance(several, list | tuple) or not several:
        raise ValueError(f"fonts must be a Font, a font file, or a list of them, got {fonts!r}.")
    checked = []
    for given in several:
        font = Font(given) if isinstance(given, str | os.PathLike) else given
        if not isinstance(font, Font):
            raise ValueError(f"fonts must hold Font objects or font files, got {given!r}.")
        if not isinstance(font.path, str | os.PathLike | None):
            raise ValueError(f"The path of a font must be a path or None, got {font.path!r}.")
        check_number("points of a font", font.points, least=1, most=500)
        check_number("slant of a font", font.slant, least=-1, most=1)
        checked.append(font)
    return checked


def _check_text(text: Any) -> Iterator[list[tuple[int, str]]]:
    """Paragraphs of words in the first font."""
    lines = text.splitlines() if isinstance(text, str) else text
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ValueError(f"text must be a string or a list of strings, got {text!r}.")
    return iter([[(0, word) for word in line.split()] for line in lines])


def _random_paragraphs(
    faces: list[Face], rng: np.random.Generator
) -> Iterator[list[tuple[int, str]]]:
    """Endless paragraphs, each a list of (font, word); headlines are paragraphs, too."""
    words = _WORDS.split()
    weights = 1 / (np.arange(len(words)) + 12.0)
    weights /= weights.sum()
    headlines = [face.index for face in faces if face.em > faces[0].em]
    emphases = [face.index for face in faces[1:] if face.em <= faces[0].em]

    def sentence() -> list[str]:
        chosen = rng.choice(words, int(rng.integers(5, 16)), p=weights).tolist()
        chosen[0] = chosen[0].capitalize()
        for k in range(1, len(chosen)):
            kind = rng.random()
            if kind < 0.02:
                chosen[k] = chosen[k].capitalize()
            elif kind < 0.04:
                chosen[k] = str(rng.integers(1, 3000))
            elif kind < 0.05:
                chosen[k] = f"({chosen[k]})"
            elif kind < 0.06:
                chosen[k] = f"{chosen[k]}-{words[int(rng.integers(len(words)))]}"
            elif kind < 0.12 and k < len(chosen) - 1:
                chosen[k] += ",;:"[min(int(rng.integers(6)), 2) if kind < 0.08 else 0]
        chosen[-1] += ".?!"[max(int(rng.integers(12)) - 9, 0)]
        return list(chosen)

    while True:
        if headlines:
            title = rng.choice(words, int(rng.integers(2, 6)), p=weights).tolist()
            yield [(int(rng.choice(headlines)), word.capitalize()) for word in title]
        body = [(0, word) for _ in range(int(rng.integers(3, 8))) for word in sentence()]
        for font in emphases:
            for first in np.flatnonzero(rng.random(len(body)) < 0.05).tolist():
                last = first + int(rng.integers(1, 4))
                body[first:last] = [(font, word) for _, word in body[first:last]]
        yield body


# --- pages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Glyph:
    """A character whose origin lies at a place on the page before the page is turned."""

    face: Face
    character: str
    row: float
    column: float
    position: int = field(default=0)


def _set_pages(
    faces: list[Face],
    paragraphs: Iterable[list[tuple[int, str]]],
    n_pages: int,
    size: tuple[int, int],
    dpi: int,
    touching: float,
    rng: np.random.Generator,
) -> Iterator[list[list[_Glyph]]]:
    """The lines of each page."""
    margin = min(dpi, min(size) // 10)
    body = faces[0].em
    page: list[list[_Glyph]] = []
    pages, wide, row = 0, 0, float(margin)
    for paragraph in paragraphs:
        tallest = max((faces[font].em for font, _ in paragraph), default=body)
        if tallest > body:
            row += 0.5 * tallest
        before = len(page), pages
        for line in _break_lines(faces, paragraph, size[1] - 2 * margin, touching, rng):
            row += _LEADING * tallest
            if row > size[0] - margin - _DESCENT * tallest:
                yield page
                pages, row, page = pages + 1, margin + _LEADING * tallest, []
                if pages == n_pages or row > size[0] - margin - _DESCENT * tallest:
                    return
            page.append(
                [_Glyph(g.face, g.character, row, margin + g.column, g.position) for g in line]
            )
        row += 0.3 * body
        wide = wide + 1 if (len(page), pages) == before else 0
        if wide == _WIDE_PARAGRAPHS:
            break
    yield page


def _break_lines(
    faces: list[Face],
    words: list[tuple[int, str]],
    width: int,
    touching: float,
    rng: np.random.Generator,
) -> Iterator[list[_Glyph]]:
    """Lines of glyphs; a word that is wider than a line is left out."""
    line: list[_Glyph] = []
    column, position = 0.0, 0
    for font, word in words:
        glyphs, length = _set_word(faces[font], word, touching, rng)
        space = faces[font].advance(" ") if line else 0.0
        if not glyphs or length > width:
            continue
        if column + space + length > width:
            yield line
            line, column, position, space = [], 0.0, 0, 0.0
        position += bool(line)
        column += space
        line += [
            _Glyph(g.face, g.character, 0.0, column + g.column, position + k)
            for k, g in enumerate(glyphs)
        ]
        column, position = column + length, position + len(glyphs)
    if line:
        yield line


def _set_word(
    face: Face, word: str, touching: float, rng: np.random.Generator
) -> tuple[list[_Glyph], float]:
    """The glyphs of a word, and its length."""
    glyphs: list[_Glyph] = []
    column = 0.0
    for character in word:
        if not face.has_ink(character):
            continue
        if glyphs and rng.random() < touching:
            gap = face.gap(glyphs[-1].character, face, character)
            if gap < 0.16 * face.em:  # not an L before a quotation mark
                column -= gap + 0.5
        glyphs.append(_Glyph(face, character, 0.0, column))
        column += face.advance(character)
    return glyphs, column


def _read(line: list[_Glyph]) -> str:
    """The text of a line, with a space where no glyph has the position."""
    letters = {glyph.position: glyph.character for glyph in line}
    return "".join(letters.get(k, " ") for k in range(line[-1].position + 1))


# --- the scanner ------------------------------------------------------------------------------


def _draw(
    glyphs: list[_Glyph],
    skew: float,
    strength: float,
    broken: float,
    owners: NDArray[np.int32],
    boxes: list[Box],
    rng: np.random.Generator,
) -> Floats:
    """Ink on a page; fills in `owners` and appends to `boxes`."""
    height, width = owners.shape
    grey = np.zeros((height, width), np.float32)
    outlines: dict[tuple[int, str], Outline] = {}
    coverages: dict[tuple[int, str, int, int], Floats] = {}
    middle = np.array([height / 2, width / 2])
    offset = rng.random(2)  # where the page lies on the glass
    cos, sin = math.cos(skew), math.sin(skew)
    for glyph in glyphs:
        y, x = np.array([glyph.row, glyph.column]) - middle
        place = np.array([x * sin + y * cos, x * cos - y * sin]) + middle + offset
        place = np.rint(place) + min(strength, 1) * (place - np.rint(place))
        kind = (glyph.face.index, glyph.character)
        if kind not in outlines:
            outlines[kind] = glyph.face.turned(glyph.character, skew)
        outline, top, left = outlines[kind]
        row, down = divmod(round(place[0] * SCALE) + top, SCALE)
        column, right = divmod(round(place[1] * SCALE) + left, SCALE)
        if (*kind, down, right) not in coverages:
            coverages[*kind, down, right] = coverage_of(outline, down, right)
        coverage = coverages[*kind, down, right]
        # Skew and offset may move a glyph at the margin of a tiny page over its border.
        rows = slice(max(row, 0), min(row + coverage.shape[0], height))
        columns = slice(max(column, 0), min(column + coverage.shape[1], width))
        coverage = coverage[
            rows.start - row : rows.stop - row, columns.start - column : columns.stop - column
        ]
        ink = coverage * np.float32(max(1 + strength * _INK * rng.standard_normal(), _LEAST_INK))
        if rng.random() < broken:
            ink = ink * _gap(coverage, rng)
        grey[rows, columns] += ink
        solid = coverage >= 0.5 if (coverage >= 0.5).any() else coverage == coverage.max()
        found_rows, found_columns = np.flatnonzero(solid.any(1)), np.flatnonzero(solid.any(0))
        owners[rows, columns][solid] = len(boxes)
        boxes.append(
            (
                rows.start + int(found_rows[0]),
                columns.start + int(found_columns[0]),
                int(np.ptp(found_rows)) + 1,
                int(np.ptp(found_columns)) + 1,
            )
        )
    return grey


def _gap(coverage: Floats, rng: np.random.Generator) -> Floats:
    """The share of ink that a scratch across a glyph leaves."""
    height, width = coverage.shape
    rows, columns = np.nonzero(coverage >= 0.5)
    if not len(rows):
        return np.ones_like(coverage)
    k = int(rng.integers(len(rows)))
    angle = rng.uniform(0, math.pi)
    across = (np.arange(height)[:, None] - rows[k]) * math.cos(angle)
    across = across + (np.arange(width) - columns[k]) * math.sin(angle)
    return np.asarray(np.abs(across) > rng.uniform(1, 1.6), np.float32)


def _scan(grey: Floats, strength: float, rng: np.random.Generator) -> BoolArray:
    """Blur, threshold, flips and closing."""
    blurred = ndimage.gaussian_filter(
        grey, _BLUR * math.sqrt(strength), mode="constant", truncate=3
    )
    threshold = 0.5 + _THRESHOLD * min(strength, 4) * float(np.clip(rng.standard_normal(), -2, 2))
    page: BoolArray = blurred >= threshold
    squared = _edge_distance(page)
    chance = np.full(_REACH + 2, strength * _FLIP_ANYWHERE)
    distances = np.arange(1, _REACH + 1)
    chance[1:-1] += strength * _FLIP_AT_EDGE * np.exp(-_FALL * (distances - 1))
    flips = rng.random(page.shape, np.float32) < np.minimum(chance, 0.5).astype(np.float32)[squared]
    page ^= flips
    return _close(page)


def _edge_distance(page: BoolArray) -> NDArray[np.uint8]:
    """The squared distance to the next pixel of the other colour; `_REACH` + 1 beyond `_REACH`."""
    height, width = page.shape
    reach = math.isqrt(_REACH)
    squared = np.full(page.shape, _REACH + 1, np.uint8)
    steps = itertools.product(range(-reach, reach + 1), repeat=2)
    for value, dy, dx in sorted(((y * y + x * x, y, x) for y, x in steps), reverse=True):
        if 0 < value <= _REACH:
            here = (slice(max(-dy, 0), height - max(dy, 0)), slice(max(-dx, 0), width - max(dx, 0)))
            there = (slice(max(dy, 0), height + min(dy, 0)), slice(max(dx, 0), width + min(dx, 0)))
            squared[here][page[here] ^ page[there]] = value
    return squared


def _close(page: BoolArray) -> BoolArray:
    """Closing by 2×2: fills single holes, leaves corners."""
    wide = np.pad(page, 1)
    grown = wide[1:, 1:] | wide[:-1, 1:] | wide[1:, :-1] | wide[:-1, :-1]
    return grown[1:, 1:] & grown[:-1, 1:] & grown[1:, :-1] & grown[:-1, :-1]
