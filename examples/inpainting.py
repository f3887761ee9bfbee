"""Repair a picture of which a third is missing, by parts that are learned from what is left.

python examples/inpainting.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet import FeatureLearner
from hcnet.datasets import letters
from hcnet.images import BoolArray
from hcnet.plotting import show_features, show_images
from hcnet.plotting.drawing import tile_grid


def scratches(shape: tuple[int, int], rng: np.random.Generator) -> BoolArray:
    """Slanted strokes and blots all over a picture."""
    y, x = np.indices(shape)
    gone = np.zeros(shape, bool)
    for _ in range(13):
        angle, offset = rng.uniform(-0.9, 0.9), rng.uniform(-60, shape[1] + 60)
        gone |= np.abs(x - angle * y - offset) < 2.5
    for _ in range(16):
        r, c, radius = rng.uniform(0, shape[0]), rng.uniform(0, shape[1]), rng.uniform(4, 8)
        gone |= (y - r) ** 2 + (x - c) ** 2 < radius**2
    return gone


def main() -> None:
    """Damage a picture, learn from what is left of it, and fill in the rest."""
    path = sys.argv[1] if len(sys.argv) > 1 else "inpainting.png"
    data = letters(
        size=(120, 120), characters="AEGKMT", n_placements=60, noise=0.01, random_state=2
    )
    image, truth = data.images[0, 0], data.clean[0, 0]
    mask = scratches(image.shape, np.random.default_rng(0))
    learner = FeatureLearner(feature_size=(12, 12), random_state=0, verbose=True)
    learner.fit(image, mask=mask)
    filled = learner.inpaint(image, mask)
    print(
        f"{mask.mean():.0%} of the pixels are missing; of {truth[mask].sum()} that were ink "
        f"{(filled & truth)[mask].sum()} are back, with {(filled & ~truth)[mask].sum()} too many"
    )
    restored = learner.denoise(image, mask)
    panels = [
        show_images(image, mask, scale=3),
        show_features(learner.features_, columns=3, colours=True, scale=7),
        show_images(restored, scale=3),
        show_images(truth, scale=3),
    ]
    captions = [
        "Seen: amber is missing",
        f"{len(learner.features_)} parts learned from it",
        "Filled in, without noise",
        "Truth",
    ]
    tile_grid(panels, columns=2, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
