"""Numbers whose sums are exact, in float32 as in float64.

Message passing from a random start magnifies every rounding until it decides which feature becomes
which part.  But AND, OR and POOL only add, subtract and compare.  If evidence and priors are
multiples of one step, so are all messages and beliefs, if what is damped moves in whole steps; and
nothing is ever rounded as long as beliefs are below 2²⁴ steps: then no precision, and no order in
which a sum is formed, changes a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The type of messages and beliefs.  A test sets another before anything else is imported.
FLOAT = np.float32

# Fine enough for the priors of weights, which are drawn from a range of several hundred steps, and
# so coarse that beliefs up to 4,096 are exact in float32 (benchmarks/NOTES.md has figures).
STEP = 2.0**-12


def on_grid(values: ArrayLike) -> NDArray[np.float32]:
    """The nearest multiples of the step.

    The values should come in double precision: rounded before, they may be nearest to another.
    """
    return np.asarray(np.rint(np.asarray(values, np.double) / STEP) * STEP, dtype=FLOAT)


def to_steps(precision: type[np.floating[Any]]) -> Any:
    """What rounds a number of this precision if it is added and taken away again: to whole steps.

    The sum is just so large that the step is what it is rounded to: in single precision, for
    numbers up to 1,024.  Larger ones are rounded as coarsely as the sum is.
    """
    return precision(1.5 * 2.0 ** np.finfo(precision).nmant * STEP)


# A damped message is a product and a sum, and machines round between them or not.  With shares of
# so few digits there is nothing to round: in single precision up to 64, in double up to 4,096.
_SINGLE_SHARES, _DOUBLE_SHARES = 2.0**6, 2.0**27


def tree_share(damping: float) -> float:
    """The nearest share by which messages of trees, in single precision, are damped exactly."""
    return max(round(damping * _SINGLE_SHARES), 1) / _SINGLE_SHARES


def pool_share(damping: float) -> np.double:
    """The nearest share by which messages of pools are damped exactly, in double precision."""
    return np.double(max(round(damping * _DOUBLE_SHARES), 1) / _DOUBLE_SHARES)


def single(values: ArrayLike) -> NDArray[np.float32]:
    """As near as single precision comes, for what need not be exact."""
    return np.asarray(values, np.float32)
