"""Numbers whose sums are exact, in float32 as in float64.

Message passing from a random start magnifies every rounding until it decides which feature becomes
which part.  But AND and OR only add, subtract and compare.  If evidence and priors are multiples of
one step, so are all undamped messages and beliefs, and nothing is ever rounded as long as beliefs
are below 2²⁴ steps: then no precision, and no order in which a sum is formed, changes a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Fine enough for the priors of weights, which are drawn from a range of several hundred steps, and
# so coarse that beliefs up to 4,096 are exact in float32 (docs/reliability.md has figures).
STEP = 2.0**-12


def on_grid(values: ArrayLike) -> NDArray[np.float32]:
    """The nearest multiples of the step.

    The values should come in double precision: rounded before, they may be nearest to another.
    """
    return np.asarray(np.rint(np.asarray(values, np.double) / STEP) * STEP, dtype=np.float32)


def to_steps(precision: type[np.floating[Any]]) -> Any:
    """What rounds a number of this precision if it is added and taken away again: to whole steps.

    Sums are then just so large that the step is what they are rounded to.  Numbers beyond a
    quarter of the 2²⁴ steps (2⁵³ in double precision) are rounded no worse than they were.
    """
    return precision(1.5 * 2.0 ** np.finfo(precision).nmant * STEP)


def exact_share(damping: float) -> np.double:
    """The share, with so few digits that its product with a message is exact in double precision.

    Then it does not matter whether a machine rounds between multiplying and adding.
    """
    return np.double(np.single(damping))


def single(values: ArrayLike) -> NDArray[np.float32]:
    """As near as single precision comes, for what need not be exact."""
    return np.asarray(values, np.float32)
