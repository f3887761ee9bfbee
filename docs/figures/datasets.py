"""The pictures of docs/datasets.md.

Every picture shows the observed images on the left and the true parts on the right, enlarged
without smoothing. Seed 0 throughout, so that the pictures can be compared with one's own.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from hcnet import datasets

FOLDER = Path(__file__).parents[1] / "images"
PAPER, INK, FRAME, UNSEEN = 255, 0, 160, 200
GAP = 12  # screen pixels between panels


def panel(bits: np.ndarray, scale: int, mask: np.ndarray | None = None) -> np.ndarray:
    """One image, enlarged, with a thin frame; what the mask hides is grey."""
    grey = np.where(bits, INK, PAPER).astype(np.uint8)
    if mask is not None:
        grey[mask] = UNSEEN
    return np.pad(grey.repeat(scale, axis=0).repeat(scale, axis=1), 2, constant_values=FRAME)


def grid(panels: Sequence[np.ndarray], columns: int) -> np.ndarray:
    """Panels side by side, row by row."""
    height = max(one.shape[0] for one in panels)
    width = max(one.shape[1] for one in panels)
    rows = -(-len(panels) // columns)
    shape = (rows * (height + GAP) - GAP, columns * (width + GAP) - GAP)
    canvas = np.full(shape, PAPER, dtype=np.uint8)
    for index, one in enumerate(panels):
        top, left = (index // columns) * (height + GAP), (index % columns) * (width + GAP)
        canvas[top : top + one.shape[0], left : left + one.shape[1]] = one
    return canvas


def beside(*blocks: np.ndarray) -> np.ndarray:
    """Blocks in a row, centred vertically, with a margin."""
    height = max(block.shape[0] for block in blocks)
    columns = []
    for block in blocks:
        above = (height - block.shape[0]) // 2
        rows = (above, height - block.shape[0] - above)
        columns.append(np.pad(block, (rows, (0, 2 * GAP)), constant_values=PAPER))
    joined = np.concatenate(columns, axis=1)[:, : -2 * GAP]
    return np.pad(joined, GAP, constant_values=PAPER)


def save(name: str, picture: np.ndarray) -> None:
    """Write one picture."""
    path = FOLDER / f"datasets-{name}.png"
    Image.fromarray(picture).save(path, optimize=True)
    print(f"{path.name}: {picture.shape[1]} x {picture.shape[0]}")


def parts_figure(
    name: str,
    data: datasets.PartsData,
    *,
    scale: int,
    part_scale: int,
    part_columns: int,
    images: int = 1,
    image_columns: int = 1,
) -> None:
    """Some images and all parts of a data set."""
    seen = [panel(image[0], scale) for image in data.images[:images]]
    parts = [panel(feature[0], part_scale) for feature in data.features]
    save(name, beside(grid(seen, image_columns), grid(parts, part_columns)))


def shapes_figure(data: datasets.ShapesData) -> None:
    """Some images of each category, all parts, and which template has which part."""
    categories = [
        grid([panel(image[0], 4) for image in data.images[data.labels == label][:8]], 2)
        for label in (0, 1)
    ]
    parts = grid([panel(feature[0], 6) for feature in data.features], 2)
    save("shapes", beside(*categories, parts, panel(data.template_weights[..., 0, 0], 30)))


def scanned_figure() -> None:
    """The same words at growing strength."""
    words = {"text": "Some letters touch the\nnext one, some are broken.", "size": (170, 620)}
    pages = [
        datasets.scanned_text(**words, strength=s, touching=0.03, broken=0.02, random_state=0)
        for s in (0, 1, 2, 4)
    ]
    save("scanned-text", beside(grid([panel(page.images[0, 0], 1) for page in pages], 2)))


def draw_datasets() -> None:
    """Draw some images and the true parts of every data set."""
    seed = {"random_state": 0}
    parts_figure("two-bars", datasets.two_bars(**seed), scale=6, part_scale=6, part_columns=1)
    parts_figure("symbols", datasets.symbols(**seed), scale=3, part_scale=6, part_columns=2)
    parts_figure("letters", datasets.letters(**seed), scale=3, part_scale=6, part_columns=2)
    parts_figure(
        "letters-noisy", datasets.letters(noise=0.03, **seed), scale=3, part_scale=6, part_columns=2
    )
    parts_figure("text", datasets.text(**seed), scale=3, part_scale=5, part_columns=4)
    scanned_figure()
    parts_figure(
        "small-letters",
        datasets.small_letters(**seed),
        scale=4,
        part_scale=6,
        part_columns=1,
        images=8,
        image_columns=4,
    )
    shapes_figure(datasets.shapes(**seed))
    for name, patterns in (("deconvolution", "fixed"), ("deconvolution-random", "random")):
        parts_figure(
            name,
            datasets.deconvolution(patterns=patterns, **seed),
            scale=6,
            part_scale=10,
            part_columns=2,
            images=15,
            image_columns=5,
        )
    matrix = datasets.boolean_matrix(shape=(60, 80), rank=3, flips=0.05, observed=0.8, **seed)
    save(
        "boolean-matrix",
        beside(
            panel(matrix.table, 4, matrix.mask),
            panel(matrix.clean, 4),
            panel(matrix.row_factors, 4),
            panel(matrix.column_factors, 4),
        ),
    )
