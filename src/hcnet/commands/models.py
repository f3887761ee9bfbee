"""Models from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hcnet import HCN, FeatureLearner, TemplateClassifier

    Network = HCN | TemplateClassifier
    Model = FeatureLearner | Network


def load_model(path: Path) -> Model:
    """The estimator that wrote a file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; pass a model that hcnet learn wrote.")
    from hcnet import HCN, FeatureLearner, TemplateClassifier, load

    model = load(path)
    if not isinstance(model, FeatureLearner | HCN | TemplateClassifier):
        raise ValueError(
            f"{path} holds the factors of a table, and hcnet works with images; use it in Python "
            f"with hcnet.load."
        )
    return model


def load_network(path: Path, command: str) -> Network:
    """A network, which some commands need."""
    model = load_model(path)
    from hcnet import HCN, TemplateClassifier

    if not isinstance(model, HCN | TemplateClassifier):
        raise ValueError(
            f"{command} needs a network, and {path} holds parts without layers; learn one with "
            f"hcnet learn --layer …"
        )
    return model


def load_parts(path: Path, command: str) -> FeatureLearner:
    """Parts, which some commands need."""
    model = load_model(path)
    from hcnet import FeatureLearner

    if not isinstance(model, FeatureLearner):
        raise ValueError(
            f"{command} needs parts, and {path} holds a network, whose placements do not say how "
            f"far everything shifts within its pool, and so make no image; use hcnet denoise for "
            f"images as it explains them, hcnet sample for new ones."
        )
    return model
