"""The single-layer HCN from a stream: the paper's online learning."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.archive.contents import Contents
from hcnet.archive.fields import (
    BELOW_HALF,
    LARGEST,
    MOST,
    named,
    number,
    probability,
    size,
    whole,
    word,
)
from hcnet.archive.generators import generator_state, restore_generator
from hcnet.archive.reading import Section
from hcnet.engine.choice import start_dense
from hcnet.engine.driver import Keeper, Limits, Measurement, run
from hcnet.images import BoolArray, Images
from hcnet.layers import Border, FeatureLayer
from hcnet.learning.options import AUTO_FEATURES, dead_start, starting_priors
from hcnet.learning.passing import PassingOptions, placement_prior, weight_prior
from hcnet.messages import Layout, trees_of
from hcnet.model import PartsModel
from hcnet.objective import Counts, Priors, estimate
from hcnet.online.forgetting import Beliefs
from hcnet.online.minibatches import join, split
from hcnet.progress import Progress
from hcnet.refine.search import Search
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.explanation import NOWHERE, Explanation
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

    def counts(self, W: BoolArray, used: NDArray[np.int64]) -> Counts:
        """The same as whole numbers, for the features that are used, whose weights are W."""
        F = len(W)
        hit, missed, false, empty = (round(float(k)) for k in self.pixels)
        return Counts(
            placed=round(float(self.use[used].sum())),
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

    def configure(self, options: PassingOptions, forgetting: float) -> None:
        """Go on in another way."""
        self.options, self.beliefs.forgetting = options, forgetting

    @property
    def dead(self) -> str | None:
        """Why nothing can be learned, if so."""
        return dead_start(self._priors, self.shape.n_channels * math.prod(self.shape.feature_size))

    def memory(self, images: Images) -> int:
        """Bytes that a minibatch takes at its peak."""
        layer, n = self.shape.layer(images.size), images.n_images
        lanes = self.options.schedule.lanes(n)
        return Layout(layer, n).memory(images.n_observed, lanes, keep=False)

    def learn(self, images: Images) -> Measurement:
        """Visit every tree of a minibatch once."""
        layer = self.shape.layer(images.size)
        assert self._priors.p_S is not None
        before = self.weights()
        passing = start_dense(
            self.options.engine,
            layer,
            trees_of(images.observed, self.rng),
            images.evidence_on_grid(self._priors.noise),
            placement_prior(self._priors.p_S),
            self.beliefs.prior()[0],
            keep=False,
        )
        passing.sweep(self.options.schedule, self.rng, self.options.share)
        change = self.beliefs.update([passing.weight_beliefs()])
        W = self.weights()
        bits = self._count(layer, images, passing.placements(), W)
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
        W, used = self._used()
        priors = estimate(self.tally.counts(W, used), self.open_priors)
        return PartsModel(W, priors, self.shape.border, self.recent[-1].size)

    def refined(
        self, max_seconds: float | None, progress: Progress, keeper: Keeper | None = None
    ) -> PartsModel:
        """The features refined by moves on the last images; the stream is left as it is."""
        images = join(list(self.recent))
        layer = self.shape.layer(images.size)
        improver = Improver(Canvas(layer, images), self.open_priors)
        now = self.model()
        rng = np.random.default_rng(self.n_images)
        features = [improver.feature(w) for w in now.features]
        guess = estimate(self.tally.counts(*self._used()), self.open_priors, LEAST_NOISE)
        placed = improver.place(features, NOWHERE, guess, rng)
        search = Search(improver, improver.evaluate(features, placed), rng, layer.n_features)
        progress.stage("Refining", search.expected_steps)
        with closing(search):
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
        return PartsModel(W, priors, self.shape.border, self.recent[-1].size)

    def contents(self) -> Contents:
        """What goes into a file: enough to go on as if nothing had happened.

        How messages are passed is not in there; it may change on the way (`configure`).
        """
        header = {
            "shape": asdict(self.shape),
            "open_priors": asdict(self.open_priors),
            "generator": generator_state(self.rng),
            "n_images": self.n_images,
            "n_batches": self.n_batches,
            "positions": self.tally.positions,
        }
        sizes = np.array([image.size for image in self.recent], np.int64)
        arrays = {"use": self.tally.use, "pixels": self.tally.pixels, "recent-sizes": sizes}
        contents = Contents(header, arrays).with_part("beliefs", self.beliefs.contents())
        for name in ("pixels", "observed"):
            every = np.concatenate([getattr(image, name).reshape(-1) for image in self.recent])
            contents = contents.with_bits(f"recent-{name}", every)
        return contents

    @classmethod
    def read(cls, file: Section, options: PassingOptions) -> PartsStream:
        """The stream of a file."""
        about = named("shape", file.header["shape"])
        shape = PartsShape(
            whole("n_features", about["n_features"], 1),
            whole("n_channels", about["n_channels"], 1),
            size("feature_size", about["feature_size"]),
            word("border", about["border"], get_args(Border)),
        )
        priors = named("open_priors", file.header["open_priors"])
        given = {
            name: None if p is None else probability(name, p, BELOW_HALF)
            for name, p in priors.items()
        }
        # Before weights of this shape are drawn: those of the file, which cannot be larger than it.
        weights = (shape.n_channels, shape.n_features, *shape.feature_size)
        forgetting = Beliefs.read(file.part("beliefs"), [weights]).forgetting
        stream = cls(shape, Priors(**given), options, forgetting, np.random.default_rng(0))
        stream.restore(file)
        return stream

    def restore(self, file: Section) -> None:
        """Become what `contents` were of."""
        header, shape = file.header, self.shape
        restore_generator(self.rng, header["generator"])
        weights = (shape.n_channels, shape.n_features, *shape.feature_size)
        self.beliefs = Beliefs.read(file.part("beliefs"), [weights])
        self.n_images = whole("n_images", header["n_images"], 1)
        self.n_batches = whole("n_batches", header["n_batches"], 1)
        use = file.array("use", np.float64, (shape.n_features,))
        pixels = file.array("pixels", np.float64, (4,))
        positions = number("positions", header["positions"])
        if not all(0 <= count <= MOST for count in (*use, *pixels, positions)):
            raise ValueError("its counts are none")
        self.tally = Tally(use, positions, pixels)
        self.recent = deque(self._read_recent(file))

    def _read_recent(self, file: Section) -> list[Images]:
        h, w = self.shape.feature_size
        sizes = file.array("recent-sizes", np.int64, (None, 2)).tolist()
        if not all(h <= height <= LARGEST and w <= width <= LARGEST for height, width in sizes):
            raise ValueError("its last images have no size")
        channels = self.shape.n_channels
        ends = [0, *itertools.accumulate(channels * height * width for height, width in sizes)]
        on, observed = (file.bits(f"recent-{name}", (ends[-1],)) for name in ("pixels", "observed"))
        images = []
        for (height, width), begin, end in zip(sizes, ends[:-1], ends[1:], strict=True):
            whole_ = (1, channels, height, width)
            images.append(
                Images(on[begin:end].reshape(whole_), observed[begin:end].reshape(whole_))
            )
        if not images or (len(images) > 1 and _pixels_side_by_side(images) > RECENT_PIXELS):
            raise ValueError("its last images are none, or too many")
        return images

    def _used(self) -> tuple[BoolArray, NDArray[np.int64]]:
        """Weights and numbers of the features that are used, the most used first."""
        W, use = self.weights(), self.tally.use
        used = np.flatnonzero(W.any(axis=(1, 2, 3)) & (use >= LEAST_USE))
        used = used[np.argsort(-use[used], kind="stable")]
        return W[used], used

    def _count(
        self, layer: FeatureLayer, images: Images, placements: NDArray[np.int64], W: BoolArray
    ) -> float:
        """Add a decoded minibatch to the tally; its code length."""
        improver = Improver(Canvas(layer, images), self.open_priors)
        found = improver.evaluate([improver.feature(w) for w in W], placements)
        use = np.bincount(placements[:, 1], minlength=len(W))
        positions = layer.n_positions * images.n_images
        self.tally.add(found.counts, use, positions, self.beliefs.forgetting)
        return found.bits

    def _remember(self, images: Images) -> None:
        self.recent.extend(split(images))
        # Side by side, all are as large as the largest.
        while len(self.recent) > 1 and _pixels_side_by_side(self.recent) > RECENT_PIXELS:
            self.recent.popleft()


def _pixels_side_by_side(images: Sequence[Images]) -> int:
    height, width = (max(image.size[k] for image in images) for k in (0, 1))
    return len(images) * images[0].n_channels * height * width


def parts_shape(
    n_features: int | None, n_channels: int, feature_size: tuple[int, int], border: Border
) -> PartsShape:
    """The shape; where the number of features is left open, as many as a batch starts with."""
    return PartsShape(n_features or AUTO_FEATURES, n_channels, feature_size, border)
