"""Joint message passing over S and W: the paper's algorithm as a process for the driver.

Where only undecided placements will have messages, exploration gives features their first shape: at
the start every placement over ink is undecided.  Regions of the images are therefore taken in turn.
Each gets a few sweeps with all its messages stored, and passes the beliefs of W on to the next, as
minibatches do in online learning.  Trees are updated one after the other, undamped, whatever
schedule and damping the sweeps after exploration have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful, part
from hcnet.engine.base import ActiveSet, FeaturePassing
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.dense import DensePassing
from hcnet.engine.driver import Measurement
from hcnet.engine.engines import ReadyEngine
from hcnet.engine.schedules import Schedule
from hcnet.grid import FLOAT, on_grid
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, trees_of
from hcnet.objective import Priors
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver

# What exploring has taught W fades so much per sweep, and is gone after so many.
FADE, FADED = 0.7, 8
# The paper draws the prior of W uniformly from (0.9 p_W, p_W) to break the symmetry.
SYMMETRY = 0.9

# A region is about so many windows high and wide, cut from one image or made of several.
WINDOWS = 4
# Regions that are looked at at most, sweeps over each, and how much of what W has learned in one
# goes on to the next: benchmarks/NOTES.md has the alternatives.
MOST_REGIONS = 8
REGION_SWEEPS = 3
FORGETTING = 0.9
# Bytes of messages that a region may have; where windows are large, regions are smaller: to get
# new memory takes as long as a sweep over its messages.
REGION_BYTES = 2**27


class MessagePassing(Stateful):
    """MPMP over all trees of a feature layer."""

    def __init__(
        self,
        layer: FeatureLayer,
        images: Images,
        improver: Improver,
        priors: Priors,
        engine: ReadyEngine,
        rng: np.random.Generator,
        memory: list[FloatArray] | None = None,
    ) -> None:
        """`memory` passes the memory of regions from one start on to the next."""
        assert priors.p_S is not None
        assert priors.p_W is not None
        self._improver = improver
        self._engine = engine
        self._priors = priors
        self._rng = rng
        self._memory = [] if memory is None else memory
        shape = (layer.n_channels, layer.n_features, *layer.feature_size)
        prior = weight_prior(priors.p_W, shape, rng)
        evidence = images.evidence_on_grid(priors.noise)
        start = (layer, images.observed, evidence, placement_prior(priors.p_S), prior)
        self._passing = engine.start(*start, rng, ink=evidence > 0)
        self._explores = engine.explores(layer, images.n_images, images.n_observed)
        self._layer, self._images, self._weight_prior = layer, images, prior
        self._learned: FloatArray | None = None  # by exploring
        self._sweeps = 0
        self._changed = 0
        self._belief_change = math.inf
        self._W = self._weights()
        self._features = [improver.feature(w) for w in self._W]
        self._now = self._evaluate()

    def step(self) -> bool:
        """One sweep; an active set explores before the first.

        What exploring has taught the weights is added to the first sweeps, less and less.
        """
        if self._explores and self._sweeps <= FADED:
            if self._learned is None:
                start = self._layer, self._images, self._priors, self._weight_prior
                self._learned = explore(*start, self._rng, self._memory)
            share = FADE**self._sweeps if self._sweeps < FADED else 0.0
            learned = on_grid(share * self._learned.astype(np.double))
            cast(ActiveSet, self._passing).add_to_weights(learned)
        schedule, damping = self._engine.schedule, self._engine.share
        self._belief_change = self._passing.sweep(schedule, self._rng, damping)
        if self._learned is not None and self._sweeps < FADED:
            self._belief_change = math.inf  # what leads it is still to go
        self._sweeps += 1
        before, self._W = self._W, self._weights()
        self._changed = int((before != self._W).sum())
        self._now = self._evaluate()
        return True

    @property
    def passing(self) -> FeaturePassing:
        """The messages."""
        return self._passing

    def saved_fields(self, finished: bool) -> Fields:
        """All messages; once it is finished, only the best state was of interest."""
        if finished:
            return {"_rng": kinds.generator()}
        return {
            "_rng": kinds.generator(),
            "_passing": part(),
            "_sweeps": kinds.whole_number(),
            "_changed": kinds.whole_number(),
            "_belief_change": kinds.number_or(math.inf),
            "_learned": kinds.optional(kinds.array(FLOAT, self._weight_prior.shape)),
        }

    @property
    def saved_best(self) -> Kind:
        """A decoded state."""
        return self._improver.explanation_kind

    def after_restore(self, finished: bool) -> None:
        """The decoded state follows from the messages."""
        if not finished:
            self._W = self._weights()
            self._now = self._evaluate()

    def measure(self) -> Measurement:
        """Joint log-probability of the decoded state, and how much the sweep changed."""
        return Measurement(-self._now.bits * math.log(2), self._changed, self._belief_change)

    def state(self) -> Explanation:
        """The decoded state, without features that are not used."""
        return self._now

    def _weights(self) -> BoolArray:
        return np.ascontiguousarray(np.swapaxes(self._passing.weight_beliefs(), 0, 1) > 0)

    def _evaluate(self) -> Explanation:
        for f, w in enumerate(self._W):
            if not np.array_equal(w, self._features[f].weights):  # what is known of it stays
                self._features[f] = self._improver.feature(w)
        return self._improver.evaluate(self._features, self._passing.placements())


def memory_needed(layer: FeatureLayer, images: Images, engine: ReadyEngine) -> int:
    """Bytes that message passing over these images takes at its peak."""
    size = layer, images.n_images, images.n_observed
    needed = engine.memory(*size, n_ink=int((images.pixels & images.observed).sum()))
    return needed + (exploration_memory(layer) if engine.explores(*size) else 0)


def weight_prior(p_W: float, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Log-odds of W, each from a probability drawn from (0.9 p_W, p_W); on the grid."""
    return on_grid(logit(rng.uniform(SYMMETRY * p_W, p_W, shape)))


def placement_prior(p_S: float) -> float:
    """Log-odds of S, on the grid."""
    return float(on_grid(logit(p_S)))


def explore(
    layer: FeatureLayer,
    images: Images,
    priors: Priors,
    weight_prior: FloatArray,
    rng: np.random.Generator,
    memory: list[FloatArray],
) -> FloatArray:
    """The beliefs of W, less their priors, after all regions."""
    assert priors.p_S is not None
    beliefs, found = weight_prior, regions(layer, images, rng)
    leaves = Layout(replace(layer, image_size=found[0].size), 1).leaves if found else 0
    most = max((region.n_observed for region in found), default=0)
    if not memory or memory[0].shape != (2, most, leaves):
        memory[:] = [np.empty((2, most, leaves), FLOAT)]  # of all regions, one after the other
    for region in found:
        passing = DensePassing(
            CPUEngine(),
            replace(layer, image_size=region.size),
            trees_of(region.observed, rng),
            region.evidence_on_grid(priors.noise),
            placement_prior(priors.p_S),
            on_grid(FORGETTING * (beliefs - weight_prior).astype(np.double) + weight_prior),
            memory=memory[0],
        )
        for _ in range(REGION_SWEEPS):
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
