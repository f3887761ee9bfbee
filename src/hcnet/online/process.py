"""A stream as a process for the driver: one minibatch per step."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from hcnet.archive.contents import Contents
from hcnet.archive.fields import listed, whole
from hcnet.archive.reading import Section
from hcnet.checkpoint import digest, other_data
from hcnet.engine.driver import Keeper, Limits, Measurement, Outcome, Record, Status, run
from hcnet.images import BoolArray
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Minibatches whose records are kept.
HISTORY = 1000


class Minibatch(Protocol):
    """Images that are learned from together."""

    def arrays(self) -> tuple[BoolArray, ...]:
        """All that there is to it."""
        ...


Batch = TypeVar("Batch", bound=Minibatch)
BatchIn = TypeVar("BatchIn", contravariant=True)


class Stream(Protocol[BatchIn]):
    """What carries on from minibatch to minibatch."""

    def learn(self, batch: BatchIn) -> Measurement:
        """Learn from a minibatch."""
        ...

    def model(self) -> object:
        """What is known by now."""
        ...

    def memory(self, batch: BatchIn) -> int:
        """Bytes that a minibatch takes at its peak."""
        ...

    def contents(self) -> Contents:
        """What goes into a file."""
        ...

    def restore(self, file: Section) -> None:
        """Become what `contents` were of."""
        ...


def later(records: list[Record], before: list[Record], steps: int) -> list[Record]:
    """History of a stream: what was recorded before, and what came after so many steps."""
    seconds = before[-1].seconds if before else 0.0
    shifted = [
        replace(record, iteration=record.iteration + steps, seconds=record.seconds + seconds)
        for record in records
    ]
    return [*before, *shifted][-HISTORY:]


class _Minibatches(Generic[Batch]):
    """Feeds a stream, looking one minibatch ahead to know when it ends."""

    def __init__(
        self,
        stream: Stream[Batch],
        batches: Iterator[Batch],
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
        """A stream has no best state: it is where it is."""

    def contents(self, finished: bool) -> Contents:
        """The stream, how many minibatches it has seen, and a fingerprint of them."""
        last = self._last
        header = {
            "batches": self._batches_seen,
            "seen": self._seen.hex(),
            "last": [last.objective, last.changed_weights, last.belief_change, last.note],
        }
        return Contents(header).with_part("stream", self._stream.contents())

    def restore(self, file: Section, finished: bool) -> None:
        """Become what `contents` were of: read again what has been learned from, and go on."""
        for _ in range(whole("batches", file.header["batches"])):
            if self._next is None:
                raise other_data()
            self._pass_on(self._next)
        if self._seen.hex() != file.header["seen"]:
            raise other_data()
        self._stream.restore(file.part("stream"))
        self._last = Measurement(*listed("last", file.header["last"], 4))

    def _pass_on(self, batch: Batch) -> None:
        """Be done with a minibatch, and look at the next."""
        if self._keeping:  # what nobody asks for need not be worked out
            self._seen = hashlib.sha256(self._seen + digest(*batch.arrays()).encode()).digest()
        self._batches_seen += 1
        self._next = next(self._batches, None)

    def pack(self, state: None) -> Contents:
        """Nothing."""
        return Contents()

    def unpack(self, file: Section) -> None:
        """Nothing."""


def feed(
    stream: Stream[Batch],
    batches: Iterator[Batch],
    progress: Progress,
    *,
    total: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
    keeper: Keeper | None = None,
) -> Outcome[None]:
    """Learn from all minibatches, of which there is one at least; `total`: how many, if known."""
    process = _Minibatches(stream, batches, max_memory, keeper is not None)
    progress.stage("Minibatches", total)
    # Beliefs that hardly move are no reason to leave the rest of a stream unread.
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
