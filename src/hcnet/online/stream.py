"""A stream: minibatches, the state of learning between them, and the loop over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful, part
from hcnet.checkpoint import OtherDataError, digest
from hcnet.engine.driver import Keeper, Limits, Measurement, Outcome, Record, Status, run
from hcnet.grid import on_grid
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Minibatches whose records are kept.
HISTORY = 1000


@dataclass(frozen=True)
class Minibatch:
    """Images that are learned from together.

    In a network, `allowed` (images, templates) are the templates that their labels allow.
    """

    images: Images
    allowed: BoolArray | None = None

    def arrays(self) -> tuple[BoolArray | None, ...]:
        """All its arrays."""
        return *self.images.arrays(), self.allowed

    def split(self) -> list[Minibatch]:
        """The images one by one."""

        def cut(array: Any, k: int) -> Any:
            return None if array is None else array[k : k + 1]

        pixels, observed = self.images.arrays()
        return [
            Minibatch(Images(cut(pixels, k), cut(observed, k)), cut(self.allowed, k))
            for k in range(self.images.n_images)
        ]


@dataclass(frozen=True)
class Reading:
    """How a stream is read, and how fast it is forgotten."""

    batch_size: int
    epochs: int | None  # None: once, in the order of the stream
    forgetting: float

    def minibatches(
        self, singles: Iterable[Minibatch], n_images: int | None, rng: np.random.Generator
    ) -> tuple[Iterator[Minibatch], int | None]:
        """Single images as minibatches, and the number of minibatches if it is known."""
        if self.epochs is not None:
            every = list(singles)
            n_images = len(every) * self.epochs
            order = np.random.default_rng(rng.integers(2**32))
            epochs = range(self.epochs)  # in each another order
            singles = (every[k] for _ in epochs for k in order.permutation(len(every)))
        total = None if n_images is None else -(-n_images // self.batch_size)
        return grouped(singles, self.batch_size), total


def grouped(singles: Iterable[Minibatch], size: int) -> Iterator[Minibatch]:
    """Single images in minibatches of `size`; only the last may be smaller."""
    waiting: list[Minibatch] = []
    for single in singles:
        waiting.append(single)
        if len(waiting) == size:
            yield join(waiting)
            waiting = []
    if waiting:
        yield join(waiting)


def join(batches: Sequence[Minibatch]) -> Minibatch:
    """One minibatch of several; smaller images are padded with pixels that are not observed."""
    height, width = (max(batch.images.size[k] for batch in batches) for k in (0, 1))

    def pad(array: BoolArray) -> BoolArray:
        h, w = height - array.shape[2], width - array.shape[3]
        return np.pad(array, ((0, 0), (0, 0), (0, h), (0, w)))

    images = Images(
        np.concatenate([pad(batch.images.pixels) for batch in batches]),
        np.concatenate([pad(batch.images.observed) for batch in batches]),
    )
    allowed = [batch.allowed for batch in batches if batch.allowed is not None]
    return Minibatch(images, np.concatenate(allowed) if allowed else None)


@dataclass
class Beliefs:
    """Max-marginal differences of the weights, per layer.

    A minibatch starts from λ times the beliefs at the end of the one before, plus 1 - λ times the
    initial beliefs (the paper's forgetting factor).  Evidence of n minibatches ago has weight λⁿ.
    """

    initial: list[FloatArray]
    forgetting: float  # λ
    now: list[FloatArray] | None = None  # after the last minibatch

    @staticmethod
    def kind(shapes: Sequence[tuple[int, ...]]) -> Kind:
        """Beliefs of these shapes, for files."""
        arrays = kinds.each_of([kinds.array(np.float32, shape) for shape in shapes])
        return kinds.object_of(
            Beliefs, initial=arrays, forgetting=kinds.number(0, 1), now=kinds.optional(arrays)
        )

    def prior(self) -> list[FloatArray]:
        """The beliefs that the next minibatch starts from."""
        if self.now is None:
            return self.initial
        keep = self.forgetting
        return [
            on_grid(keep * now.astype(np.double) + (1 - keep) * initial.astype(np.double))
            for now, initial in zip(self.now, self.initial, strict=True)
        ]

    def update(self, beliefs: list[FloatArray]) -> float:
        """Set the beliefs at the end of a minibatch; return the largest change."""
        before = self.now or self.initial
        self.now = [np.array(one, dtype=np.float32) for one in beliefs]
        return max(
            float(np.abs(new - old).max()) for new, old in zip(self.now, before, strict=True)
        )


class Stream(Stateful):
    """The state that learning carries from minibatch to minibatch.

    Beliefs of the weights, random numbers, and counts; a subclass knows how to learn.
    """

    problem: str | None = None  # why nothing can be learned, if so

    def __init__(self, beliefs: Beliefs, options: Any, rng: np.random.Generator) -> None:
        self.beliefs = beliefs
        self.options = options
        self.rng = rng
        self.n_images = 0
        self.n_batches = 0

    def configure(self, options: Any, forgetting: float) -> None:
        """Continue with other options."""
        self.options, self.beliefs.forgetting = options, forgetting

    def learn(self, batch: Minibatch) -> Measurement:
        """Learn from a minibatch."""
        raise NotImplementedError

    def model(self) -> Any:
        """The model learned so far."""
        raise NotImplementedError

    def memory(self, batch: Minibatch) -> int:
        """Bytes that a minibatch takes at its peak."""
        raise NotImplementedError

    def saved_fields(self, finished: bool) -> Fields:
        """Everything that the next minibatch depends on.

        The options are not in it; `configure` may change them at any time.
        """
        return {
            "rng": kinds.generator(),
            "n_images": kinds.whole_number(1),
            "n_batches": kinds.whole_number(1),
            "beliefs": Beliefs.kind([initial.shape for initial in self.beliefs.initial]),
        }

    def _counted(
        self, batch: Minibatch, value: float, changed_weights: int, change: float
    ) -> Measurement:
        """Count a minibatch that was learned from, and return its figures."""
        self.n_images += batch.images.n_images
        self.n_batches += 1
        return Measurement(value, changed_weights, change, f"{self.n_images:,} images")


def later(records: list[Record], before: list[Record], steps: int) -> list[Record]:
    """History of a stream: the records before, and those after so many steps."""
    seconds = before[-1].seconds if before else 0.0
    shifted = [
        replace(record, iteration=record.iteration + steps, seconds=record.seconds + seconds)
        for record in records
    ]
    return [*before, *shifted][-HISTORY:]


@dataclass(frozen=True)
class _Seen:
    """The number of minibatches that were learned from, and a fingerprint of all of them."""

    batches: int = 0
    fingerprint: str = ""


_SEEN = kinds.object_of(_Seen, batches=kinds.whole_number(), fingerprint=kinds.text())
_MEASUREMENT = kinds.object_of(
    Measurement,
    objective=kinds.number_or(-math.inf),
    changed_weights=kinds.whole_number(),
    belief_change=kinds.optional(kinds.number()),
    note=kinds.text(),
    figure=kinds.text(),
)


class _Minibatches(Stateful):
    """A process of the driver: a minibatch per step, the next one read ahead to see the end."""

    def __init__(
        self, stream: Stream, batches: Iterator[Minibatch], max_memory: int | None, keeping: bool
    ) -> None:
        self._stream, self._batches, self._max_memory = stream, batches, max_memory
        self._keeping, self._seen = keeping, _Seen()
        self._next, self._last = next(batches, None), Measurement(-math.inf)

    def step(self) -> bool:
        assert self._next is not None
        needed = self._stream.memory(self._next)
        check_memory("A minibatch", needed, self._max_memory, "lower batch_size")
        self._last = self._stream.learn(self._next)
        self._pass_on(self._next)
        return self._next is not None

    def measure(self) -> Measurement:
        return self._last

    def state(self) -> None:
        """A stream has no best state."""

    def saved_fields(self, finished: bool) -> Fields:
        """The minibatches that were learned from, the stream, and its last measurement."""
        return {
            "_seen": kinds.converted(_SEEN, lambda seen: seen, self._skip),
            "_stream": part(),
            "_last": _MEASUREMENT,
        }

    @property
    def saved_best(self) -> Kind:
        """Nothing."""
        return kinds.constant(None)

    def _skip(self, seen: _Seen) -> _Seen:
        """Skip the minibatches that were learned from, which must be the same."""
        while self._next is not None and self._seen.batches < seen.batches:
            self._pass_on(self._next)
        if self._seen != seen:
            raise OtherDataError
        return seen

    def _pass_on(self, batch: Minibatch) -> None:
        """Finish a minibatch, and read the next."""
        fingerprint = ""
        if self._keeping:
            fingerprint = digest(self._seen.fingerprint, *batch.arrays())
        self._seen = _Seen(self._seen.batches + 1, fingerprint)
        self._next = next(self._batches, None)


def feed(
    stream: Stream,
    batches: Iterator[Minibatch],
    progress: Progress,
    total: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
    keeper: Keeper | None = None,
) -> Outcome[None]:
    """Learn from all minibatches, at least one; `total` is their number, if known."""
    process = _Minibatches(stream, batches, max_memory, keeper is not None)
    progress.stage("Minibatches", total)
    # Beliefs that hardly change are no reason to leave the rest of a stream unread.
    limits = Limits(max_seconds=max_seconds, tolerance=0.0, history=HISTORY)
    outcome = run(
        process,
        limits,
        lambda k, measurement, seconds: progress.step(measurement, stream.model),
        keeper,
    )
    if outcome.status is Status.FINISHED:
        return replace(outcome, status=Status.END_OF_STREAM)
    return outcome
