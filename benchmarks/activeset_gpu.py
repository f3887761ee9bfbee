"""The active set on a GPU, beside all messages there and beside the processor, in one run."""

from __future__ import annotations

from unittest import mock

import numpy as np

from benchmarks import activeset
from benchmarks.activeset import PAGES, SCAN, SCAN_LETTERS, one_page, scan
from benchmarks.gpu import fit_digits
from benchmarks.harness import Benchmark, Row, spread, start, table
from hcnet.datasets import letters
from hcnet.engine.devices import gpu_engine, why_not_cuda
from hcnet.environment import gpus

# All messages of the images of 14×14 are few, and their windows are half of them.
NAMES = [name for name in PAGES if "14×14" not in name]
QUICK = NAMES[:1]
ENGINES = ("active", gpu_engine(), gpu_engine(dense=True))
STEPS = 10
DIGITS = "digits"


def report(rows: list[Row]) -> str:
    """Two tables: pages, and the paper's network for digits."""
    pages = [row for row in rows if row.get("part") != "mnist"]
    texts = [activeset.report(pages)] if pages else []
    lines = []
    digits = [row for row in rows if row.get("part") == "mnist"]
    for key in dict.fromkeys((r["engine"], r["device"]) for r in digits):
        mine = [r for r in digits if (r["engine"], r["device"]) == key]
        lines.append(
            [
                *key,
                spread([100 * r["error"] for r in mine], 1),
                spread([r["ms_per_pass"] for r in mine], 0),
                spread([r["seconds"] for r in mine], 1),
                f"{np.mean([r['gigabytes'] for r in mine]):.1f}",
            ]
        )
    if lines:
        header = ["400 digits", "device", "validation error %", "ms a pass", "seconds"]
        texts.append(table([*header, "GB"], lines))
    return "\n\n".join(texts)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("activeset_gpu", "the active set on a GPU", arguments)
    problem = why_not_cuda()
    if problem:
        print(f"Nothing was measured: {problem}.")
        return bench
    print("; ".join(gpus()), "\n", flush=True)
    everything = [*NAMES, "scan", DIGITS]
    names = QUICK if options.quick else everything
    if options.only:
        names = [n for n in everything if any(part in n for part in options.only.split(","))]
    compile_everything()
    n = options.seeds or (1 if options.quick else 3)
    for name in names:
        if name == "scan":
            for n_letters in SCAN_LETTERS:
                for engine in ENGINES[:2]:
                    scan(bench, n_letters, STEPS, SCAN["scale"], engine)
        elif name == DIGITS:
            fit_digits(
                bench, range(options.first_seed, options.first_seed + n), ("active", "dense")
            )
        else:
            for seed in range(options.first_seed, options.first_seed + n):
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
