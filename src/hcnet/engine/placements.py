"""Message passing over placements alone, the features being known.

With W decided, ANDs are wires or gaps: the factor of a pixel is an OR of the placements that
cover it.  Only placements that fit their pixels at all (`Feature.candidates`) become
variables, which leaves about 1 % of the graph; the rest could pay for themselves only where
other placements already cover the off pixels below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logit

from hcnet.engine.cpu_compilation import compiled, entry, in_pieces
from hcnet.engine.driver import Limits, Measurement, Outcome, run
from hcnet.grid import FLOAT, on_grid, tree_share
from hcnet.objective import Priors
from hcnet.solutions import kernels
from hcnet.solutions.explanation import Explanation, Feature, concatenate_offsets
from hcnet.solutions.improver import Improver

_or_messages, _damped, _TO_STEPS = compiled.or_messages, compiled.damped, compiled.TO_STEPS


@entry
def _list_candidates(positions, features, offsets, starts, geometry, sign, following, members):
    """Write the number of each candidate into the lists of the observed pixels below it.

    `following` is where the next of each pixel goes.  Without `members`, it only counts.
    """
    for z in range(positions.size):
        f = features[z]
        i, r, c = kernels.locate(positions[z], geometry)
        base = i * geometry[0] + r * geometry[1] + c
        for q in range(starts[f], starts[f + 1]):
            pixel = base + offsets[q]
            if sign[pixel] != 0:
                if members.size:
                    members[following[pixel]] = z
                following[pixel] += 1


@in_pieces
def _sweep(first, last, order, begin, members, evidence, belief, messages, damping):
    longest = 0
    for q in range(first, last):
        longest = max(longest, begin[order[q] + 1] - begin[order[q]])
    t = np.empty(longest, FLOAT)
    for q in range(first, last):
        k = order[q]
        a = begin[k]
        n = begin[k + 1] - a
        for j in range(n):
            t[j] = belief[members[a + j]] - messages[a + j]
        _or_messages(evidence[k], t, n)
        for j in range(n):
            new = _damped(messages[a + j], t[j], damping, _TO_STEPS)
            belief[members[a + j]] += new - messages[a + j]
            messages[a + j] = new


SWEEPS = 30
DAMPING = tree_share(0.8)
PATIENCE = 8  # sweeps without a better joint log-probability


def infer_placements(
    features: Sequence[Feature], improver: Improver, priors: Priors, rng: np.random.Generator
) -> Outcome[Explanation]:
    """The most probable placements of known features that message passing comes by."""
    process = PlacementPassing(features, improver, priors, rng)
    return run(process, Limits(max_iter=SWEEPS, patience=PATIENCE))


def placement_memory(features: Sequence[Feature]) -> int:
    """Bytes that message passing over the placements of known features takes at most.

    A message and the number of its placement for every pixel below a candidate; for a candidate
    where it is, whose, how it fits, and what is believed of it now and was before.
    """
    return sum(
        len(feature.candidates.positions) * (8 * feature.offsets.size + 48) for feature in features
    )


class PlacementPassing:
    """A process for the driver: infer placements of known features by MPMP."""

    def __init__(
        self,
        features: Sequence[Feature],
        improver: Improver,
        priors: Priors,
        rng: np.random.Generator,
    ) -> None:
        assert priors.p_S is not None
        self._features = features
        self._improver = improver
        self._rng = rng
        canvas = improver.canvas
        sign = canvas.sign.reshape(-1)
        found = [feature.candidates.positions for feature in features]
        self._positions = np.concatenate([*found, np.empty(0, np.int64)])
        self._owners = np.repeat(np.arange(len(features)), [len(x) for x in found])
        below = *concatenate_offsets(features), canvas.geometry, sign
        counts = np.zeros(sign.size, np.int64)
        _list_candidates(self._positions, self._owners, *below, counts, np.empty(0, np.int32))
        self._begin = np.concatenate([[0], np.cumsum(counts)])
        self._members = np.empty(self._begin[-1], np.int32)
        following = self._begin[:-1].copy()
        _list_candidates(self._positions, self._owners, *below, following, self._members)
        self._pixels = np.flatnonzero(np.diff(self._begin))
        noise = priors.noise
        self._evidence = np.where(sign > 0, *on_grid([noise.k1, noise.k0]))
        self._belief = np.full(len(self._positions), on_grid(logit(priors.p_S)))
        self._messages = np.zeros(len(self._members), FLOAT)
        self._change = math.inf
        self._now = self._decode()

    def step(self) -> bool:
        """One sweep over all pixels in random order."""
        before = self._belief.copy()
        order = self._rng.permutation(self._pixels)
        fixed = self._begin, self._members, self._evidence
        _sweep(len(order), order, *fixed, self._belief, self._messages, FLOAT(DAMPING))
        self._change = float(np.abs(self._belief - before).max(initial=0.0))
        self._now = self._decode()
        return True

    def measure(self) -> Measurement:
        """Joint log-probability of the decoded placements."""
        return Measurement(-self._now.bits * math.log(2), 0, self._change)

    def state(self) -> Explanation:
        """The decoded placements."""
        return self._now

    def _decode(self) -> Explanation:
        on = np.flatnonzero(self._belief > 0)
        locate = kernels.locate.py_func  # of many at once
        i, r, c = locate(self._positions[on], self._improver.canvas.geometry)
        placements = np.stack([i, self._owners[on], r, c], axis=1).astype(np.int64)
        return self._improver.evaluate(self._features, placements, prune=False)
