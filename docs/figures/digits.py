"""The pictures of docs/mnist.md, from the digits in the folder HCNET_DATA or downloaded."""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.mnist_models import fit_templates
from hcnet.datasets import mnist
from hcnet.datasets.corruptions import CORRUPTIONS
from hcnet.hierarchy.convolution import bconv
from hcnet.plotting.drawing import GAP, PAPER, blank, framed, tile_grid
from hcnet.preprocessing import OrientedEdges

IMAGES = Path(__file__).parents[1] / "images"
SCALE = 3
PALE = 0.25  # how dark ink is below the edges that are drawn over it


def grey(image: NDArray[np.uint8], darkness: float = 1.0) -> NDArray[np.uint8]:
    """Ink dark on white paper, as colours (height, width, 3)."""
    shade = np.rint(PAPER - darkness * image).astype(np.uint8)
    return shade[:, :, None].repeat(3, axis=2)


def coloured(image: NDArray[np.uint8], edges: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Edges in the colours of their directions, on the pale image."""
    canvas = grey(image, PALE)
    for k, plane in enumerate(edges):
        colour = colorsys.hsv_to_rgb(k / len(edges), 1.0, 0.85)
        canvas[plane] = np.rint(PAPER * np.array(colour))
    return canvas


def row(canvases: list[NDArray[np.uint8]]) -> Image.Image:
    """Enlarged, side by side."""
    return tile_grid([framed(canvas, SCALE) for canvas in canvases], columns=len(canvases))


def disc() -> NDArray[np.uint8]:
    """Has edges in all directions: the key to the colours."""
    y, x = np.mgrid[:28, :28] - 13.5
    return np.clip(255 * (10.5 - np.hypot(x, y)), 0, 255).astype(np.uint8)


def below(rows: list[Image.Image]) -> Image.Image:
    """Rows of one width, one below the other."""
    sheet = blank(rows[0].width, sum(one.height + GAP for one in rows) - GAP)
    top = 0
    for one in rows:
        sheet.paste(one, (0, top))
        top += one.height + GAP
    return sheet


def learned() -> Image.Image:
    """The parts of a network that has learned digits, the most used first, and some templates."""
    train = mnist().first(40)
    network = fit_templates(train.images, train.labels, 0)[-1]
    parts, templates = network.weights_
    order = np.argsort(-templates.sum(axis=(0, 2, 3)), kind="stable")
    blank_part = np.zeros(parts.shape[2:], np.uint8)
    sheets = [framed(coloured(blank_part, W), 5) for W in parts[order]]
    uses = [str(k) for k in templates.sum(axis=(0, 2, 3))[order]]
    drawn = []
    for label in range(10):
        for t in np.flatnonzero(network.template_classes_ == label)[:3]:
            S = np.zeros((1, len(parts), *templates.shape[2:]), bool)
            S[0] = templates[t]
            R = bconv(S, parts)[0]
            drawn.append(framed(coloured(np.zeros(R.shape[1:], np.uint8), R), SCALE))
    order = [3 * label + k for k in range(3) for label in range(10)]
    return tile_grid(
        [tile_grid(sheets, 16, uses), tile_grid([drawn[k] for k in order], 10)],
        columns=1,
        captions=["64 parts, and how often 320 templates use them", "30 templates"],
        margin=GAP,
        gap=2 * GAP,
    )


def draw_digits() -> None:
    """Draw learned parts, edges and corruptions."""
    learned().save(IMAGES / "mnist-parts.png", optimize=True)
    first = mnist().first(1)
    digits = first.images[np.argsort(first.labels)]
    images = np.concatenate([disc()[None], digits])
    edges = OrientedEdges().transform(images)
    pictures = [grey(image) for image in images], list(map(coloured, images, edges))
    below([row(line) for line in pictures]).save(IMAGES / "mnist-edges.png", optimize=True)

    blocks, captions = [], []
    for name, corrupt in {"clean": lambda images, random_state: images, **CORRUPTIONS}.items():
        changed = corrupt(digits, random_state=0)
        edges = OrientedEdges().transform(changed)
        pictures = [grey(image) for image in changed], list(map(coloured, changed, edges))
        blocks.append(below([row(line) for line in pictures]))
        captions.append(name)
    sheet = tile_grid(blocks, columns=1, captions=captions, gap=2 * GAP)
    sheet.quantize(128).save(IMAGES / "mnist-corruptions.png", optimize=True)
