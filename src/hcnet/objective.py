"""What learning maximises: the joint log-probability, and the same as a code length.

With all four probabilities given, the code length in bits is ``-log2 p(X, S, W)``.  A
probability that is left open is put at its best value, which turns its term into the
encoding cost E of the paper's Table 1: n bits of which k are on cost n·H(k/n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hcnet.images import Images, Noise


@dataclass(frozen=True, slots=True)
class Priors:
    """The four parameters of the single-layer model; None where they are to be estimated."""

    p_S: float | None = None
    p_W: float | None = None
    p01: float | None = None
    p10: float | None = None

    @property
    def noise(self) -> Noise:
        """The noisy channel; only for priors without open parameters."""
        assert self.p01 is not None
        assert self.p10 is not None
        return Noise(self.p01, self.p10)

    def filled(self, other: Priors) -> Priors:
        """Take what is open here from `other`."""
        names = ("p_S", "p_W", "p01", "p10")
        return replace(self, **{n: getattr(other, n) for n in names if getattr(self, n) is None})


@dataclass(frozen=True, slots=True)
class Counts:
    """All that the joint probability depends on."""

    placed: int  # S on
    positions: int  # S
    weights_on: int
    weights: int
    hit: int  # X=1, R=1
    missed: int  # X=1, R=0
    false: int  # X=0, R=1
    empty: int  # X=0, R=0

    @property
    def errors(self) -> int:
        """Observed pixels that differ from the reconstruction."""
        return self.missed + self.false

    @property
    def observed(self) -> int:
        """Observed pixels."""
        return self.hit + self.missed + self.false + self.empty


def entropy_bits(on: int, n: int) -> float:
    """Cost of n bits of which `on` are on: n·H(on/n)."""
    if on <= 0 or on >= n:
        return 0.0
    p = on / n
    return -n * (p * math.log2(p) + (1 - p) * math.log2(1 - p))


def _bits(on: int, n: int, p: float | None) -> float:
    if p is None:
        return entropy_bits(on, n)
    return -(on * math.log2(p) + (n - on) * math.log1p(-p) / math.log(2))


def code_length(counts: Counts, priors: Priors) -> float:
    """Bits to transmit S, W and the errors; the lower, the more probable."""
    c = counts
    bits = _bits(c.placed, c.positions, priors.p_S) + _bits(c.weights_on, c.weights, priors.p_W)
    if priors.p01 is None and priors.p10 is None:
        # The paper's E(X - R): one error rate for both kinds of pixels.  It is below one half in
        # the model: otherwise no parts and nothing but errors would be the best code of a dense
        # image.
        rate = 0.5 if 2 * c.errors > c.observed else None
        return bits + _bits(c.errors, c.observed, rate)
    bits += _bits(c.false, c.hit + c.false, priors.p01)
    return bits + _bits(c.missed, c.missed + c.empty, priors.p10)


def log_joint(counts: Counts, priors: Priors) -> float:
    """Joint log-probability log p(X, S, W), natural logarithm."""
    return -code_length(counts, priors) * math.log(2)


def estimate(counts: Counts, open_priors: Priors, least_noise: float | None = None) -> Priors:
    """The best value of every open parameter, kept off 0 and 1 by one pseudo-count.

    Densities and the error rate also stay within what a search can work with.  `least_noise`
    keeps the error rate up while it is still far from a solution.
    """
    c = counts
    n = max(c.observed, 1)
    low = max(1 / n, least_noise or 0.0)
    errors = min(max((c.errors + 1) / (n + 2), low), 0.45)
    return open_priors.filled(
        Priors(
            p_S=min((c.placed + 1) / (c.positions + 2), 0.5),
            p_W=min(max((c.weights_on + 1) / (c.weights + 2), 0.02), 0.6),
            p01=errors,
            p10=errors,
        )
    )


def image_bits(images: Images) -> float:
    """E(X): what transmitting the observed pixels directly costs."""
    on = int((images.pixels & images.observed).sum())
    return entropy_bits(on, images.n_observed)


def compression_ratio(counts: Counts, images: Images) -> float:
    """(E(S) + E(W) + E(X-R)) / E(X), the paper's Table 1: below 1 the parts save bits.

    Images that cost nothing (all pixels alike) cannot be compressed: 1, or infinity if parts
    are spent on them.
    """
    bits, plain = code_length(counts, Priors()), image_bits(images)
    if plain > 0:
        return bits / plain
    return 1.0 if bits == 0 else math.inf
