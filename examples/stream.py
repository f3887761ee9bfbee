"""Learn from a stream whose alphabet changes: old parts go, new ones come.

python examples/stream.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np

from hcnet import FeatureLearner
from hcnet.datasets import small_letters
from hcnet.plotting import show_features, show_images
from hcnet.plotting.drawing import tile_grid

OLD, NEW = "AGKRS", "BEMTX"
LOOKS = (25, 100, 300, 330, 400, 600)  # images seen so far; the alphabet changes after 300


def main() -> None:
    """Show every image once, in memory that does not grow, and look at the parts now and then."""
    path = sys.argv[1] if len(sys.argv) > 1 else "stream.png"
    old, new = (
        small_letters(n_images=300, characters=characters, n_characters=5, random_state=0).images
        for characters in (OLD, NEW)
    )
    stream = np.concatenate([old, new])
    learner = FeatureLearner(n_features=6, feature_size=12, random_state=0)
    tiles, seen = [], 0
    for look in LOOKS:
        learner.partial_fit(stream[seen:look], forgetting=0.9)
        seen = look
        tiles.append(show_features(learner.features_, colours=True, columns=3, scale=5))
        print(f"{look} images: {len(learner.features_)} parts")
    captions = [f"after {look} images" for look in LOOKS]
    panels = [
        show_images([*stream[:6], *stream[-6:]], columns=12, scale=2),
        tile_grid(tiles, columns=3, captions=captions, gap=16),
    ]
    about = ["The stream: images 1 to 6, and 595 to 600", "The parts, the most used first"]
    tile_grid(panels, columns=1, captions=about, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
