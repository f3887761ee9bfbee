"""Boolean matrix factorization: error against the noise-free matrix, beside the literature."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.baselines.asso import asso
from benchmarks.bmf_tables import report_tables, run_tables
from benchmarks.harness import Benchmark, Row, measure, spread, start, table
from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix
from hcnet.datasets.matrices import BooleanMatrixData
from hcnet.images import BoolArray

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


MODES = ("refined", "mpmp", "automatic rank", "asso")


def one(bench: Benchmark, name: str, mode: str, seed: int, **shape: Any) -> None:
    """Factor one matrix."""
    data = boolean_matrix(random_state=seed, **shape)
    work = fit_asso if mode == "asso" else fit_ours
    (product, facts), seconds, megabytes = measure(lambda: work(data, shape["rank"], mode, seed))
    bench.add(
        data=name,
        mode=mode,
        seed=seed,
        error=float((product != data.clean).mean()),
        rank_true=shape["rank"],
        noise=shape["flips"],
        seconds=seconds,
        megabytes_peak=megabytes,
        **facts,
    )


def fit_ours(data: BooleanMatrixData, rank: int, mode: str, seed: int) -> tuple[BoolArray, Row]:
    """Product of the factors, and more about them."""
    model = BooleanMatrixFactorization(
        None if mode == "automatic rank" else rank,
        algorithm="mpmp" if mode == "mpmp" else "refined",
        random_state=seed,
    ).fit(data.table, mask=data.mask)
    noise = (model.p01_ + model.p10_) / 2
    facts = {"rank": len(model.components_), "noise_estimated": noise}
    return model.inverse_transform(model.codes_), facts


def fit_asso(data: BooleanMatrixData, rank: int, mode: str, seed: int) -> tuple[BoolArray, Row]:
    """Likewise; nothing about it is random."""
    found = asso(data.table, rank, data.mask)
    used = int(found.components.any(axis=1).sum())
    facts = {"rank": used, "threshold": found.threshold, "bonus": found.bonus}
    return found.product(), facts


def report(rows: list[Row]) -> str:
    """The table: a row per kind of matrix."""
    lines = []
    for name, literature in PUBLISHED.items():
        mine = {
            mode: [r for r in rows if r["data"] == name and r["mode"] == mode] for mode in MODES
        }
        if not any(mine.values()):
            continue
        errors = {mode: spread([100 * r["error"] for r in mine[mode]], 2) for mode in MODES}
        found = [r["rank"] == r["rank_true"] for r in mine["automatic rank"]]
        lines.append(
            [
                name,
                *literature,
                errors["asso"],
                errors["refined"],
                errors["mpmp"],
                errors["automatic rank"],
                f"{sum(found)}/{len(found)}" if found else "–",
                f"{np.mean([r['seconds'] for r in mine['refined']]):.1f}"
                if mine["refined"]
                else "–",
            ]
        )
    return table(
        [
            "200×200 unless said",
            "message passing (literature)",
            "Asso (literature)",
            "Asso",
            "refined",
            "mpmp",
            "automatic rank",
            "rank right",
            "seconds",
        ],
        lines,
    )


def add_options(parser: ArgumentParser) -> None:
    """Real tables instead of made-up ones."""
    what = "factor the 0/1 tables in this folder (rows of 0, 1, nan) instead"
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help=what)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    about = "error of the reconstruction in %, one core"
    bench, options = start("bmf", about, arguments, add_options)
    numba.set_num_threads(1)
    if options.tables is not None:
        seeds = range(options.first_seed, options.first_seed + (options.seeds or 3))
        seeds = seeds[:1] if options.quick else seeds
        run_tables(bench, options.tables, seeds, options.quick, options.only)
        report_tables(bench.rows)
        return bench
    n = options.seeds or (1 if options.quick else 20)
    only = options.only.split(",") if options.only else []
    modes = [m for m in MODES if m in only] or [
        m for m in MODES if not (options.quick and m == "automatic rank")
    ]
    for rank, flips in DENSE:
        name = dense_name(rank, flips)
        for mode in modes:
            for seed in range(options.first_seed, options.first_seed + n):
                one(bench, name, mode, seed, shape=(200, 200), rank=rank, flips=flips)
    for mode in modes:
        if mode == "automatic rank":
            continue
        for seed in range(options.first_seed, options.first_seed + min(n, 10)):
            one(bench, SPARSE_NAME, mode, seed, **SPARSE)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
