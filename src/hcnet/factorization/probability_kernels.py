"""Compiled passes over the bits of factors at given parameters; tables and factors are bits."""

from __future__ import annotations

import math

import numpy as np

from hcnet.engine.cpu_compilation import entry
from hcnet.factorization.error_kernels import ZERO, ones


@entry
def sample(on, off, bits, given, evidence, prior, beta, draws):
    """One Gibbs pass over the bits of a side, `given` the other's; how many changed.

    The log-odds of a bit are its prior plus the `evidence` (of an entry that is on, and off) of
    the entries that only it could switch on.  `beta` is the inverse temperature; with beta = 0
    each bit takes its better value.
    """
    n_rows, planes, n_words = on.shape
    rank = given.shape[0]
    after = np.zeros((rank + 1, n_words), np.uint64)
    before = np.zeros(n_words, np.uint64)
    changed = 0
    for n in range(n_rows):
        for f in range(rank - 1, -1, -1):
            for w in range(n_words):
                after[f, w] = after[f + 1, w] | (given[f, w] if bits[n, f] else ZERO)
        before[:] = ZERO
        for f in range(rank):
            hit, false = 0, 0
            for w in range(n_words):
                own = given[f, w] & ~(before[w] | after[f + 1, w])
                for p in range(planes):
                    hit += ones(own & on[n, p, w]) << p
                    false += ones(own & off[n, p, w]) << p
            odds = evidence[0] * hit + evidence[1] * false + prior[f]
            if beta == 0:
                bit = 1 if odds > 0 else 0
            else:
                bit = 1 if draws[n, f] * (1 + math.exp(-beta * odds)) < 1 else 0
            if bit != bits[n, f]:
                bits[n, f] = bit
                changed += 1
            if bit:
                for w in range(n_words):
                    before[w] |= given[f, w]
    return changed
