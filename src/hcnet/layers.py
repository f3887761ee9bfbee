"""What the layers are: their shapes, frozen.  No numbers are computed here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Border = Literal["full", "valid"]
PoolBorder = Literal["full", "same"]
FeatureOrder = Literal["groups", "line", "ring"]

# Members of a pool are numbered by 16 bits, signed (`hierarchy.decoding`).
MOST_MEMBERS = 2**15 - 1


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
        return replace(self, n_features=n_features)


@dataclass(frozen=True, slots=True)
class PoolLayer:
    """A pooling layer: every active element of R moves within a window to an element of S below.

    With ``border="full"`` (the paper) the grid below is larger than R, so that every element can
    take all positions of its window; with ``"same"`` both grids are equal, windows are centred,
    and elements at the border have fewer positions.

    The third dimension of a window is its `depth`: an element also chooses one of so many features
    below.  In the order "groups" these are the next `depth` ones, its variants, and R has a channel
    per group.  In the orders "line" and "ring" they are neighbours of the feature with the
    channel's own number, fewer at the ends of a line; the ring joins the last and the first.
    """

    n_below: int  # features below
    window: tuple[int, int]
    below_size: tuple[int, int]
    border: PoolBorder = "full"
    depth: int = 1
    feature_order: FeatureOrder = "groups"

    @property
    def n_channels(self) -> int:
        """Channels of R."""
        return self.n_below // self.variants

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of R."""
        (H, W), (h, w) = self.below_size, self.window
        return (H, W) if self.border == "same" else (H - h + 1, W - w + 1)

    @property
    def offset(self) -> tuple[int, int]:
        """Position (i, j) of the pool of R[r, c] is S[r + i - offset[0], c + j - offset[1]]."""
        if self.border == "full":
            return 0, 0
        return (self.window[0] - 1) // 2, (self.window[1] - 1) // 2

    @property
    def n_members(self) -> int:
        """Choices of an element: features and positions."""
        return self.depth * self.window[0] * self.window[1]

    @property
    def reach(self) -> tuple[int, ...]:
        """The window as `engine.planes` wants it."""
        groups, ring = self.feature_order == "groups", self.feature_order == "ring"
        across = (self.depth, 0, False) if groups else (1, (self.depth - 1) // 2, ring)
        return *self.window, *self.offset, self.depth, *(int(x) for x in across)

    @property
    def centre(self) -> int:
        """The member in the middle of the window; of several variants the first."""
        (h, w), first = self.window, self.reach[6]
        return (first * h + (h - 1) // 2) * w + (w - 1) // 2

    @property
    def variants(self) -> int:
        """Features of a group; 1 where features have no groups."""
        return self.depth if self.feature_order == "groups" else 1

    @property
    def apart(self) -> bool:
        """Whether channels of R have no feature below in common."""
        return self.feature_order == "groups" or self.depth == 1


@dataclass(frozen=True, slots=True)
class ClassLayer:
    """What may be in an image: templates, each of a category.

    By default every image holds exactly one template: one of the categories, all equally probable,
    and one of its templates (the paper).  With `p_on` each template is present at each position by
    itself with that probability, so that an image may hold several objects, or none.
    """

    categories: tuple[int, ...]  # of every template
    p_on: float | None = None

    @property
    def n_templates(self) -> int:
        """Templates of all categories."""
        return len(self.categories)

    @property
    def n_classes(self) -> int:
        """Categories."""
        return max(self.categories) + 1


def equal_classes(n_classes: int, templates_per_class: int) -> ClassLayer:
    """K categories of J templates each: template k·J + j is the j-th of category k."""
    return ClassLayer(tuple(k for k in range(n_classes) for _ in range(templates_per_class)))
