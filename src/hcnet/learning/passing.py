"""Joint message passing over S and W: the paper's algorithm as a process for the driver."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logit

from hcnet.engine.base import Engine, rebuild
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.driver import Measurement
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import Schedule
from hcnet.images import FloatArray, Images
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout, observed_pixels, start_messages
from hcnet.objective import Priors
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver

ENGINES: dict[str, type[Engine]] = {"cpu": CPUEngine, "reference": ReferenceEngine}

# Beliefs are running sums of float32 messages; every so many sweeps they are added up anew.
REBUILD_EVERY = 10
# The paper draws the prior of W uniformly from (0.9 p_W, p_W) to break the symmetry.
SYMMETRY = 0.9


@dataclass(frozen=True, slots=True)
class PassingOptions:
    """How messages are passed."""

    engine: str = "cpu"
    schedule: Schedule = field(default_factory=Schedule)
    damping: float = 1.0


class MessagePassing:
    """MPMP over all trees of a feature layer."""

    def __init__(
        self,
        layer: FeatureLayer,
        images: Images,
        improver: Improver,
        priors: Priors,
        options: PassingOptions,
        rng: np.random.Generator,
    ) -> None:
        assert priors.p_S is not None
        assert priors.p_W is not None
        self._improver = improver
        self._options = options
        self._rng = rng
        self._engine = ENGINES[options.engine]()
        shape = (layer.n_channels, layer.n_features, *layer.feature_size)
        prior = weight_prior(priors.p_W, shape, rng)
        pixels = observed_pixels(images, rng)
        self._messages = start_messages(
            layer,
            pixels,
            images.evidence(priors.noise),
            float(logit(priors.p_S)),
            prior,
        )
        self._sweeps = 0
        self._changed = 0
        self._belief_change = math.inf
        self._S, self._W = self._messages.decode()
        self._now = self._evaluate()

    def step(self) -> bool:
        """One sweep."""
        m = self._messages
        field, kernel = m.field.copy(), m.kernel.copy()
        for batch in self._options.schedule.batches(m.images, self._rng):
            self._engine.update(m, batch, self._options.damping)
        self._sweeps += 1
        if self._sweeps % REBUILD_EVERY == 0:
            rebuild(self._engine, m)
        self._belief_change = max(
            float(np.abs(m.field - field).max(initial=0.0)),
            float(np.abs(m.kernel - kernel).max(initial=0.0)),
        )
        before = self._W
        self._S, self._W = m.decode()
        self._changed = int((before != self._W).sum())
        self._now = self._evaluate()
        return True

    def measure(self) -> Measurement:
        """Joint log-probability of the decoded state, and how much the sweep changed."""
        return Measurement(-self._now.bits * math.log(2), self._changed, self._belief_change)

    def state(self) -> Explanation:
        """The decoded state, without features that are not used."""
        return self._now

    def _evaluate(self) -> Explanation:
        features = [self._improver.feature(w) for w in self._W]
        return self._improver.evaluate(features, np.argwhere(self._S).astype(np.int64))


def memory_needed(layer: FeatureLayer, images: Images, options: PassingOptions) -> int:
    """Bytes that message passing over these images takes at its peak."""
    lanes = options.schedule.lanes(images.n_images)
    return Layout(layer, images.n_images).memory(images.n_observed, lanes)


def weight_prior(p_W: float, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Log-odds of W, each from a probability drawn from (0.9 p_W, p_W)."""
    p = rng.uniform(SYMMETRY * p_W, p_W, shape)
    return np.asarray(logit(p), dtype=np.float32)
