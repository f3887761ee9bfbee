"""Blind deconvolution: many small images of overlapping patterns."""

from itertools import islice
from typing import Literal

import numpy as np
from scipy.ndimage import convolve

from hcnet.checks import (
    RandomState,
    check_choice,
    check_count,
    check_noise,
    check_pair,
    check_probability,
    check_random_state,
)
from hcnet.datasets.parts_data import PartsData, Placement, assemble
from hcnet.images import BoolArray

_FIXED = {
    "ring": ("#####", "#...#", "#...#", "#...#", "#####"),
    "plus": ("..#..", "..#..", "#####", "..#..", "..#.."),
    "saltire": ("#...#", ".#.#.", "..#..", ".#.#.", "#...#"),
    "zed": ("#####", "...#.", "..#..", ".#...", "#####"),
}
_NEIGHBOURS = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])

# Random patterns grow until this share of their window is inked: thin enough to be recognised
# under an overlap, thick enough to differ.
_MIN_INK = 0.4
_PATTERN_TRIES = 1000


def deconvolution(
    *,
    n_images: int = 100,
    size: tuple[int, int] = (14, 14),
    n_features: int = 4,
    feature_size: tuple[int, int] = (5, 5),
    p_on: float = 0.01,
    min_placements: int = 3,
    noise: float = 0.0,
    patterns: Literal["fixed", "random"] = "fixed",
    random_state: RandomState = None,
) -> PartsData:
    """The two-dimensional blind deconvolution benchmark: small images of overlapping patterns.

    Each pattern appears at each position where it lies inside the image with probability `p_on`,
    independently; overlaps are the OR. An image with fewer than `min_placements` gets further
    ones, drawn uniformly from the pairs of pattern and position that are left.

    Args:
        n_images: how many images.
        size: height and width of each image.
        n_features: how many patterns.
        feature_size: height and width of each pattern.
        p_on: probability of a pattern at a position.
        min_placements: the least number of patterns per image.
        noise: probability that a pixel is flipped.
        patterns: "fixed" for the first `n_features` of a ring, a plus, a saltire and a zed, all of
            5 x 5; "random" for connected patterns of any size and number, picked by the seed. All
            patterns touch all four sides of their window.
        random_state: seed.

    Returns:
        The images; random patterns are named "pattern 0" and so on.

    Raises:
        ValueError: if an argument is out of range, or nothing would be placed.

    """
    n_images = check_count("n_images", n_images)
    size = check_pair("size", size, single=False)
    n_features = check_count("n_features", n_features)
    feature_size = check_pair("feature_size", feature_size, 2, single=False)
    p_on = check_probability("p_on", p_on)
    min_placements = check_count("min_placements", min_placements, 0)
    noise = check_noise(noise)
    rows, columns = size[0] - feature_size[0] + 1, size[1] - feature_size[1] + 1
    if min(rows, columns) < 1:
        raise ValueError(
            f"feature_size must not exceed the image of {size[0]} x {size[1]} pixels, "
            f"got {feature_size}; pass smaller patterns or a larger size."
        )
    if min_placements > n_features * rows * columns:
        raise ValueError(
            f"min_placements must be at most {n_features * rows * columns}, the number of "
            f"patterns times positions, got {min_placements}; pass fewer."
        )
    rng = check_random_state(random_state)
    parts = _choose_patterns(patterns, n_features, feature_size, rng)
    placements: list[Placement] = []
    for image in range(n_images):
        chance = rng.random((n_features, rows, columns))
        on = chance < p_on
        # The smallest numbers switch on first, so that further placements need no second draw.
        on.ravel()[np.argsort(chance, axis=None, kind="stable")[:min_placements]] = True
        placements += [(image, part, row, column) for part, row, column in np.argwhere(on).tolist()]
    if not placements:
        raise ValueError(
            f"Nothing was placed with p_on={p_on} and min_placements={min_placements}: "
            f"raise one of them."
        )
    return assemble(parts, placements, (n_images, *size), noise, rng)


def _choose_patterns(
    patterns: object, n_features: int, feature_size: tuple[int, int], rng: np.random.Generator
) -> dict[str, BoolArray]:
    """The patterns by name."""
    if check_choice("patterns", patterns, ("fixed", "random")) == "fixed":
        if n_features > len(_FIXED) or feature_size != (5, 5):
            raise ValueError(
                f'patterns="fixed" offers {len(_FIXED)} patterns of 5 x 5, but {n_features} of '
                f'{feature_size[0]} x {feature_size[1]} were asked for: pass patterns="random".'
            )
        return {
            name: np.array([[mark == "#" for mark in line] for line in lines])
            for name, lines in islice(_FIXED.items(), n_features)
        }
    found: dict[bytes, BoolArray] = {}
    for _ in range(_PATTERN_TRIES + n_features):
        pattern = _grow_pattern(feature_size, rng)
        found.setdefault(pattern.tobytes(), pattern)
        if len(found) == n_features:
            return {f"pattern {index}": one for index, one in enumerate(found.values())}
    raise ValueError(
        f"Only {len(found)} different random patterns of {feature_size[0]} x {feature_size[1]} "
        f"were found, but {n_features} were asked for: pass a larger feature_size."
    )


def _grow_pattern(shape: tuple[int, int], rng: np.random.Generator) -> BoolArray:
    """A connected pattern that touches all four sides of its window."""
    pattern = np.zeros(shape, dtype=bool)
    pattern[int(rng.integers(shape[0])), int(rng.integers(shape[1]))] = True
    while not (
        all(side.any() for side in (pattern[0], pattern[-1], pattern[:, 0], pattern[:, -1]))
        and pattern.mean() >= _MIN_INK
    ):
        neighbours = convolve(pattern.astype(np.int64), _NEIGHBOURS, mode="constant")
        neighbours[pattern] = 0
        # Pixels with one inked neighbour prolong a stroke; others would fill a blob.
        candidates = np.argwhere(neighbours == 1)
        if not len(candidates):
            candidates = np.argwhere(neighbours > 0)
        row, column = candidates[int(rng.integers(len(candidates)))]
        pattern[row, column] = True
    return pattern
