"""A stream as a process for the driver: one minibatch per step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from hcnet.engine.driver import Limits, Measurement, Outcome, Record, Status, run
from hcnet.memory import check_memory
from hcnet.progress import Progress

# Minibatches whose records are kept.
HISTORY = 1000

Batch = TypeVar("Batch")
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
        self, stream: Stream[Batch], batches: Iterator[Batch], max_memory: int | None
    ) -> None:
        self._stream, self._batches, self._max_memory = stream, batches, max_memory
        self._next = next(batches, None)
        self._last = Measurement(-math.inf)

    def step(self) -> bool:
        assert self._next is not None
        needed = self._stream.memory(self._next)
        check_memory("A minibatch", needed, self._max_memory, "lower batch_size")
        self._last = self._stream.learn(self._next)
        self._next = next(self._batches, None)
        return self._next is not None

    def measure(self) -> Measurement:
        return self._last

    def state(self) -> None:
        """A stream has no best state: it is where it is."""


def feed(
    stream: Stream[Batch],
    batches: Iterator[Batch],
    progress: Progress,
    *,
    total: int | None = None,
    max_seconds: float | None = None,
    max_memory: int | None = None,
) -> Outcome[None]:
    """Learn from all minibatches, of which there is one at least; `total`: how many, if known."""
    process = _Minibatches(stream, batches, max_memory)
    progress.stage("Minibatches", total)
    # Beliefs that hardly move are no reason to leave the rest of a stream unread.
    limits = Limits(max_seconds=max_seconds, tolerance=0.0, history=HISTORY)
    outcome = run(
        process, limits, lambda k, measurement, seconds: progress.step(measurement, stream.model)
    )
    if outcome.status is Status.FINISHED:
        return replace(outcome, status=Status.END_OF_STREAM)
    return outcome
