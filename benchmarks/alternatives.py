"""What users would pick instead, on the shapes: CNNs, SVM, k-NN, logistic regression."""

from __future__ import annotations

from typing import Any

from benchmarks.baselines.cnn import Labelled
from benchmarks.harness import Benchmark, Row, measure, paper_value, selected, spread, start, table
from benchmarks.rivals import RIVALS, held_out, same_form
from benchmarks.shape_models import network, test_set, wrong
from hcnet.datasets import shapes
from hcnet.datasets.shapes import ShapesData

SIZES = (19, 21)
# Percent of the test images, and how many digits of it the paper gives.
PAPER = {"HCN, fast pass": (0.07, 2), "CNN, same form": (0.5, 1), "CNN, ReLU": (2.5, 1)}
# The rival that comes closest, without the images that it is otherwise chosen by.
FIFTHS = "CNN, same form, 80 + 20 images"
METHODS = ("HCN", "HCN, fast pass", "CNN, same form", FIFTHS, *list(RIVALS)[1:])
QUICK = ("HCN", "HCN, fast pass", "CNN, same form", "SVM", "k-NN", "logistic regression")


def report(rows: list[Row]) -> str:
    """The table: a row per method."""
    sizes = sorted({row["size"] for row in rows})
    lines = []
    for method in METHODS:
        mine = [r for r in rows if r["method"] == method]
        if not mine:
            continue
        errors = {
            f"at {size}×{size}": [100 * r["wrong"] for r in mine if r["size"] == size]
            for size in sizes
        }
        lines.append(
            [
                method,
                *(spread(values, 2) for values in errors.values()),
                paper_value(*PAPER[method], errors) if method in PAPER else "–",
                spread([r["seconds"] for r in mine], 1),
                spread([1e6 * r["seconds_predict"] / r["n_test"] for r in mine], 0),
            ]
        )
    header = ["", *(f"{size}×{size}, test error %" for size in sizes)]
    return table([*header, "paper", "seconds to learn", "µs per test image"], lines)


def with_hcn(size: int, seed: int, data: ShapesData, test: ShapesData) -> dict[str, Row]:
    """Learned once, used in two ways."""
    model = network(size, True, random_state=seed)
    _, learning, _ = measure(lambda: model.fit(data.images, data.labels))
    rows = {}
    for method, how in (("HCN", "explain"), ("HCN, fast pass", "forward")):
        error, predicting, _ = measure(lambda: wrong(model, test, how))  # noqa: B023
        rows[method] = {"wrong": error, "seconds": learning, "seconds_predict": predicting}
    return rows


def with_rival(rival: Any, data: ShapesData, others: Labelled | None, test: ShapesData) -> Row:
    """Learned from the data, with settings that suit `others`."""
    _, learning, _ = measure(lambda: rival.fit(data.images, data.labels, others))
    predicted, predicting, _ = measure(lambda: rival.predict(test.images))
    error = float((predicted != test.labels).mean())
    return {"wrong": error, "seconds": learning, "seconds_predict": predicting}


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("alternatives", "100 labelled images of shapes", arguments)
    n = options.seeds or (1 if options.quick else 5)
    sizes, methods = ((21,), QUICK) if options.quick else (SIZES, METHODS)
    sizes, methods = selected(options.only, sizes), selected(options.only, methods)
    if "HCN" in methods:
        small = shapes(feature_size=9, random_state=0)
        network(9, True, max_iter=2).fit(small.images, small.labels)  # compile
    for size in sizes:
        test = test_set(size, 1000 if options.quick else 10_000, options.first_seed)
        for seed in range(options.first_seed, options.first_seed + n):
            data = shapes(feature_size=size, random_state=seed)
            rows = with_hcn(size, seed, data, test) if "HCN" in methods else {}
            for method in methods:
                if method in RIVALS:
                    rival = RIVALS[method](size, seed)
                    rows[method] = with_rival(rival, data, held_out(size, seed), test)
                elif method == FIFTHS:
                    rows[method] = with_rival(same_form(size, seed), data, None, test)
            for method, row in rows.items():
                bench.add(size=size, seed=seed, method=method, n_test=len(test.labels), **row)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
