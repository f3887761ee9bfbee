"""A page of text: words set in lines in a proportional bold font."""

from collections.abc import Iterator, Sequence

import numpy as np

from hcnet.checks import RandomState, check_noise, check_pair, check_random_state
from hcnet.datasets.glyphs import Glyph, load_glyphs
from hcnet.datasets.parts_data import PartsData, Placement, assemble

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
    for word, baseline, left in _set_lines(
        fitting, widths, baselines, size[1] - _MARGIN, (glyph_size + 1) // 3, rng
    ):
        column = left
        for letter in word:
            index, glyph = by_character[letter]
            placements.append((0, index, baseline - glyph.top, column))
            column += glyph.bitmap.shape[1] + 1
    parts = {glyph.character: glyph.bitmap for glyph in glyphs}
    return assemble(parts, placements, (1, *size), noise, rng)


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


def _set_lines(
    words: list[str],
    widths: dict[str, int],
    baselines: list[int],
    right: int,
    space: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, int, int]]:
    """Word, baseline and left edge for each word of a full page."""
    stream = _shuffled_forever(words, rng)
    word = next(stream)
    for baseline in baselines:
        left = _MARGIN + int(rng.integers(_MAX_INDENT))
        while left + widths[word] <= right:
            yield word, baseline, left
            left += widths[word] + 1 + space
            word = next(stream)


def _shuffled_forever(words: list[str], rng: np.random.Generator) -> Iterator[str]:
    while True:
        yield from (words[index] for index in rng.permutation(len(words)))
