"""Known features in new images: their placements, and the images that they make up."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hcnet import objective
from hcnet.engine.driver import Status
from hcnet.engine.placements import infer_placements, placement_memory
from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer
from hcnet.memory import check_memory
from hcnet.model import PartsModel
from hcnet.objective import Priors
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.explanation import NOWHERE, Explanation, IntArray
from hcnet.solutions.improver import Improver


def explain(
    model: PartsModel, images: Images, rng: np.random.Generator, max_memory: int | None = None
) -> Explanation:
    """The most probable placements found: greedy ones with exchanges, or those of message passing.

    The joint log-probability decides between them.
    """
    improver = Improver(Canvas(model.layer(images.size), images), model.priors)
    features = [improver.feature(weights) for weights in model.features]
    remedy = f"pass fewer images at a time (now {images.n_images}), or pieces of them"
    check_memory("Finding the parts", placement_memory(features), max_memory, remedy)
    placed = improver.place(features, NOWHERE, model.priors, rng, exchanges=4)
    best = improver.evaluate(features, placed, prune=False)
    if not features:
        return best
    outcome = infer_placements(features, improver, model.priors, rng)
    if outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    placed = improver.place(features, outcome.best.placements, model.priors, rng)
    return min(
        best, outcome.best, improver.evaluate(features, placed, prune=False), key=lambda e: e.bits
    )


def reconstruct(
    model: PartsModel, placements: IntArray, n_images: int, image_size: tuple[int, int]
) -> BoolArray:
    """R = bconv(S, W), cut to the images."""
    layer = model.layer(image_size)
    (H, W), (h, w), (oh, ow) = image_size, layer.feature_size, layer.overhang
    board = np.zeros((n_images, layer.n_channels, H + 2 * oh, W + 2 * ow), bool)
    for n, f, r, c in placements:
        board[n, :, r : r + h, c : c + w] |= model.features[f]
    return board[:, :, oh : oh + H, ow : ow + W]


def codes(placements: IntArray, layer: FeatureLayer, n_images: int) -> sparse.csr_array:
    """S as a sparse matrix: a row per image, a column per feature and position."""
    hs, ws = layer.placement_size
    n, f, r, c = placements.T
    shape = (n_images, layer.n_features * layer.n_positions)
    table = sparse.coo_array((np.ones(len(n), np.int8), (n, (f * hs + r) * ws + c)), shape=shape)
    return table.tocsr()


def placements_from_codes(table: sparse.sparray, layer: FeatureLayer) -> IntArray:
    """Inverse of `codes`."""
    hs, ws = layer.placement_size
    coordinates = sparse.coo_array(table)
    n, column = coordinates.coords[0], coordinates.coords[1]
    on = coordinates.data != 0
    columns = [n[on], column[on] // (hs * ws), column[on] // ws % hs, column[on] % ws]
    return np.stack(columns, axis=1).astype(np.int64)


def compression_ratio(model: PartsModel, images: Images, explanation: Explanation) -> float:
    """The paper's ratio; features without a placement in these images cost nothing."""
    improver = Improver(Canvas(model.layer(images.size), images), Priors())
    used = improver.evaluate(explanation.features, explanation.placements)
    return objective.compression_ratio(used.counts, images)
