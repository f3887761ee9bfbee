"""Models and image files that a command reads."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hcnet.commands.command import note

if TYPE_CHECKING:
    from hcnet import HCN, FeatureLearner, TemplateClassifier
    from hcnet.image_files import ImageSet

    Network = HCN | TemplateClassifier
    Model = FeatureLearner | Network


def load_model(path: Path) -> Model:
    """The estimator in a file."""
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
    """A network, for a command that needs one."""
    model = load_model(path)
    from hcnet import FeatureLearner

    if isinstance(model, FeatureLearner):
        raise ValueError(
            f"{command} needs a network, and {path} holds parts without layers; learn one with "
            f"hcnet learn --layer …"
        )
    return model


def load_parts(path: Path, command: str) -> FeatureLearner:
    """Parts, for a command that needs them."""
    model = load_model(path)
    from hcnet import FeatureLearner

    if not isinstance(model, FeatureLearner):
        raise ValueError(
            f"{command} needs parts, and {path} holds a network, whose placements do not say how "
            f"far pixels shift within their pools; use hcnet denoise for images as the network "
            f"explains them, hcnet sample for new ones."
        )
    return model


def read(
    options: argparse.Namespace, mask: Path | None = None, first: int | None = None
) -> ImageSet:
    """The images of a command, or the `first` of them, with the missing pixels of a mask file."""
    from hcnet.image_files import read_images

    how = {"threshold": options.threshold, "ink": options.ink}
    images = read_images(options.images, **how, mask=mask, first=first)
    begins = "" if first is None else "a stream that begins with "
    note(options, f"{begins}{images.summary()}")
    return images
