"""The pictures of docs/mnist.md, from the digits in the folder HCNET_DATA or downloaded."""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.mnist_digits import PER_CLASS
from benchmarks.mnist_models import SIGMA, fit_network, fit_templates, mnist_edges
from hcnet import HCN, Deformations, TemplateClassifier
from hcnet.datasets import mnist
from hcnet.datasets.corruptions import CORRUPTIONS
from hcnet.hierarchy.convolution import bconv
from hcnet.plotting.drawing import GAP, PAPER, blank, framed, tile_grid
from hcnet.preprocessing import OrientedEdges
from hcnet.templates.deformations import vary

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


def draw_variants() -> None:
    """Examples of five classes as edges, each with nine of its variants."""
    train = mnist().first(1)
    chosen = train.images[[1, 3, 4, 7, 8]]
    edges = mnist_edges(SIGMA).transform(chosen)
    shown, size = 10, edges[0].shape
    elements = vary(edges, shown - 1, Deformations(), np.random.default_rng(0))
    maps = np.zeros((shown * len(edges), edges[0].size), bool)
    for k, image in enumerate(maps):
        image[elements.where[elements.start[k] : elements.start[k + 1]]] = True
    empty = np.zeros(chosen[0].shape, np.uint8)
    each = [coloured(empty, image.reshape(size)) for image in maps]
    rows = [row(each[k :: len(edges)]) for k in range(len(edges))]
    below(rows).save(IMAGES / "mnist-variants.png", optimize=True)


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


def learned(network: HCN | TemplateClassifier, scale: int) -> list[Image.Image]:
    """The features of the first layer, the most used first, and three templates of each class."""
    parts, templates = network.weights_
    uses = templates.sum(axis=(0, 2, 3))
    order = np.argsort(-uses, kind="stable")
    blank_part = np.zeros(parts.shape[2:], np.uint8)
    sheets = [framed(coloured(blank_part, W), scale) for W in parts[order]]
    drawn = []
    for k in range(3):
        for label in range(10):
            t = np.flatnonzero(network.template_classes_ == label)[k]
            R = bconv(templates[t : t + 1], parts)[0]
            drawn.append(framed(coloured(np.zeros(R.shape[1:], np.uint8), R), SCALE))
    return [tile_grid(sheets, 16, [str(k) for k in uses[order]]), tile_grid(drawn, 10)]


def upper_weights(network: HCN) -> Image.Image:
    """W² of a network whose templates fill the grid below: a row per feature, the most used first.

    Templates are columns, those of a class between two lines.
    """
    templates = network.weights_[1].any(axis=(2, 3)).T
    templates = templates[np.argsort(-templates.sum(axis=1), kind="stable")]
    canvas = np.where(templates[:, :, None], 0, PAPER).astype(np.uint8).repeat(3, axis=2)
    canvas = canvas.repeat(3, axis=0).repeat(3, axis=1)
    first = np.flatnonzero(np.diff(network.template_classes_)) + 1
    canvas[:, 3 * first] = 220, 120, 0
    return framed(canvas, 1)


def draw_learned(image: str, panels: list[Image.Image], captions: list[str]) -> None:
    """Save a picture of what was learned."""
    sheet = tile_grid(panels, columns=1, captions=captions, margin=GAP, gap=2 * GAP)
    sheet.quantize(64).save(IMAGES / image, optimize=True)


def draw_network(network: HCN) -> None:
    """Draw W¹, W² and templates of the network that message passing has learned."""
    features, templates = learned(network, 2)
    captions = [
        "W1: 64 features, and how many of 320 templates use each",
        "W2: features are rows, templates columns, those of a class between two lines",
        "30 templates, each feature at the centre of its pool",
    ]
    draw_learned("mnist-network.png", [features, upper_weights(network), templates], captions)


def draw_digits() -> None:
    """Draw learned parts, edges and corruptions."""
    train = mnist().first(PER_CLASS)
    draw_network(fit_network(train.images, train.labels, 0)[-1])
    captions = ["64 parts, and how often 320 templates use them", "30 templates"]
    panels = learned(fit_templates(train.images, train.labels, 0)[-1], 5)
    draw_learned("mnist-parts.png", panels, captions)
    draw_variants()
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
