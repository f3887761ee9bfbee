"""NOCA as a learner of parts: starts, the choice between them, and rounding to binary parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.noca import Noca
from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer
from hcnet.objective import Priors, compression_ratio
from hcnet.solutions.explanation import Canvas, Explanation
from hcnet.solutions.improver import Improver

# Where starts begin, the leaks in turn: results were better the higher it began, up to 0.3, but not
# on every image, and at 1 parts often did not form at all.  See NOTES.md.
FIRST_LEAKS = (0.3, 0.2, 0.1)
FIRST_PRIOR, FIRST_WEIGHTS = 0.01, (0.1, 0.5)
# Expectation maximisation usually settles within 10 to 20 steps; this is its limit.
MAX_STEPS = 30
# μ and p are rounded at whichever two of these give the shortest code.  The paper rounds at 0.5.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, eq=False)
class NocaParts:
    """Binary parts and placements, in the forms of `FeatureLearner`."""

    features: BoolArray  # (parts, channels, h, w)
    placements: NDArray[np.int64]  # rows (image, part, row, column) of the window's corner
    reconstruction: BoolArray  # like the images
    compression_ratio: float
    levels: tuple[float, float]  # at which p and μ were rounded
    bound: float
    bounds: tuple[float, ...]  # of all starts
    n_iter: int  # steps of all starts


def learn(
    images: BoolArray,
    n_features: int,
    feature_size: tuple[int, int],
    seed: int,
    starts: int = len(FIRST_LEAKS),
    max_steps: int = MAX_STEPS,
) -> NocaParts:
    """Fit images (n, 1, H, W) from several random starts, and round the one with the best bound."""
    if images.ndim != 4 or images.shape[1] != 1:
        raise ValueError(f"NOCA here takes images (n, 1, height, width), not {images.shape}.")
    rng = np.random.default_rng(seed)
    models = []
    for k in range(starts):
        leak = FIRST_LEAKS[k % len(FIRST_LEAKS)]
        weights = rng.uniform(*FIRST_WEIGHTS, (*feature_size, n_features))
        model = Noca(images[:, 0], -np.log1p(-weights), leak, np.full(n_features, FIRST_PRIOR))
        model.fit(max_steps)
        del model.q  # by far the largest array, and only needed while fitting
        models.append(model)
    best = max(models, key=lambda model: model.history[-1])
    return _rounded(
        best,
        images,
        tuple(model.history[-1] for model in models),
        sum(len(model.history) for model in models),
    )


def _rounded(model: Noca, pixels: BoolArray, bounds: tuple[float, ...], n_iter: int) -> NocaParts:
    images = Images(pixels, np.ones(pixels.shape, bool))
    p = model.weights[:, None]
    layer = FeatureLayer(len(p), 1, (p.shape[2], p.shape[3]), images.size)
    improver = Improver(Canvas(layer, images), Priors())
    found: dict[tuple[float, float], Explanation] = {}
    for levels in product(LEVELS, LEVELS):
        features = [improver.feature(weights > levels[0]) for weights in p]
        n, r, c, f = np.nonzero(model.posterior > levels[1])
        found[levels] = improver.evaluate(features, np.stack([n, f, r, c], axis=1))
    levels = min(found, key=lambda key: found[key].bits)
    best = found[levels]
    oh, ow = layer.overhang
    cover = best.cover.reshape(improver.canvas.sign.shape)
    return NocaParts(
        features=best.weights() if best.features else np.zeros((0, *p.shape[1:]), bool),
        placements=best.placements - np.array([0, 0, oh, ow]),
        reconstruction=cover[:, :, oh : oh + images.size[0], ow : ow + images.size[1]] > 0,
        compression_ratio=compression_ratio(best.counts, images),
        levels=levels,
        bound=max(bounds),
        bounds=bounds,
        n_iter=n_iter,
    )
