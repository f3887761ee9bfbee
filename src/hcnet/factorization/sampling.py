"""Gibbs sampling of both factors: annealing, and the posterior mean (processes of the driver)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.cpu_compilation import entry
from hcnet.engine.driver import Measurement, look
from hcnet.factorization.binary_factors import (
    Factors,
    Parameters,
    Table,
    estimate_parameters,
    marginal_log_joint,
)
from hcnet.grid import on_grid
from hcnet.images import FloatArray, Noise
from hcnet.objective import Priors

# Sweeps of annealing, in which the evidence of an entry rises from hardly any to more than noise
# worth modelling leaves.  30 sweeps are too few, 300 never failed.
SWEEPS = 300
FIRST, LAST = 0.05, 5.0
# Sweeps at estimated parameters after annealing, which undo what was fitted to the noise.
RELAX = 60
# Sweeps between two estimates of the parameters.
REFRESH = 3


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
        self._noise: Noise | None = None
        self._evidence: list[FloatArray] = []  # for this noise

    def sweep(self, factors: Factors, parameters: Parameters, beta: float) -> int:
        """One pass over S, one over W; the number of bits that changed."""
        if parameters.noise != self._noise:
            self._noise = parameters.noise
            self._evidence = _both_ways(self.table.evidence(parameters.noise))
        priors = [parameters.prior_S, parameters.prior_W]
        return self._sweep(factors, self._evidence, priors, beta)

    def climb(self, factors: Factors, parameters: Parameters, sweeps: int) -> None:
        """Set bits to their better values until none changes."""
        for _ in range(sweeps):
            if not self.sweep(factors, parameters, 0.0):
                break

    def climb_towards(self, factors: Factors, evidence: FloatArray, sweeps: int) -> None:
        """Climb on other evidence than that of the table, without priors."""
        both, flat = _both_ways(evidence), np.zeros(factors.rank, np.float32)
        for _ in range(sweeps):
            if not self._sweep(factors, both, [flat, flat], 0.0):
                break

    def _sweep(
        self, factors: Factors, evidence: list[FloatArray], priors: list[FloatArray], beta: float
    ) -> int:
        changed, pairs = 0, [(factors.S, factors.W), (factors.W, factors.S)]
        for (bits, given), E, prior in zip(pairs, evidence, priors, strict=True):
            look()
            draws = self.rng.random(bits.shape)
            columns = np.ascontiguousarray(given.T, dtype=np.float32)
            changed += int(_sample_rows(E, bits, columns, prior, beta, draws))
        return changed


def _both_ways(evidence: FloatArray) -> list[FloatArray]:
    """Evidence by rows, for the bits of S, and by columns, for those of W."""
    return [np.ascontiguousarray(evidence), np.ascontiguousarray(evidence.T)]


class Annealing(Stateful):
    """From random factors to a good state; a step is one sweep."""

    total = SWEEPS + RELAX + 1  # steps

    def __init__(self, table: Table, rank: int, fixed: Priors, rng: np.random.Generator) -> None:
        self._table, self._fixed, self._rng = table, fixed, rng
        self._sampler = Sampler(table, rng)
        ones = table.on.sum() / max(int(table.observed.sum()), 1)
        p = np.sqrt(1 - (1 - float(np.clip(ones, 0.02, 0.98))) ** (1 / rank))
        rows, columns = table.shape
        self.factors = Factors(
            (rng.random((rows, rank)) < (fixed.p_S or p)).astype(np.int8),
            (rng.random((columns, rank)) < (fixed.p_W or p)).astype(np.int8),
        )
        self._prior = np.full(rank, logit(p))
        last = LAST
        if fixed.p01 is not None and fixed.p10 is not None:
            error = max((fixed.p01 + fixed.p10) / 2, 1e-3)
            last = -float(logit(error))
        self._evidence = np.geomspace(FIRST, last, SWEEPS)
        self._parameters: Parameters | None = None
        self._done = 0

    def step(self) -> bool:
        """One sweep; the last step climbs to a maximum."""
        k = self._done
        self._done += 1
        if k < SWEEPS:
            # Log-odds are ±β for evidence of 1 at inverse temperature β, and those of the prior.
            beta = float(self._evidence[k])
            unit = 1 / (1 + np.e)
            prior = on_grid(self._prior / beta)
            self._sampler.sweep(self.factors, Parameters(Noise(unit, unit), prior, prior), beta)
            return True
        if k < SWEEPS + RELAX:
            if (k - SWEEPS) % REFRESH == 0 or self._parameters is None:
                self._parameters = estimate_parameters(
                    self.factors, self._table, self._fixed, shared=False
                )
            self._sampler.sweep(self.factors, self._parameters, 1.0)
            return True
        climb_to_maximum(self.factors, self._sampler, self._fixed)
        return False

    def saved_fields(self, finished: bool) -> Fields:
        """The factors, the parameters, and the number of steps."""
        parameters = kinds.optional(Parameters.kind(self.factors.rank))
        return {
            "_rng": kinds.generator(),
            "_done": kinds.whole_number(),
            "factors": self.factors.kind,
            "_parameters": kinds.constant(None) if finished else parameters,
        }

    @property
    def saved_best(self) -> Kind:
        """Factors."""
        return self.factors.kind

    def measure(self) -> Measurement:
        """Joint log-probability, parameters integrated out."""
        return Measurement(marginal_log_joint(self.factors, self._table))

    def state(self) -> Factors:
        """A copy of the factors."""
        return self.factors.copy()


def climb_to_maximum(factors: Factors, sampler: Sampler, fixed: Priors, rounds: int = 3) -> None:
    """Climb and estimate the parameters in turn until no bit changes."""
    for _ in range(rounds):
        before = factors.copy()
        parameters = estimate_parameters(factors, sampler.table, fixed, shared=False)
        sampler.climb(factors, parameters, 10)
        if np.array_equal(before.S, factors.S) and np.array_equal(before.W, factors.W):
            break


class PosteriorMean(Stateful):
    """The mean of the noise-free table over samples of the factors; a step is one sweep."""

    def __init__(
        self,
        start: Factors,
        table: Table,
        fixed: Priors,
        shared: bool,
        rng: np.random.Generator,
        sweeps: int = SWEEPS,
    ) -> None:
        self._table, self._fixed, self._shared, self._rng = table, fixed, shared, rng
        self._sampler = Sampler(table, rng)
        self._factors = start.copy()
        self._burn_in = sweeps // 5
        self.total = self._burn_in + sweeps
        # The product of the factors costs more than a sweep if the table is large.
        self._every = max(1, table.values.size // 200_000)
        self._sum = np.zeros(table.shape, np.float32)
        self._votes_S, self._votes_W = np.zeros(start.S.shape), np.zeros(start.W.shape)
        self.n_samples = self._done = 0
        self._parameters = estimate_parameters(start, table, fixed, shared)

    def step(self) -> bool:
        """One sweep."""
        if self._done % REFRESH == 0:
            self._parameters = estimate_parameters(
                self._factors, self._table, self._fixed, self._shared
            )
        self._sampler.sweep(self._factors, self._parameters, 1.0)
        if self._done >= self._burn_in and self._done % self._every == 0:
            self._sum += self._factors.product()
            self._votes_S += self._factors.S
            self._votes_W += self._factors.W
            self.n_samples += 1
        self._done += 1
        return self._done < self.total

    def saved_fields(self, finished: bool) -> Fields:
        """The sample, and the sums over all of them."""
        return {
            "_rng": kinds.generator(),
            "_done": kinds.whole_number(),
            "n_samples": kinds.whole_number(),
            "_sum": kinds.array_in_place(),
            "_votes_S": kinds.array_in_place(),
            "_votes_W": kinds.array_in_place(),
            "_factors": self._factors.kind,
            "_parameters": Parameters.kind(self._factors.rank),
        }

    @property
    def saved_best(self) -> Kind:
        """The process itself."""
        return kinds.constant(self)

    def measure(self) -> Measurement:
        """The number of samples: the more, the better."""
        return Measurement(float(self.n_samples))

    def state(self) -> PosteriorMean:
        """The process itself: its mean includes all samples so far."""
        return self

    @property
    def mean(self) -> FloatArray:
        """Posterior probability that an entry of the noise-free table is on, on the grid."""
        n = max(self.n_samples, 1)
        return np.asarray(on_grid(np.arange(n + 1) / n)[self._sum.astype(np.intp)])

    @property
    def vote(self) -> Factors:
        """Every bit by majority over the samples."""
        votes = self._votes_S, self._votes_W
        S, W = (np.asarray(2 * v > self.n_samples, dtype=np.int8) for v in votes)
        return Factors(S, W)


def project(mean: FloatArray, starts: list[Factors], sampler: Sampler) -> Factors:
    """Binary factors with the fewest expected wrong entries under the posterior mean."""
    evidence = 2 * mean - 1
    best, least = starts[0], -np.inf
    for start in starts:
        factors = start.copy()
        sampler.climb_towards(factors, evidence, 50)
        agreement = float((evidence * factors.product()).sum(dtype=np.double))
        if agreement > least:
            best, least = factors, agreement
    return best
