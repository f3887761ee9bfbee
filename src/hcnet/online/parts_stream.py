"""Parts from a stream: the paper's online learning of the single-layer HCN."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Node, restore
from hcnet.engine.dense import DensePassing
from hcnet.engine.driver import Keeper, Limits, Measurement, run
from hcnet.engine.engines import ReadyEngine
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.learning.learn import dead_start, starting_priors
from hcnet.learning.message_passing import placement_prior, weight_prior
from hcnet.messages import Layout, trees_of
from hcnet.model import PartsModel
from hcnet.objective import Counts, Priors, estimate
from hcnet.online.stream import Beliefs, Minibatch, Stream, join
from hcnet.progress import Progress
from hcnet.refine.search import Search
from hcnet.solutions.explanation import NOWHERE, Canvas, Explanation
from hcnet.solutions.improver import LEAST_NOISE, Improver

# Images of a minibatch, and λ: the paper's.
BATCH_SIZE = 5
FORGETTING = 0.95
# Pixels of the last images, on which parts are refined; at least one image is kept.
RECENT_PIXELS = 32_000
# A feature with fewer placements than this (older ones weigh less) counts as not used.
LEAST_USE = 0.5
_PIXELS = ("hit", "missed", "false", "empty")


@dataclass(frozen=True)
class PartsShape:
    """Number and size of the features to be learned."""

    n_features: int
    n_channels: int
    feature_size: tuple[int, int]
    border: Border

    @property
    def weights(self) -> tuple[int, int, int, int]:
        """Shape of the beliefs of W."""
        return (self.n_channels, self.n_features, *self.feature_size)

    def layer(self, size: tuple[int, int]) -> FeatureLayer:
        """The layer over images of a size."""
        return FeatureLayer(self.n_features, self.n_channels, self.feature_size, size, self.border)


@dataclass
class Tally:
    """Counts of decoded placements and pixels, in which older minibatches weigh less."""

    use: NDArray[np.float64]  # (features,): placements
    positions: float = 0.0
    # Observed pixels of these kinds in `Counts`.
    pixels: NDArray[np.float64] = field(default_factory=lambda: np.zeros(4))

    def add(self, counts: Counts, use: NDArray[np.int64], positions: int, keep: float) -> None:
        """Add a minibatch."""
        self.use = keep * self.use + use
        self.positions = keep * self.positions + positions
        self.pixels = keep * self.pixels + [getattr(counts, name) for name in _PIXELS]

    def counts(self, W: BoolArray, used: NDArray[np.int64]) -> Counts:
        """Whole numbers, for the features that are used; W are their weights."""
        return Counts(
            placed=round(float(self.use[used].sum())),
            positions=round(len(W) * self.positions),
            weights_on=int(W.sum()),
            weights=W.size,
            **dict(zip(_PIXELS, (round(float(k)) for k in self.pixels), strict=True)),
        )


@dataclass(frozen=True)
class _RecentImages:
    """The last images in a file: the pixels of all in one row, as there may be many images."""

    sizes: NDArray[np.int64]  # (images, 2)
    pixels: BoolArray
    observed: BoolArray

    @classmethod
    def of(cls, recent: Sequence[Minibatch]) -> _RecentImages:
        images = [single.images for single in recent]
        return cls(
            np.array([image.size for image in images], np.int64),
            np.concatenate([image.pixels.reshape(-1) for image in images]),
            np.concatenate([image.observed.reshape(-1) for image in images]),
        )


_RECENT = kinds.object_of(
    _RecentImages,
    sizes=kinds.array(np.int64, (None, 2)),
    pixels=kinds.binary_array((None,)),
    observed=kinds.binary_array((None,)),
)
_SHAPE = kinds.object_of(
    PartsShape,
    n_features=kinds.whole_number(1),
    n_channels=kinds.whole_number(1),
    feature_size=kinds.size(),
    border=kinds.choice(*get_args(Border)),
)
_OPEN_PRIORS = kinds.object_of(
    Priors,
    **{
        prior.name: kinds.optional(kinds.probability(most=kinds.BELOW_HALF))
        for prior in fields(Priors)
    },
)


class PartsStream(Stream):
    """A stream that parts are learned from: also use counts, and the last images to refine on."""

    def __init__(
        self,
        shape: PartsShape,
        priors: Priors,
        options: ReadyEngine,
        forgetting: float,
        rng: np.random.Generator,
    ) -> None:
        feature_pixels = shape.n_channels * math.prod(shape.feature_size)
        start = starting_priors(priors, feature_pixels)[0]
        assert start.p_W is not None
        initial = weight_prior(start.p_W, shape.weights, rng)
        super().__init__(Beliefs([initial], forgetting), options, rng)
        self.shape = shape
        self.open_priors = priors
        self._priors = start
        self.problem = dead_start(start, feature_pixels)
        self.tally = Tally(np.zeros(shape.n_features))
        self.recent: deque[Minibatch] = deque()  # single images

    def memory(self, batch: Minibatch) -> int:
        """Bytes that a minibatch takes at its peak."""
        images, n = batch.images, batch.images.n_images
        layout = Layout(self.shape.layer(images.size), n)
        return layout.memory(images.n_observed, self.options.schedule.lanes(n), keep=False)

    def learn(self, batch: Minibatch) -> Measurement:
        """Visit every tree of a minibatch once."""
        images = batch.images
        layer = self.shape.layer(images.size)
        assert self._priors.p_S is not None
        before = self.weights()
        passing = DensePassing(
            self.options.trees(),
            layer,
            trees_of(images.observed, self.rng),
            images.evidence_on_grid(self._priors.noise),
            placement_prior(self._priors.p_S),
            self.beliefs.prior()[0],
            keep=False,
        )
        passing.sweep(self.options.schedule, self.rng, self.options.share)
        change = self.beliefs.update([passing.weight_beliefs()])
        W, placed = self.weights(), passing.placements()
        improver = Improver(Canvas(layer, images), self.open_priors)
        found = improver.evaluate([improver.feature(w) for w in W], placed)
        use = np.bincount(placed[:, 1], minlength=len(W))
        positions = layer.n_positions * images.n_images
        self.tally.add(found.counts, use, positions, self.beliefs.forgetting)
        self.recent.extend(batch.split())
        while len(self.recent) > 1 and _joined_pixels(self.recent) > RECENT_PIXELS:
            self.recent.popleft()
        return self._counted(batch, -found.bits * math.log(2), int((before != W).sum()), change)

    def weights(self) -> BoolArray:
        """All features, also those that are not used."""
        now = self.beliefs.now or self.beliefs.initial
        return np.ascontiguousarray(np.swapaxes(now[0], 0, 1) > 0)

    def model(self) -> PartsModel:
        """The features that are used, the most used first."""
        W, used = self._used()
        priors = estimate(self.tally.counts(W, used), self.open_priors)
        return PartsModel(W, priors, self.shape.border, self.recent[-1].images.size)

    def refined(
        self, max_seconds: float | None, progress: Progress, keeper: Keeper | None = None
    ) -> PartsModel:
        """The features, refined by moves on the last images; the stream does not change."""
        images = join(self.recent).images
        layer = self.shape.layer(images.size)
        improver = Improver(Canvas(layer, images), self.open_priors)
        now = self.model()
        rng = np.random.default_rng(self.n_images)
        features = [improver.feature(w) for w in now.features]
        guess = estimate(self.tally.counts(*self._used()), self.open_priors, LEAST_NOISE)
        placed = improver.place(features, NOWHERE, guess, rng)
        search = Search(improver, improver.evaluate(features, placed), rng, layer.n_features)
        progress.stage("Refining", search.expected_steps)
        run(
            search,
            Limits(max_seconds=max_seconds),
            lambda k, measurement, seconds: progress.step(
                measurement, lambda: self._refined(search.now), search.expected_steps
            ),
            keeper,
        )
        return self._refined(search.now)

    def _refined(self, found: Explanation) -> PartsModel:
        W = np.zeros((0, self.shape.n_channels, *self.shape.feature_size), bool)
        if found.features:
            W = found.weights()[found.by_use]
        priors = estimate(found.counts, self.open_priors)
        return PartsModel(W, priors, self.shape.border, self.recent[-1].images.size)

    def saved_fields(self, finished: bool) -> Fields:
        """Also the shape, the counts and the last images."""
        bounds = 0, kinds.LARGEST_COUNT
        tally = kinds.object_of(
            Tally,
            use=kinds.array(np.float64, (self.shape.n_features,), *bounds),
            positions=kinds.number(*bounds),
            pixels=kinds.array(np.float64, (4,), *bounds),
        )
        return {
            **super().saved_fields(finished),
            "shape": _SHAPE,
            "open_priors": _OPEN_PRIORS,
            "tally": tally,
            "recent": kinds.converted(_RECENT, _RecentImages.of, self._recent_from_file),
        }

    @classmethod
    def read(cls, file: Node, options: ReadyEngine) -> PartsStream:
        """The stream of a file."""
        shape, priors = _SHAPE.read(file["shape"]), _OPEN_PRIORS.read(file["open_priors"])
        # Before weights of this shape are drawn: those of the file, which cannot be larger than it.
        forgetting = Beliefs.kind([shape.weights]).read(file["beliefs"]).forgetting
        stream = cls(shape, priors, options, forgetting, np.random.default_rng(0))
        restore(stream, file)
        return stream

    def after_restore(self, finished: bool) -> None:
        """Check the shape."""
        if self.beliefs.initial[0].shape != self.shape.weights:
            raise ValueError("its shape is not that of its beliefs")

    def _recent_from_file(self, stored: _RecentImages) -> deque[Minibatch]:
        channels, (h, w) = self.shape.n_channels, self.shape.feature_size
        sizes = stored.sizes.tolist()
        if not all(
            h <= side[0] <= kinds.LARGEST_SIDE and w <= side[1] <= kinds.LARGEST_SIDE
            for side in sizes
        ):
            raise ValueError("its recent images are smaller than its features, or too large")
        ends = [*itertools.accumulate(channels * height * width for height, width in sizes)]
        if not sizes or not len(stored.pixels) == len(stored.observed) == ends[-1]:
            raise ValueError("its recent images do not have their sizes")
        parts = (np.split(bits, ends[:-1]) for bits in (stored.pixels, stored.observed))
        recent = deque(
            Minibatch(Images(on.reshape(1, channels, *size), seen.reshape(1, channels, *size)))
            for size, on, seen in zip(sizes, *parts, strict=True)
        )
        if len(recent) > 1 and _joined_pixels(recent) > RECENT_PIXELS:
            raise ValueError("its recent images are too many")
        return recent

    def _used(self) -> tuple[BoolArray, NDArray[np.int64]]:
        """Weights and numbers of the features that are used, the most used first."""
        W, use = self.weights(), self.tally.use
        used = np.flatnonzero(W.any(axis=(1, 2, 3)) & (use >= LEAST_USE))
        used = used[np.argsort(-use[used], kind="stable")]
        return W[used], used


def _joined_pixels(singles: Sequence[Minibatch]) -> int:
    """Pixels of images once they are padded to the size of the largest."""
    height, width = (max(single.images.size[k] for single in singles) for k in (0, 1))
    return len(singles) * singles[0].images.n_channels * height * width
