"""Bars and characters at random places, as in the paper's sections 4.1 and 4.2."""

import string

import numpy as np

from hcnet.checks import (
    RandomState,
    check_count,
    check_flag,
    check_noise,
    check_pair,
    check_random_state,
)
from hcnet.datasets.glyphs import load_glyphs
from hcnet.datasets.parts_data import PartsData, assemble, scatter
from hcnet.images import BoolArray


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
    n_placements = check_count("n_placements", n_placements)
    noise = check_noise(noise)
    if length > min(size):
        raise ValueError(
            f"length must be at most {min(size)}, the shorter side of the image, "
            f"got {length}; pass shorter bars or a larger size."
        )
    parts = {
        "horizontal": np.ones((1, length), dtype=bool),
        "vertical": np.ones((length, 1), dtype=bool),
    }
    rng = check_random_state(random_state)
    return _scattered(parts, size, n_placements, noise, rng, overlap=True)


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
    size = check_pair("size", size, single=False)
    n_placements = check_count("n_placements", n_placements)
    noise = check_noise(noise)
    parts = _bitmaps(characters, glyph_size)
    rng = check_random_state(random_state)
    return _scattered(parts, size, n_placements, noise, rng, balanced=True)


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
    size = check_pair("size", size, single=False)
    n_placements = check_count("n_placements", n_placements)
    noise = check_noise(noise)
    overlap = check_flag("overlap", overlap)
    parts = _bitmaps(characters, glyph_size)
    rng = check_random_state(random_state)
    return _scattered(parts, size, n_placements, noise, rng, overlap=overlap)


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
    size = check_pair("size", size, single=False)
    n_characters = check_count("n_characters", n_characters)
    per_image = check_count("per_image", per_image)
    noise = check_noise(noise)
    overlap = check_flag("overlap", overlap)
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


def _bitmaps(characters: str, glyph_size: int) -> dict[str, BoolArray]:
    return {glyph.character: glyph.bitmap for glyph in load_glyphs(characters, glyph_size)}


def _scattered(
    parts: dict[str, BoolArray],
    size: tuple[int, int],
    per_image: int,
    noise: float,
    rng: np.random.Generator,
    *,
    n_images: int = 1,
    overlap: bool = False,
    balanced: bool = False,
) -> PartsData:
    """Images with parts at random places."""
    placements = [
        (image, *placement)
        for image in range(n_images)
        for placement in scatter(parts, size, per_image, rng, overlap=overlap, balanced=balanced)
    ]
    return assemble(parts, placements, (n_images, *size), noise, rng)
