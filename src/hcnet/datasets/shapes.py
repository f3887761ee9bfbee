"""Jittered shapes in two categories: the data of the paper's two-layer experiment."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.checks import RandomState, check_count, check_noise, check_random_state
from hcnet.datasets.parts_data import IntArray, flip_noise, render
from hcnet.images import BoolArray

_FEATURE_NAMES = ("square", "circle", "backward diagonal", "forward diagonal")

# The two features of each template. Consecutive templates share no feature and make up one
# category, so the category is the XOR of the two traits and neither tells it alone.
_TEMPLATES = np.array([(0, 2), (1, 3), (0, 3), (1, 2)], dtype=np.int64)
_TEMPLATES_PER_CATEGORY = 2

# The smallest window in which the square still has four holes.
_MIN_FEATURE_SIZE = 5
# Forms in which a part can be drawn, and how far from the first they go, as a share of the window:
# further than pixels move.
_FORMS = 3
_ROUND, _BENT, _NARROW = 0.36, 0.15, 0.55


@dataclass(frozen=True, slots=True, eq=False)
class ShapesData:
    """Binary images of two parts each, their categories, and the network that made them.

    With K the side of a part's window, images have sides H = W = K + 2 * (jitter - 1).

    Attributes:
        images: bool (N, 1, H, W), what is observed.
        clean: bool (N, 1, H, W), the same without noise.
        labels: int64 (N,), the category: 0 or 1.
        templates: int64 (N,), the pattern: 0 or 1 in category 0, 2 or 3 in category 1.
        forms: int64 (N, 2), the form of each of the two parts; 0 where there is only one.
        features: bool (4 * variants, 1, K, K), the true parts, the forms of each one after the
            other: the weights of the first layer.
        template_weights: bool (4, 4, 1, 1), which template (first axis) has which part (second
            axis): the weights of the second layer.
        feature_names: one name per feature.
        template_names: one name per template.
        parts: bool (N, 1, H - jitter + 1, W - jitter + 1), the OR of the two shifted parts: the
            image before its pixels were moved.

    """

    images: BoolArray
    clean: BoolArray
    labels: IntArray
    templates: IntArray
    forms: IntArray
    features: BoolArray
    template_weights: BoolArray
    feature_names: tuple[str, ...]
    template_names: tuple[str, ...]
    parts: BoolArray


def shapes(
    *,
    n_images: int = 100,
    feature_size: int = 21,
    jitter: int = 3,
    variants: int = 1,
    noise: float = 1e-3,
    random_state: RandomState = None,
) -> ShapesData:
    """Squares and circles crossed by diagonals, the paper's synthetic data for two layers.

    Each image is one of four templates, equally likely: a square with four holes or a circle,
    with a backward or a forward diagonal. Square with backward and circle with forward diagonal
    are category 0, the other two category 1.

    Both parts are shifted, each by itself and uniformly, within a window of `jitter` x `jitter`.
    Then each pixel of their OR is moved within a window of the same size, again by itself and
    uniformly; pixels that meet merge. Last comes the noise. The paper uses 100 images to train
    on and 10,000 to test.

    Args:
        n_images: how many images.
        feature_size: side of the window in which a part is drawn, one pixel thick. Even sizes put
            the cross of the square half a pixel off its centre.
        jitter: side of the windows of the two movements; 1 moves nothing.
        variants: forms of each part, 1 to 3, of which every image shows one at random: corners of
            the square may be round or cut out, the circle may be a diamond or an ellipse, and
            diagonals may be bent to either side.
        noise: probability that a pixel is flipped.
        random_state: seed.

    Returns:
        The images of side `feature_size + 2 * (jitter - 1)`, with their categories and parts.

    """
    n_images = check_count("n_images", n_images)
    feature_size = check_count("feature_size", feature_size, _MIN_FEATURE_SIZE)
    jitter = check_count("jitter", jitter)
    noise = check_noise(noise)
    rng = check_random_state(random_state)
    variants = check_count("variants", variants, most=_FORMS)
    features = _draw_features(feature_size)[:, :variants]
    templates = rng.integers(len(_TEMPLATES), size=n_images)
    forms = np.zeros((n_images, 2), np.int64)
    if variants > 1:
        forms = rng.integers(variants, size=forms.shape)
    features = features.reshape(-1, 1, feature_size, feature_size)
    parts = _place_parts(features, _TEMPLATES[templates] * variants + forms, jitter, rng)
    clean = _move_pixels(parts, jitter, rng)
    weights = np.zeros((len(_TEMPLATES), len(_FEATURE_NAMES), 1, 1), dtype=bool)
    weights[np.arange(len(_TEMPLATES))[:, None], _TEMPLATES] = True
    return ShapesData(
        images=flip_noise(clean, noise, rng),
        clean=clean,
        labels=templates // _TEMPLATES_PER_CATEGORY,
        templates=templates,
        forms=forms,
        features=features,
        template_weights=weights,
        feature_names=_FEATURE_NAMES,
        template_names=tuple(
            f"{_FEATURE_NAMES[shape]} with {_FEATURE_NAMES[line]}" for shape, line in _TEMPLATES
        ),
        parts=parts,
    )


def _draw_features(side: int) -> BoolArray:
    """The four parts in all their forms, bool (4, forms, side, side)."""
    square = np.zeros((side, side), dtype=bool)
    strokes = [0, side // 2, side - 1]
    square[strokes] = square[:, strokes] = True
    # All pixels within half a pixel of the circle of radius (side - 1) / 2. Twice the coordinates
    # are integers for every side, so no rounding decides about a pixel.
    doubled = 2 * np.arange(side) - (side - 1)
    distance = doubled[:, None] ** 2 + doubled**2
    circle = (distance >= (side - 2) ** 2) & (distance <= side**2)
    backward = np.eye(side, dtype=bool)
    bent = [_bent(side, sign) for sign in (1, -1)]
    return np.stack(
        [
            [square, _cornered(square, inwards=False), _cornered(square, inwards=True)],
            [circle, _diamond(side), _ellipse(side)],
            [backward, *bent],
            [one[:, ::-1] for one in (backward, *bent)],
        ]
    )


def _stroke(points: NDArray[np.float64], side: int) -> BoolArray:
    """A line through points (row, column) that lie close to each other."""
    image = np.zeros((side, side), dtype=bool)
    image[tuple(np.rint(points).astype(int).clip(0, side - 1))] = True
    return image


def _bent(side: int, sign: int) -> BoolArray:
    """The backward diagonal, bent to one side."""
    t = np.linspace(0, 1, 4 * side)
    away = sign * _BENT * side * np.sin(np.pi * t)
    return _stroke(np.stack([(side - 1) * t + away, (side - 1) * t - away]), side)


def _diamond(side: int) -> BoolArray:
    """A square that stands on a corner."""
    rows, columns = np.mgrid[:side, :side]
    middle = (side - 1) / 2
    return np.asarray(abs(abs(rows - middle) + abs(columns - middle) - middle) < 0.75)


def _ellipse(side: int) -> BoolArray:
    """An ellipse as high as the window."""
    t, middle = np.linspace(0, 2 * np.pi, 8 * side), (side - 1) / 2
    return _stroke(np.stack([middle * (1 + np.cos(t)), middle * (1 + _NARROW * np.sin(t))]), side)


def _cornered(square: BoolArray, inwards: bool) -> BoolArray:
    """The square with round corners, or with quarters of a circle cut out of them."""
    side = len(square)
    radius = round(_ROUND * side)
    t = np.linspace(0, np.pi / 2, 4 * radius)
    turned = np.stack([np.cos(t), np.sin(t)])
    corner = _stroke(radius * (turned if inwards else 1 - turned), side)[: radius + 1, : radius + 1]
    found = square.copy()
    for _ in range(4):
        found[:radius, :radius] = False
        found[: radius + 1, : radius + 1] |= corner
        found = np.rot90(found)
    return found


def _place_parts(
    features: BoolArray, chosen: IntArray, jitter: int, rng: np.random.Generator
) -> BoolArray:
    """The OR of the two features of each image, each at its own corner."""
    n_images, side = len(chosen), features.shape[-1] + jitter - 1
    image = np.arange(n_images).repeat(chosen.shape[1])
    corners = rng.integers(jitter, size=(chosen.size, 2))
    placements = np.column_stack([image, chosen.ravel(), corners])
    return render(features, placements, (n_images, 1, side, side))


def _move_pixels(parts: BoolArray, jitter: int, rng: np.random.Generator) -> BoolArray:
    """Each pixel at a random place of its own, in images that are larger by the reach."""
    n_images, channels, height, width = parts.shape
    clean = np.zeros((n_images, channels, height + jitter - 1, width + jitter - 1), dtype=bool)
    image, channel, row, column = np.nonzero(parts)
    down, right = rng.integers(jitter, size=(2, len(row)))
    clean[image, channel, row + down, column + right] = True
    return clean
