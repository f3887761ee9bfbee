"""The diagrams of docs/model.md."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.hierarchy.convolution import bconv
from hcnet.hierarchy.network import sample, sample_templates
from hcnet.plotting.drawing import colour_of

IMAGES = Path(__file__).parents[1] / "images"
INK, GREY = "#222222", "#9a9a9a"
COLOURS = ["#{:02x}{:02x}{:02x}".format(*colour_of(k)) for k in range(3)]

# The same bytes on every run: no date, no random ids, letters as outlines.
mpl.rcParams.update({"svg.hashsalt": "hcnet", "font.family": "DejaVu Sans", "font.size": 11})


def save(figure: Any, name: str) -> None:
    """Write one diagram."""
    path = IMAGES / f"{name}.svg"
    figure.savefig(path, bbox_inches="tight", pad_inches=0.08, metadata={"Date": None})
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def canvas(width: float, height: float) -> tuple[Any, Any]:
    """An empty drawing, in inches."""
    figure = Figure(figsize=(width, height))
    axes = figure.subplots()
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    return figure, axes


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
    """An arrow between two points."""
    options = {"arrowstyle": "-|>", "mutation_scale": 12, "color": INK, "lw": 1.2} | style
    axes.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, **options))


def grid(axes: Any, cells: np.ndarray, corner: tuple[float, float], cell: float) -> None:
    """Cells as coloured squares; 0 is paper, k is colour k - 1, -1 is ink."""
    rows, columns = cells.shape
    palette = [(255, 255, 255), colour_of(0), colour_of(1), colour_of(2), (34, 34, 34)]
    left, bottom = corner
    right, top = left + columns * cell, bottom + rows * cell
    limits = axes.get_xlim(), axes.get_ylim()
    pixels = np.array(palette, np.uint8)[cells]
    axes.imshow(pixels, extent=(left, right, bottom, top), interpolation="none")
    axes.set(xlim=limits[0], ylim=limits[1])
    style = {"color": "#cccccc", "lw": 0.5}
    axes.vlines(left + cell * np.arange(1, columns), bottom, top, **style)
    axes.hlines(bottom + cell * np.arange(1, rows), left, right, **style)
    axes.add_patch(Rectangle(corner, right - left, top - bottom, fc="none", ec=INK, lw=0.9))


def variable(axes: Any, place: tuple[float, float], label: str, seen: bool = False) -> None:
    """A circle; grey if it is observed."""
    fill = "#dddddd" if seen else "white"
    axes.add_patch(Circle(place, 0.3, fc=fill, ec=INK, lw=1.2, zorder=3))
    axes.text(*place, label, ha="center", va="center", zorder=4)


def factor(axes: Any, place: tuple[float, float], label: str, colour: str = INK) -> None:
    """A box."""
    width, height = 0.24 + 0.1 * len(label), 0.36
    corner = place[0] - width / 2, place[1] - height / 2
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0.02", fc=colour, ec=colour, zorder=3
        )
    )
    axes.text(*place, label, ha="center", va="center", color="white", zorder=4, fontsize=9)


def line(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An edge of a factor graph."""
    axes.plot(*zip(start, end, strict=True), color=INK, lw=1.2, zorder=1)


def draw_layer() -> None:
    """S and W make R, noise makes X: all of it computed."""
    W = np.zeros((2, 1, 4, 4), bool)
    W[0, 0] = [[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]]
    W[1, 0] = [[0, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 0], [0, 1, 1, 0]]
    S = np.zeros((1, 2, 9, 9), bool)
    S[0, 0, 0, 0] = S[0, 0, 5, 3] = S[0, 1, 1, 6] = S[0, 1, 7, 1] = S[0, 1, 4, 5] = True
    R = bconv(S, W)[0, 0]
    X = R ^ (np.random.default_rng(4).random(R.shape) < 0.05)
    figure, axes = canvas(11.2, 4.1)
    small, big = 0.16, 0.19
    for f in range(2):
        y = 2.25 - 1.75 * f
        grid(axes, S[0, f] * (f + 1), (0.2, y), small)
        axes.text(1.8, y + 0.72, "×", ha="left", va="center", fontsize=15)
        grid(axes, W[f, 0] * (f + 1), (2.15, y + 0.4), small)
    axes.text(0.92, 3.85, "S: where", ha="center")
    axes.text(2.47, 3.85, "W: what", ha="center")
    both = np.zeros(R.shape, int)
    for f in (1, 0):
        own = bconv(S[:, f : f + 1], W[f : f + 1])[0, 0]
        both[own] = f + 1
    grid(axes, both, (4.3, 0.85), big)
    grid(axes, -X.astype(int), (8.4, 0.85), big)
    axes.text(4.3 + 6 * big, 3.85, "R = bconv(S, W)", ha="center")
    axes.text(8.4 + 6 * big, 3.85, "X: what is seen", ha="center")
    arrow(axes, (3.05, 2.0), (4.15, 2.0))
    axes.text(3.6, 2.1, "OR of all\nANDs", ha="center", va="bottom", fontsize=9.5)
    arrow(axes, (6.75, 2.0), (8.25, 2.0))
    axes.text(7.5, 2.1, "noise:\np01, p10", ha="center", va="bottom", fontsize=9.5)
    axes.text(0.2, 0.1, "prior p_S", fontsize=9.5, color=GREY)
    axes.text(2.15, 0.1, "prior p_W", fontsize=9.5, color=GREY)
    save(figure, "model-layer")


def draw_tree() -> None:
    """The factor graph of one pixel."""
    figure, axes = canvas(9.6, 4.4)
    blue = COLOURS[0]
    xs = [0.9, 3.0, 5.1]
    for k, x in enumerate(xs):
        s, w, a = (x - 0.45, 3.9), (x + 0.45, 3.9), (x, 2.95)
        line(axes, s, a)
        line(axes, w, a)
        line(axes, a, (3.0, 1.95))
        name = ("1", "2", "n")[k]
        variable(axes, s, f"$S_{name}$")
        variable(axes, w, f"$W_{name}$")
        factor(axes, a, "AND", blue)
    axes.text(4.05, 3.9, "…", ha="center", va="center", fontsize=16)
    line(axes, (3.0, 1.95), (3.0, 1.1))
    factor(axes, (3.0, 1.95), "OR", blue)
    variable(axes, (3.0, 1.15), "$R$")
    factor(axes, (1.9, 0.35), "noise", GREY)
    line(axes, (3.0, 1.15), (1.9, 0.35))
    line(axes, (1.9, 0.35), (0.8, 0.35))
    variable(axes, (0.8, 0.35), "$X$", seen=True)
    notes = [
        (3.9, "a placement and a weight for every way\nin which this pixel can be switched on"),
        (2.95, "both must be on"),
        (1.95, "one is enough"),
        (1.15, "the pixel before the noise"),
        (0.35, "the pixel as it is seen"),
    ]
    for y, text in notes:
        axes.text(6.2, y, text, va="center", fontsize=10, color="#444444")
    save(figure, "model-tree")


def draw_network() -> None:
    """Layers from the class down to the pixels, with what one image has in each of them."""
    data = shapes(n_images=1, random_state=0)
    model = HCN([Layer(4, size=21), Layer()], templates_per_class=2, p01=1e-2, p10=1e-2)
    model.set_weights([data.features, data.template_weights], (25, 25))
    network, weights = model._model.network, model._model.weights
    rng = np.random.default_rng(5)
    X, S = sample(network, weights, sample_templates(network, 1, rng), rng)
    R2, R1 = bconv(S[2], weights[1]), bconv(S[1], weights[0])
    top = int(S[2][0, :, 0, 0].argmax())
    colour = np.array([1, 2, 3, 1])  # the two traits never share a colour

    figure, axes = canvas(9.4, 9.6)
    ys = [9.2, 8.2, 7.2, 6.0, 4.55, 2.75, 0.95]
    rows = [
        ("class", f"class {network.classes.categories[top]}, one of its two templates"),
        ("S²", "which template stands where"),
        ("R²", "which parts it is made of"),
        ("S¹", "where they went, each by itself\nwithin its pool of 3×3"),
        ("R¹", "the pixels of these parts"),
        ("S⁰", "where they went, each by itself\nwithin its pool of 3×3"),
        ("X", "what is seen"),
    ]
    steps = ["POOL", "AND-OR with W²", "POOL and OR", "AND-OR with W¹", "POOL and OR", "noise"]
    for k, (y, (name, text)) in enumerate(zip(ys, rows, strict=True)):
        fill = "#dddddd" if name == "X" else "white"
        box = FancyBboxPatch((0.75, y - 0.2), 0.9, 0.4, boxstyle="round,pad=0.03", fc=fill, ec=INK)
        axes.add_patch(box)
        axes.text(1.2, y, name, ha="center", va="center")
        axes.text(3.35, y, text, va="center", fontsize=10, color="#444444")
        if k < len(steps):
            arrow(axes, (1.2, y - 0.24), (1.2, ys[k + 1] + 0.25))
            middle = (y + ys[k + 1]) / 2
            axes.text(1.4, middle, steps[k], va="center", fontsize=9, color=COLOURS[0])
    left, cell = 7.0, 0.066
    grid(axes, -S[2][0, :, 0, 0][None].astype(int), (left, ys[1] - 0.12), 0.24)
    row = np.where(R2[0, :, 0, 0], colour, 0)
    grid(axes, row[None], (left, ys[2] - 0.12), 0.24)
    for k in range(4):
        grid(axes, S[1][0, k] * colour[k], (left + 0.45 * k, ys[3] - 0.18), 0.12)
    placed = np.zeros(R1.shape[2:], int)
    for f in range(4):
        own = bconv(S[1][:, f : f + 1], weights[0][f : f + 1])[0, 0]
        placed[own] = colour[f]
    assert (placed > 0).sum() == R1[0, 0].sum()
    for y, image in (
        (ys[4], placed),
        (ys[5], -S[0][0, 0].astype(int)),
        (ys[6], -X[0, 0].astype(int)),
    ):
        side = len(image) * cell
        grid(axes, image, (left, y - side / 2), cell)
    arrow(axes, (0.3, 9.2), (0.3, 0.95), color=GREY)
    axes.text(0.12, 5, "drawing", rotation=90, va="center", ha="center", color=GREY)
    arrow(axes, (9.05, 0.95), (9.05, 9.2), color=GREY)
    axes.text(9.23, 5, "recognising", rotation=90, va="center", ha="center", color=GREY)
    save(figure, "model-network")
