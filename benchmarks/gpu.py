"""The active set on a GPU beside the processor, in one run: pages, scans, shapes and digits."""

from __future__ import annotations

from unittest import mock

import numpy as np

from benchmarks import activeset
from benchmarks.activeset import PAGES, SCAN, SCAN_LETTERS, one_page, scan
from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from benchmarks.mnist_digits import PER_CLASS, Split
from benchmarks.mnist_models import for_new_digits, mnist_edges, mnist_network
from benchmarks.shape_models import compare, network, wrong
from hcnet.datasets import letters, mnist, shapes
from hcnet.engine.engines import why_not_cuda
from hcnet.environment import gpus

ENGINES = ("active", "cuda")
STEPS = 10  # of a scan
NAMES = [*PAGES, "scan", "shapes", "digits"]
# Of the network for digits: chosen on validation digits, for the active set alone.
DAMPING = 0.25


def fit_shapes(bench: Benchmark, seed: int) -> None:
    """Two layers: whole fits."""
    data = shapes(feature_size=21, random_state=seed)
    for device in ("cpu", "cuda"):
        model = network(21, False, random_state=seed, device=device)
        _, seconds, _ = measure(lambda: model.fit(data.images))  # noqa: B023
        exact, iou = compare(model, data)
        bench.add(
            part="shapes",
            mode=device,
            seed=seed,
            w2_exact=exact,
            iou_mean=float(iou.mean()),
            train_right=round(100 * (1 - wrong(model, data, "explain"))),
            seconds=seconds,
            gigabytes=model.memory_ / 2**30,
            gpu=gpus(),
        )


def fit_digits(bench: Benchmark, seed: int) -> None:
    """The paper's network for MNIST by message passing: whole fits, errors on validation digits."""
    try:
        split = Split(mnist())
    except FileNotFoundError as error:
        print(f"No fits of digits: {error}")
        return
    edges, some = mnist_edges(), split.learning(PER_CLASS)
    X, new = edges.transform(some.images), edges.transform(split.validation.images)
    model = mnist_network(seed, DAMPING, device="cuda")
    _, seconds, _ = measure(lambda: model.fit(X, some.labels))
    late = model.history_[-1].seconds - model.history_[9].seconds
    bench.add(
        part="digits",
        mode="cuda",
        seed=seed,
        error=float((for_new_digits(model).predict(new) != split.validation.labels).mean()),
        ms_per_pass=1e3 * late / (len(model.history_) - 10),
        seconds=seconds,
        gigabytes=model.memory_ / 2**30,
        gpu=gpus(),
    )


def report(rows: list[Row]) -> str:
    """Three tables: pages, shapes, and the paper's network for digits."""
    pages = [row for row in rows if "part" not in row]
    texts = [activeset.report(pages)] if pages else []
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if "part" in row:
            groups.setdefault((row["part"], row["mode"]), []).append(row)
    lines = []
    for (_, mode), mine in (item for item in groups.items() if item[0][0] == "shapes"):
        solved = sum(r["w2_exact"] and r["train_right"] == 100 for r in mine)
        ious, seconds = [r["iou_mean"] for r in mine], [r["seconds"] for r in mine]
        lines.append([mode, f"{solved}/{len(mine)}", spread(ious), spread(seconds, 1)])
    if lines:
        header = ["shapes 21×21", "W² exact, 100/100 clustered", "IoU of W¹", "seconds"]
        texts.append(table(header, lines))
    lines = []
    for (_, mode), mine in (item for item in groups.items() if item[0][0] == "digits"):
        lines.append(
            [
                mode,
                spread([100 * r["error"] for r in mine], 1),
                spread([r["ms_per_pass"] for r in mine], 0),
                spread([r["seconds"] for r in mine], 1),
                f"{np.mean([r['gigabytes'] for r in mine]):.1f}",
            ]
        )
    if lines:
        header = ["400 digits", "validation error %", "ms a pass", "seconds", "GB"]
        texts.append(table(header, lines))
    return "\n\n".join(texts)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("gpu", "the active set on a GPU", arguments)
    problem = why_not_cuda()
    if problem:
        print(f"Nothing was measured: {problem}.")
        return bench
    print("; ".join(gpus()), "\n", flush=True)
    names = NAMES[:1] if options.quick else NAMES
    if options.only:
        names = [n for n in NAMES if any(part in n for part in options.only.split(","))]
    compile_everything()
    n = options.seeds or (1 if options.quick else 3)
    for name in names:
        if name == "scan":
            for n_letters in SCAN_LETTERS:
                for engine in ENGINES:
                    scan(bench, n_letters, STEPS, SCAN["scale"], engine)
            continue
        for seed in range(options.first_seed, options.first_seed + n):
            if name == "shapes":
                fit_shapes(bench, seed)
            elif name == "digits":
                fit_digits(bench, seed)
            else:
                one_page(bench, name, seed, ENGINES)
    report(bench.rows)
    return bench


def compile_everything() -> None:
    """All engines on something small, so that no figure holds time for compiling."""
    small = (lambda seed: letters(size=(60, 60), n_placements=9, random_state=seed), 4, (12, 12))
    with mock.patch.dict(PAGES, {"small": small}):
        one_page(Benchmark("compile", ""), "small", 0, ENGINES, sweeps=3)


if __name__ == "__main__":
    main()
