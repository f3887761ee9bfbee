"""Two-layer networks on the shapes: what is learned from 100 images, with and without labels."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Benchmark, Row, measure, paper_value, spread, start, table
from benchmarks.shape_models import SIZES, compare, network, test_set, true_wrong, wrong
from hcnet import Inference
from hcnet.datasets import shapes

# Percent of the test images, by the fast pass; and how many digits of it the paper gives.
PAPER = {False: (0.6, 1), True: (0.07, 2)}
MODES = {False: "unsupervised", True: "supervised"}
# Test images for message passing, which takes about a hundred times as long as the fast pass.
FOR_PASSING = 1000
TWO_PASSES = Inference("passing", n_passes=2)


def _percent(values: list[float]) -> str:
    v = 100 * np.array(values)
    return f"{np.median(v):.2f} ({v.min():.2f}–{v.max():.2f})" if len(v) else "–"


def report(rows: list[Row]) -> str:
    """The table: a row per size and mode."""
    lines = []
    for supervised in (False, True):
        for size in SIZES:
            mine = [r for r in rows if r["size"] == size and r["supervised"] == supervised]
            if not mine:
                continue
            solved = sum(r["w2_exact"] and r["train_right"] == 100 for r in mine)
            lines.append(
                [
                    f"{MODES[supervised]} {size}×{size}",
                    f"{solved}/{len(mine)}",
                    spread([r["iou_mean"] for r in mine], 2),
                    _percent([r["wrong_fast"] for r in mine]),
                    f"{100 * mine[0]['true_fast']:.2f}",
                    _percent([r["wrong_passing"] for r in mine]),
                    f"{100 * mine[0]['true_passing']:.2f}",
                    _percent([r["wrong_explain"] for r in mine]),
                    f"{100 * mine[0]['true_explain']:.2f}",
                    paper_value(*PAPER[supervised], _compared(mine)),
                    spread([r["seconds"] for r in mine], 1),
                ]
            )
    return table(
        [
            "",
            "W² exact, 100/100 clustered",
            "IoU of W¹",
            "test error %, fast pass",
            "true W",
            "two passes",
            "true W",
            "explained (default)",
            "true W",
            "paper",
            "seconds",
        ],
        lines,
    )


def _compared(rows: list[Row]) -> dict[str, list[float]]:
    """What stands beside the paper's figure: its own way of classifying, and the default."""
    ways = {"by the fast pass": "wrong_fast", "by the default": "wrong_explain"}
    return {by: [100 * r[key] for r in rows] for by, key in ways.items()}


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("shapes", "100 images of shapes × diagonals, two cores", arguments)
    n = options.seeds or (2 if options.quick else 20)
    sizes = (21,) if options.quick else SIZES
    only = options.only.split(",") if options.only else [*MODES.values()]
    network(9, False, max_iter=2).fit(shapes(feature_size=9, random_state=0).images)  # compile
    for supervised, mode in MODES.items():
        if mode not in only:
            continue
        for size in sizes:
            test = test_set(size, 1000 if options.quick else 10_000, options.first_seed)
            true = {how: true_wrong(test, supervised, how) for how in ("forward", "explain")}
            true_passing = true_wrong(test, supervised, TWO_PASSES, n=FOR_PASSING)
            for seed in range(options.first_seed, options.first_seed + n):
                data = shapes(feature_size=size, random_state=seed)
                model = network(size, supervised, random_state=seed)
                y = data.labels if supervised else None
                _, seconds, megabytes = measure(lambda: model.fit(data.images, y))  # noqa: B023
                exact, iou = compare(model, data)
                bench.add(
                    size=size,
                    supervised=supervised,
                    seed=seed,
                    w2_exact=exact,
                    iou_mean=float(iou.mean()),
                    iou_min=float(iou.min()),
                    train_right=round(100 * (1 - wrong(model, data, "explain"))),
                    wrong_fast=wrong(model, test, "forward"),
                    wrong_passing=wrong(model, test, TWO_PASSES, FOR_PASSING),
                    wrong_explain=wrong(model, test, "explain"),
                    true_fast=true["forward"],
                    true_passing=true_passing,
                    true_explain=true["explain"],
                    log_joint=model.log_joint_,
                    seconds=seconds,
                    megabytes_messages=model.memory_ / 2**20,
                    megabytes_peak=megabytes,
                )
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
