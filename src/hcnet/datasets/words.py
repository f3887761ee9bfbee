"""Words whose letters are in one of two fonts: parts with variants, and what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hcnet.checks import RandomState, check_count, check_noise, check_random_state, one_line
from hcnet.datasets.glyphs import load_glyphs
from hcnet.datasets.parts_data import IntArray, flip_noise, render
from hcnet.images import BoolArray

FONTS = 2
# No two letters of these stand in the same place of the same other letters, so that only the two
# forms of a letter can be exchanged.
WORDS = ("ACE", "HAM", "TEC", "MAT", "EMH", "CTA", "HEC", "MTH")
# Columns between the cells of letters.
_GAP = 1


@dataclass(frozen=True, slots=True, eq=False)
class WordsData:
    """Binary images of one word each, and the network that made them.

    Attributes:
        images: bool (N, 1, H, W), what is observed.
        clean: bool (N, 1, H, W), the same without noise.
        labels: int64 (N,), the number of the word.
        forms: int64 (N, letters), the font of every letter: 0 or 1.
        features: bool (2 * number of letters, 1, h, w), each letter in both fonts.
        words: the words.
        letters: one name per group of two features.

    """

    images: BoolArray
    clean: BoolArray
    labels: IntArray
    forms: IntArray
    features: BoolArray
    words: tuple[str, ...]
    letters: tuple[str, ...]


def words(
    words: Sequence[str] = WORDS,
    *,
    n_images: int = 200,
    glyph_size: int = 11,
    jitter: int = 3,
    noise: float = 1e-3,
    random_state: RandomState = None,
) -> WordsData:
    """Words of equal length, each letter in one of two fonts at random.

    The fonts are DejaVu Sans Bold and the one inside Pillow.  Every letter stands in a cell of its
    own, and is shifted by itself and uniformly.

    Args:
        words: what may be in an image, all equally likely.
        n_images: how many images.
        glyph_size: pixels per em of the bold font; see `hcnet.datasets.glyphs.available_sizes`.
        jitter: side of the window in which a letter is shifted; 1 shifts nothing.
        noise: probability that a pixel is flipped.
        random_state: seed.

    Returns:
        The images, with the words, the fonts and the letters.

    """
    given = tuple(words) if isinstance(words, list | tuple) else ()
    texts = bool(given) and all(isinstance(word, str) and word for word in given)
    if not texts or len({len(word) for word in given}) != 1:
        raise ValueError(
            f"words must be a list of texts of equal length, got {one_line(repr(words), 80)}; pass "
            f"for example ['CAT', 'HAT']."
        )
    words = given
    n_images, jitter = check_count("n_images", n_images), check_count("jitter", jitter)
    noise, rng = check_noise(noise), check_random_state(random_state)
    letters = "".join(sorted({letter for word in words for letter in word}))
    features = _features(letters, glyph_size)
    height, width = features.shape[2:]
    labels = rng.integers(len(words), size=n_images)
    forms = rng.integers(FONTS, size=(n_images, len(words[0])))
    spelt = np.array([[letters.index(letter) for letter in word] for word in words])
    shift = rng.integers(jitter, size=(forms.size, 2))
    column = np.tile(np.arange(len(words[0])) * (width + _GAP), n_images)
    placements = np.column_stack(
        [
            np.arange(n_images).repeat(len(words[0])),
            (spelt[labels] * FONTS + forms).ravel(),
            shift[:, 0],
            shift[:, 1] + column,
        ]
    )
    across = len(words[0]) * (width + _GAP) - _GAP + jitter - 1
    clean = render(features, placements, (n_images, 1, height + jitter - 1, across))
    return WordsData(
        images=flip_noise(clean, noise, rng),
        clean=clean,
        labels=labels,
        forms=forms,
        features=features,
        words=words,
        letters=tuple(letters),
    )


def _features(letters: str, glyph_size: int) -> BoolArray:
    """Each letter in both fonts, in the middle of a common window."""
    bold = [glyph.bitmap for glyph in load_glyphs(letters, glyph_size)]
    size, tall = glyph_size, max(len(one) for one in bold)
    while max(len(_plain(letter, size)) for letter in letters) < tall:
        size += 1
    drawn = [
        form
        for one, letter in zip(bold, letters, strict=True)
        for form in (one, _plain(letter, size))
    ]
    height, width = (max(one.shape[axis] for one in drawn) for axis in (0, 1))
    features = np.zeros((len(drawn), 1, height, width), bool)
    for feature, one in zip(features[:, 0], drawn, strict=True):
        top, left = (height - one.shape[0]) // 2, (width - one.shape[1]) // 2
        feature[top : top + one.shape[0], left : left + one.shape[1]] = one
    return features


def _plain(letter: str, size: int) -> BoolArray:
    """The ink of a letter in the font inside Pillow."""
    font = ImageFont.load_default(size)
    page = Image.new("1", (3 * size, 3 * size))
    ImageDraw.Draw(page).text((size, size), letter, font=font, fill=1)
    on = np.asarray(page, bool)
    return on[np.ix_(on.any(axis=1), on.any(axis=0))]
