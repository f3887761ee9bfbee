"""Makes the picture of docs/online.md: python docs/make_online_figures.py."""

from pathlib import Path

from hcnet import FeatureLearner
from hcnet.datasets import small_letters
from hcnet.metrics import matched_iou
from hcnet.plotting import show_features
from hcnet.plotting.drawing import tile_grid

IMAGES = Path(__file__).parent / "images"
OLD, NEW = "AGKRS", "BEMTX"
FORGETTING = (0.8, 0.95, 0.99)
# Images of the new characters that have been seen.
LOOKS = (0, 25, 50, 100, 200, 400)


def main() -> None:
    """Learn one alphabet, then another, and look at the parts on the way."""
    old = small_letters(n_images=500, characters=OLD, n_characters=5, random_state=0)
    new = small_letters(n_images=max(LOOKS), characters=NEW, n_characters=5, random_state=1)
    tiles, captions = [], []
    for forgetting in FORGETTING:
        learner = FeatureLearner(8, 12, random_state=0)
        learner.partial_fit(old.images, forgetting=forgetting)
        seen = 0
        for look in LOOKS:
            if look:
                learner.partial_fit(new.images[seen:look], forgetting=forgetting)
                seen = look
            known = [
                int((matched_iou(learner.features_, data.features) >= 0.95).sum())
                for data in (old, new)
            ]
            print(f"lambda={forgetting} new images: {look} old, new characters known: {known}")
            tiles.append(show_features(learner.features_, colours=True, columns=4, scale=3))
            captions.append(f"lambda {forgetting}, {look} new images")
    sheet = tile_grid(tiles, columns=len(LOOKS), captions=captions, gap=24)
    sheet.quantize(64).save(IMAGES / "online-forgetting.png", optimize=True)


if __name__ == "__main__":
    main()
