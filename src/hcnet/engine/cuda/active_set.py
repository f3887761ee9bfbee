"""A feature layer on a GPU in which only undecided placements have messages: the active set."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Stateful
from hcnet.engine.active import geometry
from hcnet.engine.active.geometry import AT_ONCE, IntArray
from hcnet.engine.cuda import arrays, slots, sums, updates
from hcnet.engine.cuda.arrays import DeviceArray, fetch, hold, launch
from hcnet.engine.cuda.compilation import blocks_for, multiprocessors
from hcnet.engine.cuda.orders import Colours, Lanes, blocks_with_trees
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer

# A tree alone takes 2 µs, a block of trees at once 15: images of more windows than this are updated
# in blocks, unless the user chose a schedule.
WINDOWS = 8


class ActiveCUDAPassing(Stateful):
    """Messages of one feature layer (`engine.base.ActiveSet`)."""

    def __init__(
        self,
        layer: FeatureLayer,
        observed: BoolArray,
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
    ) -> None:
        """Nothing is active; the arguments are those of `ActivePassing`."""
        self._layer, self._g = layer, geometry.geometry_of(layer)
        self._n_images = len(evidence)
        self._tiles = geometry.tiling(self._g, self._n_images)
        self._observed = hold(geometry.to_board(layer, observed).view(np.uint8))
        self._weight_prior = hold(geometry.to_weights(weight_prior))
        self._carried = arrays.zeros(self._weight_prior.shape)
        self._W = arrays.copied(self._weight_prior)
        n_slots = self._tiles.tiles * self._tiles.capacity
        self._to_S = arrays.empty((n_slots * self._g.edges,))
        self._to_W = arrays.empty((n_slots * self._g.edges,))
        self._S, self._sums = arrays.zeros((n_slots,)), arrays.zeros((n_slots,))
        board = self._observed.shape
        self._E, self._U = arrays.zeros(board), arrays.zeros(board)
        self._lanes: dict[Schedule, Lanes] = {}
        self._blocks: dict[Schedule, tuple[Colours, IntArray]] = {}
        self._set_active(np.full(n_slots, -1))
        self.set_evidence(hold(evidence))
        if np.ndim(placement_prior) == 0:
            self._prior = hold(np.array([placement_prior], np.float32))
        else:
            self._prior = hold(geometry.to_placements(np.asarray(placement_prior, np.float32)))

    @property
    def n_active(self) -> int:
        """Number of placements that have messages."""
        return int((self._where >= 0).sum())

    def saved_fields(self, finished: bool) -> Fields:
        """Active placements, all messages and beliefs; the lists of trees follow from them."""
        names = ("_to_S", "_to_W", "_E", "_U", "_carried", "_W", "_S", "_sums")
        return {
            "_where": kinds.array(np.int64, self._where.shape),
            **{name: kinds.array_in_place(fetch, hold) for name in names},
            "_prior": kinds.converted(kinds.array(np.float32, (None,), finite=False), fetch, hold),
        }

    def after_restore(self, finished: bool) -> None:
        """Check the active placements, and list their trees."""
        g, where = self._g, self._where
        positions = self._n_images * g.positions * g.features
        taken = np.flatnonzero(where >= 0)
        there = where[taken]
        if len(np.unique(there)) < len(there) or there.max(initial=0) >= positions:
            raise ValueError("its active placements lie outside the images, or are there twice")
        if (geometry.tiles_of(g, self._tiles, there) != taken // self._tiles.capacity).any():
            raise ValueError("its active placements are in the wrong tiles")
        if self._prior.size not in (1, positions):
            raise ValueError("its prior is incomplete")
        self._set_active(where)

    def add_to_weights(self, beliefs: FloatArray) -> None:
        """Add what was learned elsewhere to the beliefs of W, until the next call."""
        self._carried = hold(geometry.to_weights(beliefs))
        self._sum_beliefs()

    def set_evidence(self, evidence: DeviceArray) -> None:
        """Set the evidence for R."""
        slots.fill_board(evidence, self._layer, self._g, self._observed, self._E)
        launch(slots.reset_uncovered, self._U.size, self._covered, self._E, self._U)

    def set_placement_prior(self, placement_prior: DeviceArray) -> None:
        """Set the prior of S."""
        if self._prior.size == 1:
            self._prior = arrays.empty((placement_prior.size,))
        g, values = self._g, arrays.flat(placement_prior)
        launch(sums.swap_axes, values.size, values, g.features, g.positions, self._prior)
        self._add_prior()

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        if schedule.preset and self._g.board_size > WINDOWS * self._g.edges:
            schedule = replace(schedule, name="blocks")
        weights = arrays.copied(self._W)
        self._admit()
        before = arrays.copied(self._S)
        if self._firsts[-1]:
            update = self._update_blocks if schedule.name == "blocks" else self._update_lanes
            update(schedule, rng if schedule.shuffle else None, np.float32(damping))
            self._sum_beliefs()
        return max(arrays.largest(self._S, before), arrays.largest(self._W, weights))

    def up(self) -> DeviceArray:
        """Sums of the messages to S: (images, features, height, width)."""
        g = self._g
        out = arrays.empty((self._n_images, g.features, g.height, g.width))
        found = self._totals(beliefs=False)
        launch(sums.swap_axes, found.size, found, g.positions, g.features, arrays.flat(out))
        return out

    def down(self, least: float = -HUGE) -> DeviceArray:
        """Messages to R: (images, channels, height, width); those below `least` may be missing."""
        g, layer = self._g, self._layer
        belief = fetch(self._totals(beliefs=True))
        # A message is at most the belief of its placement minus the message from its tree, which
        # is at least minus the largest U.
        sends = belief >= np.float32(max(least - arrays.largest(self._U), -HUGE))
        taken = np.flatnonzero(self._where >= 0)
        sends[self._where[taken]] = True
        numbers = np.flatnonzero(sends)
        slot = np.full(len(numbers), -1)
        slot[np.searchsorted(numbers, self._where[taken])] = taken
        n, f, i, j = geometry.coordinates(g, numbers).T
        senders = hold(np.stack([i, j, f, slot], axis=1).astype(np.int32))
        begin = hold(np.searchsorted(n, np.arange(self._n_images + 1)))
        out = arrays.empty((self._n_images, g.channels, *layer.image_size))
        size = (*layer.image_size, *layer.overhang)
        board, sent = (self._U, self._W_features_last()), (senders, begin, hold(belief[numbers]))
        sums.messages_down[blocks_for(out.size, 1), sums.LEAF_THREADS](
            g, size, *board, *sent, self._to_S, self._to_W, np.float32(least), arrays.flat(out)
        )
        return out

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return geometry.from_placements(self._layer, fetch(self._totals(beliefs=True)))

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return geometry.from_weights(self._layer, fetch(self._W))

    def placements(self) -> IntArray:
        """(placements, 4): image, feature, row and column of the S that are on."""
        on = (self._where >= 0) & (fetch(self._S) > 0)
        found = geometry.coordinates(self._g, self._where[on])
        return found[np.lexsort(found.T[::-1])]

    def _W_features_last(self) -> DeviceArray:
        """Beliefs of W as (channel, di, dj, f)."""
        out = arrays.empty(self._W.shape)
        launch(sums.swap_axes, out.size, self._W, self._g.features, self._g.edges, out)
        return out

    def _totals(self, beliefs: bool) -> DeviceArray:
        """Sums of the messages to all placements, in the order of their numbers, or beliefs."""
        g = self._g
        prior, stored = (self._prior, self._S) if beliefs else (arrays.zeros((1,)), self._sums)
        out = arrays.empty((self._n_images * g.positions * g.features,))
        launch(sums.sum_messages, out.size, g, self._U, self._W_features_last(), prior, out)
        launch(sums.scatter_slots, self._in_slot.size, self._in_slot, stored, out)
        return out

    def _admit(self) -> None:
        """Make undecided placements active, and decided ones inactive."""
        g, S = self._g, fetch(self._S)
        peaks = arrays.largest_of_parts(self._E, self._n_images)
        taken = self._where >= 0
        active = self._where[taken], S[taken]
        now = geometry.admitted(g, self._tiles, peaks, active, self._candidates(-peaks))
        if np.array_equal(now, np.sort(active[0])):
            return
        where, fresh = slots.assign_slots(g, self._tiles, self._where, now)
        self._set_active(where)
        launch(slots.reset_uncovered, self._U.size, self._covered, self._E, self._U)
        if len(fresh):
            board, messages = (self._observed, self._U, self._W), (self._to_S, self._to_W)
            sums.start_messages[len(fresh), sums.SUM_THREADS](
                hold(fresh), g, self._tiles, self._at, *board, *messages
            )
        self._sum_beliefs()

    def _candidates(self, threshold: FloatArray) -> tuple[IntArray, FloatArray]:
        g, n = self._g, self._tiles.tiles
        reach = arrays.empty((self._n_images * g.positions,))
        launch(sums.positive_sums, reach.size, g, self._U, reach)
        found, beliefs = arrays.empty((n * AT_ONCE,), np.int64), arrays.empty((n * AT_ONCE,))
        layer = g, self._tiles, self._at, self._U, self._W_features_last(), self._prior
        sums.find_candidates[n, sums.TILE_THREADS](*layer, reach, hold(threshold), found, beliefs)
        where = fetch(found)
        return where[where >= 0], fetch(beliefs)[where >= 0]

    def _set_active(self, where: IntArray) -> None:
        """Set the placement of every slot, and find the trees above which they lie."""
        g = self._g
        # The old list of trees is freed first: both together would exceed `active_device_memory`.
        self._lanes.clear()
        self._blocks.clear()
        self._at = self._covered = self._trees = None
        self._where, self._in_slot = where, hold(where)
        self._at = hold(slots.slot_positions(g, where))
        self._covered, self._trees, self._firsts = slots.find_trees(
            g, self._tiles, self._n_images, self._at, self._observed
        )
        taken = np.flatnonzero(where >= 0)
        self._taken = hold(taken)
        feature = where[taken] % g.features
        order = np.argsort(feature, kind="stable")
        self._by_feature = hold(taken[order])
        self._feature_begin = hold(np.searchsorted(feature[order], np.arange(g.features + 1)))

    def _sum_beliefs(self) -> None:
        """Compute the beliefs from the messages."""
        edges = self._g.edges
        if self._taken.size:
            sums.sum_placements[self._taken.size, sums.SUM_THREADS](
                self._taken, edges, self._to_S, self._sums
            )
        taken, terms = (self._by_feature, self._feature_begin), (self._weight_prior, self._carried)
        launch(sums.sum_weights, self._W.size, *taken, edges, self._to_W, *terms, self._W)
        self._add_prior()

    def _add_prior(self) -> None:
        launch(sums.add_prior, self._in_slot.size, self._in_slot, self._prior, self._sums, self._S)

    def _update_lanes(
        self, schedule: Schedule, rng: np.random.Generator | None, damping: np.float32
    ) -> None:
        """All lanes at the same time: one, or one for each image.

        Each of several lanes has a copy of W, and changes are merged in a fixed order.
        """
        firsts = self._firsts[[0, -1]] if schedule.name == "sequential" else self._firsts
        alone = len(firsts) == 2
        if schedule not in self._lanes:
            self._lanes[schedule] = Lanes(firsts, 1 if alone else schedule.rounds)
        lanes = self._lanes[schedule]
        layer = self._trees, self._g, self._tiles, self._at
        state = self._E, self._U, self._S, self._W, self._to_S, self._to_W
        copies = self._W if alone else self._copies
        # Copies of W are merged by all threads.
        n = 1 if alone else max(self._n_images, self._W.size // updates.TREE_THREADS)
        updates.update_lanes[_at_once(n), updates.TREE_THREADS](
            lanes.cuts, *lanes.order(rng), *layer, *state, copies, damping
        )

    @cached_property
    def _copies(self) -> DeviceArray:
        """Copies of W, one for each image."""
        return arrays.empty((self._n_images * self._W.size,))

    def _update_blocks(
        self, schedule: Schedule, rng: np.random.Generator | None, damping: np.float32
    ) -> None:
        """One block after the other, the trees of each at the same time."""
        if schedule not in self._blocks:
            colours = Colours.of(self._g, self._n_images, schedule.block_size)
            self._blocks[schedule] = colours, blocks_with_trees(colours, self._g, self._covered)
        colours, blocks = self._blocks[schedule]
        sequence = blocks if rng is None else rng.permutation(blocks)
        state = self._E, self._U, self._S, self._W, self._to_S, self._to_W
        layer = self._covered, self._g, self._tiles, self._at
        updates.update_blocks[_at_once(colours.most), updates.TREE_THREADS](
            hold(sequence), colours, *layer, *state, self._held, damping
        )

    @cached_property
    def _held(self) -> DeviceArray:
        """Changes of W during a block, in steps of the grid; 0 between blocks."""
        return hold(np.zeros(self._W.size, np.int64))


def _at_once(n: int) -> int:
    """How many of n warps can wait for each other."""
    return min(n, updates.TREES_AT_ONCE * multiprocessors())


def active_device_memory(layer: FeatureLayer, n_images: int, lanes: int = 1) -> int:
    """Bytes that the active set takes on the GPU; each of several `lanes` has a copy of W.

    Messages of all slots; boards with their trees; beliefs of W with
    priors, sums and held changes; arrays of slots, and of positions.
    """
    g = geometry.geometry_of(layer)
    tiles = geometry.tiling(g, n_images)
    n_slots = tiles.tiles * tiles.capacity
    boards = n_images * g.board_size * (4 + 4 + 1 + 1 + 4 * slots.TREE_NUMBERS)
    weights = g.edges * g.features * (5 * 4 + 8 + (4 * lanes if lanes > 1 else 0))
    candidates = 12 * AT_ONCE * tiles.tiles + 4 * n_images * g.positions
    return n_slots * (8 * g.edges + 60) + boards + weights + candidates
