"""The single-layer model: its features in new images, and its part of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit

from hcnet import objective
from hcnet.archive import kinds
from hcnet.engine.driver import Status
from hcnet.engine.placements import infer_placements, placement_memory
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.memory import check_memory
from hcnet.objective import Priors
from hcnet.solutions.explanation import NOWHERE, Canvas, Explanation, IntArray
from hcnet.solutions.improver import Improver
from hcnet.solutions.tiles import Tile

# Bytes of messages that images or a tile of them may have, and of a position while candidates are
# looked for.
TILE_BYTES = 2**28
POSITION_BYTES = 16


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

    def explain(
        self, images: Images, rng: np.random.Generator, max_memory: int | None = None
    ) -> Explanation:
        """The most probable placements found, greedily with exchanges or by message passing.

        Images whose messages would take more than `TILE_BYTES` are explained tile by tile.  A tile
        decides about the placements at its positions, and sees one more window on all sides.  What
        earlier tiles have covered is explained: later ones do not observe it.
        """
        layer = self.layer(images.size)
        (h, w), overhang = layer.feature_size, layer.overhang
        observed, placed = images.observed.copy(), [NOWHERE]
        hs, ws = layer.placement_size
        tiles = [Tile(0, images.n_images, 0, hs, 0, ws)]
        while tiles:
            tile = tiles.pop()
            rows = tile.pixels(tile.top, tile.bottom, h, overhang[0])
            columns = tile.pixels(tile.left, tile.right, w, overhang[1])
            at = slice(tile.first, tile.last), slice(None), slice(*rows), slice(*columns)
            part = Images(images.pixels[at], observed[at])
            halves = tile.halves(h, w)
            found = self._explain_at_once(part, rng, max_memory, divisible=bool(halves))
            if found is None:
                tiles += halves
            elif tile == (0, images.n_images, 0, hs, 0, ws):
                return found
            else:
                corner = np.array([tile.first, 0, rows[0], columns[0]])
                mine = found.placements[tile.holds(found.placements + corner)]
                placed.append(mine + corner)
                observed[at] &= ~self.reconstruct(mine, part.n_images, part.size)
        improver = Improver(Canvas(layer, images), self.priors)
        features = [improver.feature(weights) for weights in self.features]
        return improver.evaluate(features, np.concatenate(placed), prune=False)

    def _explain_at_once(
        self, images: Images, rng: np.random.Generator, max_memory: int | None, divisible: bool
    ) -> Explanation | None:
        """The placements in images, or None if these are too large and `divisible`."""
        improver = Improver(Canvas(self.layer(images.size), images), self.priors)
        features = [improver.feature(weights) for weights in self.features]
        most = TILE_BYTES if max_memory is None else min(TILE_BYTES, max_memory)
        if divisible:
            # Of one feature after the other: candidates take memory themselves.
            needed = images.n_images * self.layer(images.size).n_positions * POSITION_BYTES
            for feature in features:
                if needed > most:
                    return None
                needed += placement_memory([feature])
        else:
            remedy = "learn fewer or smaller parts"
            check_memory("Finding the parts", placement_memory(features), max_memory, remedy)
        placed = improver.place(features, NOWHERE, self.priors, rng, exchanges=4)
        best = improver.evaluate(features, placed, prune=False)
        if not features:
            return best
        outcome = infer_placements(features, improver, self.priors, rng)
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        placed = improver.place(features, outcome.best.placements, self.priors, rng)
        return min(
            best,
            outcome.best,
            improver.evaluate(features, placed, prune=False),
            key=lambda e: e.bits,
        )

    def reconstruct(
        self, placements: IntArray, n_images: int, image_size: tuple[int, int]
    ) -> BoolArray:
        """R = bconv(S, W), cut to the images."""
        layer = self.layer(image_size)
        (H, W), (h, w), (oh, ow) = image_size, layer.feature_size, layer.overhang
        board = np.zeros((n_images, layer.n_channels, H + 2 * oh, W + 2 * ow), bool)
        for n, f, r, c in placements:
            board[n, :, r : r + h, c : c + w] |= self.features[f]
        return board[:, :, oh : oh + H, ow : ow + W]

    def bits_saved(self, images: Images, placements: IntArray) -> NDArray[np.float64]:
        """By how many bits the code of the images would grow without each of the placements.

        Others explain the pixels that they share with it anyway.
        """
        layer = self.layer(images.size)
        (h, w), (oh, ow) = layer.feature_size, layer.overhang
        margins = ((0, 0), (0, 0), (oh, oh), (ow, ow))
        noise, p_S = self.priors.noise, self.priors.p_S
        evidence = np.where(images.pixels, noise.k1, noise.k0) * images.observed
        evidence = np.pad(evidence.astype(np.float32), margins)
        cover = np.zeros(evidence.shape, np.int16)
        for n, f, r, c in placements:
            cover[n, :, r : r + h, c : c + w] += self.features[f]
        alone = [
            evidence[n, :, r : r + h, c : c + w][
                self.features[f] & (cover[n, :, r : r + h, c : c + w] == 1)
            ].sum(dtype=np.float64)
            for n, f, r, c in placements
        ]
        return np.asarray((np.array(alone, np.float64) + logit(p_S)) / np.log(2))

    def fill(self, images: Images, found: Explanation) -> BoolArray:
        """Images with their missing pixels as the features have them."""
        made = self.reconstruct(found.placements, images.n_images, images.size)
        return np.where(images.observed, images.pixels, made)

    def denoise(self, images: Images, found: Explanation) -> BoolArray:
        """Images as the features make them."""
        return self.reconstruct(found.placements, images.n_images, images.size)

    def log_joint(self, found: Explanation) -> float:
        """Joint log-probability of images, placements and features."""
        return objective.log_joint(found.counts, self.priors)

    def compression_ratio(self, images: Images, explanation: Explanation) -> float:
        """The paper's ratio; features without a placement in these images cost nothing."""
        improver = Improver(Canvas(self.layer(images.size), images), Priors())
        used = improver.evaluate(explanation.features, explanation.placements)
        return objective.compression_ratio(used.counts, images)


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


def codes_of(placements: IntArray, layer: FeatureLayer, n_images: int) -> sparse.csr_array:
    """S as a sparse matrix: a row per image, a column per feature and position."""
    hs, ws = layer.placement_size
    n, f, r, c = placements.T
    shape = (n_images, layer.n_features * layer.n_positions)
    table = sparse.coo_array((np.ones(len(n), np.int8), (n, (f * hs + r) * ws + c)), shape=shape)
    return table.tocsr()


def placements_from_codes(table: sparse.sparray, layer: FeatureLayer) -> IntArray:
    """Inverse of `codes_of`."""
    hs, ws = layer.placement_size
    coordinates = sparse.coo_array(table)
    n, column = coordinates.coords[0], coordinates.coords[1]
    on = coordinates.data != 0
    columns = [n[on], column[on] // (hs * ws), column[on] // ws % hs, column[on] % ws]
    return np.stack(columns, axis=1).astype(np.int64)
