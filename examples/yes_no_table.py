"""Find what goes together in a yes/no table with wrong and missing answers.

Who buys what: every customer cooks some of a few dishes, and buys all that they need.

python examples/yes_no_table.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hcnet import BooleanMatrixFactorization
from hcnet.images import BoolArray
from hcnet.plotting.drawing import MISSING, colour_of, framed, tile_grid

CUSTOMERS, WRONG, UNKNOWN = 48, 0.04, 0.15
DISHES = {
    "pancakes": ("eggs", "milk", "flour", "butter", "syrup", "berries"),
    "pasta": ("noodles", "tomatoes", "garlic", "olive oil", "basil", "cheese"),
    "curry": ("rice", "chickpeas", "coconut", "ginger", "garlic", "onions", "spinach"),
    "salad": ("lettuce", "tomatoes", "cucumber", "olive oil", "onions", "lemon"),
    "cake": ("eggs", "flour", "butter", "sugar", "chocolate", "cream"),
}
CELL = 14


def survey(rng: np.random.Generator) -> tuple[BoolArray, BoolArray, BoolArray, list[str]]:
    """Answers, the truth behind them, where there is no answer, and the goods in any order."""
    goods = sorted({good for needed in DISHES.values() for good in needed})
    rng.shuffle(goods)
    needs = np.array([[good in needed for good in goods] for needed in DISHES.values()])
    cooks = rng.random((CUSTOMERS, len(DISHES))) < 0.35
    truth = (cooks[:, :, None] & needs).any(axis=1)
    answers = truth ^ (rng.random(truth.shape) < WRONG)
    return answers, truth, rng.random(truth.shape) < UNKNOWN, goods


def labelled(canvas: np.ndarray, words: list[str], rows: list[str] | None = None) -> Image.Image:
    """A table with a word over every column, and a name before every row."""
    font = ImageFont.load_default(12)
    head = max(int(font.getlength(word)) for word in words) + 6
    left = max((int(font.getlength(row)) for row in rows), default=0) + 8 if rows else 0
    large = canvas.repeat(CELL, axis=0).repeat(CELL, axis=1)
    large[CELL - 1 :: CELL] = large[:, CELL - 1 :: CELL] = 232
    table = framed(large, 1)
    sheet = Image.new("RGB", (left + table.width, head + table.height), (255, 255, 255))
    sheet.paste(table, (left, head))
    for k, word in enumerate(words):
        tile = Image.new("RGB", (head, CELL + 2), (255, 255, 255))
        ImageDraw.Draw(tile).text((2, 0), word, fill=(0, 0, 0), font=font)
        sheet.paste(tile.rotate(90, expand=True), (left + 1 + k * CELL, 0))
    for k, row in enumerate(rows or []):
        ImageDraw.Draw(sheet).text((0, head + k * CELL), row, fill=(0, 0, 0), font=font)
    return sheet


def painted(table: BoolArray, owners: np.ndarray) -> np.ndarray:
    """Cells that are on, in the colour of what they belong to (-1: black)."""
    canvas = np.full((*table.shape, 3), 255, np.uint8)
    canvas[table] = (60, 60, 60)
    for k in range(owners.max() + 1):
        canvas[table & (owners == k)] = colour_of(k)
    return canvas


def main() -> None:
    """Ask, factor the table, and draw what was found."""
    path = sys.argv[1] if len(sys.argv) > 1 else "yes_no_table.png"
    answers, truth, mask, goods = survey(np.random.default_rng(3))
    model = BooleanMatrixFactorization(random_state=0, verbose=True).fit(answers, mask=mask)
    codes = model.codes_
    filled = model.inverse_transform(codes)
    right, before = filled == truth, answers == truth
    print(f"{len(model.components_)} dishes found, {len(DISHES)} there are")
    print(
        f"answers that are right: {before[~mask].mean():.1%} as given, {right[~mask].mean():.1%} "
        f"now; of those that were missing {right[mask].mean():.1%}"
    )
    for k, component in enumerate(model.components_):
        print(f"  dish {k + 1}:", ", ".join(np.array(goods)[component]))

    # Goods beside those that they are bought with, customers beside those who cook the same.
    columns = np.lexsort(~model.components_[::-1])
    rows = np.lexsort(~codes.T[::-1])
    asked = painted(answers, np.full(answers.shape, -1))
    asked[mask] = MISSING
    owner = np.full(truth.shape, -1)
    for k in reversed(range(len(model.components_))):
        owner[np.outer(codes[:, k], model.components_[k])] = k
    dish = np.indices(model.components_.shape)[0]
    parts = painted(model.components_, dish)
    names = [f"dish {k + 1}" for k in range(len(model.components_))]
    words = [goods[k] for k in columns]
    panels = [
        labelled(asked, goods),
        tile_grid(
            [
                labelled(parts[:, columns], words, names),
                labelled(painted(filled, owner)[np.ix_(rows, columns)], words),
            ],
            columns=1,
            gap=24,
        ),
    ]
    captions = ["Asked: who buys what (amber: no answer)", "Found: the dishes, and who cooks them"]
    tile_grid(panels, columns=2, captions=captions, margin=8, gap=32).save(path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
