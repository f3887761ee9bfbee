"""Data sets: images whose parts are known, boolean matrices, digits and characters."""

from hcnet.datasets.characters import letters, small_letters, symbols, text, two_bars
from hcnet.datasets.matrices import BooleanMatrixData, boolean_matrix
from hcnet.datasets.mnist import LabelledDigits, MnistData, mnist
from hcnet.datasets.omniglot import LabelledCharacters, OmniglotData, OneShotTask, omniglot
from hcnet.datasets.parts_data import PartsData
from hcnet.datasets.patterns import deconvolution
from hcnet.datasets.scanned_text import ScannedText, scanned_text
from hcnet.datasets.shapes import ShapesData, shapes
from hcnet.datasets.typefaces import Font
from hcnet.datasets.words import WordsData, words

__all__ = [
    "BooleanMatrixData",
    "Font",
    "LabelledCharacters",
    "LabelledDigits",
    "MnistData",
    "OmniglotData",
    "OneShotTask",
    "PartsData",
    "ScannedText",
    "ShapesData",
    "WordsData",
    "boolean_matrix",
    "deconvolution",
    "letters",
    "mnist",
    "omniglot",
    "scanned_text",
    "shapes",
    "small_letters",
    "symbols",
    "text",
    "two_bars",
    "words",
]
