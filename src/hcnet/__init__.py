"""hcnet finds the parts that binary images are made of."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hcnet import version

if TYPE_CHECKING:
    from hcnet.engine.engines import Engine
    from hcnet.estimators.boolean_matrix import BooleanMatrixFactorization
    from hcnet.estimators.feature_learner import FeatureLearner
    from hcnet.estimators.files import load
    from hcnet.estimators.hcn import HCN
    from hcnet.estimators.shape_classifier import ShapeClassifier
    from hcnet.estimators.template_classifier import TemplateClassifier
    from hcnet.hierarchy.inference import Inference
    from hcnet.hierarchy.network import Layer
    from hcnet.templates.deformations import Deformations

__version__ = version.VERSION
__all__ = [
    "HCN",
    "BooleanMatrixFactorization",
    "Deformations",
    "Engine",
    "FeatureLearner",
    "Inference",
    "Layer",
    "ShapeClassifier",
    "TemplateClassifier",
    "__version__",
    "load",
]

# Loaded on first use: Numba takes a second to import, and `hcnet --version` needs none of it.
_HOMES = {
    "BooleanMatrixFactorization": "hcnet.estimators.boolean_matrix",
    "Deformations": "hcnet.templates.deformations",
    "Engine": "hcnet.engine.engines",
    "FeatureLearner": "hcnet.estimators.feature_learner",
    "HCN": "hcnet.estimators.hcn",
    "Inference": "hcnet.hierarchy.inference",
    "Layer": "hcnet.hierarchy.network",
    "ShapeClassifier": "hcnet.estimators.shape_classifier",
    "TemplateClassifier": "hcnet.estimators.template_classifier",
    "load": "hcnet.estimators.files",
}
# What people also use, so that ``import hcnet`` is enough for hcnet.image_files.read_images.
_MODULES = (
    "codec",
    "datasets",
    "export",
    "image_files",
    "metrics",
    "plotting",
    "preprocessing",
    "reading",
    "reporting",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
