"""Learn handwritten digits from 40 examples each; fill in half-erased ones, and draw new ones.

python examples/digits.py [picture.png]

The digits are those of MNIST: downloaded (11 MB), or from the folder that HCNET_DATA names.
"""

from __future__ import annotations

import colorsys
import sys

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hcnet import HCN, TemplateClassifier
from hcnet.datasets import mnist
from hcnet.datasets.mnist import MnistData
from hcnet.plotting.drawing import framed, tile_grid
from hcnet.preprocessing import OrientedEdges

DIRECTIONS = 8
TESTED = 1000


def main() -> None:
    """Learn, recognise new digits, fill in some of which half is missing, draw some of each."""
    path = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
    data, edges = mnist(), OrientedEdges(DIRECTIONS, shared=0.9)
    train = data.first(40)
    # 64 small parts that may shift by two pixels; a template is made of some of them.
    model = TemplateClassifier(64, 7, templates_per_class=32, random_state=0, verbose=True)
    model.fit(edges.transform(train.images), train.labels)
    use(model, edges, data, TESTED, path)


def use(
    model: TemplateClassifier | HCN, edges: OrientedEdges, data: MnistData, tested: int, path: str
) -> None:
    """Recognise new digits, fill in some of which half is missing, and draw some of each class."""
    new = edges.transform(data.test_images[:tested])
    right = model.predict(new) == data.test_labels[:tested]
    print(f"{right.sum()} of {len(right)} new digits recognised")

    chosen = [np.flatnonzero(data.test_labels == k)[1] for k in range(10)]
    some = edges.transform(data.test_images[chosen])
    mask = np.zeros(some.shape, bool)
    mask[:, :, some.shape[2] // 2 :] = True
    filled = model.inpaint(some, mask)
    named = model.predict(some, mask)
    drawn = [model.sample(3, label=k, random_state=k, clean=True)[0] for k in range(10)]

    panels = [
        row(some & ~mask, mask[:, 0]),
        row(filled),
        row(some),
        tile_grid([row(np.array([sheet[j] for sheet in drawn])) for j in range(3)], columns=1),
    ]
    captions = [
        "Seen: the upper half of ten new digits, as edges; colours are directions",
        f"Filled in, and taken for {' '.join(map(str, named))}",
        "The whole truth",
        "Drawn by the model: three of each class",
    ]
    tile_grid(panels, columns=1, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


def row(
    images: NDArray[np.bool_], missing: NDArray[np.bool_] | None = None, scale: int = 3
) -> Image.Image:
    """Edges in the colours of their directions, side by side; amber where nothing was seen."""
    canvases = []
    for n, planes in enumerate(images):
        canvas = np.full((*planes.shape[1:], 3), 255, np.uint8)
        if missing is not None:
            canvas[missing[n]] = 255, 236, 190
        for k, plane in enumerate(planes):
            colour = colorsys.hsv_to_rgb(k / len(planes), 1.0, 0.8)
            canvas[plane] = np.rint(255 * np.array(colour))
        canvases.append(canvas)
    return tile_grid([framed(canvas, scale) for canvas in canvases], columns=len(canvases))


if __name__ == "__main__":
    main()
