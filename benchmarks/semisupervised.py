"""100 images of the shapes, of which few carry labels."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.baselines.classic import Chosen
from benchmarks.harness import Benchmark, Row, measure, paper_value, spread, start, table
from benchmarks.rivals import held_out, same_form
from benchmarks.shape_models import network, test_set, wrong
from hcnet.datasets import shapes
from hcnet.datasets.shapes import ShapesData

SIZE = 21
LABELLED = (4, 8, 20, 100)
CLASSIC = {
    "SVM": lambda: Chosen([SVC(C=10)]),
    "1-NN": lambda: Chosen([KNeighborsClassifier(1)]),
    "logistic regression": lambda: Chosen([LogisticRegression(max_iter=1000)]),
    "1-NN, pooled pixels": lambda: Chosen([KNeighborsClassifier(1)], pool=3),
}
# Percent, digits: four classes from four labels, which name the clusters of all images.
PAPER = {4: (0.6, 1)}
METHODS = ("HCN", "HCN, labelled images only", "CNN, same form", *CLASSIC)


def some_labels(data: ShapesData, n: int) -> np.ndarray:
    """Labels of n images, as many of each pattern; -1 for the others."""
    if n == len(data.labels):
        return data.labels
    y = np.full(len(data.labels), -1)
    for pattern in range(4):
        chosen = np.flatnonzero(data.templates == pattern)[: n // 4]
        y[chosen] = data.labels[chosen]
    return y


def report(rows: list[Row]) -> str:
    """The table: a row per number of labels."""
    lines = []
    for labelled in LABELLED:
        line = [f"{labelled} of 100"]
        for method in METHODS:
            mine = [r for r in rows if r["labelled"] == labelled and r["method"] == method]
            line.append(spread([100 * r["wrong"] for r in mine], 2))
        ours = [r for r in rows if r["labelled"] == labelled and r["method"] == METHODS[0]]
        errors = {"": [100 * r["wrong"] for r in ours]}
        line.append(paper_value(*PAPER[labelled], errors) if labelled in PAPER else "–")
        lines.append(line)
    header = ["labels", *METHODS, "paper's HCN"]
    return table(header, lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("semisupervised", "100 images of which few carry labels", arguments)
    n = options.seeds or (1 if options.quick else 20)
    test = test_set(SIZE, 1000 if options.quick else 10_000, options.first_seed)
    for seed in range(options.first_seed, options.first_seed + n):
        data = shapes(feature_size=SIZE, random_state=seed)
        for labelled in LABELLED:
            y = some_labels(data, labelled)
            known = y >= 0
            model = network(SIZE, supervised=True, random_state=seed)
            _, seconds, _ = measure(lambda: model.fit(data.images, y))  # noqa: B023
            errors = {"HCN": wrong(model, test, "explain")}
            alone = network(SIZE, supervised=True, random_state=seed)
            alone.fit(data.images[known], y[known])
            errors["HCN, labelled images only"] = wrong(alone, test, "explain")
            peers = {"CNN, same form": same_form(SIZE, seed)}
            peers |= {method: make() for method, make in CLASSIC.items()}
            for method, peer in peers.items():
                peer.fit(data.images[known], y[known], held_out(SIZE, seed))
                errors[method] = float((peer.predict(test.images) != test.labels).mean())
            for method, error in errors.items():
                bench.add(labelled=labelled, method=method, seed=seed, wrong=error, seconds=seconds)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
