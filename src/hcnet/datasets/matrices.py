"""Boolean matrices of known rank, for boolean matrix factorization and completion."""

from dataclasses import dataclass

import numpy as np

from hcnet.checks import (
    RandomState,
    check_count,
    check_noise,
    check_pair,
    check_probability,
    check_random_state,
)
from hcnet.datasets.parts_data import flip_noise
from hcnet.images import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class BooleanMatrixData:
    """A noisy boolean matrix and its factors.

    Attributes:
        table: bool (n, m), the matrix with noise; only entries outside `mask` count as seen.
        clean: bool (n, m), the boolean product of the factors: the OR over the rank of the AND.
        mask: bool (n, m), True where an entry is missing, as everywhere in hcnet.
        row_factors: bool (n, rank).
        column_factors: bool (rank, m).

    """

    table: BoolArray
    clean: BoolArray
    mask: BoolArray
    row_factors: BoolArray
    column_factors: BoolArray


def boolean_matrix(
    *,
    shape: tuple[int, int] = (200, 200),
    rank: int = 5,
    flips: float = 0.1,
    observed: float = 1.0,
    density: float = 0.5,
    random_state: RandomState = None,
) -> BooleanMatrixData:
    """A random boolean matrix product, as in Ravanbakhsh et al. (2016) and Rukat et al. (2017).

    Factor entries are independent and on with probability sqrt(1 - (1 - density) ** (1 / rank)),
    which gives the clean matrix the expected density.

    Args:
        shape: rows and columns.
        rank: number of factors.
        flips: probability that an entry is flipped.
        observed: probability that an entry is observed.
        density: expected share of ones in the clean matrix.
        random_state: seed.

    Returns:
        The matrix, its mask and its factors.

    """
    n, m = check_pair("shape", shape, single=False)
    rank = check_count("rank", rank)
    flips = check_noise(flips, "flips")
    observed = check_probability("observed", observed)
    density = check_probability("density", density)
    rng = check_random_state(random_state)
    p_on = np.sqrt(1.0 - (1.0 - density) ** (1.0 / rank))
    row_factors = rng.random((n, rank)) < p_on
    column_factors = rng.random((rank, m)) < p_on
    # A float product is exact here and far faster than NumPy's boolean one.
    clean: BoolArray = row_factors.astype(np.float32) @ column_factors.astype(np.float32) > 0
    table = flip_noise(clean, flips, rng)
    mask: BoolArray = rng.random((n, m)) >= observed
    return BooleanMatrixData(table, clean, mask, row_factors, column_factors)
