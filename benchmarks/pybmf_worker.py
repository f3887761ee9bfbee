"""Boolean matrix factorization by PyBMF; runs by itself, in an environment that has it.

Takes a folder with ``problem.npz`` (``table``, which is off where an entry is missing,
``observed``, ``rank``, ``method`` and ``seeds``) and leaves ``solution.npz`` there: the ``product``
with the fewest wrong observed entries of all ``settings`` of a method, how many these are, and
their ``seconds`` together.  Seconds are of the processor: other work does not count.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PyBMF.models import MEBF, Asso, GreConD
from PyBMF.models.ELBMF import ELBMF

# The package compares with >, Asso's authors with ≥: confidences are ratios of small integers.
THRESHOLDS = np.linspace(0.05, 1.0, 20) - 1e-9
# Penalty of Asso for covering a zero, that for leaving a one out being what lacks to 1; their
# ratios are those of the bonuses in benchmarks/baselines/asso.py.
ASSO_PENALTIES = (4 / 5, 2 / 3, 1 / 2, 1 / 3)
# MEBF takes a component if the errors weighted so do not grow; an uncovered one weighs 1.
MEBF_PENALTIES = (0.5, 1.0, 2.0)
# ELBMF's two penalties, of which (0.01, 0.02) are the package's own: smaller ones can be better
# with ten components, larger ones with two and five.  By which factor the second grows with each
# iteration, and where it starts.
ELASTIC = ((0.001, 0.002), (0.01, 0.02), (0.1, 0.02), (0.3, 0.02), (0.5, 0.02))
GROWTHS = (1.01, 1.02)
STARTS = ("uniform", "normal")
# A model stops at an error of `tol`, and then drops the component that brought it there.
NEVER = -1.0
FITTING = {"task": "reconstruction", "save_model": False, "show_logs": False, "show_result": False}
Setting = tuple[Any, bool, dict[str, Any]]  # the model, whether the table is turned, arguments


def main(folder: Path) -> None:
    """Factor the table in a folder by all settings of a method."""
    problem = np.load(folder / "problem.npz")
    table, observed = problem["table"], problem["observed"]
    began = time.process_time()
    fewest, tried = np.inf, 0
    for model, turned, arguments in settings(str(problem["method"]), problem["seeds"], observed):
        with contextlib.redirect_stdout(io.StringIO()):
            product = fit(model, table.T if turned else table, int(problem["rank"]), arguments)
        product = product.T if turned else product
        wrong = ((product != table) & observed).sum()
        tried += 1
        if wrong < fewest:
            fewest, best = wrong, product
    seconds = time.process_time() - began
    np.savez(folder / "solution.npz", product=best, seconds=seconds, settings=tried)


def settings(method: str, seeds: np.ndarray, observed: np.ndarray) -> Iterator[Setting]:
    """All that are tried; what takes no time also with rows and columns exchanged."""
    if method == "Asso":
        for tau, penalty in itertools.product(THRESHOLDS, ASSO_PENALTIES):
            yield Asso, False, {"tau": tau, "w_fp": penalty}
    elif method == "GreConD":
        for turned in (False, True):
            yield GreConD, turned, {}
    elif method == "MEBF":
        for t, penalty, turned in itertools.product(THRESHOLDS, MEBF_PENALTIES, (False, True)):
            yield MEBF, turned, {"t": t, "w_fp": penalty}
    else:
        assert method == "ELBMF", f"PyBMF has no {method}"
        # The only one of the four that takes weights.
        weights = observed.astype(float)
        for (l1, l2), growth, start, seed in itertools.product(ELASTIC, GROWTHS, STARTS, seeds):
            penalties = {"reg_l1": l1, "reg_l2": l2, "reg_growth": growth}
            yield ELBMF, False, {"W": weights, "init_method": start, "seed": int(seed), **penalties}


def fit(model: Any, table: np.ndarray, rank: int, arguments: dict[str, Any]) -> np.ndarray:
    """The product of the factors that a model finds."""
    fitted = silent(model)(k=rank, tol=NEVER, **arguments)
    fitted.fit(table.astype(float), **FITTING)
    U, V = dense(fitted.U) > 0.5, dense(fitted.V) > 0.5
    return U.astype(np.int64) @ V.T.astype(np.int64) > 0


def silent(model: Any) -> Any:
    """The same model without pictures and logs.

    It also ends where no component helps any more: the package raises a TypeError there, as it
    leaves an argument out.
    """

    class Silent(model):
        def show_matrix(self, *arguments: Any, **options: Any) -> None:
            pass

        def evaluate(self, *arguments: Any, **options: Any) -> None:
            pass

        def _early_stop(self, msg: str, verbose: bool = False, k: int | None = None) -> None:
            super()._early_stop(msg, verbose, k)

    return Silent


def dense(factor: Any) -> np.ndarray:
    """A factor as an array."""
    return np.asarray(factor.toarray() if hasattr(factor, "toarray") else factor)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
