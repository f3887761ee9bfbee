"""Belief-based message passing from its definition: plain loops over the factor functions."""

from __future__ import annotations

import numpy as np

from hcnet.engine.beliefs.layer_near_ink import BLOCKS, BLOCKS_PER_TURN, in_blocks
from hcnet.engine.dense import DensePassing
from hcnet.engine.reference import ReferenceEngine
from hcnet.factors import and_up
from hcnet.messages import trees_of


class Definition:
    """Trees with ink by the reference engine; what the others say is added up one by one."""

    def __init__(self, layer, ink, evidence, placement_prior, weight_prior, rng):
        self.layer, self.ink, self.evidence = layer, ink, evidence
        trees = trees_of(ink, rng)
        start = layer, trees, evidence, placement_prior, weight_prior
        self.dense = DensePassing(ReferenceEngine(), *start)
        n = len(evidence)
        self.to_S = np.zeros((n, layer.n_features, *layer.placement_size))
        self.to_W = np.zeros(weight_prior.shape)

    def set_evidence(self, evidence):
        self.evidence = evidence
        self.dense.set_evidence(evidence)

    def sweep(self, schedule, rng, damping):
        m = self.dense._messages
        for k, batch in in_blocks(schedule.batches(m.images, rng), m.n_trees):
            if k is not None:
                S, W = self.dense.placement_beliefs(), self.dense.weight_beliefs()
                self._move(self.to_W, self.said(S, W)[1], damping / BLOCKS)
                if k % BLOCKS_PER_TURN == 0:
                    S, W = self.dense.placement_beliefs(), self.dense.weight_beliefs()
                    share = damping * BLOCKS_PER_TURN / BLOCKS
                    self._move(self.to_S, self.said(S, W)[0], share)
            self.dense._engine.update(m, batch, damping)

    def said(self, S, W):
        """What all trees without ink send to placements and weights, given these beliefs."""
        to_S, to_W = np.zeros(self.to_S.shape), np.zeros(self.to_W.shape)
        oh, ow = self.layer.overhang
        for n, a, r, c in np.argwhere(~self.ink):
            e = min(float(self.evidence[n, a, r, c]), 0.0)
            for f, di, dj in np.ndindex(*W.shape[1:]):
                i, j = r + oh - di, c + ow - dj
                if 0 <= i < S.shape[2] and 0 <= j < S.shape[3]:
                    to_S[n, f, i, j] += and_up(float(W[a, f, di, dj]), e)
                    to_W[a, f, di, dj] += and_up(float(S[n, f, i, j]), e)
        return to_S, to_W

    def _move(self, sums, new, share):
        change = share * (new - sums)
        sums += change
        m = self.dense._messages
        layout = m.layout
        if (sums is self.to_W) == layout.kernel_is_weights:
            m.kernel += layout.to_kernel(change)
        else:
            m.field += layout.to_field(change, fill=0)
