"""Asso, the best-known heuristic for boolean matrix factorization (Miettinen et al. 2008).

Columns that tend to be on together suggest components: the confidence of the rule "column i is on,
hence column j",

    A[i, j] = Σ_n X[n, i]·X[n, j] / Σ_n X[n, i],

rounded at a threshold τ, gives one candidate component per column.  Components are then taken one
at a time: the candidate with the most *cover*,

    w⁺·(on entries covered for the first time) - w⁻·(off entries covered for the first time),

where every row uses the candidate exactly if that pays for the row.  Ties go to the first one.

Missing entries: a rule is counted over the rows where both columns are observed, and an entry that
is missing neither pays nor costs.  The original has complete matrices in mind, where this changes
nothing.  τ and the balance of the weights are chosen from a grid by the training error, that is the
share of observed entries that come out wrong, as a user would who has nothing else to go by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray

# τ = 1 admits only rules without an exception.
THRESHOLDS = tuple(np.linspace(0.05, 1.0, 20))
# w⁺ with w⁻ = 1.  At 1 both kinds of errors count alike, as they do in the training error; with
# less, the greedy choice covers fewer entries at first and often ends up better.
BONUSES = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Factors:
    """A boolean factorization, and how it was come by."""

    codes: BoolArray  # (rows, rank)
    components: BoolArray  # (rank, columns)
    threshold: float
    bonus: float
    error: float  # share of observed entries that are wrong

    def product(self) -> BoolArray:
        """The boolean product: OR over the rank of the AND."""
        table: BoolArray = self.codes.astype(np.float32) @ self.components.astype(np.float32) > 0
        return table


def associations(X: BoolArray, observed: BoolArray) -> NDArray[np.float64]:
    """Confidence of every rule "column i, hence column j"; 0 where i is never on."""
    on = (X & observed).astype(np.float32)
    both = on.T @ on
    chances = on.T @ observed.astype(np.float32)  # i is on, and j was looked at
    confidence: NDArray[np.float64] = np.divide(
        both, chances, out=np.zeros(both.shape), where=chances > 0
    )
    return confidence


def cover_greedily(
    X: BoolArray, observed: BoolArray, candidates: BoolArray, rank: int, bonus: float, malus: float
) -> tuple[BoolArray, BoolArray]:
    """Take the candidate that covers most, `rank` times; codes and components.

    It ends early if no candidate pays any more: the components left over stay empty.
    """
    codes = np.zeros((len(X), rank), bool)
    components = np.zeros((rank, X.shape[1]), bool)
    # What an entry is worth to who covers it first; nothing once it is covered.
    worth = (np.where(X, bonus, -malus) * observed).astype(np.float32)
    columns = candidates.T.astype(np.float32)
    gains = worth @ columns  # (rows, candidates)
    for k in range(rank):
        total = np.maximum(gains, 0).sum(axis=0, dtype=np.float64)
        best = int(total.argmax())
        if total[best] <= 0:
            break
        users = gains[:, best] > 0
        codes[:, k], components[k] = users, candidates[best]
        worth[np.ix_(users, candidates[best])] = 0
        gains[users] = worth[users] @ columns
    return codes, components


def asso(
    X: BoolArray,
    rank: int,
    mask: BoolArray | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    bonuses: Sequence[float] = BONUSES,
) -> Factors:
    """Factor a boolean matrix; `mask` is True where an entry is missing."""
    observed = np.ones(X.shape, bool) if mask is None else ~mask
    confidence = associations(X, observed)
    best: Factors | None = None
    for threshold in thresholds:
        # Confidences are ratios of small integers, which float division may put just below.
        candidates = np.unique(confidence >= threshold - 1e-9, axis=0)
        for bonus in bonuses:
            codes, components = cover_greedily(X, observed, candidates, rank, bonus, 1.0)
            found = Factors(codes, components, float(threshold), bonus, 0.0)
            wrong = (found.product() != X) & observed
            error = float(wrong.sum() / max(observed.sum(), 1))
            if best is None or error < best.error:
                best = Factors(codes, components, float(threshold), bonus, error)
    assert best is not None, "at least one threshold and one bonus are needed"
    return best
