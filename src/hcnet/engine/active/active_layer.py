"""A feature layer of which only what is undecided has messages: the active set."""

from __future__ import annotations

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Stateful
from hcnet.engine.active import closed_form, geometry
from hcnet.engine.active.edges import (
    EDGE_BYTES,
    Edges,
    add_up,
    no_edges,
    rebuilt,
    run_lanes,
    trees_down,
)
from hcnet.engine.active.geometry import IntArray, Tiling
from hcnet.engine.driver import look
from hcnet.engine.schedules import Batch, Schedule
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer


class ActivePassing(Stateful):
    """Messages of one feature layer (`engine.base.ActiveSet`)."""

    def __init__(
        self,
        layer: FeatureLayer,
        observed: BoolArray,
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
    ) -> None:
        """Nothing is active, and all weights are at their priors.

        `observed` and `evidence` are (images, channels, height, width), `placement_prior` is one
        number or (images, features, height, width), `weight_prior` (channels, features, height,
        width); priors as log-odds.
        """
        self._layer = layer
        self._g = geometry.geometry_of(layer)
        self._n_images = len(evidence)
        self._observed = geometry.to_board(layer, observed)
        self._edges = no_edges(len(self._observed))
        self._weight_prior = geometry.to_weights(weight_prior)
        self._carried = np.zeros_like(self._weight_prior)
        self._U = self._E = np.zeros(len(self._observed), FLOAT)
        self._sums = np.zeros(0, FLOAT)
        self.set_evidence(evidence)
        self.set_placement_prior(placement_prior)
        self._refresh()

    @property
    def n_active(self) -> int:
        """Placements that have messages."""
        return len(self._edges.where)

    def saved_fields(self, finished: bool) -> Fields:
        """Active placements, all messages and beliefs; their edges follow from them."""
        board, weights, any_length = (
            kinds.array(FLOAT, shape, finite=False)
            for shape in (self._observed.shape, self._weight_prior.shape, (None,))
        )
        where = kinds.array(np.int64, (None,))
        edges = kinds.object_of(self._edges_of, where=where, to_S=any_length, to_W=any_length)
        return {
            "_E": board,
            "_U": board,
            "_carried": weights,
            "_W": weights,
            # With the U and W that were restored before.
            "_edges": edges,
            "_S": any_length,
            "_sums": any_length,
            "_prior": any_length,
        }

    def _edges_of(self, where: IntArray, to_S: FloatArray, to_W: FloatArray) -> Edges:
        inside = not len(where) or (where[0] >= 0 and where[-1] < self._n_placements)
        if not inside or (np.diff(where) <= 0).any():
            raise ValueError("its active placements lie outside the images, or are not in order")
        none = no_edges(len(self._observed))
        edges = rebuilt(none, where, self._g, self._observed, self._U, self._W)
        edges.to_S, edges.to_W = to_S, to_W
        return edges

    def after_restore(self, finished: bool) -> None:
        """Check that there is a number for each edge and placement."""
        edges, n = self._edges, self.n_active
        if not len(edges.to_S) == len(edges.to_W) == len(edges.who):
            raise ValueError("its messages are not those of its active placements")
        if not len(self._S) == len(self._sums) == n:
            raise ValueError("its beliefs are not those of its active placements")
        if len(self._prior) not in (1, self._n_placements):
            raise ValueError("its prior is incomplete")

    @property
    def _n_placements(self) -> int:
        return self._n_images * self._g.positions * self._g.features

    def add_to_weights(self, beliefs: FloatArray) -> None:
        """Add what was learned elsewhere to the beliefs of W: until the next call."""
        self._carried = geometry.to_weights(beliefs)
        self._refresh()

    def set_evidence(self, evidence: FloatArray) -> None:
        """New evidence for R."""
        self._E = np.where(self._observed, geometry.to_board(self._layer, evidence), FLOAT(0))
        U = self._E.copy()
        U[self._edges.trees] = self._U[self._edges.trees]
        self._U = U

    def set_placement_prior(self, placement_prior: FloatArray | float) -> None:
        """Another prior of S."""
        if np.ndim(placement_prior) == 0:
            self._prior = np.array([placement_prior], FLOAT)
        else:
            self._prior = geometry.to_placements(np.asarray(placement_prior, FLOAT))
        self._sum_up()

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        weights = self._W.copy()
        self._admit()
        before = self._S.copy()
        owners = (self._edges.trees // self._g.board_size).astype(np.int32)
        for batch in schedule.batches(owners, rng):
            self._update(batch, FLOAT(damping))
        self._refresh()
        return max(
            float(np.abs(self._S - before).max(initial=0.0)),
            float(np.abs(self._W - weights).max(initial=0.0)),
        )

    def up(self) -> FloatArray:
        """Sums of the messages to S: (images, features, height, width)."""
        return np.ascontiguousarray(geometry.from_placements(self._layer, self._all_sums()))

    def down(self, least: float = -HUGE) -> FloatArray:
        """Messages to R: (images, channels, height, width); those below `least` may be missing.

        Placements that have become probable since the last sweep count, though they have no
        messages yet.
        """
        g, edges = self._g, self._edges
        belief = self._all_sums() + self._prior
        out = np.full(len(self._E), -HUGE, FLOAT)
        lists = closed_form.list_nonzero(g, self._U, self._W, above=least)
        beliefs = belief, self._is_active(), FLOAT(least)
        reach = FLOAT(np.abs(self._U).max())
        closed_form.down_from_inactive(self._n_images, g, self._U, reach, lists, *beliefs, out)
        trees_down(edges.lists, self._S, self._W, edges.scratch(1), out)
        return geometry.from_board(self._layer, np.clip(out, -HUGE, HUGE), self._n_images)

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return geometry.from_placements(self._layer, self._all_sums() + self._prior)

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return geometry.from_weights(self._layer, self._W)

    def placements(self) -> IntArray:
        """(placements, 4): image, feature, row and column of the S that are on."""
        found = geometry.coordinates(self._g, self._edges.where[self._S > 0])
        return found[np.lexsort(found.T[::-1])]

    def _all_sums(self) -> FloatArray:
        g = self._g
        out = np.empty(self._n_images * g.positions * g.features, FLOAT)
        lists = closed_form.list_nonzero(g, self._U, self._W)
        W = geometry.features_last(g, self._W)
        closed_form.add_all_messages(self._n_images * g.height, g, self._U, W, lists, out)
        out[self._edges.where] = self._sums
        return out

    def _refresh(self) -> None:
        """Beliefs from the messages, added up anew."""
        self._sums = np.zeros(self.n_active, FLOAT)
        self._W = np.zeros_like(self._weight_prior)
        add_up(len(self._edges.trees), self._edges.lists, self._sums, self._W)
        self._W += self._carried + self._weight_prior
        self._sum_up()

    def _sum_up(self) -> None:
        where = self._edges.where if len(self._prior) > 1 else 0
        self._S = (self._prior[where] + self._sums).astype(FLOAT)

    def _update(self, batch: Batch, damping: np.float32) -> None:
        if len(batch.order) == 0:
            return
        n = 1 if batch.simultaneous else len(batch.lanes) - 1
        lanes = np.array([0, len(batch.order)]) if batch.simultaneous else batch.lanes
        shared = self._W[None]
        weights = np.repeat(shared, n, axis=0) if n > 1 else shared
        seen = (self._S.copy(), weights.copy()) if batch.simultaneous else (self._S, weights)
        state = self._E, self._U, *seen, self._S, weights, self._edges.scratch(n)
        run_lanes(n, batch.order, lanes, self._edges.lists, *state, damping)
        if n > 1:
            self._W += (weights - shared).sum(axis=0)

    def _admit(self) -> None:
        """Let undecided placements in, and decided ones go."""
        tiles = geometry.tiling(self._g, self._n_images)
        strongest = np.abs(self._E).reshape(self._n_images, -1).max(axis=1)
        active, candidates = (self._edges.where, self._S), self._candidates(tiles, -strongest)
        look()
        where = geometry.admitted(self._g, tiles, strongest, active, candidates)
        if np.array_equal(where, self._edges.where):
            return
        look()
        before = self._edges
        self._edges = rebuilt(before, where, self._g, self._observed, self._U, self._W)
        stays = np.zeros(len(self._U), bool)
        stays[self._edges.trees] = True
        gone = before.trees[~stays[before.trees]]
        self._U[gone] = self._E[gone]
        self._refresh()

    def _candidates(self, tiles: Tiling, threshold: FloatArray) -> tuple[IntArray, FloatArray]:
        g, most = self._g, geometry.AT_ONCE
        found = np.empty((tiles.tiles, most), np.int64)
        beliefs = np.empty((tiles.tiles, most), FLOAT)
        counts = np.zeros(tiles.tiles, np.int64)
        W, lists = geometry.features_last(g, self._W), closed_form.list_nonzero(g, self._U, self._W)
        inputs = self._U, W, lists, self._prior, self._is_active(), self._reach(), threshold
        rows = tiles.images * tiles.down
        closed_form.find_candidates(rows, tiles, g, *inputs, found, beliefs, counts)
        which = np.arange(most) < counts[:, None]
        return found[which], beliefs[which]

    def _is_active(self) -> BoolArray:
        found = np.zeros(self._n_placements, bool)
        found[self._edges.where] = True
        return found

    def _reach(self) -> FloatArray:
        """The most that a placement at each position can have as its belief."""
        g, prior = self._g, self._prior
        if len(prior) > 1:
            prior = prior.reshape(-1, g.features).max(axis=1)
        reach = np.empty(self._n_placements // g.features, FLOAT)
        closed_form.reach_of_calls(len(reach) // g.positions, g, self._U, reach)
        return reach + prior


def active_memory(layer: FeatureLayer, n_images: int, lanes: int = 1, threads: int = 1) -> int:
    """Bytes that the active set takes at its peak, known before a run starts."""
    g = geometry.geometry_of(layer)
    n, tiles = n_images, geometry.tiling(g, n_images)
    capacity = min(tiles.tiles * tiles.capacity, n * g.positions * g.features)
    edges = 2 * capacity * g.edges * EDGE_BYTES  # old and new ones, while the set changes
    boards = n * g.board_size * (4 + 4 + 1 + 2 * 4 + 2 * 8) + n * g.positions * (5 * 8 + g.features)
    sums = threads * tiles.height * g.width * g.features * 4  # `find_candidates`
    found = tiles.tiles * geometry.AT_ONCE * 12 + sums
    weights = 4 * g.edges * g.features * (5 + (lanes if lanes > 1 else 0))
    return edges + boards + found + weights
