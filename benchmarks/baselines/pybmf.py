"""Boolean factorization by PyBMF 0.0.1: Asso, GreConD, MEBF and ELBMF.

PyBMF lists packages that its models do not use, and needs others that hcnet does not: it has an
environment of its own (`.cache/pybmf`).  Every method is run with many settings, and the fewest
wrong entries count, as with our own Asso.  Only ELBMF takes weights, of 0 for what is missing; to
the others a missing entry is a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.own_environment import OwnEnvironment
from hcnet.images import BoolArray

PYBMF = OwnEnvironment(
    "PyBMF",
    # Without what PyBMF lists and its models do not use, such as a table of postal codes.
    (
        ("--no-deps", "PyBMF==0.0.1"),
        (
            "ipython",
            "matplotlib",
            "mlxtend",
            "numpy<3",
            "p-tqdm",
            "pandas<4",
            "scikit-learn<2",
            "scipy<2",
            "tqdm",
        ),
    ),
    "from PyBMF.models import Asso, GreConD, MEBF; from PyBMF.models.ELBMF import ELBMF",
    "pybmf_worker.py",
)
METHODS = ("Asso", "GreConD", "MEBF", "ELBMF")
# Seconds for all settings of a method on one table; the slowest known takes 60.
PATIENCE = 900
# Random starts of ELBMF with each of its 20 settings; the others draw nothing.
STARTS = 5


class Found(NamedTuple):
    """The best product, and what it took."""

    product: BoolArray
    settings: int
    seconds: float  # of the processor, all settings together


def pybmf(
    X: NDArray[np.float64], rank: int, method: str, seeds: Sequence[int], create: bool = True
) -> Found:
    """Factor a table of 0, 1 and nan by one of `METHODS`."""
    problem = {
        "table": X == 1,
        "observed": ~np.isnan(X),
        "rank": rank,
        "method": method,
        "seeds": np.asarray(seeds),
    }
    found = PYBMF.solve(PYBMF.python(create), problem, PATIENCE)
    return Found(found["product"], int(found["settings"]), float(found["seconds"]))
