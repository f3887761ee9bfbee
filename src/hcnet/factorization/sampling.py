"""Gibbs sampling of both factors: annealing, and the posterior mean (processes of the driver)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import Measurement, look
from hcnet.factorization.binary_factors import (
    Bits,
    Factors,
    Parameters,
    Table,
    estimate_parameters,
    marginal_log_joint,
)
from hcnet.factorization.packed import SparseTable, packed_bits
from hcnet.factorization.probability_kernels import sample
from hcnet.grid import on_grid
from hcnet.images import Noise
from hcnet.objective import Priors

# Sweeps of annealing, in which the evidence of an entry rises from hardly any to more than noise
# worth modelling leaves.  30 sweeps are too few, 300 never failed.
SWEEPS = 300
FIRST, LAST = 0.05, 5.0
# Sweeps at estimated parameters after annealing, which undo what was fitted to the noise.
RELAX = 60
# Sweeps between two estimates of the parameters.
REFRESH = 3
# Nanoseconds of a sweep for each word of the table and component, about, and seconds for the
# posterior mean: the number of sweeps follows, and never the clock.
SWEEP_COST, MEAN_SECONDS, LEAST_SWEEPS = 12.0, 2.0, 60
# Codes of all rows take at most so many passes.
CODING = 20
# Noise with which each entry is evidence of 1.
UNIT = Noise(1 / (1 + np.e), 1 / (1 + np.e))


class Sampler:
    """Sweeps over all bits of both factors, in place."""

    def __init__(self, table: Table | SparseTable, rng: np.random.Generator) -> None:
        self.table = table
        self.rng = rng

    def sweep(self, factors: Factors, parameters: Parameters, beta: float) -> int:
        """One pass over S, one over W; the number of bits that changed."""
        changed = self.code(factors, parameters, beta)
        bits, evidence = self.table.packed, self._evidence(parameters)
        look()
        draws = self.rng.random(factors.W.shape)
        S, prior = packed_bits(factors.S.T), parameters.prior_W
        return changed + int(
            sample(bits.on_T, bits.off_T, factors.W, S, evidence, prior, beta, draws)
        )

    def code(self, factors: Factors, parameters: Parameters, beta: float) -> int:
        """One pass over S alone."""
        bits, evidence = self.table.packed, self._evidence(parameters)
        look()
        draws = self.rng.random(factors.S.shape)
        W, prior = packed_bits(factors.W.T), parameters.prior_S
        return int(sample(bits.on, bits.off, factors.S, W, evidence, prior, beta, draws))

    def _evidence(self, parameters: Parameters) -> NDArray[np.double]:
        return parameters.evidence * self.table.packed.step

    def climb(self, factors: Factors, parameters: Parameters, sweeps: int) -> None:
        """Set bits to their better values until none changes."""
        for _ in range(sweeps):
            if not self.sweep(factors, parameters, 0.0):
                break


class Annealing(Stateful):
    """From random factors to a good state; a step is one sweep."""

    total = SWEEPS + RELAX + 1  # steps

    def __init__(
        self, table: Table | SparseTable, rank: int, fixed: Priors, rng: np.random.Generator
    ) -> None:
        self._table, self._fixed, self._rng = table, fixed, rng
        self._sampler = Sampler(table, rng)
        bits = table.packed
        ones = bits.n_ones / max(bits.n_ones + bits.n_zeros, 1)
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
            prior = on_grid(self._prior / beta)
            self._sampler.sweep(self.factors, Parameters(UNIT, prior, prior), beta)
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


def likely_codes(table: Table | SparseTable, W: Bits, parameters: Parameters) -> Bits:
    """The components of each row at given parameters, by passes until none changes."""
    factors = Factors.zeros(table, W.shape[1])
    factors.W[:] = W
    sampler = Sampler(table, np.random.default_rng(0))
    for _ in range(CODING):
        if not sampler.code(factors, parameters, 0.0):
            break
    return factors.S


class PosteriorMean(Stateful):
    """The mean of the noise-free table over samples of the factors; a step is one sweep."""

    def __init__(
        self,
        start: Factors,
        table: Table,
        fixed: Priors,
        shared: bool,
        rng: np.random.Generator,
        sweeps: int | None = None,
    ) -> None:
        self._table, self._fixed, self._shared, self._rng = table, fixed, shared, rng
        self._sampler = Sampler(table, rng)
        self._factors = start.copy()
        if sweeps is None:
            bits = table.packed
            cost = SWEEP_COST * max(start.rank, 1) * (bits.on.size + bits.on_T.size)
            sweeps = int(np.clip(MEAN_SECONDS * 1e9 / cost, LEAST_SWEEPS, SWEEPS))
        self._burn_in = sweeps // 5
        self.total = self._burn_in + sweeps
        # The product of the factors costs more than a sweep if the table is large.
        self._every = max(1, table.values.size // 200_000)
        self._sum = np.zeros(table.shape, np.int16)
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
    def majority(self) -> Table:
        """The noise-free table by majority; an entry weighs by how many samples agree on it."""
        votes = 2 * self._sum - self.n_samples
        return Table(votes > 0, np.ones(votes.shape, bool), np.abs(votes))

    @property
    def vote(self) -> Factors:
        """Every bit by majority over the samples."""
        votes = self._votes_S, self._votes_W
        S, W = (np.asarray(2 * v > self.n_samples, dtype=np.int8) for v in votes)
        return Factors(S, W)


def project(majority: Table, starts: list[Factors], rng: np.random.Generator) -> Factors:
    """Binary factors with the fewest wrong entries of a majority."""
    sampler = Sampler(majority, rng)
    best, least = starts[0], np.inf
    for start in starts:
        factors, flat = start.copy(), np.zeros(start.rank, np.float32)
        sampler.climb(factors, Parameters(UNIT, flat, flat), 50)
        wrong = factors.counts(majority).errors
        if wrong < least:
            best, least = factors, wrong
    return best
