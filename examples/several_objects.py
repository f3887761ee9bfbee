"""Learn from images of one object, then recognise several in larger images, without retraining.

python examples/several_objects.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.images import BoolArray
from hcnet.plotting import show_images
from hcnet.plotting.drawing import tile_grid

SIZE = (28, 84)  # room for three patterns of 25×25 side by side
IMAGES = 200


def scenes(n: int, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """Images with none to three patterns side by side, and which of the four are in them."""
    X = np.zeros((n, 1, *SIZE), bool)
    present = np.zeros((n, 4), bool)
    for k in range(n):
        count = int(rng.integers(0, 4))
        single = shapes(n_images=3, noise=0, random_state=rng)
        for one, place in enumerate(rng.permutation(3)[:count]):
            r, c = rng.integers(4), 28 * place + rng.integers(4)
            X[k, :, r : r + 25, c : c + 25] = single.images[one]
            present[k, single.templates[one]] = True
    return X ^ (rng.random(X.shape) < 1e-3), present


def main() -> None:
    """Learn, recognise, and draw new scenes."""
    path = sys.argv[1] if len(sys.argv) > 1 else "several_objects.png"
    train = shapes(random_state=0)
    model = HCN([Layer(4, size=21), Layer()], n_classes=4, random_state=0, verbose=True)
    model.fit(train.images, train.templates)
    several = model.with_class_layer(p_on=1e-3, image_size=SIZE)
    X, present = scenes(IMAGES, np.random.default_rng(1))
    found = several.predict(X)
    print(f"images with exactly the right classes: {(found == present).all(axis=1).mean():.1%}")
    print(f"single classes right: {(found == present).mean():.2%}")
    names = list(train.template_names)
    captions = [" + ".join(names[k] for k in np.flatnonzero(row)) or "nothing" for row in found[:6]]
    drawn, classes = several.sample(60, random_state=3)
    crowded = drawn[classes.sum(axis=1) > 1][:2]
    panels = [
        show_images(train.images[:8], columns=8, scale=4),
        show_images(X[:6], columns=2, scale=5, captions=captions),
        show_images(crowded, columns=2, scale=5),
    ]
    about = [
        "Learned from images of one object",
        "Recognised in larger images, without retraining",
        "New scenes, drawn by the network",
    ]
    tile_grid(panels, columns=1, captions=about, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
