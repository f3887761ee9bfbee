"""Time per AND and sweep, as a ratio to a plain memory copy of the same bytes; and its growth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, start, table
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import Schedule
from hcnet.images import Images, Noise
from hcnet.layers import FeatureLayer
from hcnet.messages import Messages, start_messages, trees_of

# images, channels, image, features, window, border
SHAPES: dict[str, tuple[Any, ...]] = {
    "page 200×200, 12 parts of 12×12": (1, 1, (200, 200), 12, (12, 12), "full"),
    "100 images of 14×14, 5 parts of 6×6": (100, 1, (14, 14), 5, (6, 6), "full"),
    "MNIST layer: 4 × 16×28×28, 64 parts of 26×26": (4, 16, (28, 28), 64, (26, 26), "valid"),
}
GROWTH = {
    "images": [(n, 1, (30, 30), 6, (8, 8), "full") for n in (4, 8, 16, 32)],
    "image area": [(1, 1, (s, s), 6, (8, 8), "full") for s in (60, 85, 120, 170)],
    "features": [(1, 1, (80, 80), f, (8, 8), "full") for f in (4, 8, 16, 32)],
    "feature area": [(1, 1, (80, 80), 6, (s, s), "full") for s in (6, 8, 12, 17)],
}


def prepare(shape: tuple[Any, ...]) -> Messages:
    n, channels, size, n_features, window, border = shape
    rng = np.random.default_rng(0)
    pixels = rng.random((n, channels, *size)) < 0.2
    images = Images(pixels, np.ones_like(pixels))
    layer = FeatureLayer(n_features, channels, window, size, border)
    prior = rng.normal(-0.5, 0.1, (channels, n_features, *window)).astype(np.float32)
    pixels = trees_of(images.observed, rng)
    return start_messages(layer, pixels, images.evidence(Noise(0.01, 0.01)), -10.0, prior)


def best_of(work: Callable[[], None], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def sweep_and_copy(shape: tuple[Any, ...], name: str, times: int) -> tuple[float, float, int]:
    """Seconds per sweep, seconds to copy the messages, ANDs.  In turn, within one run."""
    messages = prepare(shape)
    engine, schedule = CPUEngine(), Schedule(name)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
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
    results = [(best_of(sweep, 1), best_of(copy, 1)) for _ in range(times)]
    ands = messages.to_field.size
    return min(r[0] for r in results), min(r[1] for r in results), ands


def report(rows: list[Row]) -> str:
    """Two tables: cost per AND, and how it grows."""
    cost = [
        [
            r["shape"],
            r["schedule"],
            r["threads_used"],
            f"{r['ands'] / 1e6:.1f}",
            f"{r['ns_per_and']:.2f}",
            f"{r['ns_copy']:.2f}",
            f"{r['ratio']:.2f}",
        ]
        for r in rows
        if "shape" in r
    ]
    header = ["shape", "schedule", "threads", "million ANDs", "ns/AND", "copy ns/AND", "ratio"]
    first = table(header, cost)
    print()
    grown = [
        [
            r["growth"],
            " ".join(f"{w / 1e6:.2f}" for w in r["ands"]),
            " ".join(f"{c / w * 1e9:.2f}" for c, w in zip(r["seconds"], r["ands"], strict=True)),
            f"{r['exponent']:.2f}",
        ]
        for r in rows
        if "growth" in r
    ]
    second = table(["grows with", "million ANDs", "ns/AND", "exponent (1: linear)"], grown)
    return first + "\n\n" + second


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("speed", "cost of a sweep of the CPU engine, float32", arguments)
    times = 3 if options.quick else 7
    everything = numba.config.NUMBA_NUM_THREADS
    for shape_name, shape in SHAPES.items():
        schedules = ["sequential", "blocks"] if shape[0] == 1 else ["sequential", "per-image"]
        for schedule in schedules:
            for threads in (1, everything) if schedule != "sequential" else (1,):
                numba.set_num_threads(threads)
                seconds, copied, ands = sweep_and_copy(shape, schedule, times)
                bench.add(
                    shape=shape_name,
                    schedule=schedule,
                    threads_used=threads,
                    ands=ands,
                    ns_per_and=seconds / ands * 1e9,
                    ns_copy=copied / ands * 1e9,
                    ratio=seconds / copied,
                    seed=0,
                )
    numba.set_num_threads(1)
    for what, shapes in GROWTH.items():
        work, cost = [], []
        for shape in shapes:
            seconds, _, ands = sweep_and_copy(shape, "sequential", times)
            work.append(ands)
            cost.append(seconds)
        slope = float(np.polyfit(np.log(work), np.log(cost), 1)[0])
        bench.add(growth=what, ands=work, seconds=cost, exponent=slope, seed=0)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
