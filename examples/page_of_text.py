"""Learn the letters of a page of text from the page alone, through the noise.

python examples/page_of_text.py [picture.png]
"""

from __future__ import annotations

import sys

from hcnet import FeatureLearner
from hcnet.datasets import text
from hcnet.metrics import matched_iou
from hcnet.plotting import show_explanation, show_images, show_model
from hcnet.plotting.drawing import tile_grid

WORDS = """atone notes stain train ration senator orient aroma minor latin melon salmon tailor
reason lion omen item time smile slime liter tiles alien snail nails metal steal loan roast"""


def main() -> None:
    """Set a page, learn its letters, and draw what was found."""
    path = sys.argv[1] if len(sys.argv) > 1 else "page_of_text.png"
    page = text(size=(125, 190), noise=0.015, words=WORDS, random_state=0)
    # A window a little larger than a letter; how many letters there are is not said.
    learner = FeatureLearner(feature_size=(13, 13), random_state=0, verbose=True).fit(page.images)
    clean = learner.denoise(page.images)
    exact = (matched_iou(learner.features_, page.features) == 1).sum()
    print(f"{len(learner.features_)} parts, {exact} of {len(page.features)} letters exactly")
    print(
        f"wrong pixels: {(page.images != page.clean).sum()} on the page, "
        f"{(clean != page.clean).sum()} after it was read"
    )
    panels = [
        show_images(page.images, scale=3),
        show_explanation(learner, page.images, scale=3),
        show_model(learner, scale=5),
        show_images(clean, scale=3),
    ]
    captions = [
        "Seen: a noisy page",
        f"{len(learner.placements_)} placements",
        f"{len(learner.features_)} parts, and how often each stands on the page",
        "Rebuilt from parts alone",
    ]
    tile_grid(panels, columns=2, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
