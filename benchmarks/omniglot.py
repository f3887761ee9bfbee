"""Characters from one example each: the one-shot runs of Omniglot, 20 characters of an alphabet."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, Row, measure, selected, spread, start, table
from benchmarks.omniglot_models import METHODS, fit
from hcnet.datasets import OneShotTask, omniglot

# Mean error in percent over the twenty runs, as published, and whether it learned from the labels
# of other characters: Lake et al. (2015), George et al. (2017), Koch et al. (2015), and, measured
# by the code that comes with the runs, the modified Hausdorff distance.
PUBLISHED = {
    "people": (4.5, "–"),
    "Bayesian programs (BPL)": (3.3, "yes, and from their strokes"),
    "RCN": (7.3, "no"),
    "Siamese network": (8.0, "yes"),
    "scattering, 1-NN": (38.2, "no"),
    "modified Hausdorff": (38.8, "no"),
}
# Tasks of a background set that are shown, if asked for, and with what seed they are drawn.
N_TASKS, SEED = 40, 1
QUICK_TASKS = 2


def report(rows: list[Row]) -> str:
    """Errors per run and their mean, and the published means."""
    methods = [method for method in METHODS if any(r["method"] == method for r in rows)]
    names = list(dict.fromkeys(r["run"] for r in rows))

    def of(key: str, **wanted: str) -> list[float]:
        return [r[key] for r in rows if all(r[k] == value for k, value in wanted.items())]

    lines = [
        [name, *(spread(of("error", run=name, method=method), 1) for method in methods)]
        for name in names
    ]
    lines.append(["mean", *(f"{np.mean(of('error', method=m)):.2f}" for m in methods)])
    lines.append(["seconds per run", *(spread(of("seconds", method=m), 1) for m in methods)])
    tables = [table(["errors in percent", *methods], lines)]
    print()
    published = [[name, f"{error:.1f}", other] for name, (error, other) in PUBLISHED.items()]
    ours = [[m, f"{np.mean(of('error', method=m)):.2f}", "no"] for m in methods]
    header = ["mean of the runs", "errors in percent", "learned from other characters"]
    tables.append(table(header, sorted(published + ours, key=lambda line: float(line[1]))))
    return "\n\n".join(tables)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start(
        "omniglot", "characters of an alphabet from one example each", arguments, _add
    )
    if options.data is None:
        print("The runs are not downloaded; pass their folder: --data FOLDER.")
        return bench
    try:
        data = omniglot(options.data)
        tasks = _tasks(data.runs, options.quick)
        if options.on == "background":
            tasks = data.tasks(options.seeds or N_TASKS, random_state=SEED)
            tasks = _tasks(tasks, options.quick)
    except (OSError, ValueError) as error:
        print(error)
        return bench
    if not tasks:
        print(f"{options.data} holds no runs; pass a folder with some, or --on background.")
        return bench
    for task in tasks:
        for method in selected(options.only, tuple(METHODS)):
            found, seconds, _ = measure(
                lambda task=task, method=method: fit(method, task).predict(task.test_images)
            )
            wrong = float((found != task.test_labels).mean())
            bench.add(method=method, run=task.name, error=100 * wrong, seconds=seconds)
    report(bench.rows)
    return bench


def _tasks(tasks: tuple[OneShotTask, ...], quick: bool) -> tuple[OneShotTask, ...]:
    return tasks[:QUICK_TASKS] if quick else tasks


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="where the runs are, or one archive of them"
    )
    parser.add_argument(
        "--on",
        choices=("runs", "background"),
        default="runs",
        help="background: tasks made of a background set, to choose settings by; --seeds is their "
        "number",
    )


if __name__ == "__main__":
    main()
