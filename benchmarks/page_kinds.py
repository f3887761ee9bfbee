"""Made-up pages of other kinds than print: shapes at sub-pixel places, with smooth edges, scanned.

Each is a `ScannedText`, whose glyphs are the shapes, so that `hcnet.metrics.glyph_scores` compares
parts with them.  Only Arabic has no truth: its letters join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, features
from scipy import ndimage

from hcnet.datasets import Font, ScannedText, scanned_text
from hcnet.images import BoolArray

SIZE = (1600, 1600)
FINE = 6  # pixels of a drawing per pixel of the page, along each side
NOISE = 0.09  # standard deviation of the grey of a pixel before it is black or white
FONTS = Path("/usr/share/fonts")
ARABIC = "truetype/dejavu/DejaVuSans.ttf"
SCRIPT = "opentype/urw-base35/Z003-MediumItalic.otf"
STYLES, POINTS = ("P052-Roman", "P052-Italic", "P052-Bold"), (11, 11, 18)
WORDS = """
من في على إلى عن هذا هذه ذلك التي الذي كان قال بعد قبل بين كل يوم عام كتاب مدينة بيت رجل امرأة
ولد بنت ماء نور شمس قمر ليل نهار طريق باب قلم درس علم عمل وقت حياة عالم أرض سماء بحر جبل شجرة
"""

Grey = NDArray[np.float64]


class Sheet:
    """A page onto which shapes are drawn at sub-pixel places."""

    def __init__(self, size: tuple[int, int], rng: np.random.Generator) -> None:
        self.grey = np.zeros(size)
        self.owners = np.full(size, -1, np.int32)
        self.rng = rng
        self.shapes: list[int] = []
        self.boxes: list[tuple[int, int, int, int]] = []

    def put(self, fine: BoolArray, row: float, column: float, shape: int) -> None:
        """Draw a shape, given FINE times as large; with shape -1 it is no part."""
        y, x = round(row * FINE), round(column * FINE)
        padded = np.pad(
            fine, ((y % FINE, -(fine.shape[0] + y) % FINE), (x % FINE, -(fine.shape[1] + x) % FINE))
        )
        h, w = padded.shape[0] // FINE, padded.shape[1] // FINE
        grey = padded.reshape(h, FINE, w, FINE).mean(axis=(1, 3))
        top, left = y // FINE, x // FINE
        at = slice(top, top + h), slice(left, left + w)
        np.maximum(self.grey[at], grey, out=self.grey[at])
        if shape >= 0:
            self.owners[at][grey > 0.5] = len(self.shapes)
            self.shapes.append(shape)
            self.boxes.append((top, left, h, w))

    def scanned(self, n_shapes: int) -> ScannedText:
        """The page in black and white."""
        page = ndimage.gaussian_filter(self.grey, 0.5)
        page = page + self.rng.normal(0, NOISE, page.shape) * (page > 0.02) * (page < 0.98)
        n = len(self.shapes)
        zeros = np.zeros(n, np.int64)
        return ScannedText(
            images=(page > 0.5)[None, None],
            clean=(self.owners >= 0)[None, None],
            owners=self.owners[None],
            characters=np.array([str(s) for s in self.shapes]),
            pages=zeros,
            fonts=zeros,
            shapes=np.array(self.shapes, np.int64),
            boxes=np.array(self.boxes, np.int64).reshape(-1, 4),
            lines=zeros,
            positions=zeros,
            text=((),),
            features=np.zeros((n_shapes, 1, 1, 1), bool),
            names=tuple(map(str, range(n_shapes))),
            skew=np.zeros(1),
        )


def sprites(seed: int, size: tuple[int, int] = SIZE) -> ScannedText:
    """Symmetric sprites with smooth edges, about 26 pixels high."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(12):
        half = rng.random((8, 4)) < 0.55
        half[2:6, 2:] = True
        cells = np.pad(np.concatenate([half, half[:, ::-1]], axis=1).astype(float), 1)
        smooth = ndimage.zoom(cells, 2.6 * FINE, order=1)
        label, n = ndimage.label(ndimage.gaussian_filter(smooth, FINE) > 0.5)
        drawn.append(label == 1 + np.argmax(np.bincount(label.ravel(), minlength=n + 1)[1:]))
    sheet = Sheet(size, rng)
    for row in range(10, size[0] - 50, 40):
        for column in range(10, size[1] - 50, 40):
            if rng.random() < 0.6:
                k = int(rng.integers(len(drawn)))
                sheet.put(drawn[k], row + rng.random(), column + rng.random(), k)
    return sheet.scanned(len(drawn))


def _strokes(size: tuple[int, int], draw: Callable[[ImageDraw.ImageDraw], None]) -> BoolArray:
    """A drawing with lines, in pixels of the page, FINE times as large."""
    image = Image.new("L", (size[1] * FINE, size[0] * FINE))
    draw(ImageDraw.Draw(image))
    return np.asarray(image) > 0


def _symbols() -> list[BoolArray]:
    """Resistor, capacitor, diode, coil, source and transistor, 60 pixels wide."""
    f, wide = FINE, 3 * FINE

    def line(*points: float) -> Callable[[ImageDraw.ImageDraw], None]:
        return lambda d: d.line([f * p for p in points], fill=255, width=wide, joint="curve")

    zigzag = [0, 15, *(v for i in range(6) for v in (10 + 7 * i, 4 + 22 * (i % 2))), 50, 15, 60, 15]

    def several(*strokes: Callable[[ImageDraw.ImageDraw], None]) -> BoolArray:
        return _strokes((30, 60), lambda d: [s(d) for s in strokes] and None)

    def arc(*box: float, begin: int = 0, end: int = 360) -> Callable[[ImageDraw.ImageDraw], None]:
        return lambda d: d.arc([f * b for b in box], begin, end, fill=255, width=wide)

    ends = line(0, 15, 17, 15), line(43, 15, 60, 15)
    return [
        several(line(*zigzag)),
        several(
            line(0, 15, 25, 15), line(35, 15, 60, 15), line(26, 2, 26, 28), line(34, 2, 34, 28)
        ),
        several(*ends, line(18, 3, 42, 15, 18, 27, 18, 3), line(43, 3, 43, 27)),
        several(
            line(0, 15, 9, 15),
            line(51, 15, 60, 15),
            *(arc(8 + 11 * i, 8, 21 + 11 * i, 22, begin=180) for i in range(4)),
        ),
        several(*ends, arc(16, 1, 44, 29), line(24, 15, 36, 15), line(30, 9, 30, 21)),
        several(
            line(0, 15, 28, 15),
            line(28, 4, 28, 26),
            line(28, 12, 46, 3, 60, 3),
            line(28, 18, 46, 27, 60, 27),
            arc(14, 0, 46, 29),
        ),
    ]


def schematic(seed: int, size: tuple[int, int] = SIZE) -> ScannedText:
    """An electronic schematic: symbols in rows and columns, with wires that touch them."""
    rng = np.random.default_rng(seed)
    drawn = _symbols()
    drawn += [np.ascontiguousarray(np.rot90(one)) for one in drawn[:5]]
    sheet, step = Sheet(size, rng), 130
    for row in range(40, size[0] - step, step):
        for column in range(40, size[1] - step, step):
            y, x = row + rng.random(), column + rng.random()
            for k, down in ((int(rng.integers(6)), False), (6 + int(rng.integers(5)), True)):
                if rng.random() < 0.25:
                    continue
                sheet.put(drawn[k], *((y + 30, x - 14) if down else (y - 14, x + 30)), k)
                for begin, n in ((0, 31), (89, step - 88)):  # wires to both neighbours
                    bar = np.ones((n * FINE, 3 * FINE), bool)
                    where = (y + begin, x - 0.5) if down else (y - 0.5, x + begin)
                    sheet.put(bar if down else bar.T, *where, -1)
    return sheet.scanned(len(drawn))


def handwriting(seed: int, size: tuple[int, int] = SIZE) -> ScannedText | None:
    """Words in a script typeface, each letter warped smoothly, which stands in for a hand."""
    path = FONTS / SCRIPT
    if not path.exists():
        return None
    rng = np.random.default_rng(seed)
    font = ImageFont.truetype(str(path), 46 * FINE)
    letters = "etaoinshrdlucmwfgypbvkxjqz"
    chances = np.linspace(10, 1, len(letters))
    sheet = Sheet(size, rng)
    for row in range(60, size[0] - 80, 70):
        column = 40.0
        while column < size[1] - 80:
            for _ in range(int(rng.integers(2, 8))):
                k = int(rng.choice(len(letters), p=chances / chances.sum()))
                image = Image.new("L", (70 * FINE, 80 * FINE))
                ImageDraw.Draw(image).text((12 * FINE, 50 * FINE), letters[k], 255, font, "ls")
                fine = _warped(np.asarray(image) > 127, rng)
                rows, columns = np.flatnonzero(fine.any(axis=1)), np.flatnonzero(fine.any(axis=0))
                cut = fine[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
                if column + cut.shape[1] / FINE > size[1] - 30:
                    break
                sheet.put(cut, row + rows[0] / FINE - 40 + rng.normal(0, 0.7), column, k)
                column += cut.shape[1] / FINE + 2 + rng.random()
            column += 16
    return sheet.scanned(len(letters))


def _warped(fine: BoolArray, rng: np.random.Generator) -> BoolArray:
    """A drawing whose pixels move smoothly, by about a pixel of the page."""
    moves = [
        ndimage.zoom(rng.normal(0, 1.0 * FINE, (4, 4)), np.array(fine.shape) / 4, order=3)
        for _ in range(2)
    ]
    at = np.indices(fine.shape, float) + np.stack(
        [m[: fine.shape[0], : fine.shape[1]] for m in moves]
    )
    return ndimage.map_coordinates(fine.astype(float), at, order=1) > 0.5


def arabic(seed: int, size: tuple[int, int] = SIZE) -> BoolArray | None:
    """A page of Arabic words, which needs a font and Pillow's Raqm; without truth."""
    path = FONTS / ARABIC
    if not (path.exists() and features.check("raqm")):
        return None
    rng = np.random.default_rng(seed)
    font = ImageFont.truetype(str(path), 40 * FINE)
    words, sheet = WORDS.split(), Sheet(size, rng)
    for row in range(30, size[0] - 90, 75):
        column = size[1] - 40.0
        while True:
            word = words[int(rng.integers(len(words)))]
            left, _, right, _ = font.getbbox(word, anchor="ls")
            image = Image.new("L", (int(right - left) + 2 * FINE, 80 * FINE))
            ImageDraw.Draw(image).text((FINE - left, 50 * FINE), word, 255, font, "ls")
            column -= image.width / FINE + 12 + rng.random()
            if column < 20:
                break
            sheet.put(np.asarray(image) > 127, row + rng.random(), column, 0)
    return sheet.scanned(1).images


def kinds(seed: int, quick: bool) -> Iterator[tuple[str, ScannedText | BoolArray | None]]:
    """All kinds of made-up pages: with truth, without, or None where a font is missing."""
    size = (700, 900) if quick else SIZE
    yield "Latin", scanned_text(size=size, random_state=seed)
    styles = [FONTS / "opentype/urw-base35" / f"{name}.otf" for name in STYLES]
    if all(path.exists() for path in styles):
        roman, italic, bold = (
            Font(path, points) for path, points in zip(styles, POINTS, strict=True)
        )
        given = {"fonts": [roman, italic, bold], "size": size, "random_state": seed}
        yield "headlines and italics", scanned_text(**given)
    else:
        yield "headlines and italics", None
    yield "Arabic", arabic(seed, size)
    yield "script with warps", handwriting(seed, size)
    yield "sprites", sprites(seed, size)
    yield "schematic", schematic(seed, size)
