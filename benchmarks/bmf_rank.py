"""Number of components that is chosen on tables of correlated attributes, beside ranks by hand."""

from __future__ import annotations

import time

import numba
import numpy as np

from benchmarks.harness import Benchmark, Row, spread, start, table
from hcnet import BooleanMatrixFactorization
from hcnet.factorization.binary_factors import Factors, Table, marginal_log_joint
from hcnet.factorization.sampling import Sampler, climb_to_maximum
from hcnet.images import BoolArray
from hcnet.objective import Priors

RANKS = (8, 12, 16, 20, 25, 30, 40)
BY_HAND = "by hand"


def correlated_blocks(
    rows: int, attributes: int, classes: int = 8, random_state: int = 0
) -> BoolArray:
    """A table of attributes, each a block of columns of which every row has one.

    Three quarters of the rows have the value that their class prefers, and two in five attributes
    mostly follow the one before.
    """
    rng = np.random.default_rng(random_state)
    kinds = rng.integers(0, classes, rows)
    blocks: list[BoolArray] = []
    before = np.zeros(rows, np.int64)
    for _ in range(attributes):
        n = int(rng.integers(2, 9))
        preferred = rng.integers(0, n, classes)[kinds]
        other = rng.choice(n, rows, p=rng.dirichlet(np.ones(n)))
        values = np.where(rng.random(rows) < 0.75, preferred, other)
        if blocks and rng.random() < 0.4:
            values = np.where(rng.random(rows) < 0.9, before % n, values)
        blocks.append(np.eye(n, dtype=bool)[values])
        before = values
    return np.hstack(blocks)


def one(bench: Benchmark, seed: int, rows: int, attributes: int) -> None:
    """Factor one table: the number chosen, and each number by hand."""
    X = correlated_blocks(rows, attributes, random_state=seed)
    entries = Table(X, np.ones(X.shape, bool))
    for objective in ("probability", "error"):
        for rank in (None, *(r for r in RANKS if r <= min(X.shape) and objective == "error")):
            began = time.process_time()
            model = BooleanMatrixFactorization(rank, objective=objective, random_state=seed).fit(X)
            seconds = time.process_time() - began
            bits = model.codes_.astype(np.int8), model.components_.T.astype(np.int8)
            factors = Factors(*bits).used()
            row = {"seed": seed, "rank": factors.rank, "seconds": seconds}
            value = marginal_log_joint(factors, entries)
            name = objective if rank is None else f"{objective}, {BY_HAND}"
            bench.add(method=name, value=value, errors=model.errors_, **row)
            if rank is not None:
                sampler = Sampler(entries, np.random.default_rng(seed))
                climb_to_maximum(factors, sampler, Priors(), 20)
                value = marginal_log_joint(factors.used(), entries)
                errors = factors.counts(entries).errors
                name = f"probability, {BY_HAND}"
                bench.add(method=name, value=value, errors=errors, **row)


def report(rows: list[Row]) -> str:
    """A row for each seed and objective."""
    lines = []
    for seed in dict.fromkeys(r["seed"] for r in rows):
        for objective in ("probability", "error"):
            mine = [r for r in rows if r["seed"] == seed and r["method"] == objective]
            hand = [
                r for r in rows if r["seed"] == seed and r["method"] == f"{objective}, {BY_HAND}"
            ]
            best = max(hand, key=lambda r: r["value"])
            values = [f"{r['value']:,.0f} ({r['rank']})" for r in (mine[0], best)]
            lines.append([seed, objective, *values, spread([mine[0]["seconds"]], 1)])
    header = ["seed", "objective", "chosen (components)", "best by hand (components)", "seconds"]
    return table(header, lines)


def main(arguments: list[str] | None = None) -> Benchmark:
    """Run the benchmark."""
    about = "log-joint of tables of correlated attributes, one core"
    bench, options = start("bmf_rank", about, arguments)
    numba.set_num_threads(1)
    rows, attributes = (400, 10) if options.quick else (2000, 20)
    n = options.seeds or (1 if options.quick else 3)
    for seed in range(options.first_seed, options.first_seed + n):
        one(bench, seed, rows, attributes)
    report(bench.rows)
    return bench


if __name__ == "__main__":
    main()
