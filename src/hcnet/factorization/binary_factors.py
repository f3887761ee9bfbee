"""The two binary factors of a table, and their joint probability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Kind
from hcnet.factorization.error_kernels import count
from hcnet.factorization.packed import Packed, SparseTable, packed_bits
from hcnet.grid import FLOAT, on_grid
from hcnet.images import BoolArray, FloatArray, Noise
from hcnet.objective import Counts, Priors

Bits = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Table:
    """A 0/1 table with unobserved entries; rows are images, columns their channels.

    An entry with a weight counts so many times.
    """

    values: BoolArray
    observed: BoolArray
    weights: FloatArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    @cached_property
    def on(self) -> BoolArray:
        """Entries that are observed and 1."""
        return np.asarray(self.values & self.observed)

    @cached_property
    def off(self) -> BoolArray:
        """Entries that are observed and 0."""
        return np.asarray(~self.values & self.observed)

    @cached_property
    def packed(self) -> Packed:
        """Its bits."""
        weights = self.weights
        return Packed.of(self, None if weights is None else float(weights.max(initial=0)))

    def some(self, rows: NDArray[np.intp]) -> Table:
        """A table of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Table(self.values[rows], self.observed[rows], weights)

    def rows(self, first: int, last: int) -> tuple[BoolArray, BoolArray, FloatArray | None]:
        """On, off and weights of some rows."""
        part = slice(first, last)
        return self.on[part], self.off[part], None if self.weights is None else self.weights[part]


@dataclass(eq=False)
class Factors:
    """S (rows, components) and W (columns, components), both binary."""

    S: Bits
    W: Bits

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.S.shape[1])

    @property
    def kind(self) -> Kind:
        """Factors of the same shapes, for files."""
        S, W = (kinds.binary_array(bits.shape, np.int8) for bits in (self.S, self.W))
        return kinds.object_of(Factors, S=S, W=W)

    @classmethod
    def zeros(cls, table: Table | SparseTable, rank: int) -> Factors:
        """Factors of a table without any bit on."""
        return cls(*(np.zeros((side, rank), np.int8) for side in table.shape))

    def copy(self) -> Factors:
        """An independent copy."""
        return Factors(self.S.copy(), self.W.copy())

    def product(self) -> BoolArray:
        """R: the Boolean product of S and W."""
        return np.asarray(self.S.astype(FLOAT) @ self.W.astype(FLOAT).T > 0.5)

    def keep(self, components: NDArray[Any]) -> Factors:
        """Factors with some of the components, by a mask or by numbers."""
        return Factors(
            np.ascontiguousarray(self.S[:, components]), np.ascontiguousarray(self.W[:, components])
        )

    def used(self) -> Factors:
        """Factors without components that no row or no column has."""
        return self.keep(np.asarray(self.S.any(axis=0) & self.W.any(axis=0)))

    def counts(self, table: Table | SparseTable) -> Counts:
        """The counts that the joint probability depends on."""
        hit, missed, false, empty = self._entries(table)
        return Counts(
            placed=int(self.S.sum()),
            positions=self.S.size,
            weights_on=int(self.W.sum()),
            weights=self.W.size,
            hit=hit,
            missed=missed,
            false=false,
            empty=empty,
        )

    def _entries(self, table: Table | SparseTable) -> tuple[Any, Any, Any, Any]:
        """Number or weight of entries: hit, missed, false, empty."""
        if table.weights is None:
            bits = table.packed
            missed, false = count(bits.on, bits.off, self.S, packed_bits(self.W.T))
            return bits.n_ones - missed, missed, false, bits.n_zeros - false
        # The bits of a table may have its weights rounded.
        R, weights = self.product(), table.weights
        hit, missed, false, empty = (
            float(weights.sum(where=entries, dtype=np.double))
            for entries in (R & table.on, ~R & table.on, R & table.off, ~R & table.off)
        )
        return hit, missed, false, empty


def marginal_log_joint(factors: Factors, table: Table | SparseTable) -> float:
    """Value of log p(X, S, W) with the noise and every component's densities integrated out.

    All of them have uniform priors.  Unlike the value at estimated parameters, it charges for
    parameters, so that different numbers of components can be compared.
    """
    c = factors.counts(table)
    value = _log_beta(c.false, c.hit + c.false) + _log_beta(c.missed, c.missed + c.empty)
    for bits in (factors.S, factors.W):
        value += float(np.sum(_log_beta(bits.sum(axis=0), len(bits))))
    return float(value)


def _log_beta(on: Any, n: Any) -> Any:
    return gammaln(on + 1.0) + gammaln(n - on + 1.0) - gammaln(n + 2.0)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Noise of the entries, and prior log-odds per component, on the grid."""

    noise: Noise
    prior_S: FloatArray
    prior_W: FloatArray

    @property
    def evidence(self) -> NDArray[np.double]:
        """Log-odds of an entry that is on, and of one that is off, on the grid."""
        # Estimates of the noise can exceed one half; evidence must keep its sign.
        return on_grid([max(self.noise.k1, 1e-3), min(self.noise.k0, -1e-3)]).astype(np.double)

    @staticmethod
    def kind(rank: int) -> Kind:
        """Parameters of so many components, for files."""
        share, priors = kinds.probability(most=1.0), kinds.array(FLOAT, (rank,))
        noise = kinds.object_of(Noise, p01=share, p10=share)
        return kinds.object_of(Parameters, noise=noise, prior_S=priors, prior_W=priors)


def estimate_parameters(
    factors: Factors, table: Table | SparseTable, fixed: Priors, shared: bool
) -> Parameters:
    """Smoothed estimates of the parameters that `fixed` leaves open, given the factors.

    All components have the same density if it is `shared`, otherwise each has its own.
    """
    c = factors.counts(table)
    n = max(c.observed, 1)
    rate = (c.errors + 1) / (n + 2)
    # Both rates are smoothed towards the common one: a small table has few entries of a kind.
    p01 = (c.false + 10 * rate) / (c.hit + c.false + 10)
    p10 = (c.missed + 10 * rate) / (c.missed + c.empty + 10)
    p01, p10 = max(p01, 0.5 / n), max(p10, 0.5 / n)
    noise = Noise(min(fixed.p01 or p01, 0.999), min(fixed.p10 or p10, 0.999))
    densities = []
    for bits, p in ((factors.S, fixed.p_S), (factors.W, fixed.p_W)):
        ones, n_bits = (bits.sum(), bits.size) if shared else (bits.sum(axis=0), len(bits))
        density = (ones + 1) / (n_bits + 2) if p is None else p
        densities.append(on_grid(logit(np.broadcast_to(density, factors.rank))))
    return Parameters(noise, *densities)
