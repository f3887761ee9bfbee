"""Table 1 of the paper: compression of five single images, and the parts behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, seeds, spread, start, table
from hcnet import FeatureLearner
from hcnet.datasets import PartsData, letters, symbols, text, two_bars
from hcnet.images import BoolArray
from hcnet.metrics import bits_saved, matched_iou, part_iou, true_compression, true_explanation
from hcnet.refine.search import Search

# name: (generator, window or None for the true one, features for plain MPMP, paper's ratio,
#        paper's minutes)
DATA: dict[str, tuple[Callable[..., PartsData], Any, int, float, float]] = {
    "two bars": (two_bars, None, 4, 0.83, 0.07),
    "symbols": (symbols, None, 6, 0.11, 0.42),
    "clean letters": (letters, (12, 12), 12, 0.38, 25),
    "noisy letters": (lambda **k: letters(noise=0.03, **k), (12, 12), 12, 0.73, 24),
    "text": (text, None, 32, 0.28, 31),
}
MODES = ("refined", "mpmp")


# A part "clearly pays" if the code would grow by this much without it: half of the 2 % by which
# a fit may miss the true parts' code length.
CLEARLY = 0.01


def paying(
    data: PartsData, size: tuple[int, int], learner: FeatureLearner
) -> tuple[BoolArray, BoolArray]:
    """Which true parts pay for themselves at all, and which clearly.

    Judged in the shortest explanation known: the fit's, or that of a search started at the
    truth.  A true part pays if that explanation has it, exactly, and the code would be longer
    without it.  (With noise, or where parts touch, a part with one pixel more or less can be
    the more probable one: then the truth itself does not pay.)
    """
    improver, truth = true_explanation(data, size)
    search = Search(improver, truth, np.random.default_rng(0))
    while search.step():
        pass
    corners = np.array([0, 0, *improver.canvas.layer.overhang])
    features = [improver.feature(weights) for weights in learner.features_]
    fitted = improver.evaluate(features, learner.placements_ + corners)
    best = min(fitted, search.now, key=lambda explanation: explanation.bits)
    saved = bits_saved(improver, best) / best.bits
    exact = np.array([[part_iou(t, f.weights) == 1 for f in best.features] for t in data.features])
    worth = np.where(exact, saved, -1.0).max(axis=1, initial=-1.0)
    return worth > 0, worth > CLEARLY


def one(bench: Benchmark, name: str, mode: str, seed: int) -> None:
    """Fit one data set with one seed, and store what came of it."""
    generator, window, n_mpmp, paper_ratio, paper_minutes = DATA[name]
    data = generator(random_state=seed)
    size = window or data.feature_size
    learner = FeatureLearner(
        n_mpmp if mode == "mpmp" else None, size, algorithm=mode, random_state=seed
    )
    learner, seconds, megabytes = measure(lambda: learner.fit(data.images))
    found = learner.inverse_transform(learner.transform(data.images))
    iou = matched_iou(learner.features_, data.features)
    pays, clearly = paying(data, size, learner)
    truth = true_compression(data, size)
    bench.add(
        data=name,
        mode=mode,
        seed=seed,
        ratio=learner.compression_ratio_,
        ratio_true=truth,
        relative=learner.compression_ratio_ / truth,
        ratio_paper=paper_ratio,
        iou_mean=float(iou.mean()),
        iou_paying_min=float(iou[pays].min(initial=1.0)),
        iou_clearly_paying_min=float(iou[clearly].min(initial=1.0)),
        parts=len(learner.features_),
        parts_true=len(iou),
        parts_paying=int(pays.sum()),
        parts_clearly_paying=int(clearly.sum()),
        parts_exact=int((iou == 1).sum()),
        not_exact=[data.names[k] for k in np.flatnonzero(pays & (iou < 1))],
        wrong_pixels=float((found != data.clean).mean()),
        seconds=seconds,
        minutes_paper=paper_minutes,
        megabytes_messages=learner.memory_ / 2**20,
        megabytes_peak=megabytes,
        status=learner.status_,
    )


def report(rows: list[Row]) -> str:
    """The table: a row per data set and mode."""
    lines = []
    for name in DATA:
        for mode in MODES:
            mine = [r for r in rows if r["data"] == name and r["mode"] == mode]
            if not mine:
                continue
            close = sum(r["relative"] <= 1.02 for r in mine)
            exact = sum(r["iou_paying_min"] == 1 for r in mine)
            clear = sum(r["iou_clearly_paying_min"] == 1 for r in mine)
            peaks = [r["megabytes_peak"] for r in mine if r["megabytes_peak"] is not None]
            lines.append(
                [
                    name,
                    mode,
                    seeds(mine),
                    spread([r["ratio"] for r in mine]),
                    spread([r["ratio_true"] for r in mine]),
                    f"{DATA[name][3]:.2f}",
                    f"{close}/{len(mine)}",
                    f"{clear}/{len(mine)}",
                    f"{exact}/{len(mine)}",
                    f"{np.mean([r['iou_mean'] for r in mine]):.3f}",
                    f"{100 * np.mean([r['wrong_pixels'] for r in mine]):.3f} %",
                    spread([r["seconds"] for r in mine], 1),
                    f"{60 * DATA[name][4]:.0f}",
                    f"{max(peaks):.0f}" if peaks else "–",
                ]
            )
    return table(
        [
            "data",
            "mode",
            "seeds",
            "ratio",
            "with the true parts",
            "paper",
            "≤ 1.02 × true",
            "clearly paying parts exact",
            "all paying parts exact",
            "mean IoU",
            "wrong pixels",
            "seconds",
            "paper s",
            "peak MB",
        ],
        lines,
    )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start(
        "table1", "compression and parts of the paper's five images, one core", arguments
    )
    numba.set_num_threads(1)
    FeatureLearner(2, (3, 3), random_state=0, max_iter=2).fit(np.eye(12, dtype=bool))  # compile
    FeatureLearner(2, (3, 3), algorithm="mpmp", max_iter=2).fit(np.eye(12, dtype=bool))
    only = options.only.split(",") if options.only else []
    names = [n for n in DATA if n in only] or list(DATA)[: 4 if options.quick else None]
    modes = [m for m in MODES if m in only] or list(MODES)
    for name in names:
        for mode in modes:
            n = options.seeds or (20 if mode == "refined" else 10)
            n = 1 if options.quick else n
            if options.quick and mode == "mpmp" and name != "two bars":
                continue
            for seed in range(options.first_seed, options.first_seed + n):
                one(bench, name, mode, seed)
                last = bench.rows[-1]
                print(
                    f"  {name}, {mode}, seed {seed}: {last['ratio']:.4f} "
                    f"({last['relative']:.4f} × true), {last['seconds']:.1f} s",
                    flush=True,
                )
    print()
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
