"""Characters at random places: symbols, letters and the small images of the online experiment."""

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
from hcnet.datasets.glyphs import Glyph, load_glyphs
from hcnet.datasets.parts_data import PartsData, Placement, assemble
from hcnet.datasets.placement import scatter

__all__ = ["letters", "small_letters", "symbols"]


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
    glyphs = load_glyphs(characters, glyph_size)
    rng = check_random_state(random_state)
    return _scatter_glyphs(
        glyphs, size=size, per_image=n_placements, noise=noise, rng=rng, balanced=True
    )


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
    glyphs = load_glyphs(characters, glyph_size)
    rng = check_random_state(random_state)
    return _scatter_glyphs(
        glyphs, size=size, per_image=n_placements, noise=noise, rng=rng, overlap=overlap
    )


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
    glyphs = load_glyphs(characters, glyph_size)
    if n_characters > len(glyphs):
        raise ValueError(
            f"n_characters must be at most {len(glyphs)}, the number of characters to choose "
            f"from, got {n_characters}; pass fewer or a longer string of characters."
        )
    rng = check_random_state(random_state)
    chosen = sorted(rng.permutation(len(glyphs))[:n_characters].tolist())
    return _scatter_glyphs(
        [glyphs[index] for index in chosen],
        n_images=n_images,
        size=size,
        per_image=per_image,
        noise=noise,
        rng=rng,
        overlap=overlap,
    )


def _scatter_glyphs(
    glyphs: list[Glyph],
    *,
    size: tuple[int, int],
    per_image: int,
    noise: float,
    rng: np.random.Generator,
    n_images: int = 1,
    overlap: bool = False,
    balanced: bool = False,
) -> PartsData:
    """Images with glyphs at random places."""
    bitmaps = [glyph.bitmap for glyph in glyphs]
    shapes = [(bitmap.shape[0], bitmap.shape[1]) for bitmap in bitmaps]
    placements: list[Placement] = []
    for image in range(n_images):
        placed = scatter(
            shapes,
            size=size,
            n_placements=per_image,
            rng=rng,
            overlap=overlap,
            balanced=balanced,
        )
        placements.extend((image, *placement) for placement in placed)
    return assemble(
        bitmaps,
        [glyph.character for glyph in glyphs],
        placements,
        n_images=n_images,
        size=size,
        noise=noise,
        rng=rng,
    )
