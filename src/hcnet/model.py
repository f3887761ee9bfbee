"""The single-layer model that learning returns, and its part of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from hcnet.archive import kinds
from hcnet.images import BoolArray
from hcnet.layers import Border, FeatureLayer
from hcnet.objective import Priors


@dataclass(frozen=True, eq=False)
class PartsModel:
    """A single-layer HCN: features (F, channels, height, width) and the four priors."""

    features: BoolArray
    priors: Priors
    border: Border
    image_size: tuple[int, int]

    def layer(self, image_size: tuple[int, int]) -> FeatureLayer:
        """The layer of these features for images of a size."""
        F, channels, h, w = self.features.shape
        return FeatureLayer(F, channels, (h, w), image_size, self.border)


def _checked(**attributes: Any) -> PartsModel:
    model = PartsModel(**attributes)
    _, channels, height, width = model.features.shape
    if not (channels and 0 < height <= model.image_size[0] and 0 < width <= model.image_size[1]):
        raise ValueError("its features do not fit into its images")
    return model


PARTS_MODEL = kinds.object_of(
    _checked,
    features=kinds.binary_array((None, None, None, None)),
    # The largest values that `objective.estimate` and users can make of each prior.
    priors=kinds.object_of(
        Priors,
        p_S=kinds.probability(most=0.5),
        p_W=kinds.probability(most=0.6),
        p01=kinds.probability(most=kinds.BELOW_HALF),
        p10=kinds.probability(most=kinds.BELOW_HALF),
    ),
    border=kinds.choice(*get_args(Border)),
    image_size=kinds.size(),
)
