"""Gibbs sampling of the bits of both factors."""

from __future__ import annotations

import math

import numpy as np

from hcnet.engine.cpu_compilation import entry
from hcnet.factorization.binary_factors import Bits, Factors, Parameters, Table
from hcnet.images import FloatArray, Noise


@entry
def _sample_rows(E, S, columns, prior, beta, draws):
    """One Gibbs pass over the bits of S given W (`columns`: W transposed, as numbers).

    The log-odds of a bit are its prior plus the evidence of the entries that only it could
    switch on.  `beta` is the inverse temperature; with beta = 0 each bit takes its better value.
    Sums below 4,096 are exact, and draws are double precision, so that rounding decides nothing.
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
        self._noise: Noise | None = None  # the noise that the evidence below is for
        self._E = self._ET = np.empty((0, 0), np.float32)

    def sweep(self, factors: Factors, parameters: Parameters, beta: float) -> int:
        """One pass over S, one over W; the number of bits that changed."""
        if parameters.noise != self._noise:
            self._set_evidence(self.table.evidence(parameters.noise))
            self._noise = parameters.noise
        return self._sweep(factors, parameters.prior_S, parameters.prior_W, beta)

    def climb(self, factors: Factors, parameters: Parameters, sweeps: int) -> None:
        """Set bits to their better values until none changes."""
        for _ in range(sweeps):
            if not self.sweep(factors, parameters, 0.0):
                break

    def climb_towards(self, factors: Factors, evidence: FloatArray, sweeps: int) -> None:
        """Climb on other evidence than that of the table, without priors."""
        self._set_evidence(evidence)
        self._noise = None
        flat = np.zeros(factors.rank, np.float32)
        for _ in range(sweeps):
            if not self._sweep(factors, flat, flat, 0.0):
                break

    def _set_evidence(self, evidence: FloatArray) -> None:
        self._E = np.ascontiguousarray(evidence)
        self._ET = np.ascontiguousarray(evidence.T)

    def _sweep(
        self, factors: Factors, prior_S: FloatArray, prior_W: FloatArray, beta: float
    ) -> int:
        changed = self._sample(self._E, factors.S, factors.W, prior_S, beta)
        return changed + self._sample(self._ET, factors.W, factors.S, prior_W, beta)

    def _sample(
        self, E: FloatArray, bits: Bits, given: Bits, prior: FloatArray, beta: float
    ) -> int:
        draws = self.rng.random(bits.shape)
        columns = np.ascontiguousarray(given.T, dtype=np.float32)
        return int(_sample_rows(E, bits, columns, prior, beta, draws))
