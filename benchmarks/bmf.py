"""Boolean matrix factorization: error against the noise-free matrix, beside the literature."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix

# rank, flips: error in % of message passing (Ravanbakhsh et al. 2016) and of Asso where known.
DENSE: dict[tuple[int, float], tuple[str, str]] = {
    (5, 0.0): ("0", "–"),
    (5, 0.1): ("0", "9.5"),
    (5, 0.2): ("1.3", "12.7"),
    (5, 0.3): ("1.8", "19.5"),
    (5, 0.4): ("32", "–"),
    (10, 0.0): ("2.0", "–"),
    (10, 0.1): ("0.02", "–"),
    (10, 0.2): ("0.3", "–"),
    (10, 0.3): ("8.6", "–"),
    (10, 0.4): ("39", "–"),
}
SPARSE: dict[str, Any] = {"shape": (1000, 1000), "rank": 2, "flips": 0.2, "observed": 0.1}

SPARSE_NAME = "1000×1000, 10 % observed, rank 2, 20 % flips"


def dense_name(rank: int, flips: float) -> str:
    """How a setting is called in rows and table."""
    return f"rank {rank}, {flips:.0%} flips"


PUBLISHED = {
    **{dense_name(*setting): figures for setting, figures in DENSE.items()},
    SPARSE_NAME: ("0–0.14", "–"),
}


def one(bench: Benchmark, name: str, mode: str, seed: int, **shape: Any) -> None:
    """Factor one matrix."""
    data = boolean_matrix(random_state=seed, **shape)
    rank = None if mode == "automatic rank" else shape["rank"]
    model = BooleanMatrixFactorization(
        rank, algorithm="mpmp" if mode == "mpmp" else "refined", random_state=seed
    )
    model, seconds, megabytes = measure(lambda: model.fit(data.table, mask=data.mask))
    wrong = model.inverse_transform(model.codes_) != data.clean
    bench.add(
        data=name,
        mode=mode,
        seed=seed,
        error=float(wrong.mean()),
        rank=len(model.components_),
        rank_true=shape["rank"],
        noise=shape["flips"],
        noise_estimated=(model.p01_ + model.p10_) / 2,
        seconds=seconds,
        megabytes_peak=megabytes,
    )


def report(rows: list[Row]) -> str:
    """The table: a row per kind of matrix."""
    lines = []
    for name, (literature, asso) in PUBLISHED.items():
        cells = [name, literature, asso]
        for mode in ("refined", "mpmp", "automatic rank"):
            mine = [r for r in rows if r["data"] == name and r["mode"] == mode]
            cells.append(spread([100 * r["error"] for r in mine], 2))
        mine = [r for r in rows if r["data"] == name]
        if not mine:
            continue
        found = [r["rank"] == r["rank_true"] for r in mine if r["mode"] == "automatic rank"]
        cells.append(f"{sum(found)}/{len(found)}" if found else "–")
        cells.append(f"{np.mean([r['seconds'] for r in mine if r['mode'] == 'refined']):.1f}")
        lines.append(cells)
    return table(
        [
            "200×200 unless said",
            "message passing (literature)",
            "Asso",
            "refined",
            "mpmp",
            "automatic rank",
            "rank right",
            "seconds",
        ],
        lines,
    )


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    bench, options = start("bmf", "error of the reconstruction in %, one core", arguments)
    numba.set_num_threads(1)
    n = options.seeds or (1 if options.quick else 20)
    modes = ("refined", "mpmp") if options.quick else ("refined", "mpmp", "automatic rank")
    for rank, flips in DENSE:
        name = dense_name(rank, flips)
        for mode in modes:
            for seed in range(options.first_seed, options.first_seed + n):
                one(bench, name, mode, seed, shape=(200, 200), rank=rank, flips=flips)
    for mode in modes[:2]:
        for seed in range(options.first_seed, options.first_seed + min(n, 10)):
            one(bench, SPARSE_NAME, mode, seed, **SPARSE)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
