"""Makes the pictures of docs/report.md and docs/command-line.md; the first needs Chromium.

python docs/make_report_figures.py
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from hcnet import FeatureLearner
from hcnet.datasets import letters
from hcnet.plotting import show_errors

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Learn the letters, click a part and a pixel, and keep what the browser shows."""
    from chromium import Browser

    X = letters(noise=0.03, random_state=0).images
    learner = FeatureLearner(feature_size=12, random_state=0).fit(X)
    errors = show_errors(X[:, :, :80, :160], learner.denoise(X)[:, :, :80, :160], scale=4)
    errors.quantize(16).save(IMAGES / "command-line-errors.png", optimize=True)
    with tempfile.TemporaryDirectory() as folder, Browser(1100, 900) as browser:
        path = learner.report(Path(folder) / "report.html", X, names=["page.png"])
        browser.open(path)
        browser.click("#layers .part:nth-child(2)")
        _, _, row, column = next(
            place for place in learner.placements_ if place[1] == 1 and 40 < place[2] < 120
        )
        scale = browser.value("Number(document.getElementById('image-size').value)")
        browser.click("#image", (column + 5.5) * scale, (row + 4.5) * scale)
        browser.value("window.scrollTo(0, 0)")
        shot = Path(folder) / "shot.png"
        browser.screenshot(shot)
        with Image.open(shot) as picture:
            top = picture.convert("RGB").crop((0, 0, 1100, min(picture.height, 1085)))
            top.quantize(64).save(IMAGES / "report.png", optimize=True)


if __name__ == "__main__":
    main()
