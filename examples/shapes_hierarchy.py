"""Learn a hierarchy without labels: shapes made of parts, parts made of pixels.

python examples/shapes_hierarchy.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.plotting import show_images, show_model
from hcnet.plotting.drawing import tile_grid


def main() -> None:
    """Learn from 100 images, cluster 1,000 new ones, draw what was learned and what it dreams."""
    path = sys.argv[1] if len(sys.argv) > 1 else "shapes_hierarchy.png"
    train, test = shapes(random_state=0), shapes(n_images=1000, random_state=1)
    # Four parts, four templates; every part and every pixel may move within 3×3.
    model = HCN([Layer(4, size=21), Layer()], n_classes=4, random_state=0, verbose=True)
    model.fit(train.images)
    clusters = model.predict(test.images)
    # A cluster is named after the shape that is most often in it.
    table = np.array(
        [[(test.templates[clusters == k] == t).sum() for t in range(4)] for k in range(4)]
    )
    print(f"{table.max(axis=1).sum()} of {len(test.images)} new images in the right cluster")
    names = [test.template_names[t] for t in table.argmax(axis=1)]
    drawn, _ = model.sample(16, random_state=3)
    panels = [
        show_images(train.images[:16], columns=8, scale=3),
        show_model(model, names, scale=5),
        show_images(drawn, columns=8, scale=3),
    ]
    captions = [
        "Seen: 100 images like these, no labels",
        "Learned: four parts and four templates, named after the fact",
        "Drawn by the network",
    ]
    tile_grid(panels, columns=1, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
