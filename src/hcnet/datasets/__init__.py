"""Data sets with ground truth: images whose parts are known, and boolean matrices."""

from hcnet.datasets.bars import two_bars
from hcnet.datasets.characters import letters, small_letters, symbols
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
    "letters",
    "shapes",
    "small_letters",
    "symbols",
    "text",
    "two_bars",
]
