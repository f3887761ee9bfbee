"""Message passing elsewhere: PGMax on the binary deconvolution of small images, and hcnet beside.

PGMax runs in an environment of its own, `.cache/pgmax`, which is created at first use.  Where that
fails, the benchmark says so and goes on without it.  All seconds are of the processor, one core.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.own_environment import OwnEnvironment, UnavailableError
from hcnet import FeatureLearner
from hcnet.datasets import deconvolution
from hcnet.datasets.parts_data import PartsData
from hcnet.engine.cpu import CPUEngine
from hcnet.engine.schedules import Schedule
from hcnet.hierarchy.convolution import bconv
from hcnet.images import Images, Noise
from hcnet.layers import Border, FeatureLayer
from hcnet.messages import start_messages, trees_of
from hcnet.metrics import matched_iou

# PGMax 0.6.1 asks JAX for its backend in a way that 0.7 no longer has; 0.6.2 is the last before.
JAX = "0.6.2"
PGMAX = OwnEnvironment(
    "PGMax",
    # Without what PGMax lists and message passing does not use, such as TensorFlow and Jupyter.
    (("--no-deps", "pgmax==0.6.1"), (f"jax=={JAX}", f"jaxlib=={JAX}", "numba", "numpy", "scipy")),
    "from pgmax import infer",
    "pgmax_worker.py",
)
N_FEATURES, SIZE = 5, (6, 6)
# The settings of PGMax's own example of this problem: logits of 1e-75, 0.25 and 1 - 1e-100.
LOGIT_S, LOGIT_W, LOGIT_X = -75 * np.log(10), -np.log(3), 100 * np.log(10)
ITERATIONS = 100
# Seconds after which a run of PGMax is given up.
PATIENCE = 900
HCNET: dict[str, dict[str, Any]] = {
    # The graph of PGMax: placements inside the image only.
    "hcnet, message passing, same graph": {"algorithm": "mpmp", "border": "valid"},
    "hcnet, message passing": {"algorithm": "mpmp"},
    "hcnet, refined (default)": {},
}
METHODS = ("PGMax", *HCNET)


def report(rows: list[Row]) -> str:
    """The table: a row per method."""
    lines = []
    for method in METHODS:
        mine = [r for r in rows if r["method"] == method]
        if not mine:
            lines.append([method, *(8 * ["not measured"])])
            continue
        per_and = [r["ns_per_and"] for r in mine if r["ns_per_and"] is not None]
        lines.append(
            [
                method,
                f"{mine[0]['ands'] / 1e6:.2f}",
                spread(per_and, 1),
                spread([r["seconds_before"] for r in mine], 1),
                spread([r["seconds"] for r in mine], 1),
                f"{max(r['megabytes'] or 0 for r in mine):.0f}",
                spread([r["iou_mean"] for r in mine]),
                f"{sum(r['iou_min'] == 1 for r in mine)}/{len(mine)}",
                f"{100 * np.mean([r['wrong_pixels'] for r in mine]):.3f} %",
            ]
        )
    return table(
        [
            "",
            "million ANDs",
            "ns per AND and iteration",
            "seconds to build and compile",
            "seconds to learn",
            "peak MB",
            "IoU",
            "all four exact",
            "wrong pixels",
        ],
        lines,
    )


def with_pgmax(data: PartsData, seed: int, iterations: int, create: bool) -> Row:
    """A row of PGMax."""
    problem = {
        "images": data.images,
        "n_features": N_FEATURES,
        "feature_size": SIZE,
        "iterations": iterations,
        "seed": seed,
        "logit_S": LOGIT_S,
        "logit_W": LOGIT_W,
        "logit_X": LOGIT_X,
    }
    found = PGMAX.solve(PGMAX.python(create), problem, PATIENCE)
    W = found["W"].transpose(1, 0, 2, 3)
    used = found["S"].any(axis=(0, 2, 3))
    iou = matched_iou(W[used], data.features)
    seconds = float(found["seconds_run"])
    return {
        "ands": int(found["ands"]),
        "ns_per_and": 1e9 * seconds / iterations / float(found["ands"]),
        "seconds_before": float(found["seconds_build"] + found["seconds_compile"]),
        "seconds": seconds,
        "megabytes": float(found["megabytes"]),
        "iou_mean": float(iou.mean()),
        "iou_min": float(iou.min()),
        "wrong_pixels": float((bconv(found["S"], W) != data.clean).mean()),
    }


def with_hcnet(data: PartsData, seed: int, iterations: int, options: dict[str, Any]) -> Row:
    """A row of hcnet; compiled before."""
    plain = options.get("algorithm") == "mpmp"
    learner = FeatureLearner(N_FEATURES, SIZE, random_state=seed, **options)
    if plain:
        learner.set_params(max_iter=iterations)
    began = time.process_time()
    learner, _, megabytes = measure(lambda: learner.fit(data.images))
    seconds = time.process_time() - began
    clean = learner.inverse_transform(learner.transform(data.images))
    iou = matched_iou(learner.features_, data.features)
    border = options.get("border", "full")
    ands = n_ands(data, border)
    sweep = seconds_of_a_sweep(data, border, iterations) if plain else None
    return {
        "ands": ands,
        "ns_per_and": None if sweep is None else 1e9 * sweep / ands,
        "seconds_before": 0.0,
        "seconds": seconds,
        "megabytes": megabytes,
        "iou_mean": float(iou.mean()),
        "iou_min": float(iou.min()),
        "wrong_pixels": float((clean != data.clean).mean()),
    }


def seconds_of_a_sweep(data: PartsData, border: Border, sweeps: int) -> float:
    """Message passing alone: a fit also decodes and scores what it has after every sweep."""
    images = Images(data.images, np.ones_like(data.images))
    layer = FeatureLayer(N_FEATURES, 1, SIZE, data.images.shape[2:], border)
    rng = np.random.default_rng(0)
    prior = rng.gumbel(LOGIT_W, 1, (1, N_FEATURES, *SIZE)).astype(np.float32)
    noise = images.evidence(Noise(1e-6, 1e-6))
    messages = start_messages(layer, trees_of(images.observed, rng), noise, LOGIT_S, prior)
    engine, schedule = CPUEngine(), Schedule("sequential")
    began = time.process_time()
    for _ in range(sweeps):
        for batch in schedule.batches(messages.images, rng):
            engine.update(messages, batch, 1.0)
    return (time.process_time() - began) / sweeps


def n_ands(data: PartsData, border: Border) -> int:
    """Weights of all placements that lie on pixels."""
    n, channels, *size = data.images.shape
    if border == "full":  # every weight may lie on every pixel
        return n * channels * size[0] * size[1] * N_FEATURES * SIZE[0] * SIZE[1]
    placements = (size[0] - SIZE[0] + 1) * (size[1] - SIZE[1] + 1)
    return n * channels * placements * N_FEATURES * SIZE[0] * SIZE[1]


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("peers", "PGMax on 100 images of 14×14, one core", arguments)
    numba.set_num_threads(1)
    FeatureLearner(2, (3, 3), random_state=0, max_iter=2).fit(np.eye(12, dtype=bool))  # compile
    n = options.seeds or (1 if options.quick else 3)
    n_images, iterations = (10, 30) if options.quick else (100, ITERATIONS)
    methods = selected(options.only, METHODS)
    reachable = "PGMax" in methods
    for seed in range(options.first_seed, options.first_seed + n):
        data = deconvolution(n_images=n_images, random_state=seed)
        facts = {"seed": seed, "images": n_images, "iterations": iterations}
        if reachable:
            try:
                row = with_pgmax(data, seed, iterations, create=not options.quick)
                bench.add(method="PGMax", **facts, **row)
            except UnavailableError as reason:
                reachable = False
                print(f"PGMax is not measured: {reason}.\n", flush=True)
        for method in HCNET:
            if method in methods:
                row = with_hcnet(data, seed, iterations, HCNET[method])
                bench.add(method=method, **facts, **row)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
