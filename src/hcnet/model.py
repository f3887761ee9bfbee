"""What learning leaves behind: features and priors, and their part of a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import get_args

from hcnet.archive.contents import Contents
from hcnet.archive.fields import BELOW_HALF, listed, named, probability, size, whole, word
from hcnet.archive.reading import Source
from hcnet.images import BoolArray
from hcnet.layers import Border
from hcnet.objective import Priors

# What `objective.estimate` and users can make of each prior.
MOST_LIKELY = {"p_S": 0.5, "p_W": 0.6, "p01": BELOW_HALF, "p10": BELOW_HALF}


@dataclass(frozen=True, eq=False)
class PartsModel:
    """A single-layer HCN: features (F, channels, height, width) and the four priors."""

    features: BoolArray
    priors: Priors
    border: Border
    image_size: tuple[int, int]

    def contents(self) -> Contents:
        """What goes into a file."""
        header = {
            "border": self.border,
            "image_size": list(self.image_size),
            "feature_shape": list(self.features.shape),
            "priors": asdict(self.priors),
        }
        return Contents(header).with_bits("features", self.features)

    @classmethod
    def read(cls, file: Source) -> PartsModel:
        """The model of a file."""
        header = file.header
        shape = listed("feature_shape", header["feature_shape"], 4)
        F, channels = whole("number of features", shape[0]), whole("channels", shape[1], 1)
        height, width = size("feature_size", shape[2:])
        priors = named("priors", header["priors"])
        image_size = size("image_size", header["image_size"])
        if height > image_size[0] or width > image_size[1]:
            raise ValueError("its features are larger than its images")
        return cls(
            features=file.bits("features", (F, channels, height, width)),
            priors=Priors(
                *(probability(p.name, priors[p.name], MOST_LIKELY[p.name]) for p in fields(Priors))
            ),
            border=word("border", header["border"], get_args(Border)),
            image_size=image_size,
        )
