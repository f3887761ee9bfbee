"""Learning from a stream: the paper's three settings, memory, cost; and the network online."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from benchmarks.shape_models import compare, test_set, true_network, wrong
from hcnet import HCN, Engine, FeatureLearner, Layer
from hcnet.datasets import shapes, small_letters
from hcnet.engine.engines import ReadyEngine
from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.learning.learn import starting_priors
from hcnet.learning.message_passing import MessagePassing
from hcnet.metrics import matched_iou, true_compression
from hcnet.objective import Priors
from hcnet.online.parts_stream import PartsShape, PartsStream
from hcnet.online.stream import Minibatch
from hcnet.solutions.explanation import Canvas
from hcnet.solutions.improver import Improver

# More features than the five characters: who runs a stream does not know how many there are.
FEATURES, WINDOW = 8, 12
SETTINGS = {
    "30 images, one batch, 100 sweeps": {
        "n_images": 30,
        "engine": Engine("active", damping=0.8),
        "max_iter": 100,
    },
    "30 images, online, 100 epochs": {"n_images": 30, "batch_size": 5, "epochs": 100},
    "3000 images, online, 1 epoch": {"n_images": 3000, "batch_size": 5, "epochs": 1},
}
# Always the same five, so that a stream can be made piece by piece.
ALPHABET = "AGKRS"
STREAMS = (300, 3_000, 30_000)
NETWORK_SIZE = 19


def report(rows: list[Row]) -> str:
    """All tables."""
    parts = [_settings(rows), _memory(rows), _cost(rows), _network(rows)]
    return "\n\n".join(part for part in parts if part)


def _settings(rows: list[Row]) -> str:
    lines = []
    for name in SETTINGS:
        for mode in ("mpmp", "refined"):
            mine = [r for r in rows if r.get("setting") == name and r["mode"] == mode]
            if mine:
                lines.append(
                    [
                        name,
                        mode,
                        f"{sum(r['iou_min'] >= 0.95 for r in mine)}/{len(mine)}",
                        spread([r["iou_min"] for r in mine], 2),
                        spread([r["features"] for r in mine], 1),
                        spread([r["ratio"] for r in mine]),
                        spread([r["ratio_true"] for r in mine]),
                        spread([r["seconds"] for r in mine], 1),
                    ]
                )
    header = ["setting", "mode", "all five at IoU ≥ 0.95", "least IoU", "features"]
    header += ["ratio, fresh images", "with the true parts", "seconds"]
    return table(header, lines) if lines else ""


def _memory(rows: list[Row]) -> str:
    mine = [r for r in rows if r.get("part") == "memory"]
    lines = [
        [f"{r['n_images']:,}", f"{r['megabytes_peak']:.1f}", f"{r['ms_per_image']:.2f}"]
        for r in mine
    ]
    header = ["images of the stream", "peak MB of the process", "ms per image"]
    return table(header, lines) if lines else ""


def _cost(rows: list[Row]) -> str:
    mine = [r for r in rows if r.get("part") == "cost"]
    lines = [
        [r["images"], f"{r['batch_ms']:.2f}", f"{r['online_ms']:.2f}", f"{r['ratio_cost']:.2f}"]
        for r in mine
    ]
    header = ["images", "one batch sweep, ms per image", "online, ms per image", "ratio"]
    return table(header, lines) if lines else ""


def _network(rows: list[Row]) -> str:
    lines = []
    for name in ("batch of 100", "stream of 1000"):
        mine = [r for r in rows if r.get("network") == name]
        if mine:
            lines.append(
                [
                    name,
                    f"{sum(r['w2_exact'] for r in mine)}/{len(mine)}",
                    spread([r["iou_mean"] for r in mine], 2),
                    spread([100 * r["wrong"] for r in mine], 2),
                    f"{100 * mine[0]['true_wrong']:.2f}",
                    spread([r["seconds"] for r in mine], 1),
                ]
            )
    header = ["shapes 19×19, unsupervised", "W² exact", "IoU of W¹", "test error %", "true W"]
    return table([*header, "seconds"], lines) if lines else ""


def run_settings(bench: Benchmark, seeds: range, names: list[str]) -> None:
    """The paper's settings, with and without refinement."""
    for name in names:
        for seed in seeds:
            options = dict(SETTINGS[name])
            n = options.pop("n_images")
            data = small_letters(n_images=n, random_state=seed)
            fresh = fresh_letters(data.names, seed)
            reading = {key: options.pop(key) for key in ("batch_size", "epochs") if key in options}
            for mode in ("mpmp", "refined"):
                learner = FeatureLearner(
                    FEATURES, WINDOW, algorithm=mode, random_state=seed, **options
                )
                fit = learner.fit_stream if reading else learner.fit
                learner, seconds, megabytes = measure(lambda: fit(data.images, **reading))  # noqa: B023
                iou = matched_iou(learner.features_, data.features)
                bench.add(
                    setting=name,
                    mode=mode,
                    seed=seed,
                    iou_min=float(iou.min()),
                    iou_mean=float(iou.mean()),
                    features=len(learner.features_),
                    ratio=learner.compression_ratio(fresh.images),
                    ratio_true=true_compression(fresh, (WINDOW, WINDOW)),
                    seconds=seconds,
                    megabytes_peak=megabytes,
                )


def fresh_letters(names: Any, seed: int, n: int = 30) -> Any:
    """Images of the same characters that were not learned from."""
    characters = "".join(names)
    return small_letters(
        n_images=n, characters=characters, n_characters=len(characters), random_state=seed + 10**6
    )


def letter_stream(n: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Images one after the other, never all at once."""
    for k in range(0, n, 100):
        yield small_letters(
            n_images=min(100, n - k), characters=ALPHABET, n_characters=5, random_state=seed + k
        ).images


def stream_once(n: int, seed: int) -> None:
    """In a process of its own: learn from a stream, print seconds and peak memory."""
    numba.set_num_threads(1)
    FeatureLearner(FEATURES, WINDOW, random_state=seed).fit_stream(letter_stream(30, seed))
    began = time.perf_counter()
    FeatureLearner(FEATURES, WINDOW, random_state=seed).fit_stream(letter_stream(n, seed))
    seconds = time.perf_counter() - began
    peak = int(_status_line("VmHWM"))
    print(json.dumps({"seconds": seconds, "megabytes_peak": peak / 1024}))


def _status_line(name: str) -> str:
    with open("/proc/self/status") as file:  # noqa: PTH123
        return next(line.split()[1] for line in file if line.startswith(name))


def run_memory(bench: Benchmark, seed: int, lengths: tuple[int, ...]) -> None:
    """Peak memory of processes that learn from streams of different lengths."""
    _in_a_process(30, seed)  # which compiles what the others only load: compiling takes memory, too
    for n in lengths:
        found = _in_a_process(n, seed)
        bench.add(
            part="memory",
            seed=seed,
            n_images=n,
            megabytes_peak=found["megabytes_peak"],
            ms_per_image=1000 * found["seconds"] / n,
        )


def _in_a_process(n: int, seed: int) -> dict[str, float]:
    code = f"from benchmarks.online import stream_once; stream_once({n}, {seed})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_cost(bench: Benchmark, seed: int, repeats: int) -> None:
    """One sweep over a batch, and the same images in minibatches, in turn."""
    data = small_letters(n_images=30, random_state=seed)
    images = Images(data.images, np.ones_like(data.images))
    layer = FeatureLayer(FEATURES, 1, (WINDOW, WINDOW), images.size, "full")
    priors = starting_priors(Priors(), layer.feature_pixels)[0]
    rng = np.random.default_rng(seed)
    improver = Improver(Canvas(layer, images), Priors())
    batch = MessagePassing(layer, images, improver, priors, ReadyEngine(), rng)
    shape = PartsShape(FEATURES, 1, (WINDOW, WINDOW), "full")
    stream = PartsStream(shape, Priors(), ReadyEngine(), 0.95, rng)
    minibatches = [
        Minibatch(Images(images.pixels[k : k + 5], images.observed[k : k + 5]))
        for k in range(0, 30, 5)
    ]
    times: dict[str, list[float]] = {"batch": [], "online": []}
    for _ in range(repeats):
        began = time.perf_counter()
        batch.step()
        middle = time.perf_counter()
        for minibatch in minibatches:
            stream.learn(minibatch)
        times["batch"].append(middle - began)
        times["online"].append(time.perf_counter() - middle)
    # The first round compiles, or reads compiled code.
    batch_ms, online_ms = (1000 * float(np.median(times[k][1:])) / 30 for k in ("batch", "online"))
    bench.add(
        part="cost",
        seed=seed,
        images="32×32, 8 features of 12×12",
        batch_ms=batch_ms,
        online_ms=online_ms,
        ratio_cost=online_ms / batch_ms,
    )


def run_network(bench: Benchmark, seeds: range, n_test: int) -> None:
    """A two-layer network from a stream, beside a batch."""
    test = test_set(NETWORK_SIZE, n_test, seeds[0])
    truth = wrong(true_network(test, False), test, "explain")
    for name, n, reading in (
        ("batch of 100", 100, {}),
        ("stream of 1000", 1000, {"batch_size": 50, "epochs": 1}),
    ):
        for seed in seeds:
            data = shapes(n_images=n, feature_size=NETWORK_SIZE, random_state=seed)
            layers = [Layer(4, size=NETWORK_SIZE), Layer()]
            model = HCN(layers, n_classes=4, random_state=seed)
            fit = model.fit_stream if reading else model.fit
            model, seconds, megabytes = measure(lambda: fit(data.images, **reading))  # noqa: B023
            exact, iou = compare(model, data)
            bench.add(
                network=name,
                seed=seed,
                w2_exact=bool(exact),
                iou_mean=float(iou.mean()),
                wrong=wrong(model, test, "explain"),
                true_wrong=truth,
                seconds=seconds,
                megabytes_peak=megabytes,
            )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("online", "learning from a stream, one core", arguments)
    numba.set_num_threads(1)
    n = options.seeds or (1 if options.quick else 10)
    seeds = range(options.first_seed, options.first_seed + n)
    parts = (options.only or "cost,memory,settings,network").split(",")
    if "cost" in parts:
        run_cost(bench, options.first_seed, 10 if options.quick else 50)
    if "memory" in parts:
        run_memory(bench, options.first_seed, STREAMS[:1] if options.quick else STREAMS)
    if "settings" in parts:
        run_settings(bench, seeds, list(SETTINGS)[1:2] if options.quick else list(SETTINGS))
    if "network" in parts:
        run_network(bench, seeds, 500 if options.quick else 10_000)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
