"""What a feature layer is: its shapes and priors, frozen.  No numbers are computed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Border = Literal["full", "valid"]


@dataclass(frozen=True, slots=True)
class FeatureLayer:
    """A binary convolutional feature layer: R = bconv(S, W).

    With ``border="full"`` a placement may reach over the border of the image, as if the
    image were surrounded by unobserved pixels; with ``"valid"`` (the paper) every feature
    window lies inside the image.
    """

    n_features: int
    n_channels: int
    feature_size: tuple[int, int]
    image_size: tuple[int, int]
    border: Border = "full"

    @property
    def overhang(self) -> tuple[int, int]:
        """Rows and columns by which a window may reach over the border."""
        if self.border == "valid":
            return 0, 0
        return self.feature_size[0] - 1, self.feature_size[1] - 1

    @property
    def placement_size(self) -> tuple[int, int]:
        """Height and width of S: how many positions a feature can take.

        Position (r, c) puts the window's top left corner on pixel
        (r - overhang[0], c - overhang[1]).
        """
        (H, W), (h, w), (oh, ow) = self.image_size, self.feature_size, self.overhang
        return H - h + 1 + 2 * oh, W - w + 1 + 2 * ow

    @property
    def n_positions(self) -> int:
        """Number of positions per feature and image."""
        return self.placement_size[0] * self.placement_size[1]

    @property
    def feature_pixels(self) -> int:
        """Number of weights per feature."""
        return self.n_channels * self.feature_size[0] * self.feature_size[1]

    def with_features(self, n_features: int) -> FeatureLayer:
        """Return the same layer with another number of features."""
        return FeatureLayer(
            n_features, self.n_channels, self.feature_size, self.image_size, self.border
        )
