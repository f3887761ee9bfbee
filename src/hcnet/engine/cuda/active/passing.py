"""A feature layer on a GPU of which only what is undecided has messages: the active set."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hcnet.archive.kinds import Array, Converted, InPlace, Number
from hcnet.archive.state import Fields, Stateful
from hcnet.engine.active.admission import AT_ONCE, admitted, per_tile, tiles_of, tiling
from hcnet.engine.active.geometry import (
    IntArray,
    coordinates,
    from_placements,
    from_weights,
    geometry,
    to_board,
    to_placements,
    to_weights,
)
from hcnet.engine.cuda import arrays
from hcnet.engine.cuda.active import closed_form, sums, updates
from hcnet.engine.cuda.active.boards import (
    NO_TREES,
    TREE_NUMBERS,
    fall_silent,
    fill_board,
    find_trees,
    strongest,
)
from hcnet.engine.cuda.active.colours import Colours, blocks_with_trees
from hcnet.engine.cuda.active.places import Seats, places, seated
from hcnet.engine.cuda.arrays import DeviceArray, fetch, hold
from hcnet.engine.cuda.compilation import THREADS, blocks_for, resident_blocks
from hcnet.engine.cuda.engine import CUDAEngine
from hcnet.engine.cuda.orders import IN_LANES, Order
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import FeatureLayer

# A tree alone takes 2 µs, a block of trees at once 15: images of more windows than this are worked
# on in blocks, unless another schedule was asked for.
WINDOWS = 8
# Changes of W are put down as whole numbers, of which the largest evidence ever heard is so many:
# more than a float can tell apart, and few enough that no sum of them overflows.
UNITS = 2.0**32


class ActiveCUDAPassing(Stateful):
    """Messages of one feature layer (`engine.base.ActiveSet`)."""

    def __init__(
        self,
        engine: CUDAEngine,
        layer: FeatureLayer,
        observed: BoolArray,
        evidence: FloatArray,
        placement_prior: FloatArray | float,
        weight_prior: FloatArray,
    ) -> None:
        """Nothing is active; the arguments are those of `engine.active.passing.ActivePassing`."""
        self._engine, self._layer, self._g = engine, layer, geometry(layer)
        self._n_images = len(evidence)
        self._tiles = tiling(self._g, self._n_images)
        self._seats = Seats.of(self._g, self._tiles)
        self._observed = hold(to_board(layer, observed).view(np.uint8))
        self._weight_prior = hold(to_weights(weight_prior))
        self._carried = arrays.zeros(self._weight_prior.shape)
        self._W = arrays.copied(self._weight_prior)
        slots = self._n_images * self._seats.per_image
        self._to_S = arrays.empty((slots * self._g.edges,))
        self._to_W = arrays.empty((slots * self._g.edges,))
        self._S, self._sums = arrays.zeros((slots,)), arrays.zeros((slots,))
        board = self._observed.shape
        self._E, self._U = arrays.zeros(board), arrays.zeros(board)
        self._loudest = 0.0  # evidence ever heard: no message is larger
        self._orders: dict[Schedule, Order] = {}
        self._blocks: dict[Schedule, tuple[Colours, IntArray]] = {}
        self._seat(np.full(slots, -1))
        self.hear(hold(evidence))
        if np.ndim(placement_prior) == 0:
            self._prior = hold(np.array([placement_prior], np.float32))
        else:
            self._prior = hold(to_placements(np.asarray(placement_prior, np.float32)))

    @property
    def n_active(self) -> int:
        """Placements that have messages."""
        return int((self._where >= 0).sum())

    def saved_fields(self, finished: bool) -> Fields:
        """Active placements, all messages and beliefs; the lists of trees follow from them."""
        names = ("_to_S", "_to_W", "_E", "_U", "_carried", "_W", "_S", "_sums")
        return {
            "_where": Array(np.int64, self._where.shape),
            **{name: InPlace(fetch, hold) for name in names},
            "_prior": Converted(Array(np.float32, (None,), finite=False), fetch, hold),
            "_loudest": Number(),
        }

    def after_restore(self, finished: bool) -> None:
        """Check the active placements, and list their trees."""
        g, where = self._g, self._where
        positions = self._n_images * g.positions * g.features
        taken = np.flatnonzero(where >= 0)
        there = where[taken]
        if len(np.unique(there)) < len(there) or there.max(initial=0) >= positions:
            raise ValueError("its active placements lie outside the images, or are there twice")
        if (tiles_of(g, self._tiles, there) != taken // self._seats.slots).any():
            raise ValueError("its active placements are not where they belong")
        if self._prior.size not in (1, positions):
            raise ValueError("its prior is incomplete")
        self._seat(where)

    def carry(self, beliefs: FloatArray) -> None:
        """Add what was learned elsewhere to the beliefs of W: until the next call."""
        self._carried = hold(to_weights(beliefs))
        self._refresh()

    def hear(self, evidence: DeviceArray) -> None:
        """New evidence for R."""
        layer = self._layer
        size = layer.image_size, layer.overhang
        fill_board(evidence, *size, self._g, self._observed, self._E)
        fall_silent(self._covered, self._E, self._U)

    def expect(self, placement_prior: DeviceArray) -> None:
        """Another prior of S."""
        if self._prior.size == 1:
            self._prior = arrays.empty((placement_prior.size,))
        sums.features_inside[blocks_for(placement_prior.size), THREADS](
            arrays.flat(placement_prior), self._g.features, self._g.positions, self._prior
        )
        self._add_prior()

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        if schedule.preset and self._g.board_size > WINDOWS * self._g.edges:
            schedule = replace(schedule, name="blocks")
        weights = arrays.copied(self._W)
        self._admit()
        before = arrays.copied(self._S)
        if self._trees.n:
            self._update_all(schedule, rng, np.float32(damping))
            self._refresh()
        return max(arrays.largest(self._S, before), arrays.largest(self._W, weights))

    def up(self) -> DeviceArray:
        """Sums of the messages to S: (images, features, height, width)."""
        g = self._g
        out = arrays.empty((self._n_images, g.features, g.height, g.width))
        sums.features_outside[blocks_for(out.size), THREADS](
            self._all_sums(), g.features, g.positions, arrays.flat(out)
        )
        return out

    def down(self, least: float = -HUGE) -> DeviceArray:
        """Messages to R: (images, channels, height, width); those below `least` may be missing."""
        g, layer = self._g, self._layer
        belief = self._all_beliefs()
        # A message is at most what the placement or the weight says, and a placement hears from
        # no tree more than the loudest says.
        quiet = np.float32(max(least - arrays.largest(self._U), -HUGE))
        speaks = arrays.zeros(belief.shape, np.uint8)
        closed_form.find_speakers[blocks_for(belief.size), THREADS](
            self._at_slot, belief, quiet, speaks
        )
        numbers = np.flatnonzero(fetch(speaks))
        n, f, i, j = coordinates(g, numbers).T
        heard = arrays.empty((max(len(numbers), 1),))
        arrays.take(belief, hold(numbers), heard)
        slots = self._slots_of(numbers)
        speakers = np.stack([i, j, f, slots], axis=1).astype(np.int32)
        out = arrays.empty((self._n_images, g.channels, *layer.image_size))
        closed_form.all_down[blocks_for(out.size, 1), closed_form.LEAF_THREADS](
            g,
            (*layer.image_size, *layer.overhang),
            self._U,
            self._features_last(),
            hold(speakers if len(numbers) else np.zeros((1, 4), np.int32)),
            hold(np.searchsorted(n, np.arange(self._n_images + 1))),
            heard,
            self._to_S,
            self._to_W,
            np.float32(least),
            arrays.flat(out),
        )
        return out

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        return from_placements(self._layer, fetch(self._all_beliefs()))

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        return from_weights(self._layer, fetch(self._W))

    def placements(self) -> IntArray:
        """(placements, 4): image, feature, row and column of the S that are on."""
        found = coordinates(self._g, self._where[(self._where >= 0) & (fetch(self._S) > 0)])
        return found[np.lexsort(found.T[::-1])]

    def _slots_of(self, numbers: IntArray) -> IntArray:
        """The slots of some placements, -1 for those that are inactive; numbers in order."""
        slots = np.full(len(numbers), -1)
        taken = np.flatnonzero(self._where >= 0)
        slots[np.searchsorted(numbers, self._where[taken])] = taken
        return slots

    def _features_last(self) -> DeviceArray:
        """Beliefs of W as (channel, di, dj, f)."""
        out = arrays.empty(self._W.shape)
        sums.features_inside[blocks_for(out.size), THREADS](
            self._W, self._g.features, self._g.edges, out
        )
        return out

    def _all_sums(self) -> DeviceArray:
        """What every placement hears, in the order of their numbers."""
        g = self._g
        out = arrays.empty((self._n_images * g.positions * g.features,))
        closed_form.hear_all[blocks_for(out.size), THREADS](g, self._U, self._features_last(), out)
        sums.put_active[blocks_for(self._at_slot.size), THREADS](self._at_slot, self._sums, out)
        return out

    def _all_beliefs(self) -> DeviceArray:
        belief = self._all_sums()
        sums.add_to_all[blocks_for(belief.size), THREADS](self._prior, belief)
        return belief

    def _admit(self) -> None:
        """Let undecided placements in, and decided ones go."""
        g, S = self._g, fetch(self._S)
        peaks = strongest(self._E, self._n_images)
        self._loudest = max(self._loudest, float(peaks.max(initial=0.0)))
        taken = self._where >= 0
        active = self._where[taken], S[taken]
        now = admitted(g, self._tiles, peaks, active, self._candidates(-peaks))
        if np.array_equal(now, np.sort(active[0])):
            return
        where, fresh = seated(g, self._tiles, self._where, now)
        self._seat(where)
        fall_silent(self._covered, self._E, self._U)
        if len(fresh):
            sums.start_messages[len(fresh), sums.SUM_THREADS](
                hold(fresh),
                g,
                self._seats,
                self._at,
                self._observed,
                self._U,
                self._W,
                self._to_S,
                self._to_W,
            )
        self._refresh()

    def _candidates(self, threshold: FloatArray) -> tuple[IntArray, FloatArray]:
        g, n = self._g, self._tiles.tiles
        reach = arrays.empty((self._n_images * g.positions,))
        closed_form.reach_of_calls[blocks_for(reach.size), THREADS](g, self._U, reach)
        found, beliefs = arrays.empty((n * AT_ONCE,), np.int64), arrays.empty((n * AT_ONCE,))
        closed_form.find_candidates[n, closed_form.TILE_THREADS](
            g,
            self._seats,
            self._at,
            self._U,
            self._features_last(),
            self._prior,
            reach,
            hold(threshold),
            found,
            beliefs,
        )
        where = fetch(found)
        return where[where >= 0], fetch(beliefs)[where >= 0]

    def _seat(self, where: IntArray) -> None:
        """Who is in which slot, and what follows from it."""
        g = self._g
        # Two lists of trees at a time would be more memory than was said.
        self._orders.clear()
        self._blocks.clear()
        self._at = self._covered = None
        self._trees = NO_TREES
        self._where, self._at_slot = where, hold(where)
        self._at = hold(places(g, where))
        what = self._seats, self._n_images, self._at, self._observed
        self._covered, self._trees = find_trees(g, *what)
        taken = np.flatnonzero(where >= 0)
        self._taken = hold(taken)
        feature = where[taken] % g.features
        order = np.argsort(feature, kind="stable")
        self._by_feature = hold(taken[order])
        self._feature_begin = hold(np.searchsorted(feature[order], np.arange(g.features + 1)))

    def _refresh(self) -> None:
        """Beliefs from the messages, added up anew."""
        edges = self._g.edges
        if self._taken.size:
            sums.sum_placements[self._taken.size, sums.SUM_THREADS](
                self._taken, edges, self._to_S, self._sums
            )
        sums.sum_weights[blocks_for(self._W.size), THREADS](
            self._by_feature,
            self._feature_begin,
            edges,
            self._to_W,
            self._weight_prior,
            self._carried,
            self._W,
        )
        self._add_prior()

    def _add_prior(self) -> None:
        sums.add_prior[blocks_for(self._at_slot.size), THREADS](
            self._at_slot, self._prior, self._sums, self._S
        )

    def _update_all(
        self, schedule: Schedule, rng: np.random.Generator, damping: np.float32
    ) -> None:
        if schedule.name in IN_LANES:
            self._update_lanes(schedule, rng if schedule.shuffle else None, damping)
        elif schedule.name == "blocks":
            self._update_blocks(schedule, rng if schedule.shuffle else None, damping)
        else:
            blocks = blocks_for(self._trees.n, 1)
            updates.flood_kernel()[blocks, updates.TREE_THREADS](
                self._trees.where,
                np.int64(self._trees.n),
                *self._places,
                self._W,
                self._to_S,
                self._to_W,
                damping,
            )

    @property
    def _places(self) -> tuple[Any, ...]:
        """What all updates begin with."""
        return self._g, self._seats, self._at, self._E, self._U, self._S

    def _update_lanes(
        self, schedule: Schedule, rng: np.random.Generator | None, damping: np.float32
    ) -> None:
        """Lanes at the same time, as `CUDAEngine.lanes`."""
        deterministic = self._engine.deterministic
        if schedule not in self._orders:
            firsts, sharing = self._trees.firsts, self._n_images
            if schedule.name == "sequential":
                firsts, sharing = firsts[[0, -1]], 1
            n = schedule.rounds if deterministic and sharing > 1 else 1
            self._orders[schedule] = Order(firsts, sharing, n)
        rounds = self._orders[schedule].rounds_of(rng)
        shared = rounds[0].sharing > 1 and not deterministic
        W, W_from, merge = self._engine.copies(self._W, 1, rounds[0], deterministic)
        for k, lanes in enumerate(rounds):
            work = updates.lanes_kernel("shared" if shared else "own")
            work[lanes.begin.size, updates.TREE_THREADS](
                lanes.order,
                lanes.begin,
                lanes.end,
                self._trees.where,
                *self._places,
                W,
                W_from,
                self._to_S,
                self._to_W,
                damping,
            )
            merge(k + 1 < len(rounds))

    def _update_blocks(
        self, schedule: Schedule, rng: np.random.Generator | None, damping: np.float32
    ) -> None:
        """Blocks of one colour one after the other; the trees of each at the same time."""
        if schedule not in self._blocks:
            colours = Colours.of(self._g, self._n_images, schedule.block_size)
            self._blocks[schedule] = colours, blocks_with_trees(colours, self._g, self._covered)
        colours, blocks = self._blocks[schedule]
        sequence = blocks if rng is None else rng.permutation(blocks)
        scale = UNITS / max(self._loudest, 1e-30)
        at_once = min(colours.most, updates.TREES_AT_ONCE * resident_blocks())
        updates.blocks_kernel()[at_once, updates.TREE_THREADS](
            hold(sequence),
            colours,
            self._covered,
            *self._places,
            self._W,
            self._to_S,
            self._to_W,
            self._held,
            np.float64(scale),
            damping,
        )

    @cached_property
    def _held(self) -> DeviceArray:
        """What blocks have to say about W, before it is added; 0 between them."""
        return hold(np.zeros(self._W.size, np.int64))


def active_device_memory(layer: FeatureLayer, n_images: int, lanes: int = 1) -> int:
    """Bytes that the active set takes on the GPU; `lanes` have copies of the weights.

    Messages of all slots; boards with their trees and the order of those; beliefs of W with
    priors, sums and what blocks put down; what is known of slots, and of positions.
    """
    g = geometry(layer)
    tiles = tiling(g, n_images)
    slots = tiles.tiles * per_tile(g)
    boards = n_images * g.board_size * (4 + 4 + 1 + 1 + 4 * TREE_NUMBERS + 8)
    weights = g.edges * g.features * (5 * 4 + 8 + (4 * lanes if lanes > 1 else 0))
    found = 12 * AT_ONCE * tiles.tiles + 4 * n_images * g.positions
    return slots * (8 * g.edges + 60) + boards + weights + found
