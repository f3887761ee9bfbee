"""Data sets: images whose parts are known, boolean matrices, digits, and image files."""

from hcnet.datasets.characters import letters, small_letters, symbols, text, two_bars
from hcnet.datasets.matrices import BooleanMatrixData, boolean_matrix
from hcnet.datasets.mnist import LabelledDigits, MnistData, mnist
from hcnet.datasets.parts_data import PartsData
from hcnet.datasets.patterns import deconvolution
from hcnet.datasets.shapes import ShapesData, shapes

__all__ = [
    "BooleanMatrixData",
    "LabelledDigits",
    "MnistData",
    "PartsData",
    "ShapesData",
    "boolean_matrix",
    "deconvolution",
    "letters",
    "mnist",
    "shapes",
    "small_letters",
    "symbols",
    "text",
    "two_bars",
]
