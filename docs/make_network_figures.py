"""Makes the pictures of docs/network.md: python docs/make_network_figures.py."""

from pathlib import Path

import numpy as np

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.plotting import image_grid, show_completion, show_features, show_image, show_templates
from hcnet.plotting.drawing import tile_grid

IMAGES = Path(__file__).parent / "images"
POOLS = [(3, 3), (3, 3)]


def main() -> None:
    """Learn with and without labels, and draw what was learned."""
    data = shapes(random_state=0)
    layers = [Layer(4, size=21), Layer()]
    clusters = HCN(layers, n_classes=4, random_state=0).fit(data.images)
    classes = HCN(layers, templates_per_class=2, random_state=0).fit(data.images, data.labels)

    image_grid(data.images[:16], columns=8, scale=3).save(IMAGES / "network-data.png")
    models = {"without labels": clusters, "with labels": classes}
    panels = [
        show_features(model.weights_[0], colours=True, columns=4, scale=4)
        for model in models.values()
    ]
    panels += [show_image(model.weights_[1].reshape(4, 4), scale=22) for model in models.values()]
    panels += [
        show_templates(
            model.weights_, POOLS, [f"class {k}" for k in model.template_classes_], 4, scale=4
        )
        for model in models.values()
    ]
    captions = [
        f"{what}, {name}"
        for what in ("W1", "W2: a row per template, a column per feature", "Templates")
        for name in models
    ]
    sheet = tile_grid(panels, columns=2, captions=captions, gap=28)
    sheet.quantize(64).save(IMAGES / "network-weights.png", optimize=True)

    test = shapes(n_images=8, random_state=1)
    mask = np.zeros((25, 25), bool)
    mask[6:19, 6:19] = True
    filled = clusters.inpaint(test.images, np.broadcast_to(mask, test.images.shape))
    show_completion(test.images, mask, filled, test.images, scale=4).save(
        IMAGES / "network-inpainting.png"
    )
    drawn, _ = clusters.sample(16, random_state=0)
    image_grid(drawn, columns=8, scale=3).save(IMAGES / "network-samples.png")


if __name__ == "__main__":
    main()
