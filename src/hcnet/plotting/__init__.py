"""Pictures as PIL images: save them, or show them in a notebook.

Pixels are enlarged without smoothing, ink is black and paper white.  An image is (height, width)
or (channels, height, width).  One channel is drawn in black; two or three are printed over each
other in colours; more are tiled, because nobody can tell four inks apart.
"""

from hcnet.plotting.network import show_completion, show_templates
from hcnet.plotting.parts import (
    image_grid,
    show_comparison,
    show_features,
    show_image,
    show_placements,
)

__all__ = [
    "image_grid",
    "show_comparison",
    "show_completion",
    "show_features",
    "show_image",
    "show_placements",
    "show_templates",
]
