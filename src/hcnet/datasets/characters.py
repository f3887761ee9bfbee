"""Bars and characters at random places, as in the paper's sections 4.1 and 4.2; pages of text."""

import string
from collections.abc import Sequence
from itertools import count

import numpy as np

from hcnet.checks import (
    RandomState,
    check_count,
    check_flag,
    check_noise,
    check_pair,
    check_random_state,
)
from hcnet.datasets.glyphs import Glyph, load_glyphs
from hcnet.datasets.parts_data import PartsData, Placement, assemble, scatter
from hcnet.images import BoolArray

_WORDS = """
our kitchen window looks over a small harbour where fishing boats come back before dawn the sailors
carry boxes of fresh mackerel up the wet stone steps and joke about the weather while gulls circle
above them my uncle keeps a quiet workshop behind the market he repairs clocks and old violins with
great patience every spring he paints the heavy door dark green and puts a jar of yellow flowers on
the bench visitors often ask how long one piece takes he only smiles and says that wood has its own
mind last year a young girl brought him a broken music box from japan its tiny brass comb had lost
four teeth they fixed it together over seven rainy evenings and now the melody plays again quite
clearly
"""

_MARGIN = 1  # blank pixels around the page
_LEADING = 2  # blank rows between the lowest descender of a line and the highest ascender below it
_MAX_INDENT = 3  # lines start at 0 to 2 extra pixels, so that columns of letters do not line up


def two_bars(
    *,
    size: tuple[int, int] = (60, 60),
    length: int = 15,
    n_placements: int = 20,
    noise: float = 0.03,
    random_state: RandomState = None,
) -> PartsData:
    """One image of a horizontal and a vertical bar, each at many random places.

    Bars are one pixel thick, lie fully inside the image, and may cross or overlap.

    Args:
        size: height and width of the image.
        length: pixels per bar.
        n_placements: how many bars to place; fewer only if a tiny image has fewer positions.
        noise: probability that a pixel is flipped.
        random_state: seed.

    Returns:
        One image (N = 1); the parts are named "horizontal" and "vertical".

    """
    size = check_pair("size", size, single=False)
    length = check_count("length", length, 2)
    if length > min(size):
        raise ValueError(
            f"length must be at most {min(size)}, the shorter side of the image, "
            f"got {length}; pass shorter bars or a larger size."
        )
    parts = {
        "horizontal": np.ones((1, length), dtype=bool),
        "vertical": np.ones((length, 1), dtype=bool),
    }
    return _scattered(parts, size, n_placements, noise, random_state, overlap=True)


def symbols(
    *,
    size: tuple[int, int] = (150, 150),
    characters: str = "@&%$",
    glyph_size: int = 20,
    n_placements: int = 20,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> PartsData:
    """One image of a few large symbols, each about equally often.

    Symbols lie inside the image, with at least one blank pixel between their bounding boxes.

    Args:
        size: height and width of the image.
        characters: the distinct characters to use.
        glyph_size: pixels per em; see `hcnet.datasets.glyphs.available_sizes`.
        n_placements: how many symbols to place, taken in turn; once the image is full, no more
            are placed.
        noise: probability that a pixel is flipped.
        random_state: seed.

    Returns:
        One image (N = 1); parts are named by their characters.

    Raises:
        ValueError: if an argument is out of range, or not a single symbol fits.

    """
    parts = _bitmaps(characters, glyph_size)
    return _scattered(parts, size, n_placements, noise, random_state, balanced=True)


def letters(
    *,
    size: tuple[int, int] = (200, 200),
    characters: str = "ACEGHKMT",
    glyph_size: int = 13,
    n_placements: int = 170,
    noise: float = 0.0,
    overlap: bool = False,
    random_state: RandomState = None,
) -> PartsData:
    """One image of letter soup; `noise=0.03` is the noisy version of the paper.

    Letters are drawn at random and lie inside the image, unless `overlap` is set with at least
    one blank pixel between their bounding boxes.

    Args:
        size: height and width of the image.
        characters: the distinct characters to use.
        glyph_size: pixels per em; see `hcnet.datasets.glyphs.available_sizes`.
        n_placements: how many letters to place; once the image is full, no more are placed.
        noise: probability that a pixel is flipped.
        overlap: whether letters may lie on top of each other.
        random_state: seed.

    Returns:
        One image (N = 1); parts are named by their characters.

    Raises:
        ValueError: if an argument is out of range, or not a single letter fits.

    """
    parts = _bitmaps(characters, glyph_size)
    return _scattered(parts, size, n_placements, noise, random_state, overlap=overlap)


def small_letters(
    *,
    n_images: int = 30,
    size: tuple[int, int] = (32, 32),
    characters: str = string.ascii_uppercase,
    n_characters: int = 5,
    glyph_size: int = 10,
    per_image: int = 5,
    noise: float = 0.03,
    overlap: bool = False,
    random_state: RandomState = None,
) -> PartsData:
    """The small images of the paper's online experiment (section 4.2).

    The paper shows "30 small images containing 5 randomly chosen and randomly placed characters
    with 3 % flipping noise". We read it so: the seed picks an alphabet of 5 characters for the
    whole data set, and every image holds 5 letters drawn from that alphabet (with repetition) at
    random places inside the image. A seed picks the same alphabet for any `n_images`.

    Args:
        n_images: how many images.
        size: height and width of each image.
        characters: the distinct characters to choose the alphabet from.
        n_characters: size of the alphabet.
        glyph_size: pixels per em; see `hcnet.datasets.glyphs.available_sizes`.
        per_image: how many letters to place in each image; once it is full, no more are placed.
        noise: probability that a pixel is flipped.
        overlap: whether letters may lie on top of each other; if not, at least one blank pixel
            stays between their bounding boxes.
        random_state: seed.

    Returns:
        The images; parts are named by their characters, in the order of `characters`.

    Raises:
        ValueError: if an argument is out of range, or not a single letter fits.

    """
    n_images = check_count("n_images", n_images)
    n_characters = check_count("n_characters", n_characters)
    per_image = check_count("per_image", per_image)
    parts = _bitmaps(characters, glyph_size)
    if n_characters > len(parts):
        raise ValueError(
            f"n_characters must be at most {len(parts)}, the number of characters to choose "
            f"from, got {n_characters}; pass fewer or a longer string of characters."
        )
    rng = check_random_state(random_state)
    chosen = sorted(rng.permutation(len(parts))[:n_characters].tolist())
    parts = {characters[index]: parts[characters[index]] for index in chosen}
    return _scattered(parts, size, per_image, noise, rng, n_images=n_images, overlap=overlap)


def text(
    *,
    size: tuple[int, int] = (190, 220),
    glyph_size: int = 11,
    noise: float = 0.0,
    words: str | Sequence[str] | None = None,
    random_state: RandomState = None,
) -> PartsData:
    """One image of a page of text.

    Words are shuffled and set in lines, with one blank column between the letters of a word, until
    the page is full; if they run out, they are shuffled again. Words wider than a line are left
    out.

    Args:
        size: height and width of the image.
        glyph_size: pixels per em; see `hcnet.datasets.glyphs.available_sizes`.
        noise: probability that a pixel is flipped.
        words: a string of words or a sequence of words; None for a short English text of our own.
        random_state: seed.

    Returns:
        One image (N = 1); parts are named by their characters, in alphabetical order. Rare letters
        occur rarely, as in any text.

    Raises:
        ValueError: if an argument is out of range, or not a single word fits.

    """
    size = check_pair("size", size, single=False)
    noise = check_noise(noise)
    vocabulary = _split(_WORDS if words is None else words)
    glyphs = load_glyphs("".join(sorted(set("".join(vocabulary)))), glyph_size)
    by_character = {glyph.character: (index, glyph) for index, glyph in enumerate(glyphs)}
    widths = {
        word: sum(by_character[letter][1].bitmap.shape[1] + 1 for letter in word) - 1
        for word in vocabulary
    }
    # The indent is drawn before the word is known to fit, so a word must fit behind the widest one.
    line_width = size[1] - 2 * _MARGIN - (_MAX_INDENT - 1)
    fitting = [word for word in vocabulary if widths[word] <= line_width]
    baselines = _baselines(glyphs, size[0])
    if not fitting or not baselines:
        raise ValueError(
            f"No word fits into an image of {size[0]} x {size[1]} pixels at glyph_size "
            f"{glyph_size}: pass a larger size or a smaller glyph_size."
        )
    rng = check_random_state(random_state)
    placements: list[Placement] = []
    stream = (fitting[index] for _ in count() for index in rng.permutation(len(fitting)))
    word = next(stream)
    for baseline in baselines:
        left = _MARGIN + int(rng.integers(_MAX_INDENT))
        while left + widths[word] <= size[1] - _MARGIN:
            for letter in word:
                index, glyph = by_character[letter]
                placements.append((0, index, baseline - glyph.top, left))
                left += glyph.bitmap.shape[1] + 1
            left += (glyph_size + 1) // 3  # the space between two words
            word = next(stream)
    parts = {glyph.character: glyph.bitmap for glyph in glyphs}
    return assemble(parts, placements, (1, *size), noise, rng)


def _bitmaps(characters: str, glyph_size: int) -> dict[str, BoolArray]:
    return {glyph.character: glyph.bitmap for glyph in load_glyphs(characters, glyph_size)}


def _scattered(
    parts: dict[str, BoolArray],
    size: tuple[int, int],
    per_image: int,
    noise: float,
    random_state: RandomState,
    *,
    n_images: int = 1,
    overlap: bool = False,
    balanced: bool = False,
) -> PartsData:
    """Images with parts at random places."""
    size = check_pair("size", size, single=False)
    per_image = check_count("n_placements", per_image)
    noise = check_noise(noise)
    overlap = check_flag("overlap", overlap)
    rng = check_random_state(random_state)
    placements = [
        (image, *placement)
        for image in range(n_images)
        for placement in scatter(parts, size, per_image, rng, overlap=overlap, balanced=balanced)
    ]
    return assemble(parts, placements, (n_images, *size), noise, rng)


def _split(words: object) -> list[str]:
    """A list of words that are not empty."""
    if isinstance(words, str):
        found = words.split()
    elif isinstance(words, Sequence) and all(isinstance(word, str) for word in words):
        found = " ".join(words).split()
    else:
        found = []
    if not found:
        raise ValueError(
            f"words must be a string or a sequence of strings with at least one word, "
            f'got {words!r}; pass for example "some words".'
        )
    return found


def _baselines(glyphs: list[Glyph], height: int) -> list[int]:
    """The row of each line's baseline (the first row below letters without a descender)."""
    ascent = max(glyph.top for glyph in glyphs)
    descent = max(glyph.bitmap.shape[0] - glyph.top for glyph in glyphs)
    last = height - _MARGIN - descent
    return list(range(_MARGIN + ascent, last + 1, ascent + descent + _LEADING))
