"""Draw the picture of the README: the letters of a noisy picture, learned.

python docs/make_readme_figure.py
"""

from pathlib import Path

from hcnet import FeatureLearner
from hcnet.datasets import letters
from hcnet.plotting import show_comparison

PATH = Path(__file__).parent / "images" / "parts.png"


def main() -> None:
    """Learn, and draw what was found."""
    data = letters(noise=0.03, random_state=0)
    learner = FeatureLearner(feature_size=(12, 12), random_state=0, verbose=True).fit(data.images)
    clean = learner.denoise(data.images)
    picture = show_comparison(data.images[0], learner.placements_, learner.features_, clean[0])
    # Fewer than 256 colours: a palette takes two thirds of the bytes, and loses nothing.
    picture.quantize(256).save(PATH, optimize=True)
    print(f"{PATH.name}: {picture.width} x {picture.height}")


if __name__ == "__main__":
    main()
