"""Public 0/1 tables: wrong entries of the factors, beside the fewest that are known."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF

from benchmarks.baselines import pybmf
from benchmarks.baselines.asso import asso
from benchmarks.harness import Benchmark, Row, selected, table
from benchmarks.own_environment import UnavailableError
from hcnet import BooleanMatrixFactorization
from hcnet.images import BoolArray

RANKS = (2, 5, 10)
# The fewest wrong entries known for each rank: Kovács et al., integer programming, 1,800 s each.
KNOWN: dict[str, tuple[int, int, int]] = {
    "zoo": (271, 126, 39),
    "heart": (1185, 737, 419),
    "lymp": (1184, 982, 728),
    "apb": (776, 684, 573),
    "tumor": (1352, 962, 514),
    "votes": (1246, 779, 240),
}
SEARCH, MESSAGES, ASSO, ROUNDED = "error", "probability", "Asso, ours", "NMF, rounded"
PYBMF = {f"{method}, PyBMF": method for method in pybmf.METHODS}
METHODS = (SEARCH, MESSAGES, ASSO, *PYBMF, ROUNDED)
THRESHOLDS = np.linspace(0.1, 0.9, 17)


def read_tables(folder: Path) -> dict[str, NDArray[np.float64]]:
    """All text files of a folder by their short names; nan is missing."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise SystemExit(f"{folder} has no .txt files with rows of 0, 1 and nan.")
    return {file.stem.split("_")[0]: np.loadtxt(file, ndmin=2) for file in files}


def run_tables(
    bench: Benchmark, folder: Path, seeds: range, quick: bool, only: str | None = None
) -> None:
    """Factor every table with every rank; rivals once, since the searches differ by seed."""
    tables = read_tables(folder)
    # Those of PyBMF take minutes: in a quick run only if they are named.
    wanted = selected(only, METHODS if only or not quick else (*METHODS[:3], ROUNDED))
    methods = available(wanted, create=not quick)
    for method in {SEARCH, MESSAGES} & set(methods):
        _product(next(iter(tables.values()))[:20], 2, method, 0)  # compiles what is not yet
    for name, X in tables.items():
        for k in RANKS[:1] if quick else RANKS:
            for method in methods:
                for seed in seeds if method in (SEARCH, MESSAGES) else seeds[:1]:
                    try:
                        one(bench, name, X, k, method, seed)
                    except UnavailableError as reason:
                        print(
                            f"{method} is not measured on {name}, rank {k}: {reason}.\n", flush=True
                        )


def available(methods: Sequence[str], create: bool) -> list[str]:
    """The methods without those of PyBMF if its environment is not there, and a sentence then."""
    own = [method for method in methods if method not in PYBMF]
    if len(own) < len(methods):
        try:
            pybmf.PYBMF.python(create)
        except UnavailableError as reason:
            print(f"PyBMF is not measured: {reason}.\n", flush=True)
            return own
    return list(methods)


def one(
    bench: Benchmark, name: str, X: NDArray[np.float64], k: int, method: str, seed: int
) -> None:
    """Factor one table; seconds are of the processor, all settings of a rival together."""
    began = time.process_time()
    if method in PYBMF:
        starts = range(seed, seed + pybmf.STARTS)
        product, _, seconds = pybmf.pybmf(X, k, PYBMF[method], starts, create=False)
    else:
        product = _rounded(X, k, seed) if method == ROUNDED else _product(X, k, method, seed)
        seconds = time.process_time() - began
    errors = int(((product != (X == 1)) & ~np.isnan(X)).sum())
    bench.add(table=name, rank=k, method=method, seed=seed, errors=errors, seconds=seconds)


def _product(X: NDArray[np.float64], k: int, method: str, seed: int) -> BoolArray:
    if method == ASSO:
        return asso(X == 1, k, np.isnan(X)).product()
    model = BooleanMatrixFactorization(k, objective=method, random_state=seed).fit(
        X, mask=np.isnan(X)
    )
    return np.asarray(model.inverse_transform(model.codes_))


def _rounded(X: NDArray[np.float64], k: int, seed: int) -> BoolArray:
    """The product of non-negative factors, cut at the best of some thresholds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NMF tells that it has not converged
        model = NMF(min(k, *X.shape), random_state=seed, max_iter=1000)
        product = model.fit_transform(np.nan_to_num(X)) @ model.components_
    known = ~np.isnan(X)
    wrong = [(((product > t) != (X == 1)) & known).sum() for t in THRESHOLDS]
    return np.asarray(product > THRESHOLDS[int(np.argmin(wrong))])


def report_tables(rows: list[Row]) -> str:
    """A row for each table and rank: wrong entries, and the seconds of the slowest fit."""
    lines = []
    for name in dict.fromkeys(r["table"] for r in rows):
        for k in RANKS:
            mine = [r for r in rows if r["table"] == name and r["rank"] == k]
            if mine:
                best = str(KNOWN[name][RANKS.index(k)]) if name in KNOWN else "–"
                cells = [_cell([r for r in mine if r["method"] == m]) for m in METHODS]
                lines.append([name, k, best, *cells])
    header = ["table", "rank", "fewest known", 'objective="error"', 'objective="probability"']
    return table([*header, *METHODS[2:]], lines)


def _cell(rows: list[Row]) -> str:
    """Fewest to most wrong entries, and the most seconds."""
    if not rows:
        return "–"
    errors = [r["errors"] for r in rows]
    low, high = min(errors), max(errors)
    seconds = max(r["seconds"] for r in rows)
    return f"{low if low == high else f'{low} to {high}'} ({seconds:.1f} s)"
