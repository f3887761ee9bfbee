"""Test error against pixel flips in the training images: the paper's noise curve."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from benchmarks.harness import Benchmark, Row, spread, start, table
from benchmarks.shape_models import compare, network, test_set, wrong
from hcnet.datasets import shapes

SIZE = 21
FLIPS = (0.001, 0.003, 0.01, 0.03, 0.1)
METHODS = ("HCN", "HCN, fast pass", "SVM", "logistic regression")


def report(rows: list[Row]) -> str:
    """The table: a row per noise level."""
    lines = []
    for flips in FLIPS:
        mine = [r for r in rows if r["flips"] == flips]
        line = [f"{100 * flips:g} %"]
        for method in METHODS:
            line.append(spread([100 * r["wrong"] for r in mine if r["method"] == method], 2))
        fits = [r for r in mine if r["method"] == "HCN"]
        line.append(f"{sum(r['w2_exact'] for r in fits)}/{len(fits)}")
        line.append(spread([r["iou"] for r in fits], 2))
        lines.append(line)
    header = ["flips in training", *(f"{method}, test error %" for method in METHODS)]
    return table([*header, "W² exact", "IoU of W¹"], lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("noise", "100 labelled training images with flipped pixels", arguments)
    n = options.seeds or (1 if options.quick else 20)
    test = test_set(SIZE, 1000 if options.quick else 10_000, options.first_seed)
    flat = test.images.reshape(len(test.images), -1)
    for flips in FLIPS:
        for seed in range(options.first_seed, options.first_seed + n):
            data = shapes(feature_size=SIZE, noise=flips, random_state=seed)
            X, y = data.images, data.labels
            model = network(SIZE, supervised=True, random_state=seed)
            model.fit(X, y)
            exact, iou = compare(model, data)
            errors = {
                "HCN": wrong(model, test, "explain"),
                "HCN, fast pass": wrong(model, test, "forward"),
            }
            for method, peer in (
                ("SVM", SVC(C=10)),
                ("logistic regression", LogisticRegression(max_iter=1000)),
            ):
                predicted = peer.fit(X.reshape(len(X), -1), y).predict(flat)
                errors[method] = float((predicted != test.labels).mean())
            for method, error in errors.items():
                bench.add(
                    flips=flips,
                    method=method,
                    seed=seed,
                    wrong=error,
                    w2_exact=exact,
                    iou=float(iou.mean()),
                )
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
