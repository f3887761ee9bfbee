"""What learning leaves behind: features and priors, and their file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import get_args

import numpy as np

from hcnet import archive
from hcnet.images import BoolArray
from hcnet.layers import Border
from hcnet.objective import Priors

FORMAT = "hcnet-parts"
VERSION = 1


@dataclass(frozen=True, eq=False)
class PartsModel:
    """A single-layer HCN: features (F, channels, height, width) and the four priors."""

    features: BoolArray
    priors: Priors
    border: Border
    image_size: tuple[int, int]

    def contents(self) -> archive.Contents:
        """What goes into a file."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "border": self.border,
            "image_size": list(self.image_size),
            "feature_shape": list(self.features.shape),
            "priors": asdict(self.priors),
        }
        return archive.Contents(header, {"features": np.packbits(self.features)})

    @classmethod
    def read(cls, file: archive.Source) -> PartsModel:
        """The model of a file."""
        header = file.header
        F, channels, h, w = (int(k) for k in header["feature_shape"])
        height, width = (int(k) for k in header["image_size"])
        if header["border"] not in get_args(Border):
            raise ValueError(f"its border is {header['border']!r}")
        return cls(
            features=file.bits("features", (F, channels, h, w)),
            priors=Priors(*(float(header["priors"][prior.name]) for prior in fields(Priors))),
            border=header["border"],
            image_size=(height, width),
        )
