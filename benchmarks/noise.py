"""Test error against pixel flips in the training images: the paper's noise curve."""

from __future__ import annotations

from benchmarks.alternatives import PAPER
from benchmarks.harness import Benchmark, Row, paper_value, selected, spread, start, table
from benchmarks.rivals import RIVALS, held_out
from benchmarks.shape_models import compare, network, test_set, wrong
from hcnet.datasets import shapes

SIZE = 21
FLIPS = (0.001, 0.003, 0.01, 0.03, 0.1)
PEERS = (
    "CNN, same form",
    "CNN, ReLU",
    "SVM",
    "SVM, pooled pixels",
    "k-NN, pooled pixels",
    "logistic regression",
)
# Of the curve only its first point is in the text: the noise of the test images.
PAPER_FLIPS, FAST = 0.001, "HCN, fast pass"
METHODS = ("HCN", FAST, *PEERS)


def report(rows: list[Row]) -> str:
    """The table: a row per noise level."""
    lines = []
    for flips in FLIPS:
        mine = [r for r in rows if r["flips"] == flips]
        if not mine:
            continue
        line = [f"{100 * flips:g} %"]
        for method in METHODS:
            line.append(spread([100 * r["wrong"] for r in mine if r["method"] == method], 2))
        fits = [r for r in mine if r["method"] == "HCN"]
        line.append(f"{sum(r['w2_exact'] for r in fits)}/{len(fits)}")
        line.append(spread([r["iou"] for r in fits], 2))
        fast = [100 * r["wrong"] for r in mine if r["method"] == FAST]
        line.append(paper_value(*PAPER[FAST], {"": fast}) if flips == PAPER_FLIPS else "–")
        lines.append(line)
    header = ["flips in training", *METHODS]
    return table([*header, "W² exact", "IoU of W¹", "paper's HCN"], lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("noise", "100 labelled training images with flipped pixels", arguments)
    n = options.seeds or (1 if options.quick else 20)
    levels = (0.001, 0.1) if options.quick else FLIPS
    methods = ("HCN", "CNN, same form", *PEERS[2:]) if options.quick else METHODS
    levels, methods = selected(options.only, levels), selected(options.only, methods)
    test = test_set(SIZE, 1000 if options.quick else 10_000, options.first_seed)
    for flips in levels:
        for seed in range(options.first_seed, options.first_seed + n):
            data = shapes(feature_size=SIZE, noise=flips, random_state=seed)
            X, y = data.images, data.labels
            errors, learned = {}, {}
            if "HCN" in methods:
                model = network(SIZE, supervised=True, random_state=seed).fit(X, y)
                exact, iou = compare(model, data)
                learned = {"w2_exact": exact, "iou": float(iou.mean())}
                errors["HCN"] = wrong(model, test, "explain")
                errors["HCN, fast pass"] = wrong(model, test, "forward")
            for method in PEERS:
                if method in methods:
                    peer = RIVALS[method](SIZE, seed).fit(X, y, held_out(SIZE, seed))
                    errors[method] = float((peer.predict(test.images) != test.labels).mean())
            for method, error in errors.items():
                more = learned if method == "HCN" else {}
                bench.add(flips=flips, method=method, seed=seed, wrong=error, **more)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
