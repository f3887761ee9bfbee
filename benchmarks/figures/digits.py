"""The figure of MNIST: corruptions, and the number of digits to learn from."""

from __future__ import annotations

from matplotlib.figure import Figure

from benchmarks import mnist
from benchmarks.figures.style import (
    AMBER,
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    curves,
    dots,
    group_ticks,
    key,
    panels,
    paper,
)
from benchmarks.harness import Row
from benchmarks.mnist_digits import CLEAN, PER_CLASS, SETS

# The paper's two, ours, and whoever is best in some row of the table.
METHODS = {
    "HCN": BLUE,
    "CNN, ReLU": ORANGE,
    "TemplateClassifier": BLACK,
    "SVM, pooled edges": GREEN,
    "k-NN, pixels": PURPLE,
    "lines removed: SVM, pooled edges": AMBER,
}


def digits(rows: list[Row]) -> Figure:
    """Errors by corruption beside the paper's, and on clean digits by the number learned from."""
    figure, (left, right) = panels(10, 4.3, 1.9, 1)
    for k, name in enumerate(SETS):
        for j, (method, colour) in enumerate(METHODS.items()):
            found = [r for r in rows if (r["method"], r["corruption"]) == (method, name)]
            errors = [100 * r["wrong"] for r in found if r["per_class"] == PER_CLASS]
            dots(left, k + 0.14 * (j - 2.5), errors, colour)
        for j, stated in enumerate(mnist.PAPER[name]):
            paper(left, k + 0.14 * (j - 2.5), stated, list(METHODS.values())[j])
    group_ticks(left, [name.replace(" ", "\n") for name in SETS])
    left.set(ylabel="test error %", ylim=(0, 100), title=f"{PER_CLASS} digits of each class")
    lines = {
        method: {
            n: [
                100 * r["wrong"]
                for r in rows
                if (r["method"], r["corruption"], r["per_class"]) == (method, CLEAN, n)
            ]
            for n in mnist.CURVE
        }
        for method in METHODS
    }
    curves(right, lines, METHODS)
    right.set(yscale="log", xlabel="digits of each class", title="clean digits")
    right.set_yticks((3, 5, 10, 20, 50), ("3", "5", "10", "20", "50"))
    right.set_yticks([], minor=True)
    key(figure, METHODS, columns=3)
    return figure
