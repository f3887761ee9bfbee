"""Charts with matplotlib: learning curves and confusion matrices.

Each function draws into `ax`, or into a new figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from hcnet.checks import as_array, is_number
from hcnet.engine.driver import JOINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Beyond, the difference of two numbers may be no number.
MOST_VALUE = 1e300


def plot_history(history: Sequence[Any], ax: Axes | None = None) -> Axes:
    """The objective after each step of a run: pass `history_` of an estimator."""
    points = curve_points(history)
    ax = _axes(ax)
    ax.plot([x for x, _ in points], [y for _, y in points], "-o", markevery=[-1] if points else [])
    ax.set_xlabel("step")
    ax.set_ylabel(getattr(history[-1], "figure", JOINT) if points else JOINT)
    return ax


def plot_confusion(
    y: ArrayLike, predicted: ArrayLike, classes: ArrayLike, ax: Axes | None = None
) -> Axes:
    """The number of images of each true class (a row) predicted as each class (a column).

    Images without a label (-1) do not count.
    """
    counts, names = confusion_counts(y, predicted, classes)
    display = ConfusionMatrixDisplay(counts, display_labels=names)
    axes = _axes(ax, max(4.8, 0.5 * len(names)))
    display.plot(ax=axes, cmap="Blues", colorbar=False)
    return axes


def curve_points(history: Any) -> list[tuple[float, float]]:
    """Step and objective of every step whose objective is finite."""
    steps = history if isinstance(history, Sequence) else [history]
    points: list[tuple[Any, Any]] = [
        (getattr(one, "iteration", None), getattr(one, "objective", None)) for one in steps
    ]
    if not all(is_number(x) and is_number(y) and abs(x) < MOST_VALUE for x, y in points):
        raise TypeError(
            f"history must be a list of steps with the numbers iteration and objective, got "
            f"{history!r}; pass history_ of an estimator."
        )
    # The comparison is False for NaN.
    return [(float(x), float(y)) for x, y in points if abs(y) < MOST_VALUE]


def confusion_counts(
    y: ArrayLike, predicted: ArrayLike, classes: ArrayLike
) -> tuple[NDArray[np.int64], list[str]]:
    """Counts (true class, predicted class), and the names of the classes."""
    given = {"classes": classes, "y": y, "predicted": predicted}
    names, true, found = (_labels(name, value) for name, value in given.items())
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"classes must be different names, at least one, got {classes!r}; pass for example "
            f"classes_ of an HCN."
        )
    if len(true) != len(found) or not set(found) <= set(names):
        raise ValueError(
            f"predicted must hold one of the classes for each label in y, got {len(found)} entries "
            f"for {len(true)} labels; pass predict(X) of the model with these classes."
        )
    known = [(a, b) for a, b in zip(true, found, strict=True) if a in set(names)]
    if not known:
        return np.zeros((len(names), len(names)), np.int64), names
    return confusion_matrix(*zip(*known, strict=True), labels=names), names


def _labels(name: str, value: ArrayLike) -> list[str]:
    array = as_array(name, value)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of labels, got shape {array.shape}; flatten it.")
    return [str(label) for label in array.tolist()]


def load_pyplot() -> Any:
    """The module matplotlib.pyplot, or a sentence if it is missing."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "Charts are drawn by matplotlib; install it with pip install 'hcnet[plot]'."
        ) from None
    return pyplot


def _axes(ax: Axes | None, side: float = 4.8) -> Axes:
    """The axes to draw into: those given, or new ones about `side` inches high."""
    pyplot = load_pyplot()
    if ax is None:
        _, ax = pyplot.subplots(figsize=(4 / 3 * side, side), layout="constrained")
    if not hasattr(ax, "set_xlabel"):
        raise TypeError(f"ax must be matplotlib axes, got {ax!r}; leave it None for a new figure.")
    return ax
