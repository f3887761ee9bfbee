"""Table 1 of the paper: compression of five single images, and the parts behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import noca_learner
from benchmarks.harness import Benchmark, Row, measure, paper_value, spread, start, table
from benchmarks.paper_images import PAPER_IMAGES
from hcnet import FeatureLearner
from hcnet.datasets import PartsData
from hcnet.images import BoolArray
from hcnet.metrics import matched_iou, part_iou, true_compression, true_explanation
from hcnet.objective import Priors, estimate
from hcnet.refine.search import Search
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import LEAST_NOISE, Improver

# Starts of NOCA: as many as a few minutes allow, the best by its bound is taken.
NOCA_STARTS = {"two bars": 12, "symbols": 6}
# The paper's ratio and minutes of NOCA.
PAPER_NOCA = {
    "two bars": (0.84, 0.67),
    "symbols": (0.85, 92),
    "clean letters": (0.98, 662),
    "noisy letters": (1.02, 716),
    "text": (0.84, 1222),
}
# Seeds of a mode unless told otherwise: NOCA takes minutes for a page.
MODES = {"refined": 20, "mpmp": 10, "noca": 3}


def paper(name: str, mode: str) -> tuple[float, float]:
    """The paper's ratio and minutes."""
    image = PAPER_IMAGES[name]
    return PAPER_NOCA[name] if mode == "noca" else (image.ratio, image.minutes)


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit left behind, whoever made it."""

    features: BoolArray
    placements: NDArray[np.int64]
    reconstruction: BoolArray
    ratio: float
    facts: Row  # of this mode alone


# A part "clearly pays" if the code would grow by this much without it: half of the 2 % by which
# a fit may miss the true parts' code length.
CLEARLY = 0.01


def paying(data: PartsData, size: tuple[int, int], fit: Fit) -> tuple[BoolArray, BoolArray]:
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
    features = [improver.feature(weights) for weights in fit.features]
    fitted = improver.evaluate(features, fit.placements + corners)
    best = min(fitted, search.now, key=lambda explanation: explanation.bits)
    saved = bits_saved(improver, best) / best.bits
    exact = np.array([[part_iou(t, f.weights) == 1 for f in best.features] for t in data.features])
    worth = np.where(exact, saved, -1.0).max(axis=1, initial=-1.0)
    return worth > 0, worth > CLEARLY


def bits_saved(improver: Improver, found: Explanation) -> NDArray[np.float64]:
    """The bits by which the code grows without each feature, if the others take over its pixels.

    A rare part, or one that others make up together (a d from a c and an l), can cost more bits
    than it saves.
    """
    saved = np.zeros(len(found.features))
    for f in range(len(found.features)):
        others = [feature for k, feature in enumerate(found.features) if k != f]
        kept = found.placements[found.placements[:, 1] != f].copy()
        kept[:, 1] -= kept[:, 1] > f
        without = []
        for least_noise in (None, LEAST_NOISE):
            priors = estimate(found.counts, Priors(), least_noise)
            placed = improver.place(others, kept, priors, np.random.default_rng(0))
            without.append(improver.evaluate(others, placed).bits)
        saved[f] = min(without) - found.bits
    return saved


def fit_hcn(data: PartsData, size: tuple[int, int], n: int | None, mode: str, seed: int) -> Fit:
    """Our own learner; `n` features at the most, None: as many as pay."""
    learner = FeatureLearner(n, size, algorithm=mode, random_state=seed).fit(data.images)
    return Fit(
        learner.features_,
        learner.placements_,
        learner.inverse_transform(learner.transform(data.images)),
        learner.compression_ratio_,
        {"megabytes_messages": learner.memory_ / 2**20, "status": learner.status_},
    )


def fit_noca(data: PartsData, size: tuple[int, int], n: int, seed: int, starts: int) -> Fit:
    """The paper's peer."""
    parts = noca_learner.learn(data.images, n, size, seed, starts)
    return Fit(
        parts.features,
        parts.placements,
        parts.reconstruction,
        parts.compression_ratio,
        {"bounds": parts.bounds, "levels": parts.levels, "steps": parts.n_iter},
    )


def one(bench: Benchmark, name: str, mode: str, seed: int, quick: bool = False) -> None:
    """Fit one data set with one seed, and store what came of it."""
    image = PAPER_IMAGES[name]
    data, n_given = image.make(random_state=seed), image.n_features
    size = image.feature_size(data)

    def work() -> Fit:
        if mode == "noca":
            return fit_noca(data, size, n_given, seed, 1 if quick else NOCA_STARTS.get(name, 3))
        return fit_hcn(data, size, n_given if mode == "mpmp" else None, mode, seed)

    fit, seconds, megabytes = measure(work)
    iou = matched_iou(fit.features, data.features)
    pays, clearly = paying(data, size, fit)
    truth = true_compression(data, size)
    paper_ratio, paper_minutes = paper(name, mode)
    bench.add(
        data=name,
        mode=mode,
        seed=seed,
        ratio=fit.ratio,
        ratio_true=truth,
        relative=fit.ratio / truth,
        ratio_paper=paper_ratio,
        iou_mean=float(iou.mean()),
        iou_paying_min=float(iou[pays].min(initial=1.0)),
        iou_clearly_paying_min=float(iou[clearly].min(initial=1.0)),
        parts=len(fit.features),
        parts_true=len(iou),
        parts_paying=int(pays.sum()),
        parts_clearly_paying=int(clearly.sum()),
        parts_exact=int((iou == 1).sum()),
        not_exact=[data.names[k] for k in np.flatnonzero(pays & (iou < 1))],
        wrong_pixels=float((fit.reconstruction != data.clean).mean()),
        seconds=seconds,
        minutes_paper=paper_minutes,
        megabytes_peak=megabytes,
        **fit.facts,
    )


def report(rows: list[Row]) -> str:
    """The table: a row per data set and mode."""
    lines = []
    for name in PAPER_IMAGES:
        for mode in MODES:
            mine = [r for r in rows if r["data"] == name and r["mode"] == mode]
            if not mine:
                continue
            close = sum(r["relative"] <= 1.02 for r in mine)
            clear = sum(r["iou_clearly_paying_min"] == 1 for r in mine)
            paper_ratio, paper_minutes = paper(name, mode)
            lines.append(
                [
                    name,
                    mode,
                    spread([r["ratio"] for r in mine]),
                    spread([r["ratio_true"] for r in mine]),
                    paper_value(paper_ratio, 2, {"": [r["ratio"] for r in mine]}),
                    f"{close}/{len(mine)}",
                    f"{clear}/{len(mine)}",
                    f"{np.mean([r['iou_mean'] for r in mine]):.3f}",
                    f"{100 * np.mean([r['wrong_pixels'] for r in mine]):.3f} %",
                    spread([r["seconds"] for r in mine], 1),
                    paper_value(60 * paper_minutes, 0, {"": [r["seconds"] for r in mine]}),
                ]
            )
    return table(
        [
            "data",
            "mode",
            "ratio",
            "with the true parts",
            "paper",
            "≤ 1.02 × true",
            "clearly paying parts exact",
            "mean IoU",
            "wrong pixels",
            "seconds",
            "paper s",
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
    noca_learner.learn(np.eye(12, dtype=bool)[None, None], 2, (3, 3), 0, max_steps=1)
    only = options.only.split(",") if options.only else []
    names = [n for n in PAPER_IMAGES if n in only] or list(PAPER_IMAGES)[
        : 4 if options.quick else None
    ]
    modes = [m for m in MODES if m in only] or list(MODES)
    for name in names:
        for mode in modes:
            n = 1 if options.quick else options.seeds or MODES[mode]
            if options.quick and mode != "refined" and name != "two bars":
                continue
            for seed in range(options.first_seed, options.first_seed + n):
                one(bench, name, mode, seed, options.quick)
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
