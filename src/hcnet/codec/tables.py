"""Tables of the pixel model, in whole numbers that are the same on every machine.

Logarithms and exponentials are those of `decimal`, which rounds correctly everywhere; those of
a machine's mathematical library may differ in the last digit.

Units: a probability is a whole number of 65536ths, an evidence log(p / (1 - p)) of 256ths.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import cache
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Largest evidence of an input, and of a mixture.
INPUT, MIXTURE = 2047, 2800
# Bits of a probability by which evidence is looked up.
FINE = 12
# Most pixels that a context counts: later ones then weigh as much as earlier ones.
LIMIT = 250
# Confidence in an input, by how often its context was seen.
CONFIDENCES = 10
# How the pixels that an earlier copy has missed lower its weight: by exp(-0.5) each, in 16ths.
STEPS, MISS = 16, Decimal("0.5")
FAR = 20 * STEPS

_context = Context(prec=30)


class Tables(NamedTuple):
    """Tables for compiled code."""

    evidence: NDArray[np.int16]  # by probability
    probability: NDArray[np.uint16]  # by evidence + MIXTURE
    share: NDArray[np.int32]  # of the way to a new pixel, by how many were seen
    confidence: NDArray[np.int8]  # by how many were seen
    rate: NDArray[np.int16]  # of learning weights, by how often they were used
    weight: NDArray[np.int32]  # of an earlier copy, by the pixels it missed more than the best
    digits: NDArray[np.int8]  # of a number in binary, up to 15
    ones: NDArray[np.int8]  # among the digits of a number below 128


@cache
def tables() -> Tables:
    """All tables."""
    half = Decimal("0.5")
    ps = [(i + half) / (1 << FINE) for i in range(1 << FINE)]
    evidence = [int((256 * _context.ln(p / (1 - p))).to_integral_value()) for p in ps]
    probability = []
    for x in range(-MIXTURE, MIXTURE + 1):
        p = 65536 / (1 + _context.exp(Decimal(-x) / 256))
        probability.append(min(max(int(p.to_integral_value()), 1), 65535))
    share = [(1 << 16) * 10 // (10 * n + 14) for n in range(LIMIT + 1)]
    confidence = [0, *(min(n.bit_length() + 1, CONFIDENCES - 1) for n in range(1, 256))]
    # 0.03 at first, falling with the root of the number of uses to 0.004.
    rate = [max(262, 1966 * 1000 // isqrt(1_000_000 + 20_000 * n)) for n in range(3000)]
    weight = [
        int((65536 * _context.exp(-MISS * i / STEPS)).to_integral_value()) for i in range(FAR)
    ]
    digits = [min(n.bit_length(), 15) for n in range(1 << 15)]
    return Tables(
        np.clip(evidence, -INPUT, INPUT).astype(np.int16),
        np.array(probability, np.uint16),
        np.array(share, np.int32),
        np.array(confidence, np.int8),
        np.array(rate, np.int16),
        np.array(weight, np.int32),
        np.array(digits, np.int8),
        np.array([n.bit_count() for n in range(128)], np.int8),
    )
