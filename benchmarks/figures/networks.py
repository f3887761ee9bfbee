"""Figures of two layers on the shapes."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmarks import alternatives, inpainting, noise, semisupervised, shapes
from benchmarks.figures.style import (
    AMBER,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    curves,
    dots,
    group_ticks,
    key,
    panels,
    paper,
    percent_errors,
)
from benchmarks.harness import Row
from benchmarks.shape_models import SIZES

INFERENCES = {
    "fast pass": ("wrong_fast", SKY),
    "two passes": ("wrong_passing", ORANGE),
    "explained (default)": ("wrong_explain", BLUE),
}
# The HCN is in both panels of a figure; after it gradients, and what is classic.
NETWORKS = {"HCN": BLUE, noise.FAST: SKY, "CNN, same form": ORANGE, "CNN, ReLU": PURPLE}
CLASSIC = {
    "HCN": BLUE,
    "k-NN, pooled pixels": GREEN,
    "SVM, pooled pixels": AMBER,
    "SVM": GREY,
    "logistic regression": BLACK,
}
FEW_LABELS = {
    "HCN": BLUE,
    "HCN, labelled images only": SKY,
    "CNN, same form": ORANGE,
    "1-NN, pooled pixels": GREEN,
    "SVM": GREY,
    "1-NN": PURPLE,
    "logistic regression": BLACK,
}
SIZE_COLOURS = (ORANGE, BLUE)
TITLES = {"block": "a block missing", "random": "random pixels missing"}
UNDER_MASK = {"missed by more than a pixel": ("missed", BLUE), "made up": ("made_up", ORANGE)}


def with_and_without_labels(rows: list[Row]) -> Figure:
    """Test errors of all fits, by size and way of classifying."""
    figure, both = panels(10, 3.8, 1, 1, sharey=True)
    for axes, supervised in zip(both, (False, True), strict=True):
        stated = shapes.PAPER[supervised][0]
        for k, size in enumerate(SIZES):
            mine = [r for r in rows if (r["size"], r["supervised"]) == (size, supervised)]
            for shift, (field, colour) in zip((-0.27, 0, 0.27), INFERENCES.values(), strict=True):
                dots(axes, k + shift, [100 * r[field] for r in mine], colour)
            paper(axes, k - 0.27, stated, SKY)
        group_ticks(axes, [f"{size}×{size}" for size in SIZES])
        axes.set(title=shapes.MODES[supervised], xlabel="size of the features")
    percent_errors(*both, least_end=10)
    both[0].set_ylabel("test error %")
    key(figure, {name: colour for name, (_, colour) in INFERENCES.items()})
    return figure


def instead(rows: list[Row]) -> Figure:
    """Test errors of all methods, at both sizes."""
    methods = [m for m in alternatives.METHODS if any(r["method"] == m for r in rows)]
    sizes = sorted({r["size"] for r in rows})
    figure, (axes,) = panels(9, 1 + 0.36 * len(methods), 1)
    for k, method in enumerate(methods):
        for shift, size, colour in zip((-0.2, 0.2), sizes, SIZE_COLOURS, strict=False):
            mine = [r for r in rows if (r["method"], r["size"]) == (method, size)]
            dots(axes, k + shift, [100 * r["wrong"] for r in mine], colour, sideways=True)
        if method in alternatives.PAPER:
            paper(axes, alternatives.PAPER[method][0], k, GREY)
    axes.set_yticks(range(len(methods)), methods)
    axes.invert_yaxis()
    axes.set_xlabel("test error %")
    percent_errors(axes, which="x")
    key(figure, {f"{n}×{n}": c for n, c in zip(sizes, SIZE_COLOURS, strict=False)})
    return figure


def noisy_training(rows: list[Row]) -> Figure:
    """The test error over the flips in training images."""
    figure, both = panels(10, 4.6, 1, 1, sharey=True)
    for axes, methods in zip(both, (NETWORKS, CLASSIC), strict=True):
        lines = {
            method: {
                100 * flips: [
                    100 * r["wrong"] for r in rows if (r["method"], r["flips"]) == (method, flips)
                ]
                for flips in noise.FLIPS
            }
            for method in methods
        }
        curves(axes, lines, methods)
        axes.set_xlabel("flipped pixels in training images, %")
        for method in methods:
            if method in noise.PAPER:
                paper(axes, 100 * noise.PAPER_FLIPS, noise.PAPER[method][0], methods[method])
    percent_errors(*both)
    both[0].set_ylabel("test error %")
    key(figure, NETWORKS | CLASSIC, columns=5)
    return figure


def few_labels(rows: list[Row]) -> Figure:
    """The test error over the number of labels."""
    figure, (axes,) = panels(9, 4.6, 1)
    lines = {
        method: {
            n: [100 * r["wrong"] for r in rows if (r["method"], r["labelled"]) == (method, n)]
            for n in semisupervised.LABELLED
        }
        for method in FEW_LABELS
    }
    curves(axes, lines, FEW_LABELS)
    percent_errors(axes)
    for n, (stated, _) in semisupervised.PAPER.items():
        paper(axes, n, stated, BLUE)
    axes.set(xlabel="labels among 100 training images", ylabel="test error %")
    key(figure, FEW_LABELS, columns=4)
    return figure


def filled_in(rows: list[Row]) -> Figure:
    """What each method misses and makes up below the mask."""
    figure, both = panels(10, 3.9, 1, 1, sharey=True)
    for axes, mask in zip(both, TITLES, strict=True):
        for k, method in enumerate(inpainting.METHODS):
            mine = [r for r in rows if (r["mask"], r["method"]) == (mask, method)]
            for shift, (field, colour) in zip((-0.17, 0.17), UNDER_MASK.values(), strict=True):
                dots(axes, k + shift, [100 * r[field] for r in mine], colour, sideways=True)
        axes.set_title(TITLES[mask])
    percent_errors(*both, which="x", least_end=100)
    figure.supxlabel("% of the true pixels (missed), of the painted ones (made up)", fontsize=11)
    both[0].set_yticks(range(len(inpainting.METHODS)), inpainting.METHODS)
    both[0].invert_yaxis()
    key(figure, {name: colour for name, (_, colour) in UNDER_MASK.items()}, with_paper=False)
    return figure
