"""How features get their first shape where only undecided placements are to have messages.

At the start every placement over ink is undecided.  Regions of the images are therefore taken in
turn, each for a few sweeps with all its messages stored, and the beliefs of W go on from region to
region as they do from minibatch to minibatch in online learning.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import logit

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.schedules import Schedule
from hcnet.images import FloatArray, Images
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of
from hcnet.objective import Priors

# A region is about so many windows high and wide, cut from one image or made of several.
WINDOWS = 4
# Regions that are looked at at most, and the steps of a run in which that is done: a step then
# takes about as long as one sweep over a small page with all messages stored.
MOST_REGIONS = 8
STEPS = 2
# Sweeps over a region, and how much of what W has learned goes on to the next.
SWEEPS = 3
FORGETTING = 0.9
# Bytes of messages that a region may have; where windows are large, regions are fewer windows wide.
REGION_BYTES = 2**30


class Exploration:
    """Beliefs of W from region to region."""

    def __init__(
        self,
        layer: FeatureLayer,
        images: Images,
        weight_prior: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self._layer = layer
        self._prior = self._beliefs = weight_prior
        self._rng = rng
        self._regions = regions(layer, images, rng)
        self._each = max(math.ceil(len(self._regions) / STEPS), 1)

    @property
    def over(self) -> bool:
        """Whether all regions have been looked at."""
        return not self._regions

    @property
    def learned(self) -> FloatArray:
        """What the beliefs of W have become, less their priors."""
        return self._beliefs - self._prior

    def step(self, priors: Priors, schedule: Schedule, damping: float) -> None:
        """Some regions."""
        assert priors.p_S is not None
        for images in self._regions[: self._each]:
            start = np.float32(FORGETTING) * self.learned + self._prior
            passing = DensePassing(
                CPUEngine(),
                replace(self._layer, image_size=images.size),
                trees_of(images.observed, self._rng),
                images.evidence(priors.noise),
                float(logit(priors.p_S)),
                start,
            )
            for _ in range(SWEEPS):
                passing.sweep(schedule, self._rng, damping)
            self._beliefs = np.array(passing.weight_beliefs())
        del self._regions[: self._each]


def block_size(layer: FeatureLayer) -> tuple[int, int]:
    """Height and width of the blocks that images are cut into."""
    (h, w), (H, W) = layer.feature_size, layer.image_size
    for windows in range(WINDOWS, 1, -1):
        height, width = min(windows * h, H), min(windows * w, W)
        if _memory(layer, height, width) <= REGION_BYTES:
            return height, width
    return min(h, H), min(w, W)


def exploration_memory(layer: FeatureLayer) -> int:
    """Bytes that a region takes."""
    height, width = block_size(layer)
    blocks = max(WINDOWS**2 * math.prod(layer.feature_size) // (height * width), 1)
    return min(_memory(layer, height, width) * blocks, REGION_BYTES)


def _memory(layer: FeatureLayer, height: int, width: int) -> int:
    trees = layer.n_channels * height * width
    return Layout(replace(layer, image_size=(height, width)), 1).memory(trees)


def regions(layer: FeatureLayer, images: Images, rng: np.random.Generator) -> list[Images]:
    """Random regions that hold ink, each of one or several blocks of the same size."""
    height, width = block_size(layer)
    (H, W), n = images.size, images.n_images
    down, across = max(round(H / height), 1), max(round(W / width), 1)
    height, width = min(-(-H // down), H), min(-(-W // across), W)
    corners = [
        (k, min(i * height, H - height), min(j * width, W - width))
        for k in range(n)
        for i in range(down)
        for j in range(across)
    ]
    per_region = max(WINDOWS**2 * math.prod(layer.feature_size) // (height * width), 1)
    per_region = min(per_region, max(REGION_BYTES // _memory(layer, height, width), 1))
    inked = []
    for z in rng.permutation(len(corners)):
        k, r, c = corners[z]
        here = (slice(k, k + 1), slice(None), slice(r, r + height), slice(c, c + width))
        block = Images(images.pixels[here], images.observed[here])
        if (block.pixels & block.observed).any():
            inked.append(block)
        if len(inked) == per_region * MOST_REGIONS:
            break
    return [_side_by_side(inked[k : k + per_region]) for k in range(0, len(inked), per_region)]


def _side_by_side(blocks: list[Images]) -> Images:
    return Images(
        np.concatenate([block.pixels for block in blocks]),
        np.concatenate([block.observed for block in blocks]),
    )
