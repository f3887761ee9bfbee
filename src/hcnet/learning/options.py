"""What can be chosen about learning, with its defaults, in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scipy.special import logit

from hcnet.engine.engines import ReadyEngine
from hcnet.names import ALGORITHMS as ALGORITHMS
from hcnet.names import Algorithm as Algorithm
from hcnet.objective import Priors

# Features that message passing starts with where the number is left open.
AUTO_FEATURES = 16
# Pixels × weights that all starts of a fit may have together where their number is left open.
RESTART_WORK = 4_000_000
MOST_RESTARTS = 8
# Sweeps of message passing: as an algorithm of its own, and as the start of a refinement.
MPMP_SWEEPS = 50
START_SWEEPS = 10
# It is over when so many sweeps have not made the decoded state more probable.
MPMP_PATIENCE = 15

# Max-product is scale-free: only the ratios of evidence and priors matter.  With the noise at
# 1e-6 the evidence of a pixel is 13.8; a placement must then outweigh so many pixels, and a
# weight's prior is so probable.  The first pair is the start of a refinement.
NOISE = 1e-6
PIXELS_PER_PLACEMENT = (2.5, 6.0)
WEIGHT_DENSITIES = (0.4, 0.2)
# A placement must not have to outweigh more pixels than a small feature has.
MOST_OF_A_FEATURE = 0.8
# log of the smallest float, about: beyond, exp() overflows and p_S would be 0.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class LearningOptions:
    """How to learn."""

    algorithm: Algorithm = "refined"
    engine: ReadyEngine = field(default_factory=ReadyEngine)
    n_init: int | None = None
    max_iter: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None

    @property
    def sweeps(self) -> int:
        """Sweeps of message passing per start."""
        if self.max_iter is not None:
            return self.max_iter
        return MPMP_SWEEPS if self.algorithm == "mpmp" else START_SWEEPS


def restarts(options: LearningOptions, pixels: int, feature_pixels: int) -> int:
    """How many starts: as told, or more the smaller the problem is.

    A small image has few placements to tell solutions apart, and a fit takes no time: alone,
    one in four starts on the two bars ends beside the optimum.
    """
    if options.n_init is not None:
        return options.n_init
    if options.algorithm == "mpmp":
        return 1
    return int(min(max(RESTART_WORK // max(pixels * feature_pixels, 1), 1), MOST_RESTARTS))


def starting_priors(open_priors: Priors, feature_pixels: int) -> list[Priors]:
    """Complete priors to pass messages with, the most useful first.

    What the user gave stays; the rest is the grid that the paper searches, too.
    """
    known = open_priors.filled(Priors(p01=NOISE, p10=NOISE))
    evidence = known.noise.k1
    costs = [
        min(pixels, MOST_OF_A_FEATURE * feature_pixels) * evidence
        for pixels in PIXELS_PER_PLACEMENT
    ]
    grid = [
        known.filled(Priors(p_S=1 / (1 + math.exp(min(cost, LARGEST_EXPONENT))), p_W=density))
        for density in WEIGHT_DENSITIES
        for cost in costs
    ]
    return list(dict.fromkeys(grid))


def dead_start(priors: Priors, feature_pixels: int) -> str | None:
    """Say why nothing can be learned from these priors, if that is so."""
    assert priors.p_S is not None
    assert priors.p_W is not None
    evidence = priors.noise.k1
    if evidence + logit(priors.p_W) <= 0:
        return (
            f"Nothing can be learned with p_W={priors.p_W:g} and p10={priors.p10:g}: the "
            f"evidence of an on pixel, log((1-p01)/p10)={evidence:.2f}, cannot outweigh the "
            f"prior of a weight, logit(p_W)={logit(priors.p_W):.2f}; raise p_W or lower p10."
        )
    if feature_pixels * evidence + logit(priors.p_S) <= 0:
        return (
            f"Nothing can be learned with p_S={priors.p_S:g}: even a feature with all its "
            f"{feature_pixels} pixels on cannot outweigh the prior of its placement, "
            f"logit(p_S)={logit(priors.p_S):.1f}; raise p_S or lower p01 and p10."
        )
    return None
