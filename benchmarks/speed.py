"""Time per AND and sweep, as a ratio to a plain memory copy of the same bytes; and its growth."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, start, table
from benchmarks.sweeps import SHAPES, Shape, sweep_cost
from hcnet.engine.schedules import Schedule

GROWTH = {
    "images": [Shape(n, 1, (30, 30), 6, (8, 8)) for n in (4, 8, 16, 32)],
    "image area": [Shape(1, 1, (s, s), 6, (8, 8)) for s in (60, 85, 120, 170)],
    "features": [Shape(1, 1, (80, 80), f, (8, 8)) for f in (4, 8, 16, 32)],
    "feature area": [Shape(1, 1, (80, 80), 6, (s, s)) for s in (6, 8, 12, 17)],
}


def report(rows: list[Row]) -> str:
    """Two tables: cost per AND, and how it grows."""
    cost = [
        [
            r["shape"],
            r["schedule"],
            r["threads_used"],
            f"{r['ands'] / 1e6:.1f}",
            f"{r['ns_per_and']:.2f}",
            f"{r['ratio']:.2f}",
        ]
        for r in rows
        if "shape" in r
    ]
    header = ["shape", "schedule", "threads", "million ANDs", "ns/AND", "by a copy"]
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
        schedules = ["sequential", "blocks"] if shape.images == 1 else ["sequential", "per-image"]
        for schedule in schedules:
            for threads in (1, everything) if schedule != "sequential" else (1,):
                numba.set_num_threads(threads)
                cost = sweep_cost(shape, Schedule(schedule), times)
                bench.add(
                    shape=shape_name,
                    schedule=schedule,
                    threads_used=threads,
                    ands=cost.ands,
                    ns_per_and=cost.seconds / cost.ands * 1e9,
                    ns_copy=cost.copy_seconds / cost.ands * 1e9,
                    ratio=cost.seconds / cost.copy_seconds,
                    seed=0,
                )
    numba.set_num_threads(1)
    for what, shapes in GROWTH.items():
        costs = [sweep_cost(shape, Schedule("sequential"), times) for shape in shapes]
        work, seconds = [cost.ands for cost in costs], [cost.seconds for cost in costs]
        slope = float(np.polyfit(np.log(work), np.log(seconds), 1)[0])
        bench.add(growth=what, ands=work, seconds=seconds, exponent=slope, seed=0)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
