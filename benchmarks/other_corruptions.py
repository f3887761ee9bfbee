"""Corruptions of digits that nothing was tuned to, in a file for ``--also`` of `mnist`.

``python -m benchmarks.other_corruptions FILE.npz`` changes validation digits, so that looking at
the errors does no harm.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.mnist_digits import Split
from hcnet.datasets import mnist

N_DIGITS, SEED = 1000, 8000

Grey = NDArray[np.float64]  # an image from 0 to 1


def _affine(image: Grey, matrix: NDArray[np.float64], shift: tuple[float, float] = (0, 0)) -> Grey:
    centre = (np.array(image.shape) - 1) / 2
    offset = centre - matrix @ (centre + np.array(shift))
    return np.asarray(ndimage.affine_transform(image, matrix, offset, order=1))


def rotation(image: Grey, rng: np.random.Generator) -> Grey:
    """By 20 to 35 degrees, to either side."""
    angle = np.deg2rad(rng.uniform(20, 35) * rng.choice([-1, 1]))
    return _affine(
        image, np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    )


def shear(image: Grey, rng: np.random.Generator) -> Grey:
    """Rows move by half of their distance from the middle."""
    return _affine(image, np.array([[1, 0], [rng.choice([-1, 1]) * rng.uniform(0.4, 0.6), 1]]))


def scale(image: Grey, rng: np.random.Generator) -> Grey:
    """Two thirds of the size."""
    return _affine(image, np.eye(2) * rng.uniform(1.4, 1.6))


def translation(image: Grey, rng: np.random.Generator) -> Grey:
    """By three to five pixels in both directions."""
    down, right = rng.uniform(3, 5, 2) * rng.choice([-1, 1], 2)
    return _affine(image, np.eye(2), (down, right))


def blur(image: Grey, rng: np.random.Generator) -> Grey:
    """Out of focus."""
    return np.asarray(ndimage.gaussian_filter(image, rng.uniform(1.3, 1.7)))


def fog(image: Grey, rng: np.random.Generator) -> Grey:
    """A bright smooth cloud, and half of the contrast."""
    cloud = ndimage.gaussian_filter(rng.random(image.shape), 4, mode="wrap")
    cloud = (cloud - cloud.min()) / np.ptp(cloud)
    return np.asarray(0.5 * image + 0.5 * cloud)


def brightness(image: Grey, rng: np.random.Generator) -> Grey:
    """Paper that is a third of the way to white."""
    return np.asarray(np.clip(image + rng.uniform(0.25, 0.4), 0, 1))


def impulse_noise(image: Grey, rng: np.random.Generator) -> Grey:
    """A pixel in nine is black or white."""
    at = rng.random(image.shape)
    return np.where(at < 0.055, 0.0, np.where(at > 0.945, 1.0, image))


def shot_noise(image: Grey, rng: np.random.Generator) -> Grey:
    """As with very little light."""
    return np.asarray(np.clip(rng.poisson(np.clip(image, 0.03, 1) * 4) / 4, 0, 1))


def stripes(image: Grey, rng: np.random.Generator) -> Grey:
    """Columns are inverted in turn, in wide stripes."""
    column = np.arange(image.shape[1]) + rng.integers(0, 8)
    return np.where(column // 7 % 3 == 0, 1 - image, image)


def dotted_line(image: Grey, rng: np.random.Generator) -> Grey:
    """A line of dots from side to side."""
    return _path(image, rng.uniform(2, 25, 2), step=2)


def zigzag(image: Grey, rng: np.random.Generator) -> Grey:
    """A line in a zigzag from side to side."""
    ends = rng.uniform(6, 21, 2)
    heights = np.linspace(*ends, 8) + 3 * np.resize([-1, 1], 8)
    return _path(image, heights, step=1)


def _path(image: Grey, heights: NDArray[np.float64], step: int) -> Grey:
    columns = np.arange(0, image.shape[1] * 4) / 4
    rows = np.interp(columns, np.linspace(0, image.shape[1] - 1, len(heights)), heights)
    some = columns.astype(int) % (2 * step) < step if step > 1 else np.ones(len(columns), bool)
    changed = image.copy()
    changed[np.clip(rows[some].round().astype(int), 0, 27), columns[some].astype(int)] = 1
    return changed


def spatter(image: Grey, rng: np.random.Generator) -> Grey:
    """Drops of ink."""
    drops = ndimage.gaussian_filter(rng.random(image.shape), 1)
    return np.where(drops > np.quantile(drops, 0.94), 1.0, image)


def edges_only(image: Grey, rng: np.random.Generator) -> Grey:
    """The outline of the ink."""
    ink = image > 0.5
    return np.asarray((ink & ~ndimage.binary_erosion(ink)).astype(float))


OTHERS: dict[str, Callable[[Grey, np.random.Generator], Grey]] = {
    change.__name__.replace("_", " "): change
    for change in (
        rotation,
        shear,
        scale,
        translation,
        blur,
        fog,
        brightness,
        impulse_noise,
        shot_noise,
        stripes,
        dotted_line,
        zigzag,
        spatter,
        edges_only,
    )
}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    digits = Split(mnist()).validation
    sets: dict[str, NDArray[np.generic]] = {"y": digits.labels[:N_DIGITS]}
    for name, change in OTHERS.items():
        rng = np.random.default_rng(SEED)
        changed = [change(image / 255, rng) for image in digits.images[:N_DIGITS]]
        sets[name] = (255 * np.clip(changed, 0, 1)).round().astype(np.uint8)
    np.savez_compressed(file, **sets)
    print(f"{file}: {N_DIGITS} validation digits, {', '.join(OTHERS)}")


if __name__ == "__main__":
    main()
