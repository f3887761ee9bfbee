"""A stream: the state of learning between minibatches, and the loop over them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hcnet.archive.contents import Contents
from hcnet.archive.fields import listed, whole
from hcnet.archive.generators import generator_state, restore_generator
from hcnet.archive.reading import Section
from hcnet.checkpoint import digest, other_data
from hcnet.engine.driver import Keeper, Limits, Measurement, Outcome, Record, Status, run
from hcnet.memory import check_memory
from hcnet.online.forgetting import Beliefs
from hcnet.online.minibatches import Minibatch
from hcnet.progress import Progress

# Minibatches whose records are kept.
HISTORY = 1000


class Stream:
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

    def contents(self) -> Contents:
        """What goes into a file: enough to continue as if nothing had happened.

        The options are not in it; `configure` may change them at any time.
        """
        header = {
            "generator": generator_state(self.rng),
            "n_images": self.n_images,
            "n_batches": self.n_batches,
        }
        return Contents(header).with_part("beliefs", self.beliefs.contents())

    def restore(self, file: Section) -> None:
        """Become what `contents` were of."""
        restore_generator(self.rng, file.header["generator"])
        shapes = [initial.shape for initial in self.beliefs.initial]
        self.beliefs = Beliefs.read(file.part("beliefs"), shapes)
        self.n_images = whole("n_images", file.header["n_images"], 1)
        self.n_batches = whole("n_batches", file.header["n_batches"], 1)

    def _counted(
        self, batch: Minibatch, value: float, changed_weights: int, change: float
    ) -> Measurement:
        """Count a minibatch that was learned from; what the driver is told about it."""
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


class _Minibatches:
    """A process of the driver: a minibatch per step, the next one read ahead to see the end."""

    def __init__(
        self,
        stream: Stream,
        batches: Iterator[Minibatch],
        max_memory: int | None,
        keeping: bool,
    ) -> None:
        self._stream, self._batches, self._max_memory = stream, batches, max_memory
        self._keeping, self._batches_seen, self._seen = keeping, 0, b""
        self._next = next(batches, None)
        self._last = Measurement(-math.inf)

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

    def contents(self, finished: bool) -> Contents:
        """The stream, the number of its minibatches, and a fingerprint of them."""
        last = self._last
        header = {
            "batches": self._batches_seen,
            "seen": self._seen.hex(),
            "last": [last.objective, last.changed_weights, last.belief_change, last.note],
        }
        return Contents(header).with_part("stream", self._stream.contents())

    def restore(self, file: Section, finished: bool) -> None:
        """Become what `contents` were of: skip the minibatches that were learned from."""
        for _ in range(whole("batches", file.header["batches"])):
            if self._next is None:
                raise other_data()
            self._pass_on(self._next)
        if self._seen.hex() != file.header["seen"]:
            raise other_data()
        self._stream.restore(file.part("stream"))
        self._last = Measurement(*listed("last", file.header["last"], 4))

    def _pass_on(self, batch: Minibatch) -> None:
        """Finish a minibatch, and read the next."""
        if self._keeping:
            self._seen = hashlib.sha256(self._seen + digest(*batch.arrays()).encode()).digest()
        self._batches_seen += 1
        self._next = next(self._batches, None)

    def pack(self, state: None) -> Contents:
        """Nothing."""
        return Contents()

    def unpack(self, file: Section) -> None:
        """Nothing."""


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
