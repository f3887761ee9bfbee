"""What the choices that the paper leaves open do to learning: one changed at a time."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from benchmarks.shape_models import compare, test_set, wrong
from hcnet import HCN, Engine, Layer
from hcnet.datasets import shapes

SIZE = 19
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "one start": ({}, {"n_init": 1}),
    "best pass instead of a vote": ({}, {"vote": False}),
    "40 passes": ({}, {"max_iter": 40}),
    "100 passes": ({}, {"max_iter": 100}),
    "damping 0.03": ({"damping": 0.03}, {}),
    "damping 0.05": ({"damping": 0.05}, {}),
    "damping 0.2": ({"damping": 0.2}, {}),
    "damping 0.4": ({"damping": 0.4}, {}),
    "perturbation 0.1": ({"perturbation": 0.1}, {}),
    "p_W 0.1": ({"p_W": 0.1}, {}),
    "p_W 0.3": ({"p_W": 0.3}, {}),
    "noise 1e-2": ({}, {"p01": 1e-2, "p10": 1e-2}),
    "noise 1e-4": ({}, {"p01": 1e-4, "p10": 1e-4}),
    "per-image": ({}, {"engine": Engine(schedule="per-image")}),
    "blocks": ({}, {"engine": Engine(schedule="blocks")}),
}


def report(rows: list[Row]) -> str:
    """The table: a row per choice."""
    lines = []
    for choice in CHOICES:
        mine = [r for r in rows if r["choice"] == choice]
        if mine:
            solved = sum(r["w2_exact"] and r["train_right"] == 100 for r in mine)
            lines.append(
                [
                    choice,
                    f"{solved}/{len(mine)}",
                    spread([r["iou"] for r in mine], 2),
                    spread([100 * r["wrong_fast"] for r in mine], 2),
                    spread([100 * r["wrong_explain"] for r in mine], 2),
                    spread([r["seconds"] for r in mine], 1),
                ]
            )
    header = [
        "choice",
        "solved",
        "IoU of W¹",
        "fast pass, error %",
        "explained, error %",
        "seconds",
    ]
    return table(header, lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start(
        "choices", "shapes of 19×19, unsupervised, one choice changed", arguments
    )
    n = options.seeds or (1 if options.quick else 10)
    names = (
        options.only.split(",") if options.only else list(CHOICES)[: 4 if options.quick else None]
    )
    test = test_set(SIZE, 1000 if options.quick else 2000, options.first_seed)
    for choice in names:
        layer, estimator = CHOICES[choice]
        for seed in range(options.first_seed, options.first_seed + n):
            data = shapes(feature_size=SIZE, random_state=seed)
            # A prior is a matter of the features; pools are alike in both layers.
            above = {name: value for name, value in layer.items() if name != "p_W"}
            layers = [Layer(4, size=SIZE, **layer), Layer(**above)]
            model = HCN(layers, n_classes=4, random_state=seed, **estimator)
            _, seconds, _ = measure(lambda: model.fit(data.images))  # noqa: B023
            exact, iou = compare(model, data)
            bench.add(
                choice=choice,
                seed=seed,
                w2_exact=exact,
                train_right=round(100 * (1 - wrong(model, data, "explain"))),
                iou=float(iou.mean()),
                wrong_fast=wrong(model, test, "forward"),
                wrong_explain=wrong(model, test, "explain"),
                seconds=seconds,
            )
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
