"""Time of a sweep of message passing, beside a plain copy of the same bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import Schedule
from hcnet.images import Images, Noise
from hcnet.layers import Border, FeatureLayer
from hcnet.messages import Messages, start_messages, trees_of


@dataclass(frozen=True, slots=True)
class Shape:
    """What is swept over."""

    images: int
    channels: int
    size: tuple[int, int]
    features: int
    window: tuple[int, int]
    border: Border = "full"


SHAPES = {
    "page 200×200, 12 parts of 12×12": Shape(1, 1, (200, 200), 12, (12, 12)),
    "100 images of 14×14, 5 parts of 6×6": Shape(100, 1, (14, 14), 5, (6, 6)),
    "MNIST layer: 4 × 16×28×28, 64 parts of 26×26": Shape(4, 16, (28, 28), 64, (26, 26), "valid"),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one sweep, each the least of several."""

    seconds: float
    copy_seconds: float  # what nothing that touches all messages can be faster than
    ands: int  # pairs of a placement and a weight: each has two messages


def prepare(shape: Shape) -> Messages:
    """Messages at the start of a run over random pixels."""
    rng = np.random.default_rng(0)
    pixels = rng.random((shape.images, shape.channels, *shape.size)) < 0.2
    images = Images(pixels, np.ones_like(pixels))
    layer = FeatureLayer(shape.features, shape.channels, shape.window, shape.size, shape.border)
    prior = rng.normal(-0.5, 0.1, (shape.channels, shape.features, *shape.window))
    trees = trees_of(images.observed, rng)
    evidence = images.evidence(Noise(0.01, 0.01))
    return start_messages(layer, trees, evidence, -10.0, prior.astype(np.float32))


def sweep_cost(shape: Shape, schedule: Schedule, times: int) -> Cost:
    """Sweeps and copies in turn, within one run, so that both see the same machine."""
    messages = prepare(shape)
    engine, rng = CPUEngine(), np.random.default_rng(1)
    target = np.empty_like(messages.to_field)

    def sweep() -> None:
        for batch in schedule.batches(messages.images, rng):
            engine.update(messages, batch, 1.0)

    def copy() -> None:
        # An update reads and writes both messages of every AND: the same bytes as two copies.
        np.copyto(target, messages.to_field)
        np.copyto(target, messages.to_kernel)

    sweep()
    copy()
    results = [(_seconds(sweep), _seconds(copy)) for _ in range(times)]
    sweeps, copies = zip(*results, strict=True)
    return Cost(min(sweeps), min(copies), int(messages.to_field.size))


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
