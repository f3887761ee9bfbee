"""A whole tiny network against its exhaustive MAP: all S and all W, one by one."""

import itertools
import math

import numpy as np
import pytest

from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning.learn import LearningOptions, learn
from hcnet.objective import Priors

PRIORS = Priors(p_S=0.1, p_W=0.4, p01=0.04, p10=0.03)

# images, channels, image size, most features, feature size, border
NETWORKS = {
    "two features": (2, 1, (3, 3), 2, (2, 2), "valid"),
    "over the border": (2, 1, (3, 3), 1, (2, 2), "full"),
    "two channels": (2, 2, (2, 3), 1, (2, 2), "valid"),
    "matrix of rank 1": (3, 3, (1, 1), 1, (1, 1), "valid"),
    "matrix of rank 2": (4, 4, (1, 1), 2, (1, 1), "valid"),
}
SEEDS = range(8)


def log_bernoulli(on, n, p):
    return on * math.log(p) + (n - on) * math.log1p(-p)


def placed(layer, weights, r, c):
    """The pixels that a feature covers at a position, as an image."""
    (H, W), (h, w), (oh, ow) = layer.image_size, layer.feature_size, layer.overhang
    board = np.zeros((layer.n_channels, H + 2 * oh, W + 2 * ow), bool)
    board[:, r : r + h, c : c + w] = weights
    return board[:, oh : oh + H, ow : ow + W]


def log_joint(layer, images, W, S):
    """log p(X, S, W) from the definition of the model, one sum per array."""
    R = np.zeros_like(images.pixels)
    for n, f, r, c in np.argwhere(S):
        R[n] |= placed(layer, W[f], r, c)
    X, seen = images.pixels, images.observed
    total = log_bernoulli(S.sum(), S.size, PRIORS.p_S) + log_bernoulli(W.sum(), W.size, PRIORS.p_W)
    total += log_bernoulli((R & ~X & seen).sum(), (R & seen).sum(), PRIORS.p01)
    return total + log_bernoulli((~R & X & seen).sum(), (~R & seen).sum(), PRIORS.p10)


def exhaustive(layer, images):
    """The largest log p(X, S, W) over all S and W, with layer.n_features features.

    Given W the images are independent, so S is enumerated image by image; an image is a row of
    bits, and all unions of placed features come from doubling a list of such rows.
    """
    F, hs, ws = layer.n_features, *layer.placement_size
    shape = (F, layer.n_channels, *layer.feature_size)
    X, seen = (x.reshape(images.n_images, -1) for x in (images.pixels, images.observed))
    sizes = np.array([bin(s).count("1") for s in range(2 ** (F * hs * ws))])
    log_S = log_bernoulli(sizes, F * hs * ws, PRIORS.p_S)
    best = -math.inf
    for bits in itertools.product((False, True), repeat=math.prod(shape)):
        W = np.array(bits).reshape(shape)
        R = np.zeros((1, X.shape[1]), bool)
        for f, r, c in itertools.product(range(F), range(hs), range(ws)):
            R = np.concatenate([R, R | placed(layer, W[f], r, c).ravel()])
        total = log_bernoulli(W.sum(), W.size, PRIORS.p_W)
        for x, o in zip(X, seen, strict=True):
            log_X = log_bernoulli((R & ~x & o).sum(1), (R & o).sum(1), PRIORS.p01)
            log_X = log_X + log_bernoulli((~R & x & o).sum(1), (~R & o).sum(1), PRIORS.p10)
            total += (log_S + log_X).max()
        best = max(best, total)
    return best


def make(name, seed):
    n, channels, size, F, window, border = NETWORKS[name]
    layer = FeatureLayer(F, channels, window, size, border)
    rng = np.random.default_rng(seed)
    pixels = np.zeros((n, channels, *size), bool)
    W = rng.random((F, channels, *window)) < 0.6
    for k, f, r, c in np.argwhere(rng.random((n, F, *layer.placement_size)) < 0.3):
        pixels[k] |= placed(layer, W[f], r, c)
    return layer, Images(
        pixels ^ (rng.random(pixels.shape) < 0.03), rng.random(pixels.shape) < 0.95
    )


@pytest.fixture(scope="module", params=NETWORKS)
def problems(request):
    """Problems with the best joint log-probability of 0, 1, … features."""
    made = [make(request.param, seed) for seed in SEEDS]
    return [
        (
            layer,
            images,
            [exhaustive(layer.with_features(F), images) for F in range(layer.n_features + 1)],
        )
        for layer, images in made
    ]


def solve(layer, images, seed, **options):
    """Learned S and W, evaluated by the definition of the model."""
    learned = learn(images, layer, PRIORS, LearningOptions(**options), np.random.default_rng(seed))
    found = learned.explanation
    F = len(found.features)
    W = np.array([feature.weights for feature in found.features], dtype=bool)
    W = W.reshape(F, layer.n_channels, *layer.feature_size)
    S = np.zeros((images.n_images, F, *layer.placement_size), bool)
    S[tuple(found.placements.T)] = True
    value = log_joint(layer, images, W, S)
    assert value == pytest.approx(-found.bits * math.log(2), rel=1e-9)
    return F, value


def test_message_passing_is_never_above_the_optimum_and_sometimes_there(problems):
    reached = 0
    for seed, (layer, images, best) in zip(SEEDS, problems, strict=True):
        F, value = solve(layer, images, seed, algorithm="mpmp")
        assert value <= best[F] + 1e-9
        reached += value >= max(best) - 1e-9
    assert reached >= 0.25 * len(SEEDS), reached


def test_refinement_reaches_the_optimum_on_most_seeds(problems):
    reached = 0
    for seed, (layer, images, best) in zip(SEEDS, problems, strict=True):
        F, value = solve(layer, images, seed, algorithm="refined")
        assert value <= best[F] + 1e-9
        reached += value >= max(best) - 1e-9
    assert reached >= 0.75 * len(SEEDS), reached
