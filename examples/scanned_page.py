"""Learn the letters of a scanned page, whose copies are never equal, and read the page.

python examples/scanned_page.py [picture.png]
"""

from __future__ import annotations

import sys
from collections import Counter

from hcnet import FeatureLearner
from hcnet.datasets import Font, ScannedText, scanned_text
from hcnet.images import part_boxes
from hcnet.metrics import character_error_rate
from hcnet.plotting import show_explanation, show_images, show_parts
from hcnet.plotting.drawing import tile_grid
from hcnet.reading import PLACEHOLDER, name_parts, read_text


def scan() -> ScannedText:
    """A page with headlines and italics."""
    fonts = [Font(points=10), Font(points=16), Font(points=10, slant=0.2)]
    return scanned_text(size=(1800, 2200), fonts=fonts, random_state=1)


def typed_names(learner: FeatureLearner, page: ScannedText) -> dict[int, str]:
    """What a person would type for each part: here the commonest text at its places."""
    rows, columns = (page.boxes[:, :2] + page.boxes[:, 2:] / 2).T
    found: dict[int, Counter[str]] = {}
    own = part_boxes(learner.features_)
    for _, part, row, column in learner.placements_.tolist():
        top, left, bottom, right = own[part] + (row, column, row, column)
        inside = (rows > top) & (rows < bottom) & (columns > left) & (columns < right)
        found.setdefault(part, Counter())["".join(page.characters[inside])] += 1
    return {part: texts.most_common(1)[0][0] or " " for part, texts in found.items()}


def main() -> None:
    """Scan a page, learn its letters, name them, and read."""
    path = sys.argv[1] if len(sys.argv) > 1 else "scanned_page.png"
    page = scan()
    learner = FeatureLearner(random_state=0, verbose=True).fit(page.images)
    print(
        f"{learner.algorithm_} parts: {len(learner.features_)}, with {len(learner.placements_)} "
        f"placements for {len(page.characters)} letters"
    )
    name_parts(learner, typed_names(learner, page))
    lines = read_text(learner, page.images)[0]
    print("\n".join(lines))
    wrong = character_error_rate("\n".join(lines), "\n".join(page.text[0]))
    once = "".join(lines).count(PLACEHOLDER)
    print(f"{wrong:.1%} of the characters are wrong; {once} have no part")
    part = (180, 240, 1180, 530)
    panels = [
        show_images(page.images, scale=1).crop(part),
        show_explanation(learner, page.images, scale=1).crop(part),
        show_parts(learner),
    ]
    captions = [
        "Seen: a scan",
        "Its letters in the colours of their parts",
        "All parts, the most used first",
    ]
    tile_grid(panels, columns=1, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
