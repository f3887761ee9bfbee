"""NOCA with convolutional weight sharing, the paper's peer in Table 1.

Noisy-OR component analysis (Šingliar and Hauskrecht 2006): a pixel stays off if no part that
covers it switches it on.  With θ = -log(1-p) ≥ 0 for a weight p, and θ₀ for the leak,

    P(X=0 | S) = exp(-θ₀ - Σ_k θ_k s_k),        s_k ~ Bernoulli(π_f),

where k runs over the parents of the pixel: feature f, offset (i, j) in its window.  θ_k depends on
f and the offset alone, so the weights are shared by all positions.

**Bound.**  f(x) = log(1 - exp(-x)) is concave.  For shares q_k ≥ 0 of an on pixel, Σ_k q_k ≤ 1,
Jensen's inequality gives

    log P(X=1 | S) = f(θ₀ + Σ q_k·θ_k s_k/q_k) ≥ f(θ₀) + Σ_k s_k q_k [f(θ₀+θ_k/q_k) - f(θ₀)].

This is linear in S, as log P(X=0 | S) is.  So for known q the best posterior is a product of
Bernoullis with means μ, and all of it is found by one closed-form update:

    logit μ_k = logit π_f - Σ_(off pixels) θ + Σ_(on pixels) q_k [f(θ₀+θ_k/q_k) - f(θ₀)],

over the pixels below placement k.  The bound is the expectation of all the above under μ, plus
that of the prior, plus the entropy of μ.

**q.**  Each on pixel by itself maximises the concave Σ_k μ_k q_k [f(θ₀+θ_k/q_k) - f(θ₀)] on the
simplex.  At its maximum all μ_k·B(θ_k/q_k) with q_k > 0 are equal, B(t) = f(θ₀+t) - t·f'(θ₀+t) -
f(θ₀), which is the fixed point of q_k ∝ q_k·μ_k·B(θ_k/q_k).  Where θ_k/q_k is below about 2θ₀ an
update can overshoot: a pixel whose bound fell keeps the q it had.

**θ.**  For known q and μ the bound is a sum of concave functions of one weight each; Newton's
method with brackets finds where the slope -Σ_off μ + Σ_on μ·f'(θ₀+θ/q) is zero.  Likewise θ₀.
π_f is the mean of μ.

**Schedule**, as the paper found necessary: an E step is 10 rounds of 20 updates of q and one of the
posterior; the M step updates weights and q in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import expit, logit, xlogy

from benchmarks.baselines import noca_kernels as kernels
from hcnet.images import BoolArray

FloatArray = NDArray[np.float64]
Terms = tuple[FloatArray, FloatArray, FloatArray]  # value, slope, negative curvature

# The paper's numbers; of the M step it says only that there is an inner loop.  Three rounds: the
# weights are at their maximum after each, and the next E step starts with q again.
E_ROUNDS, Q_UPDATES, M_ROUNDS = 10, 20, 3
# θ of a weight: p from 1e-7, which a few thousand off pixels cannot tell from 0, to 1 - 1e-6.
LEAST_THETA, MOST_THETA = 1e-7, -np.log(1e-6)
# A leak below one pixel in 100,000 is none; above 1 it would switch on most of the image.
LEAST_LEAK, MOST_LEAK = 1e-5, 1.0
# Newton doubles the digits with every step once it is close, and rounds repeat it.
NEWTON_STEPS = 8


@dataclass
class Noca:
    """Parameters and variational posterior for images (n, H, W); windows may leave the image."""

    X: BoolArray
    theta: FloatArray  # (h, w, F), flipped: theta[h-1-i, w-1-j, f] belongs to offset (i, j)
    leak: float  # θ₀
    prior: FloatArray  # π per feature
    learn_leak: bool = True
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        h, w, F = self.theta.shape
        n, height, width = self.X.shape
        self.pixels = np.argwhere(self.X)
        self.posterior = np.empty((n, height + h - 1, width + w - 1, F))
        self.posterior[:] = self.prior
        self.q = np.zeros((len(self.pixels), h * w * F), np.float32)
        self.values = np.zeros(len(self.pixels))
        self.evidence = np.zeros_like(self.posterior)
        self._off = np.pad((~self.X).astype(float), ((0, 0), (h - 1, h - 1), (w - 1, w - 1)))

    # -- the three updates -----------------------------------------------------------------

    def update_q(self, n_updates: int = Q_UPDATES) -> None:
        """Share the on pixels out among their parents."""
        n, hs, ws, F = self.posterior.shape
        kernels.update_q(
            self.pixels,
            self.posterior.reshape(n, hs, ws * F),
            self.theta.reshape(len(self.theta), -1),
            self.leak,
            kernels.gain_table(self.leak),
            F,
            n_updates,
            self.q,
            self.evidence.reshape(n, hs, ws * F),
            self.values,
        )

    def update_posterior(self) -> None:
        """The best μ for known q, all of it at once."""
        self._judge(self.off_evidence())

    def _judge(self, off_evidence: FloatArray) -> None:
        self.posterior = expit(logit(self.prior) - off_evidence + self.evidence)

    def off_evidence(self) -> FloatArray:
        """Σ θ over the off pixels below every placement, like S."""
        return np.stack(
            [
                np.stack([fftconvolve(off, weights, "valid") for off in self._off])
                for weights in np.moveaxis(self.theta, 2, 0)
            ],
            axis=-1,
        ).clip(0.0)

    def update_weights(self) -> None:
        """θ for known q and μ, each at the maximum of its own concave part of the bound."""
        against = self._off_weights().ravel()
        pairs = self._pairs()

        def terms(theta: FloatArray) -> Terms:
            value, slope, bend = kernels.weight_terms(*pairs, theta, self.leak)
            return value - against * theta, slope - against, bend

        best = climb(terms, self.theta.ravel(), LEAST_THETA, MOST_THETA)
        self.theta = best.reshape(self.theta.shape)

    def update_leak(self) -> None:
        """θ₀ for known q, μ and θ, likewise."""
        n_on, n_off = len(self.pixels), self.X.size - len(self.pixels)
        pairs = self._pairs()

        def terms(leak: FloatArray) -> Terms:
            found = kernels.leak_terms(*pairs, self.theta.ravel(), leak[0], n_on)
            value, slope, bend = (np.array([number]) for number in found)
            return value - n_off * leak, slope - n_off, bend

        self.leak = float(climb(terms, np.array([self.leak]), LEAST_LEAK, MOST_LEAK)[0])

    def _pairs(self) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
        n, hs, ws, F = self.posterior.shape
        h, w, _ = self.theta.shape
        found: tuple[NDArray[np.int32], FloatArray, FloatArray] = kernels.shares(
            self.pixels, self.posterior.reshape(n, hs, ws * F), F, (h, w * F), self.q
        )
        return found

    def _off_weights(self) -> FloatArray:
        """Σ μ over the placements that put a weight on an off pixel, like θ."""
        total = np.zeros(self.theta.shape)
        for f in range(total.shape[2]):
            for off, mu in zip(self._off, self.posterior[..., f], strict=True):
                total[..., f] += fftconvolve(off, mu[::-1, ::-1], "valid")[::-1, ::-1]
        return total.clip(0.0)

    # -- expectation maximisation -----------------------------------------------------------

    def e_step(self) -> None:
        """10 rounds of 20 updates of q and one of the posterior."""
        off_evidence = self.off_evidence()  # depends on θ alone
        for _ in range(E_ROUNDS):
            self.update_q()
            self._judge(off_evidence)

    def m_step(self) -> None:
        """Weights, leak and prior, with q brought up to date in between."""
        F = self.posterior.shape[3]
        least = 0.5 / self.posterior[..., 0].size
        self.prior = self.posterior.reshape(-1, F).mean(axis=0).clip(least, 0.5)
        for _ in range(M_ROUNDS):
            self.update_q()
            self.update_weights()
            if self.learn_leak:
                self.update_leak()

    def bound(self) -> float:
        """The lower bound of log P(X), for μ, q and the parameters as they are."""
        self.update_q(0)
        mu = self.posterior
        n_off = self.X.size - len(self.pixels)
        prior = (mu * logit(self.prior) + np.log1p(-self.prior)).sum()
        entropy = -(xlogy(mu, mu) + xlogy(1 - mu, 1 - mu)).sum()
        off = -n_off * self.leak - (mu * self.off_evidence()).sum()
        return float(self.values.sum() + off + prior + entropy)

    def fit(
        self,
        max_iter: int,
        tolerance: float = 1e-4,
        report: Callable[[int, float], None] | None = None,
    ) -> Noca:
        """Expectation maximisation until the bound gains less than `tolerance` of itself."""
        for step in range(max_iter):
            self.e_step()
            self.m_step()
            self.history.append(self.bound())
            if report is not None:
                report(step, self.history[-1])
            if step and self.history[-1] - self.history[-2] < tolerance * abs(self.history[-1]):
                break
        return self

    @property
    def weights(self) -> FloatArray:
        """p: (F, h, w), not flipped."""
        return -np.expm1(-np.moveaxis(self.theta[::-1, ::-1], 2, 0))


def climb(
    terms: Callable[[FloatArray], Terms], start: FloatArray, low: float, high: float
) -> FloatArray:
    """Maximise many concave functions of one number each; `terms`: value, slope, -curvature.

    The slopes are convex and fall: to the left of the root Newton's steps approach it without
    passing it.  From the right they can jump too far, so brackets hold them.  What ends up lower
    than it began goes back.
    """
    x = start.clip(low, high)
    below, above = np.full_like(x, low), np.full_like(x, high)
    first = terms(x)[0]
    for _ in range(NEWTON_STEPS):
        _, slope, bend = terms(x)
        below, above = np.where(slope > 0, x, below), np.where(slope > 0, above, x)
        with np.errstate(all="ignore"):  # nobody pulls: no curvature either
            step = x + slope / bend
        inside = (step >= below) & (step <= above)
        x = np.where(inside, step, np.sqrt(below * above))
    return np.where(terms(x)[0] >= first, x, start)
