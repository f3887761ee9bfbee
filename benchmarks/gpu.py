"""The CUDA engine: time per AND and sweep against the floor, and whole fits, beside the CPU."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numba
import numpy as np

from benchmarks import speed, table1
from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.shape_models import compare, network, wrong
from hcnet import FeatureLearner
from hcnet.datasets import shapes
from hcnet.engine.devices import why_not_cuda
from hcnet.engine.schedules import Schedule
from hcnet.environment import gpus
from hcnet.layers import FeatureLayer
from hcnet.messages import trees_of
from hcnet.metrics import matched_iou, true_compression

# images, channels, image, features, window, border; the CPU has the digits of a hundredth.
SHAPES: dict[str, tuple[Any, ...]] = {
    "page 200×200, 12 parts of 12×12": (1, 1, (200, 200), 12, (12, 12), "full"),
    "100 images of 14×14, 5 parts of 6×6": (100, 1, (14, 14), 5, (6, 6), "full"),
    "MNIST layer: 400 × 16×28×28, 64 parts of 26×26": (400, 16, (28, 28), 64, (26, 26), "valid"),
}
# schedule, starts, deterministic
WAYS = {
    1: [("per-image", 1, True), ("blocks", 1, True), ("per-image", 100, True)],
    100: [("per-image", 1, True), ("per-image", 1, False), ("per-image", 100, True)],
    400: [("per-image", 1, True), ("per-image", 1, False)],
}
# Of both messages of an AND: each is read once and written once.
BYTES = 16
STARTS = 100
PARTS = ("sweeps", "table1", "shapes")


def bandwidth() -> float:
    """Bytes that the GPU copies in a second, read and written."""
    from numba import cuda

    source, target = cuda.device_array(2**30, np.float32), cuda.device_array(2**30, np.float32)
    seconds = []
    for _ in range(5):
        cuda.synchronize()
        began = time.perf_counter()
        target.copy_to_device(source)
        cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return 2 * 4 * 2**30 / min(seconds)


def sweep_on_gpu(shape: tuple[Any, ...], way: tuple[Any, ...], times: int) -> tuple[float, int]:
    """Seconds per sweep, and ANDs."""
    from numba import cuda

    from hcnet.engine.cuda.engine import CUDAEngine
    from hcnet.engine.cuda.starts import Starts

    n, channels, size, n_features, window, border = shape
    schedule, starts, deterministic = way
    rng = np.random.default_rng(0)
    layer = FeatureLayer(n_features, channels, window, size, border)
    observed = np.ones((n, channels, *size), bool)
    evidence = np.where(rng.random(observed.shape) < 0.2, 13.8, -13.8).astype(np.float32)
    prior = rng.uniform(-1, -0.9, (starts, channels, n_features, *window)).astype(np.float32)
    passing = Starts(
        CUDAEngine(deterministic),
        layer,
        observed,
        evidence,
        np.full(starts, -35.0),
        prior,
        rng,
    )
    seconds = []
    for _ in range(times + 2):
        cuda.synchronize()
        began = time.perf_counter()
        passing.sweep(Schedule(schedule), rng)
        cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    leaves = passing.leaves
    return float(np.median(seconds[2:])), starts * len(trees_of(observed, rng)) * leaves


def sweeps(bench: Benchmark, quick: bool) -> None:
    """Cost of a sweep."""
    times = 5 if quick else 9
    copied = bandwidth()
    for name, shape in SHAPES.items():
        small = (min(shape[0], 4 if shape[0] == 400 else shape[0]), *shape[1:])
        schedule = "sequential" if shape[0] == 1 else "per-image"
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        seconds, copy, ands = speed.sweep_and_copy(small, schedule, times)
        threads = 1 if shape[0] == 1 else numba.get_num_threads()
        bench.add(
            part="sweeps",
            shape=name,
            device=f"CPU, {threads} threads",
            schedule=schedule,
            starts=1,
            deterministic=True,
            ands=ands,
            seconds=seconds,
            ns_per_and=seconds / ands * 1e9,
            ns_floor=copy / ands * 1e9,
            ratio=seconds / copy,
            seed=0,
        )
        for way in WAYS[shape[0]]:
            seconds, ands = sweep_on_gpu(shape, way, times)
            floor = BYTES * ands / copied
            bench.add(
                part="sweeps",
                shape=name,
                device="GPU",
                schedule=way[0],
                starts=way[1],
                deterministic=way[2],
                ands=ands,
                seconds=seconds,
                ns_per_and=seconds / ands * 1e9,
                ns_floor=floor / ands * 1e9,
                ratio=seconds / floor,
                copy_gigabytes_per_second=copied / 1e9,
                seed=0,
            )


def fit_parts(
    bench: Benchmark, names: tuple[str, ...], numbers: range, modes: Any, memory: int | None
) -> None:
    """Table 1: whole fits."""
    for name in names:
        generator, window, n_given, *_ = table1.DATA[name]
        for seed in numbers:
            data = generator(random_state=seed)
            size = window or data.feature_size
            for device, algorithm in modes:
                given = n_given if algorithm == "mpmp" else None
                starts = STARTS if device == "cuda" else None
                model = FeatureLearner(
                    given,
                    size,
                    algorithm=algorithm,
                    device=device,
                    n_init=starts,
                    max_memory=memory if device == "cuda" else None,
                    random_state=seed,
                )
                _, seconds, _ = measure(lambda: model.fit(data.images))  # noqa: B023
                bench.add(
                    part="table1",
                    data=name,
                    device=device,
                    algorithm=algorithm,
                    starts=starts,
                    seed=seed,
                    ratio=model.compression_ratio_,
                    relative=model.compression_ratio_ / true_compression(data, size),
                    iou_mean=float(matched_iou(model.features_, data.features).mean()),
                    seconds=seconds,
                    gigabytes=model.memory_ / 2**30,
                )


def fit_shapes(bench: Benchmark, numbers: range, devices: list[str]) -> None:
    """Two layers: whole fits."""
    for seed in numbers:
        data = shapes(feature_size=21, random_state=seed)
        for device, deterministic in (("cpu", True), ("cuda", True), ("cuda", False)):
            if device not in devices:
                continue
            how = {"device": device, "deterministic": deterministic}
            model = network(21, False, random_state=seed, **how)
            _, seconds, _ = measure(lambda: model.fit(data.images))  # noqa: B023
            exact, iou = compare(model, data)
            bench.add(
                part="shapes",
                device=device + ("" if deterministic else ", asynchronous"),
                seed=seed,
                w2_exact=exact,
                iou_mean=float(iou.mean()),
                train_right=round(100 * (1 - wrong(model, data, "explain"))),
                seconds=seconds,
                gigabytes=model.memory_ / 2**30,
            )


def report(rows: list[Row]) -> str:
    """Three tables: sweeps, fits of single images, fits of two layers."""
    texts = []
    lines = [
        [
            r["shape"],
            r["device"],
            r["schedule"] + ("" if r["deterministic"] else ", asynchronous"),
            r["starts"],
            f"{r['ands'] / 1e6:,.0f}",
            f"{r['seconds'] * 1e3:,.2f}",
            f"{r['ns_per_and'] * 1e3:,.1f}",
            f"{r['ns_floor'] * 1e3:,.1f}",
            f"{r['ratio']:.2f}",
        ]
        for r in rows
        if r["part"] == "sweeps"
    ]
    header = ["shape", "", "schedule", "starts", "million ANDs", "ms a sweep", "ps/AND", "floor"]
    texts.append(table([*header, "ratio"], lines))
    print()
    groups = {(r["data"], r["device"], r["algorithm"]): [] for r in rows if r["part"] == "table1"}
    for r in rows:
        if r["part"] == "table1":
            groups[r["data"], r["device"], r["algorithm"]].append(r)
    lines = [
        [
            *key,
            mine[0]["starts"] or "by size",
            len(mine),
            spread([r["ratio"] for r in mine]),
            spread([r["relative"] for r in mine]),
            spread([r["iou_mean"] for r in mine]),
            spread([r["seconds"] for r in mine], 1),
        ]
        for key, mine in groups.items()
    ]
    header = [
        "data",
        "device",
        "algorithm",
        "starts",
        "seeds",
        "ratio",
        "by the true parts'",
    ]
    texts.append(table([*header, "IoU", "seconds"], lines))
    print()
    lines = []
    for device in ("cpu", "cuda", "cuda, asynchronous"):
        mine = [r for r in rows if r["part"] == "shapes" and r["device"] == device]
        if mine:
            solved = sum(r["w2_exact"] and r["train_right"] == 100 for r in mine)
            ious = spread([r["iou_mean"] for r in mine])
            lines.append(
                [device, f"{solved}/{len(mine)}", ious, spread([r["seconds"] for r in mine], 1)]
            )
    header = ["shapes 21×21", "W² exact, 100/100 clustered", "IoU of W¹", "seconds"]
    texts.append(table(header, lines))
    return "\n\n".join(texts)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which of the two to measure, and how much of the GPU."""
    parser.add_argument("--device", choices=("cpu", "cuda"), help="of fits; both without")
    parser.add_argument("--gigabytes", type=float, help="of the GPU that a fit may take")


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("gpu", "the CUDA engine beside the CPU", arguments, add_options)
    problem = why_not_cuda()
    if problem:
        sys.exit(f"Nothing was measured: {problem}.")
    print("; ".join(gpus()), "\n", flush=True)
    asked = options.only.split(",") if options.only else []
    wanted = [part for part in PARTS if part in asked] or list(PARTS)
    devices = [options.device] if options.device else ["cpu", "cuda"]
    n = options.seeds or (1 if options.quick else 20)
    numbers = range(options.first_seed, options.first_seed + n)
    if "sweeps" in wanted:
        sweeps(bench, options.quick)
    if "table1" in wanted:
        names = ("two bars", "symbols") if options.quick else tuple(table1.DATA)
        modes = [("cpu", "refined"), ("cuda", "refined"), ("cuda", "mpmp")]
        modes = [
            mode
            for mode in modes
            if mode[0] in devices and (mode[1] in asked or not {"refined", "mpmp"} & set(asked))
        ]
        memory = None if options.gigabytes is None else int(options.gigabytes * 2**30)
        fit_parts(bench, selected(options.only, names), numbers, modes, memory)
    if "shapes" in wanted:
        fit_shapes(bench, numbers, devices)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
