"""Exploration: the first shape of features where only undecided placements will have messages.

At the start every placement over ink is undecided.  Regions of the images are therefore taken in
turn.  Each gets a few sweeps with all its messages stored, and passes the beliefs of W on to the
next, as minibatches do in online learning.  Trees are updated one after the other, undamped,
whatever schedule and damping the sweeps after exploration have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.schedules import Schedule
from hcnet.grid import FLOAT, on_grid
from hcnet.images import FloatArray, Images
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of
from hcnet.objective import Priors

# A region is about so many windows high and wide, cut from one image or made of several.
WINDOWS = 4
# Regions that are looked at at most, sweeps over each, and how much of what W has learned in one
# goes on to the next: benchmarks/NOTES.md has the alternatives.
MOST_REGIONS = 8
SWEEPS = 3
FORGETTING = 0.9
# Bytes of messages that a region may have; where windows are large, regions are smaller.
REGION_BYTES = 2**30


def explore(
    layer: FeatureLayer,
    images: Images,
    priors: Priors,
    weight_prior: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """The beliefs of W, less their priors, after all regions."""
    assert priors.p_S is not None
    placement_prior = float(on_grid(logit(priors.p_S)))
    beliefs, found = weight_prior, regions(layer, images, rng)
    leaves = Layout(replace(layer, image_size=found[0].size), 1).leaves if found else 0
    most = max((region.n_observed for region in found), default=0)
    memory = np.empty((2, most, leaves), FLOAT)  # of all regions, one after the other
    for region in found:
        passing = DensePassing(
            CPUEngine(),
            replace(layer, image_size=region.size),
            trees_of(region.observed, rng),
            region.evidence_on_grid(priors.noise),
            placement_prior,
            on_grid(FORGETTING * (beliefs - weight_prior).astype(np.double) + weight_prior),
            memory=memory,
        )
        for _ in range(SWEEPS):
            passing.sweep(Schedule(), rng)
        beliefs = np.array(passing.weight_beliefs())
    return beliefs - weight_prior


@dataclass(frozen=True, slots=True)
class Plan:
    """How images are cut: blocks of one size, several of which make a region."""

    height: int
    width: int
    down: int
    across: int
    blocks: int  # of a region


def plan(layer: FeatureLayer) -> Plan:
    """Regions of about `WINDOWS` windows across, or as many as their messages leave room for."""
    (h, w), (H, W) = layer.feature_size, layer.image_size
    windows = float(WINDOWS)
    while True:
        down, across = (
            max(round(size / max(windows * window, 1)), 1) for size, window in ((H, h), (W, w))
        )
        height, width = -(-H // down), -(-W // across)
        fits = _memory(layer, height, width, 1) <= REGION_BYTES
        if fits or height * width == 1:
            break
        windows /= 2 if windows <= 2 else windows / (windows - 1)
    blocks = max(round(windows**2 * h * w / (height * width)), 1)
    while blocks > 1 and _memory(layer, height, width, blocks) > REGION_BYTES:
        blocks -= 1
    return Plan(height, width, down, across, blocks)


def exploration_memory(layer: FeatureLayer) -> int:
    """Bytes that a region takes."""
    chosen = plan(layer)
    return _memory(layer, chosen.height, chosen.width, chosen.blocks)


def _memory(layer: FeatureLayer, height: int, width: int, blocks: int) -> int:
    trees = blocks * layer.n_channels * height * width
    return Layout(replace(layer, image_size=(height, width)), blocks).memory(trees)


def regions(layer: FeatureLayer, images: Images, rng: np.random.Generator) -> list[Images]:
    """Random regions that hold ink, each of one or several blocks of the same size."""
    chosen, (H, W) = plan(layer), images.size
    corners = [
        (k, min(i * chosen.height, H - chosen.height), min(j * chosen.width, W - chosen.width))
        for k in range(images.n_images)
        for i in range(chosen.down)
        for j in range(chosen.across)
    ]
    inked = []
    for z in rng.permutation(len(corners)):
        k, r, c = corners[z]
        rows, columns = slice(r, r + chosen.height), slice(c, c + chosen.width)
        here = (slice(k, k + 1), slice(None), rows, columns)
        block = images[here]
        if (block.pixels & block.observed).any():
            inked.append(block)
        if len(inked) == chosen.blocks * MOST_REGIONS:
            break
    groups = (inked[k : k + chosen.blocks] for k in range(0, len(inked), chosen.blocks))
    return [
        Images(
            np.concatenate([block.pixels for block in group]),
            np.concatenate([block.observed for block in group]),
        )
        for group in groups
    ]
