"""Public 0/1 tables: wrong entries of the factors, beside the fewest that are known."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF

from benchmarks.baselines.asso import asso
from benchmarks.harness import Benchmark, Row, table
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
SEARCH, MESSAGES, ASSO, ROUNDED = "error", "probability", "Asso", "NMF, rounded"
THRESHOLDS = np.linspace(0.1, 0.9, 17)


def read_tables(folder: Path) -> dict[str, NDArray[np.float64]]:
    """All text files of a folder by their short names; nan is missing."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise SystemExit(f"{folder} has no .txt files with rows of 0, 1 and nan.")
    return {file.stem.split("_")[0]: np.loadtxt(file, ndmin=2) for file in files}


def run_tables(bench: Benchmark, folder: Path, seeds: range, quick: bool) -> None:
    """Factor every table with every rank; rivals once, since the searches differ by seed."""
    for name, X in read_tables(folder).items():
        for k in RANKS[:1] if quick else RANKS:
            for seed in seeds:
                for objective in (SEARCH, MESSAGES):
                    one(bench, name, X, k, objective, seed)
            for rival in (ASSO, ROUNDED):
                one(bench, name, X, k, rival, seeds[0])


def one(
    bench: Benchmark, name: str, X: NDArray[np.float64], k: int, method: str, seed: int
) -> None:
    """Factor one table; seconds are of the processor."""
    began = time.process_time()
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
    """A row for each table and rank."""
    lines = []
    for name in dict.fromkeys(r["table"] for r in rows):
        for k in RANKS:
            mine = [r for r in rows if r["table"] == name and r["rank"] == k]
            if mine:
                best = str(KNOWN[name][RANKS.index(k)]) if name in KNOWN else "–"
                methods = (SEARCH, MESSAGES, ASSO, ROUNDED)
                searched = [r["seconds"] for r in mine if r["method"] == SEARCH]
                errors = [_range([r["errors"] for r in mine if r["method"] == m]) for m in methods]
                lines.append([name, k, best, *errors, f"{max(searched):.1f}"])
    header = ["table", "rank", "fewest known", 'objective="error"', 'objective="probability"']
    return table([*header, ASSO, ROUNDED, "most seconds (error)"], lines)


def _range(errors: list[int]) -> str:
    low, high = min(errors), max(errors)
    return str(low) if low == high else f"{low} to {high}"
