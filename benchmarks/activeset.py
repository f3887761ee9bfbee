"""The active set and belief-based passing beside the dense engine, in one run.

Time, memory, and what is learned.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.digits import digit_edges, digit_network
from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from hcnet.datasets import deconvolution, letters, text
from hcnet.engine import engines
from hcnet.engine.driver import Limits, Measurement, run
from hcnet.engine.engines import DEFAULT_ENGINE, Engine, ReadyEngine
from hcnet.hierarchy.explaining import joint_function
from hcnet.hierarchy.network_learning import on_weights
from hcnet.hierarchy.network_messages import NetworkPassing
from hcnet.images import BoolArray, Images
from hcnet.layers import FeatureLayer
from hcnet.learning.learn import MPMP_PATIENCE, MPMP_SWEEPS, starting_priors
from hcnet.learning.message_passing import MessagePassing, weight_prior
from hcnet.objective import Priors
from hcnet.solutions.explanation import Canvas, Explanation
from hcnet.solutions.improver import Improver

# name: (images, features, window or None for the true one)
Maker = Callable[[int], Any]
PAGES: dict[str, tuple[Maker, int, tuple[int, int] | None]] = {
    "letters 200×200, 12 of 12×12": (lambda seed: letters(random_state=seed), 12, (12, 12)),
    "letters 200×200, 40 of 12×12": (lambda seed: letters(random_state=seed), 40, (12, 12)),
    "noisy letters 200×200, 12 of 12×12": (
        lambda seed: letters(noise=0.03, random_state=seed),
        12,
        (12, 12),
    ),
    "text 200×200, 32 features": (lambda seed: text(random_state=seed), 32, None),
    "letters 800×800, 12 of 12×12": (
        lambda seed: letters(size=(800, 800), n_placements=2700, random_state=seed),
        12,
        (12, 12),
    ),
    "100 images 14×14, 5 of 6×6": (lambda seed: deconvolution(random_state=seed), 5, (6, 6)),
}
QUICK = ["letters 200×200, 12 of 12×12"]
ENGINES = ("dense", "active", "beliefs")
# Letters of 36×36 pixels on 2499×3300, about 300 dots per inch.
SCAN = {"size": (833, 1100), "scale": 3, "window": (40, 40), "features": 40}
SCAN_LETTERS = (750, 3000)
DIGITS = 100
PASSES = 30
# Passes after which one looks at what was learned.
LOOK = 5


@dataclass
class Watched:
    """A process that notes how long its steps take, and how much is active."""

    inner: MessagePassing
    seconds: list[float] = field(default_factory=list)
    active: list[int] = field(default_factory=list)

    def step(self) -> bool:
        """One step."""
        began = time.perf_counter()
        alive = self.inner.step()
        self.seconds.append(time.perf_counter() - began)
        passing = self.inner.passing
        self.active.append(getattr(passing, "n_active", -1))
        return alive

    def measure(self) -> Measurement:
        """Of the process."""
        return self.inner.measure()

    def state(self) -> Explanation:
        """Of the process."""
        return self.inner.state()


def measured(engine: str, fit: Callable[[], Any]) -> tuple[Any, float, float | None]:
    """As `measure`, with the megabytes of a GPU that are still in use at the end."""
    if engine != "cuda":
        return measure(fit)
    before = _free(engine)
    result, seconds, _ = measure(fit)
    return result, seconds, (before - _free(engine)) / 2**20


def _free(engine: str) -> int:
    """Bytes that nobody holds on the GPU."""
    from numba import cuda

    gc.collect()
    cuda.current_context().deallocations.clear()
    return ready(engine).free_memory() or 0


def ready(engine: str) -> ReadyEngine:
    """An engine of the processor by its name, or that of a GPU."""
    return Engine().on("cuda") if engine == "cuda" else Engine(engine).on("cpu")


def one_page(
    bench: Benchmark,
    name: str,
    seed: int,
    names: tuple[str, ...] = ENGINES,
    sweeps: int = MPMP_SWEEPS,
) -> None:
    """All engines on the same images, from the first of the starting priors."""
    make, n_features, window = PAGES[name]
    data = make(seed)
    pixels = np.asarray(data.images, bool)
    images = Images(pixels, np.ones(pixels.shape, bool))
    window = window or data.feature_size
    layer = FeatureLayer(n_features, pixels.shape[1], window, images.size)
    improver = Improver(Canvas(layer, images), Priors())
    priors = starting_priors(Priors(), layer.feature_pixels)[0]
    limits = Limits(max_iter=sweeps, patience=MPMP_PATIENCE)
    rows = []
    for engine in names:

        def fit(engine: str = engine) -> tuple[Any, Watched]:
            rng = np.random.default_rng(seed)
            # Also where all messages would fit.
            with mock.patch.multiple(engines, SMALL=0):
                inner = MessagePassing(layer, images, improver, priors, ready(engine), rng)
            watched = Watched(inner)
            return run(watched, limits), watched

        (outcome, watched), seconds, megabytes = measured(engine, fit)
        placements = images.n_images * layer.n_positions * n_features
        rows.append(
            {
                "data": name,
                "engine": engine,
                "seed": seed,
                "seconds": seconds,
                "megabytes_peak": megabytes,
                "bits": outcome.best.bits,
                "sweeps": outcome.n_iter,
                "seconds_per_step": watched.seconds,
                "share_active": [n / placements for n in watched.active if n >= 0],
                "history": [r.objective for r in outcome.history],
            }
        )
    # The time until all are as good as the worst of them ends up.
    common = min(max(row["history"]) for row in rows)
    for row in rows:
        steps = next(k for k, value in enumerate(row["history"]) if value >= common - 1e-6) + 1
        row["seconds_to_same"] = sum(row["seconds_per_step"][:steps])
        bench.add(**row)


def scan(
    bench: Benchmark, n_letters: int, steps: int, scale: int, engine: str = DEFAULT_ENGINE
) -> None:
    """A scanned page, which the dense engine cannot hold."""
    data = letters(size=SCAN["size"], n_placements=n_letters, random_state=0)
    pixels = np.kron(data.images[0, 0], np.ones((scale, scale))).astype(bool)[None, None]
    images = Images(pixels, np.ones(pixels.shape, bool))
    layer = FeatureLayer(SCAN["features"], 1, SCAN["window"], images.size)
    improver = Improver(Canvas(layer, images), Priors())
    priors = starting_priors(Priors(), layer.feature_pixels)[0]

    def fit() -> tuple[Any, Watched]:
        rng = np.random.default_rng(0)
        watched = Watched(MessagePassing(layer, images, improver, priors, ready(engine), rng))
        return run(watched, Limits(max_iter=steps)), watched

    (outcome, watched), seconds, megabytes = measured(engine, fit)
    bench.add(
        data=f"scan {images.size[0]}×{images.size[1]}, 40 of 40×40, {pixels.mean():.1%} ink",
        engine=engine,
        seed=0,
        seconds=seconds,
        megabytes_peak=megabytes,
        bits=outcome.best.bits,
        sweeps=outcome.n_iter,
        seconds_per_step=watched.seconds,
        share_active=[n / (layer.n_positions * layer.n_features) for n in watched.active],
    )


def digits(bench: Benchmark, n_images: int, passes: int) -> None:
    """Passes through a network of the paper's size for digits, and what they learn."""
    pixels, labels = digit_edges(n_images)
    network = digit_network()
    allowed = np.array(network.classes.categories)[None] == labels[:, None]
    images = Images(pixels, np.ones(pixels.shape, bool))
    evidence = images.evidence_on_grid(network.noise)
    nothing = [np.zeros(level.weight_shape, bool) for level in network.levels]
    joint = joint_function(ready(ENGINES[0]), network, images, allowed)
    empty = joint(nothing)
    for engine in ENGINES:

        def fit(engine: str = engine) -> tuple[list[float], list[int], list[list[BoolArray]]]:
            rng = np.random.default_rng(0)
            priors = [weight_prior(level.p_W, level.weight_shape, rng) for level in network.levels]
            passing = NetworkPassing(
                network, evidence, priors, allowed, ready(engine), rng, exact=True
            )
            seconds, active, weights = [], [], []
            for _ in range(passes):
                began = time.perf_counter()
                passing.forward([0.3, 0.3])
                passing.backward()
                seconds.append(time.perf_counter() - began)
                first = passing.levels[0]
                active.append(getattr(first, "n_active", -1))
                weights.append(on_weights(passing.weight_beliefs()))
            return seconds, active, weights

        (per_pass, active, weights), _, megabytes = measure(fit)
        # Looking at what was learned is no part of the passes.
        seen = list(range(LOOK - 1, passes, LOOK))
        found = [joint(weights[k]) for k in seen]
        on = float(weights[-1][0].sum(axis=(1, 2, 3)).mean())
        layer = network.levels[0].features
        placements = n_images * layer.n_positions * layer.n_features
        bench.add(
            data=f"network for {n_images} digits, 64 of 16×24×24",
            engine=engine,
            seed=0,
            seconds=sum(per_pass),
            megabytes_peak=megabytes,
            sweeps=passes,
            seconds_per_step=per_pass,
            share_active=[n / placements for n in active if n >= 0],
            weights_on=on,
            passes_seen=[k + 1 for k in seen],
            explained=[1 - value / empty for value in found],
        )


def report(rows: list[Row]) -> str:
    """The table: a line per data and engine."""
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows):
        for engine in dict.fromkeys(row["engine"] for row in rows if row["data"] == name):
            mine = [r for r in rows if r["data"] == name and r["engine"] == engine]
            late = [float(np.median(r["seconds_per_step"][-5:])) for r in mine]
            peaks = [r["megabytes_peak"] for r in mine if r["megabytes_peak"] is not None]
            lines.append(
                [
                    name,
                    engine,
                    spread([r["seconds"] for r in mine], 2),
                    f"{np.mean(late):.3f}",
                    f"{max(peaks):.0f}" if peaks else "–",
                    spread([r["bits"] for r in mine if "bits" in r], 0),
                    " → ".join(f"{100 * x:.0f}" for x in mine[0].get("explained", [])) or "–",
                ]
            )
    return table(
        ["data", "engine", "seconds", "late step", "peak MB", "bits", "% explained"], lines
    )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start(
        "activeset", "engines that store few messages beside the dense one", arguments
    )
    seeds = options.seeds or (1 if options.quick else 3)
    everything = [*PAGES, "scan", "digits"]
    names = QUICK if options.quick else everything
    if options.only:
        names = [n for n in everything if any(part in n for part in options.only.split(","))]
    compile_everything()
    for name in names:
        if name == "scan":
            for n_letters in SCAN_LETTERS:
                scan(bench, n_letters, 10, SCAN["scale"])
        elif name == "digits":
            digits(bench, DIGITS, PASSES)
        else:
            for seed in range(options.first_seed, options.first_seed + seeds):
                one_page(bench, name, seed)
    report(bench.rows)
    return bench


def compile_everything() -> None:
    """All engines on something small, so that no figure holds time for compiling."""
    silent = Benchmark("compile", "")
    small = (lambda seed: letters(size=(60, 60), n_placements=9, random_state=seed), 4, (12, 12))
    with mock.patch.dict(PAGES, {"small": small}):
        one_page(silent, "small", 0)
    with mock.patch.object(engines, "SMALL", 0):
        digits(silent, 4, 2)


if __name__ == "__main__":
    main()
