"""The single-layer HCN from a stream: the paper's online learning."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from hcnet.archive import Contents, Section
from hcnet.engine.driver import Limits, Measurement, run
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.learning.options import AUTO_FEATURES, starting_priors
from hcnet.learning.passing import ENGINES, PassingOptions, weight_prior
from hcnet.messages import Layout, observed_pixels, start_messages
from hcnet.model import PartsModel
from hcnet.objective import Counts, Priors, estimate
from hcnet.online.forgetting import Beliefs
from hcnet.online.generators import generator_state, restored_generator
from hcnet.online.minibatches import join, split
from hcnet.progress import Progress
from hcnet.refine.search import Search
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.explanation import NOWHERE
from hcnet.solutions.improver import LEAST_NOISE, Improver

# Images of a minibatch, and λ: the paper's.
BATCH_SIZE = 5
FORGETTING = 0.95
# Pixels of the last images that are kept, to refine the parts on; one image at least.
RECENT_PIXELS = 32_000
# A feature that stands in the images less often than this, older ones counting less, is not used.
LEAST_USE = 0.5


@dataclass(frozen=True)
class PartsShape:
    """What is to be learned."""

    n_features: int
    n_channels: int
    feature_size: tuple[int, int]
    border: Border

    def layer(self, size: tuple[int, int]) -> FeatureLayer:
        """The layer over images of a size."""
        return FeatureLayer(self.n_features, self.n_channels, self.feature_size, size, self.border)


@dataclass
class Tally:
    """What the decoded placements say about the priors, older minibatches counting less."""

    use: NDArray[np.float64]  # (features,): placements
    positions: float = 0.0
    # Observed pixels: X=1 R=1, X=1 R=0, X=0 R=1, X=0 R=0.
    pixels: NDArray[np.float64] = field(default_factory=lambda: np.zeros(4))

    def add(self, counts: Counts, use: NDArray[np.int64], positions: int, keep: float) -> None:
        """Take up a minibatch."""
        self.use = keep * self.use + use
        self.positions = keep * self.positions + positions
        new = np.array([counts.hit, counts.missed, counts.false, counts.empty])
        self.pixels = keep * self.pixels + new

    def counts(self, W: BoolArray) -> Counts:
        """The same as whole numbers, for features that are used."""
        F = len(W)
        hit, missed, false, empty = (round(float(k)) for k in self.pixels)
        return Counts(
            placed=round(float(self.use.sum())),
            positions=round(F * self.positions),
            weights_on=int(W.sum()),
            weights=W.size,
            hit=hit,
            missed=missed,
            false=false,
            empty=empty,
        )


class PartsStream:
    """Everything that learning carries from minibatch to minibatch."""

    def __init__(
        self,
        shape: PartsShape,
        priors: Priors,
        options: PassingOptions,
        forgetting: float,
        rng: np.random.Generator,
    ) -> None:
        self.shape = shape
        self.open_priors = priors
        self.options = options
        self.rng = rng
        feature_pixels = shape.n_channels * math.prod(shape.feature_size)
        self._priors = starting_priors(priors, feature_pixels)[0]
        assert self._priors.p_W is not None
        size = (shape.n_channels, shape.n_features, *shape.feature_size)
        self.beliefs = Beliefs([weight_prior(self._priors.p_W, size, rng)], forgetting)
        self.tally = Tally(np.zeros(shape.n_features))
        self.recent: deque[Images] = deque()
        self.n_images = 0
        self.n_batches = 0
        self._engine = ENGINES[options.engine]()

    def memory(self, images: Images) -> int:
        """Bytes that a minibatch takes at its peak."""
        layout = Layout(self.shape.layer(images.size), images.n_images)
        lanes = images.n_images if self.options.schedule.name == "per-image" else 1
        return layout.memory(images.n_observed, lanes, keep=False)

    def learn(self, images: Images) -> Measurement:
        """Visit every tree of a minibatch once."""
        layer = self.shape.layer(images.size)
        assert self._priors.p_S is not None
        before = self.weights()
        messages = start_messages(
            layer,
            observed_pixels(images, self.rng),
            images.evidence(self._priors.noise),
            float(logit(self._priors.p_S)),
            self.beliefs.prior()[0],
            keep=False,
        )
        for batch in self.options.schedule.batches(messages.images, self.rng):
            self._engine.update(messages, batch, self.options.damping)
        change = self.beliefs.update([messages.weight_beliefs()])
        S, W = messages.decode()
        bits = self._count(layer, images, S, W)
        self._remember(images)
        self.n_images += images.n_images
        self.n_batches += 1
        changed = int((before != W).sum())
        note = f"{self.n_images:,} images"
        return Measurement(-bits * math.log(2), changed, change, note)

    def weights(self) -> BoolArray:
        """All features as they are now, also those that are not used."""
        now = self.beliefs.now or self.beliefs.initial
        return np.ascontiguousarray(np.swapaxes(now[0], 0, 1) > 0)

    def model(self) -> PartsModel:
        """The features that are used, the most used first."""
        W, use = self.weights(), self.tally.use
        used = np.flatnonzero(W.any(axis=(1, 2, 3)) & (use >= LEAST_USE))
        W = W[used[np.argsort(-use[used], kind="stable")]]
        priors = estimate(self.tally.counts(W), self.open_priors)
        return PartsModel(W, priors, self.shape.border, self.recent[-1].size)

    def refined(self, max_seconds: float | None, progress: Progress) -> PartsModel:
        """The features refined by moves on the last images; the stream is left as it is."""
        images = join(list(self.recent))
        layer = self.shape.layer(images.size)
        improver = Improver(Canvas(layer, images), self.open_priors)
        now = self.model()
        rng = np.random.default_rng(self.n_images)
        features = [improver.feature(w) for w in now.features]
        guess = estimate(self.tally.counts(now.features), self.open_priors, LEAST_NOISE)
        placed = improver.place(features, NOWHERE, guess, rng)
        search = Search(improver, improver.evaluate(features, placed), rng, layer.n_features)
        progress.stage("Refining", search.expected_steps)
        run(
            search,
            Limits(max_seconds=max_seconds),
            lambda k, measurement, seconds: progress.step(measurement, search.expected_steps),
        )
        found = search.now
        W = np.zeros((0, *now.features.shape[1:]), bool)
        if found.features:
            W = found.weights()[np.argsort(-found.usage, kind="stable")]
        priors = estimate(found.counts, self.open_priors)
        return PartsModel(W, priors, self.shape.border, self.recent[-1].size)

    def contents(self) -> Contents:
        """What goes into a file: enough to go on as if nothing had happened."""
        shape, tally = self.shape, self.tally
        header = {
            "n_features": shape.n_features,
            "n_channels": shape.n_channels,
            "feature_size": list(shape.feature_size),
            "border": shape.border,
            "open_priors": asdict(self.open_priors),
            "engine": self.options.engine,
            "schedule": self.options.schedule.name,
            "damping": self.options.damping,
            "generator": generator_state(self.rng),
            "n_images": self.n_images,
            "n_batches": self.n_batches,
            "positions": tally.positions,
            "recent": [list(image.pixels.shape[2:]) for image in self.recent],
        }
        arrays: dict[str, NDArray[Any]] = {"use": tally.use, "pixels": tally.pixels}
        for k, image in enumerate(self.recent):
            arrays[f"recent-{k}"] = np.packbits(image.pixels)
            arrays[f"observed-{k}"] = np.packbits(image.observed)
        return Contents(header, arrays).with_part("beliefs", self.beliefs.contents())

    @classmethod
    def read(cls, file: Section) -> PartsStream:
        """The stream of a file."""
        header = file.header
        height, width = (int(k) for k in header["feature_size"])
        shape = PartsShape(
            int(header["n_features"]), int(header["n_channels"]), (height, width), header["border"]
        )
        options = PassingOptions(
            header["engine"], Schedule(header["schedule"]), float(header["damping"])
        )
        if options.engine not in ENGINES or options.schedule.name not in SCHEDULE_NAMES:
            raise ValueError("its way of passing messages is unknown")
        weights = (shape.n_channels, shape.n_features, height, width)
        beliefs = Beliefs.read(file.part("beliefs"), [weights])
        stream = cls(
            shape,
            Priors(**header["open_priors"]),
            options,
            beliefs.forgetting,
            np.random.default_rng(0),
        )
        stream.beliefs = beliefs
        stream.rng = restored_generator(header["generator"])
        stream.n_images, stream.n_batches = int(header["n_images"]), int(header["n_batches"])
        stream.tally = Tally(file.array("use"), float(header["positions"]), file.array("pixels"))
        if stream.tally.use.shape != (shape.n_features,) or stream.tally.pixels.shape != (4,):
            raise ValueError("its counts are incomplete")
        for k, size in enumerate(header["recent"]):
            whole = (1, shape.n_channels, int(size[0]), int(size[1]))
            pixels, observed = (file.bits(f"{key}-{k}", whole) for key in ("recent", "observed"))
            stream.recent.append(Images(pixels, observed))
        return stream

    def _count(self, layer: FeatureLayer, images: Images, S: BoolArray, W: BoolArray) -> float:
        """Add a decoded minibatch to the tally; its code length."""
        improver = Improver(Canvas(layer, images), Priors())
        placements = np.argwhere(S).astype(np.int64)
        found = improver.evaluate([improver.feature(w) for w in W], placements)
        use = np.bincount(placements[:, 1], minlength=len(W))
        positions = layer.n_positions * images.n_images
        self.tally.add(found.counts, use, positions, self.beliefs.forgetting)
        return found.bits

    def _remember(self, images: Images) -> None:
        self.recent.extend(split(images))
        pixels = sum(image.pixels.size for image in self.recent)
        while len(self.recent) > 1 and pixels > RECENT_PIXELS:
            pixels -= self.recent.popleft().pixels.size


def parts_shape(
    n_features: int | None, n_channels: int, feature_size: tuple[int, int], border: Border
) -> PartsShape:
    """The shape; where the number of features is left open, as many as a batch starts with."""
    return PartsShape(n_features or AUTO_FEATURES, n_channels, feature_size, border)
