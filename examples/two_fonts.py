"""Find out which letters of two fonts belong together, from words alone.

python examples/two_fonts.py [picture.png]

Every image is a word of two letters, each in one of two fonts at random; there are no labels.  A
letter in one font has hardly a pixel in common with the same letter in the other.  Only the words
say that they are the same: they take each other's place.
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet import HCN, Layer
from hcnet.datasets import words
from hcnet.metrics import groups_found
from hcnet.plotting import show_images, show_model
from hcnet.plotting.drawing import tile_grid

WORDS = ("AC", "CH", "HT", "TA")


def main() -> None:
    """Learn the letters, their fonts and the words; draw all of them, and new words."""
    path = sys.argv[1] if len(sys.argv) > 1 else "two_fonts.png"
    data = words(WORDS, n_images=150, random_state=1)
    size = data.features.shape[2:]
    model = HCN(
        [
            Layer(8, size=size, pool=1, variants=2, damping=0.05),
            Layer(perturbation=0.3, p_W=0.05, damping=0.05),
        ],
        n_classes=len(WORDS),
        n_init=3,
        max_iter=120,
        random_state=1,
        verbose=True,
    ).fit(data.images)
    groups = groups_found(model.weights_[0], data.features, 2)
    found = model.cluster(data.images)
    pure = sum(np.bincount(data.labels[found == k]).max() for k in np.unique(found))
    print(f"{groups} of 4 letters are a group of their two fonts")
    print(f"{pure} of {len(found)} images are in a cluster of their word")
    drawn, _ = model.sample(12, random_state=0)
    panels = [
        show_images(data.images[:12], columns=6, scale=5),
        show_model(model, scale=6),
        show_images(drawn, columns=6, scale=5),
    ]
    about = [
        "Words to learn from",
        "Learned: templates, and the letters in groups of two",
        "New words, in any font",
    ]
    tile_grid(panels, columns=1, captions=about, gap=24).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
