"""Blind deconvolution of small images: 100 of 14×14, four parts of 5×5, five features of 6×6."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from hcnet import FeatureLearner
from hcnet.datasets import deconvolution
from hcnet.metrics import matched_iou, true_compression

# What other software was measured to reach on data of this kind: IoU, wrong pixels, seconds, GB.
PEERS = ["peers", "0.68–1.0", "–", "–", "1.8–6 %", "–", "–", "40–280", "7000"]


def report(rows: list[Row]) -> str:
    """The table: a row per mode."""
    lines = []
    for mode in ("refined", "mpmp"):
        mine = [r for r in rows if r["mode"] == mode]
        solved = sum(r["iou_min"] == 1 and r["wrong_pixels"] < 0.001 for r in mine)
        lines.append(
            [
                mode,
                spread([r["iou_mean"] for r in mine]),
                f"{sum(r['iou_min'] == 1 for r in mine)}/{len(mine)}",
                f"{solved}/{len(mine)}",
                f"{100 * np.mean([r['wrong_pixels'] for r in mine]):.4f} %",
                spread([r["ratio"] for r in mine]),
                spread([r["ratio_true"] for r in mine]),
                spread([r["seconds"] for r in mine], 1),
                f"{max(r['megabytes_peak'] or 0 for r in mine):.0f}",
            ]
        )
    return table(
        [
            "mode",
            "IoU",
            "all four exact",
            "and < 0.1 % wrong",
            "wrong pixels",
            "ratio",
            "with the true parts",
            "seconds",
            "peak MB",
        ],
        [*lines, PEERS],
    )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("deconvolution", "100 images of 14×14, four parts, one core", arguments)
    numba.set_num_threads(1)
    FeatureLearner(2, (3, 3), random_state=0, max_iter=2).fit(np.eye(12, dtype=bool))  # compile
    n = options.seeds or (2 if options.quick else 20)
    for mode in ("refined", "mpmp"):
        for seed in range(options.first_seed, options.first_seed + n):
            data = deconvolution(random_state=seed)
            learner = FeatureLearner(5, (6, 6), algorithm=mode, random_state=seed)
            learner, seconds, megabytes = measure(lambda: learner.fit(data.images))  # noqa: B023
            clean = learner.inverse_transform(learner.transform(data.images))
            iou = matched_iou(learner.features_, data.features)
            bench.add(
                mode=mode,
                seed=seed,
                iou_min=float(iou.min()),
                iou_mean=float(iou.mean()),
                wrong_pixels=float((clean != data.clean).mean()),
                ratio=learner.compression_ratio_,
                ratio_true=true_compression(data, (6, 6)),
                seconds=seconds,
                megabytes_messages=learner.memory_ / 2**20,
                megabytes_peak=megabytes,
            )
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
