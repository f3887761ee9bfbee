"""The two bars: the smallest data set of the paper's section 4.1."""

import numpy as np

from hcnet.checks import (
    RandomState,
    check_count,
    check_noise,
    check_pair,
    check_random_state,
)
from hcnet.datasets.parts_data import PartsData, assemble
from hcnet.datasets.placement import scatter

__all__ = ["two_bars"]


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

    Raises:
        ValueError: if an argument is out of range.

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
    rng = check_random_state(random_state)
    bars = [np.ones((1, length), dtype=bool), np.ones((length, 1), dtype=bool)]
    placed = scatter(
        [(1, length), (length, 1)], size=size, n_placements=n_placements, rng=rng, overlap=True
    )
    return assemble(
        bars,
        ("horizontal", "vertical"),
        [(0, *placement) for placement in placed],
        n_images=1,
        size=size,
        noise=noise,
        rng=rng,
    )
