"""Pictures as PIL images: save them, or show them in a notebook.

Pixels are enlarged without smoothing, ink is black and paper white.  An image is (height, width)
or (channels, height, width).  One channel is drawn in black; two or three are printed over each
other in colours; more are tiled, because nobody can tell four inks apart.

Colours stay apart for colour-blind readers: parts have Paul Tol's "muted" scheme, channels and
errors blue, vermilion and green of Okabe and Ito; what is missing is amber.
"""

from hcnet.plotting.curves import show_curve
from hcnet.plotting.drawing import save_picture
from hcnet.plotting.errors import show_confusion, show_errors
from hcnet.plotting.network import show_completion, show_hierarchy, show_templates
from hcnet.plotting.parts import (
    image_grid,
    show_comparison,
    show_features,
    show_image,
    show_placements,
)

__all__ = [
    "image_grid",
    "save_picture",
    "show_comparison",
    "show_completion",
    "show_confusion",
    "show_curve",
    "show_errors",
    "show_features",
    "show_hierarchy",
    "show_image",
    "show_placements",
    "show_templates",
]
