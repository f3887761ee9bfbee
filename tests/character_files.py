"""Small files of the kinds that Omniglot has: runs, and alphabets of a background set."""

import zipfile

import numpy as np
from PIL import Image

SIDE = 9


def drawing(rng):
    return rng.random((SIDE, SIDE)) < 0.3


def draw(path, ink):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(~ink).save(path)  # ink is dark


def write_run(folder, seed=0, n=3):
    """A run of n characters; returns examples, test images and the labels of these."""
    rng = np.random.default_rng(seed)
    examples, tests = ([drawing(rng) for _ in range(n)] for _ in range(2))
    labels = rng.permutation(n)
    lines = []
    for k in range(n):
        draw(folder / "training" / f"class{k + 1:02d}.png", examples[k])
        draw(folder / "test" / f"item{k + 1:02d}.png", tests[k])
        own = f"{folder.name}/training/class{labels[k] + 1:02d}.png"
        lines.append(f"{folder.name}/test/item{k + 1:02d}.png {own}")
    (folder / "class_labels.txt").write_text("\n".join(lines) + "\n")
    return examples, tests, labels


def write_alphabet(folder, seed=0, n_characters=4, n_drawers=3):
    """An alphabet; returns its images (characters, drawers, height, width)."""
    rng = np.random.default_rng(seed)
    images = np.array([[drawing(rng) for _ in range(n_drawers)] for _ in range(n_characters)])
    for k, own in enumerate(images):
        for drawer, ink in enumerate(own):
            draw(folder / f"character{k + 1:02d}" / f"{600 + k:04d}_{drawer + 1:02d}.png", ink)
    return images


def pack(folder, archive):
    """A zip archive of what is in a folder."""
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder))
    return archive
