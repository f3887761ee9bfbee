"""The two binary factors of a table, their joint probability, and one pass over their bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logit

from hcnet.archive.kinds import Array, BinaryArray, Kind, Object, Probability
from hcnet.engine.cpu_compilation import entry
from hcnet.grid import on_grid
from hcnet.images import BoolArray, FloatArray, Noise
from hcnet.objective import Counts, Priors

Bits = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Table:
    """A 0/1 table with unobserved entries; rows are images, columns their channels."""

    values: BoolArray
    observed: BoolArray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    @cached_property
    def on(self) -> BoolArray:
        """Observed ones."""
        return np.asarray(self.values & self.observed)

    @cached_property
    def off(self) -> BoolArray:
        """Observed zeros."""
        return np.asarray(~self.values & self.observed)

    @cached_property
    def density(self) -> float:
        """Share of ones among the observed entries, kept off 0 and 1."""
        return float(np.clip(self.on.sum() / max(int(self.observed.sum()), 1), 0.02, 0.98))

    def evidence(self, noise: Noise) -> FloatArray:
        """Log-odds per entry, on the grid; 0 where it is not observed."""
        # Estimated noise can pass one half on the way; evidence must not change its sign.
        k1, k0 = on_grid([max(noise.k1, 1e-3), min(noise.k0, -1e-3)])
        return np.where(self.on, k1, np.where(self.off, k0, np.float32(0)))


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
        S, W = (BinaryArray(bits.shape, np.int8) for bits in (self.S, self.W))
        return Object(Factors, S=S, W=W)

    def copy(self) -> Factors:
        """Independent copy."""
        return Factors(self.S.copy(), self.W.copy())

    def product(self) -> BoolArray:
        """R: the Boolean product of S and W."""
        return np.asarray(self.S.astype(np.float32) @ self.W.astype(np.float32).T > 0.5)

    def keep(self, components: BoolArray) -> Factors:
        """Only some of the components."""
        return Factors(
            np.ascontiguousarray(self.S[:, components]), np.ascontiguousarray(self.W[:, components])
        )

    def used(self) -> Factors:
        """Without components that nothing uses."""
        return self.keep(np.asarray(self.S.any(axis=0) & self.W.any(axis=0)))

    def counts(self, table: Table) -> Counts:
        """All that the joint probability depends on."""
        R = self.product()
        hit, false = int((R & table.on).sum()), int((R & table.off).sum())
        return Counts(
            placed=int(self.S.sum()),
            positions=self.S.size,
            weights_on=int(self.W.sum()),
            weights=self.W.size,
            hit=hit,
            missed=int(table.on.sum()) - hit,
            false=false,
            empty=int(table.off.sum()) - false,
        )


def marginal_log_joint(factors: Factors, table: Table) -> float:
    """Value of log p(X, S, W) with the noise and every component's densities integrated out.

    Uniform priors on all of them.  Other than the plug-in value it charges for parameters, so
    that it can be compared between numbers of components.
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
    """Evidence per entry and prior log-odds per component, for one pass; on the grid."""

    noise: Noise
    prior_S: FloatArray
    prior_W: FloatArray

    @staticmethod
    def kind(rank: int) -> Kind:
        """Parameters of so many components, for files."""
        share, priors = Probability(most=1.0), Array(np.float32, (rank,))
        noise = Object(Noise, p01=share, p10=share)
        return Object(Parameters, noise=noise, prior_S=priors, prior_W=priors)


def plug_in(factors: Factors, table: Table, fixed: Priors, shared: bool) -> Parameters:
    """Parameters at their best values given the factors, smoothed; `fixed` ones as given.

    `shared`: one density for all components, otherwise one each.
    """
    c = factors.counts(table)
    n = max(c.observed, 1)
    rate = (c.errors + 1) / (n + 2)
    # Both rates lean on the common one: a small matrix has few entries of a kind.
    p01 = (c.false + 10 * rate) / (c.hit + c.false + 10)
    p10 = (c.missed + 10 * rate) / (c.missed + c.empty + 10)
    p01, p10 = max(p01, 0.5 / n), max(p10, 0.5 / n)
    noise = Noise(min(fixed.p01 or p01, 0.999), min(fixed.p10 or p10, 0.999))
    densities = []
    for bits, p in ((factors.S, fixed.p_S), (factors.W, fixed.p_W)):
        ones, size = bits.sum(axis=0), len(bits)
        if p is not None:
            density = np.full(factors.rank, p)
        elif shared:
            density = np.full(factors.rank, (ones.sum() + 1) / (bits.size + 2))
        else:
            density = (ones + 1) / (size + 2)
        densities.append(on_grid(logit(density)))
    return Parameters(noise, *densities)


@entry
def _pass(E: Any, S: Any, columns: Any, prior: Any, beta: Any, draws: Any) -> int:
    """One Gibbs pass over the bits of S given W (`columns`: W transposed, as numbers).

    The log-odds of a bit are its prior plus the evidence of the entries that only it could
    switch on.  `beta` is the inverse temperature; with beta = 0 bits take their better value.
    Sums below 4,096 are exact, and what is drawn is double precision: no rounding decides.
    """
    n_rows, F = S.shape
    n_columns = columns.shape[1]
    cover = np.empty(n_columns, np.float32)
    half = np.float32(0.5)
    zero = np.float32(0)
    changed = 0
    for n in range(n_rows):
        e = E[n]
        cover[:] = zero
        for f in range(F):
            if S[n, f]:
                w = columns[f]
                for m in range(n_columns):
                    cover[m] += w[m]
        for f in range(F):
            w = columns[f]
            own = np.float32(S[n, f])
            odds = zero
            for m in range(n_columns):
                odds += w[m] * e[m] if cover[m] - own * w[m] < half else zero
            odds += prior[f]
            if beta == 0:
                bit = 1 if odds > 0 else 0
            else:
                bit = 1 if draws[n, f] * (1 + math.exp(-beta * odds)) < 1 else 0
            if bit != S[n, f]:
                S[n, f] = bit
                changed += 1
                sign = np.float32(2 * bit - 1)
                for m in range(n_columns):
                    cover[m] += sign * w[m]
    return changed


class Sampler:
    """Sweeps over all bits of both factors, in place."""

    def __init__(self, table: Table, rng: np.random.Generator) -> None:
        self.table = table
        self.rng = rng
        self._noise: Noise | None = None
        self._E = self._ET = np.empty((0, 0), np.float32)

    def sweep(self, factors: Factors, parameters: Parameters, beta: float) -> int:
        """One pass over S, one over W; the number of bits that changed."""
        if parameters.noise != self._noise:
            self.set_evidence(self.table.evidence(parameters.noise))
            self._noise = parameters.noise
        changed = self._half(self._E, factors.S, factors.W, parameters.prior_S, beta)
        return changed + self._half(self._ET, factors.W, factors.S, parameters.prior_W, beta)

    def set_evidence(self, evidence: FloatArray) -> None:
        """Use this evidence until the next sweep with other noise."""
        self._E = np.ascontiguousarray(evidence)
        self._ET = np.ascontiguousarray(evidence.T)

    def climb(self, factors: Factors, parameters: Parameters, sweeps: int) -> None:
        """Set bits to their better values until none changes."""
        for _ in range(sweeps):
            if not self.sweep(factors, parameters, 0.0):
                break

    def climb_towards(self, factors: Factors, evidence: FloatArray, sweeps: int) -> None:
        """Climb on other evidence than the table's, without priors."""
        self._noise = Noise(0.25, 0.25)  # any: marks the table's evidence as replaced below
        self.set_evidence(evidence)
        flat = np.zeros(factors.rank, np.float32)
        self.climb(factors, Parameters(self._noise, flat, flat), sweeps)
        self._noise = None

    def _half(self, E: FloatArray, bits: Bits, given: Bits, prior: FloatArray, beta: float) -> int:
        draws = self.rng.random(bits.shape)
        columns = np.ascontiguousarray(given.T, dtype=np.float32)
        return int(_pass(E, bits, columns, prior, beta, draws))
