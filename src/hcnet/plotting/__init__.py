"""Pictures as PIL images, and charts as matplotlib axes.

Functions `show_…` return pictures whose pixels are enlarged without smoothing; ink is black and
paper white.  Images have the shapes that `fit` takes.  One channel is drawn in black; two or three
are printed over each other in colours; more are tiled, because nobody can tell four inks apart.
Functions `plot_…` draw charts and need the extra `plot`.

Colours stay apart for colour-blind readers: parts have Paul Tol's "muted" scheme, channels and
errors blue, vermilion and green of Okabe and Ito; missing pixels are amber.
"""

from hcnet.plotting.charts import plot_confusion, plot_history
from hcnet.plotting.drawing import (
    save_picture,
    show_comparison,
    show_errors,
    show_explanation,
    show_features,
    show_images,
    show_model,
    show_parts,
)
from hcnet.plotting.tables import show_factors

__all__ = [
    "plot_confusion",
    "plot_history",
    "save_picture",
    "show_comparison",
    "show_errors",
    "show_explanation",
    "show_factors",
    "show_features",
    "show_images",
    "show_model",
    "show_parts",
]
