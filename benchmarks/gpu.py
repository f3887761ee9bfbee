"""The CUDA engine: time per AND and sweep against the floor, and whole fits, beside the CPU."""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.mnist_digits import Split
from benchmarks.paper_images import PAPER_IMAGES
from benchmarks.shape_models import compare, network, wrong
from benchmarks.sweeps import Shape, sweep_cost
from hcnet import HCN, FeatureLearner, Layer
from hcnet.datasets import letters, mnist, shapes
from hcnet.engine.devices import why_not_cuda
from hcnet.engine.schedules import Schedule
from hcnet.environment import gpus
from hcnet.layers import FeatureLayer
from hcnet.metrics import matched_iou, true_compression
from hcnet.preprocessing import OrientedEdges

SHAPES = {
    "page 200×200, 12 parts of 12×12": Shape(1, 1, (200, 200), 12, (12, 12)),
    "100 images of 14×14, 5 parts of 6×6": Shape(100, 1, (14, 14), 5, (6, 6)),
    "MNIST layer: 400 × 16×28×28, 64 parts of 26×26": Shape(
        400, 16, (28, 28), 64, (26, 26), "valid"
    ),
}
# Most images that the CPU sweeps over: a hundredth of the digits is enough.
MOST_ON_CPU = {400: 4}
# schedule, starts, deterministic
WAYS = {
    1: [("per-image", 1, True), ("blocks", 1, True), ("per-image", 100, True)],
    100: [("per-image", 1, True), ("per-image", 1, False), ("per-image", 100, True)],
    400: [("per-image", 1, True), ("per-image", 1, False)],
}
# Of both messages of an AND: each is read once and written once.
BYTES = 16
STARTS = 100
DIGIT_SEEDS = 5
PARTS = ("sweeps", "table1", "shapes", "mnist")
# The paper's network for digits, and how it is learned: chosen on validation digits.
EDGES, PER_CLASS, TEMPLATES, PASSES = 16, 40, 32, 80
FLIPS, DAMPING, P_W = 1e-6, 0.05, (0.001, 0.05)


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


def sweep_on_gpu(shape: Shape, way: tuple[Any, ...], times: int) -> tuple[float, int]:
    """Seconds per sweep, and ANDs."""
    from numba import cuda

    from hcnet.engine.cuda.engine import CUDAEngine
    from hcnet.engine.cuda.starts import Starts

    schedule, starts, deterministic = way
    rng = np.random.default_rng(0)
    layer = FeatureLayer(shape.features, shape.channels, shape.window, shape.size, shape.border)
    observed = np.ones((shape.images, shape.channels, *shape.size), bool)
    evidence = np.where(rng.random(observed.shape) < 0.2, 13.8, -13.8).astype(np.float32)
    weights = (starts, shape.channels, shape.features, *shape.window)
    prior = rng.uniform(-1, -0.9, weights).astype(np.float32)
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
    return float(np.median(seconds[2:])), starts * observed.size * passing.leaves


def sweeps(bench: Benchmark, quick: bool) -> None:
    """Cost of a sweep."""
    times = 5 if quick else 9
    copied = bandwidth()
    for name, shape in SHAPES.items():
        small = replace(shape, images=MOST_ON_CPU.get(shape.images, shape.images))
        schedule = Schedule("sequential" if shape.images == 1 else "per-image")
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        cost = sweep_cost(small, schedule, times)
        threads = 1 if shape.images == 1 else numba.get_num_threads()
        bench.add(
            part="sweeps",
            shape=name,
            device=f"CPU, {threads} threads",
            schedule=schedule.name,
            starts=1,
            deterministic=True,
            ands=cost.ands,
            seconds=cost.seconds,
            ns_per_and=cost.seconds / cost.ands * 1e9,
            ns_floor=cost.copy_seconds / cost.ands * 1e9,
            ratio=cost.seconds / cost.copy_seconds,
            seed=0,
            gpu=gpus(),
        )
        for way in WAYS[shape.images]:
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
                gpu=gpus(),
                seed=0,
            )


def compile_fits(devices: list[str]) -> None:
    """Fits of something small, so that no figure holds time for compiling."""
    for device, algorithm in itertools.product(devices, ("refined", "mpmp")):
        small = letters(size=(60, 60), n_placements=9, noise=0.03, random_state=0)
        model = FeatureLearner(None if algorithm == "refined" else 4, 12, algorithm=algorithm)
        model.set_params(device=device, n_init=2, random_state=0).fit(small.images)


def fit_parts(
    bench: Benchmark, names: tuple[str, ...], numbers: range, modes: Any, memory: int | None
) -> None:
    """Table 1: whole fits."""
    for name in names:
        image = PAPER_IMAGES[name]
        for seed in numbers:
            data = image.make(random_state=seed)
            size = image.feature_size(data)
            for device, algorithm in modes:
                given = image.n_features if algorithm == "mpmp" else None
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
                    gpu=gpus(),
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
                gpu=gpus(),
            )


def fit_digits(bench: Benchmark, numbers: range, engines: tuple[str, ...] = ("dense",)) -> None:
    """The paper's network for MNIST by message passing: whole fits, errors on validation digits."""
    try:
        split = Split(mnist())
    except FileNotFoundError as error:
        print(f"No fits of digits: {error}")
        return
    edges, some = OrientedEdges(EDGES), split.learning(PER_CLASS)
    X, new = edges.transform(some.images), edges.transform(split.validation.images)
    for seed, engine, deterministic in itertools.product(numbers, engines, (False, True)):
        how = {"pool": 3, "damping": DAMPING, "perturbation": 0.1}
        model = HCN(
            [
                Layer(64, size=26, pool_border="same", p_W=P_W[0], **how),
                Layer(pool_border="full", p_W=P_W[1], **how),
            ],
            templates_per_class=TEMPLATES,
            p01=FLIPS,
            p10=FLIPS,
            n_init=1,
            max_iter=PASSES,
            device="cuda",
            engine=engine,
            deterministic=deterministic,
            random_state=seed,
        )
        _, seconds, _ = measure(lambda: model.fit(X, some.labels))  # noqa: B023
        model.set_params(inference="forward")
        bench.add(
            part="mnist",
            engine=engine,
            device="cuda" + ("" if deterministic else ", asynchronous"),
            seed=seed,
            error=float((model.predict(new) != split.validation.labels).mean()),
            ms_per_pass=1e3
            * (model.history_[-1].seconds - model.history_[9].seconds)
            / (PASSES - 10),
            seconds=seconds,
            gigabytes=model.memory_ / 2**30,
            gpu=gpus(),
        )


def report(rows: list[Row]) -> str:
    """Four tables: sweeps, fits of single images, of two layers, of digits."""
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
    texts.append(_table([*header, "ratio"], lines))
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
            # None: timed beside other work, so that only what was learned counts.
            spread([r["seconds"] for r in mine if r["seconds"] is not None], 1),
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
    texts.append(_table([*header, "IoU", "seconds"], lines))
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
    texts.append(_table(header, lines))
    lines = []
    for device in ("cuda", "cuda, asynchronous"):
        mine = [r for r in rows if r["part"] == "mnist" and r["device"] == device]
        if mine:
            columns = (100 * r["error"] for r in mine), (r["ms_per_pass"] for r in mine)
            numbers = [spread(list(values), 1) for values in columns]
            lines.append(
                [device, *numbers, spread([r["seconds"] for r in mine], 1), "17 h, 150 GB"]
            )
    header = ["400 digits", "validation error %", "ms a pass", "seconds", "paper"]
    texts.append(_table(header, lines))
    return "\n\n".join(text for text in texts if text)


def _table(header: list[str], lines: list[list[Any]]) -> str:
    """A table, unless it would be empty."""
    if not lines:
        return ""
    text = table(header, lines)
    print()
    return text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which of the two to measure, and how much of the GPU."""
    parser.add_argument("--device", choices=("cpu", "cuda"), help="of fits; both without")
    parser.add_argument("--gigabytes", type=float, help="of the GPU that a fit may take")


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("gpu", "the CUDA engine beside the CPU", arguments, add_options)
    problem = why_not_cuda()
    if problem:
        print(f"Nothing was measured: {problem}.")
        return bench
    print("; ".join(gpus()), "\n", flush=True)
    asked = options.only.split(",") if options.only else []
    wanted = [part for part in PARTS if part in asked] or list(PARTS)
    devices = [options.device] if options.device else ["cpu", "cuda"]
    n = options.seeds or (1 if options.quick else 20)
    numbers = range(options.first_seed, options.first_seed + n)
    if "sweeps" in wanted:
        sweeps(bench, options.quick)
    if "table1" in wanted:
        names = ("two bars", "symbols") if options.quick else tuple(PAPER_IMAGES)
        modes = [("cpu", "refined"), ("cuda", "refined"), ("cuda", "mpmp")]
        modes = [
            mode
            for mode in modes
            if mode[0] in devices and (mode[1] in asked or not {"refined", "mpmp"} & set(asked))
        ]
        memory = None if options.gigabytes is None else int(options.gigabytes * 2**30)
        compile_fits(devices)
        fit_parts(bench, selected(options.only, names), numbers, modes, memory)
    if "shapes" in wanted:
        fit_shapes(bench, numbers, devices)
    if "mnist" in wanted and "cuda" in devices and not options.quick:
        fit_digits(bench, range(options.first_seed, options.first_seed + min(n, DIGIT_SEEDS)))
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
