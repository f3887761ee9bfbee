"""Data sets with ground truth: images whose parts are known, boolean matrices; and image files."""

from hcnet.datasets.bars import two_bars
from hcnet.datasets.characters import letters, small_letters, symbols
from hcnet.datasets.files import image_files
from hcnet.datasets.matrices import BooleanMatrixData, boolean_matrix
from hcnet.datasets.page import text
from hcnet.datasets.parts import PartsData
from hcnet.datasets.patterns import deconvolution
from hcnet.datasets.shapes import ShapesData, shapes

__all__ = [
    "BooleanMatrixData",
    "PartsData",
    "ShapesData",
    "boolean_matrix",
    "deconvolution",
    "image_files",
    "letters",
    "shapes",
    "small_letters",
    "symbols",
    "text",
    "two_bars",
]
