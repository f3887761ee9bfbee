"""Message passing through the whole network: the paper's Algorithm 1, one pass at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful, part
from hcnet.engine.base import FeaturePassing
from hcnet.engine.cpu import max_pool
from hcnet.engine.driver import look
from hcnet.engine.engines import ReadyEngine
from hcnet.factors import HUGE
from hcnet.grid import FLOAT, on_grid, single
from hcnet.hierarchy.network import Network
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.messages import (
    class_log_prior,
    filled,
    pool_log_prior,
    pool_memory,
    set_active_pools,
    start_pools,
)


class NetworkPassing(Stateful):
    """The messages of all levels, for some images."""

    def __init__(
        self,
        network: Network,
        evidence: FloatArray,
        weight_priors: Sequence[FloatArray],
        allowed: BoolArray,
        engine: ReadyEngine,
        rng: np.random.Generator,
        same_order: bool = False,
        exact: bool = False,
    ) -> None:
        """Start as Algorithm 1 does: messages up are 0, messages down are minus infinity.

        `weight_priors` are log-odds, (features, channels, height, width) per level; `allowed` is
        (images, templates); with `same_order` all images have their trees in the same order.  For
        learning, evidence and priors must be on the grid; `exact` puts those of the network on it.
        """
        self.network = network
        self._engine, self._schedule = engine.pools(), engine.schedule
        self._rng = rng
        hold = self._engine.hold
        self._evidence, self._strongest = hold(evidence), float(np.abs(evidence).max(initial=0.0))
        n = len(evidence)
        self._pools = [
            start_pools(
                level.pool,
                n,
                on_grid(pool_log_prior(level.pool, level.window)) if exact else level.log_prior,
                hold,
            )
            for level in network.levels
        ]
        self.levels: list[FeaturePassing] = []  # the feature layers, from the bottom
        self._up = []  # messages up to every S
        for k, (level, prior) in enumerate(zip(network.levels, weight_priors, strict=True)):
            look()
            layer = level.features
            shape = (n, layer.n_channels, *layer.image_size)
            everything, nothing = np.ones(shape, bool), np.zeros(shape, FLOAT)
            weights = np.swapaxes(prior, 0, 1)
            near = None
            if engine.uses_ink and k == 0:
                near = ink(network, evidence)
                self._engine.or_to_U(self._pools[0], self._evidence)
                set_active_pools(self._pools[0], near)  # all other elements stay off
            start = layer, everything, nothing, -HUGE, weights, rng
            self.levels.append(engine.start(*start, same_order=same_order, ink=near))
            up = np.zeros((n, layer.n_features, *layer.placement_size), FLOAT)
            self._up.append(hold(up))
        classes = class_log_prior(network.classes, up.shape, allowed)
        self._class_prior = hold(on_grid(classes) if exact else single(classes))
        self.change = np.inf  # of the messages from the pools to R, in the last pass
        self._image_down = hold(filled(evidence.shape, -HUGE))

    def saved_fields(self, finished: bool) -> Fields:
        """All messages; once they are of no interest, the random generator alone."""
        fields: dict[str, Kind] = {"_rng": kinds.generator(), "change": kinds.number_or(math.inf)}
        if finished:
            return fields
        messages = kinds.array_in_place(self._engine.fetch, self._engine.hold)
        n, pools = len(self.levels), {"to_U": messages, "from_pool": messages, "to_R": messages}
        return fields | {
            "_image_down": messages,
            "_up": kinds.each_of([messages] * n),
            "_pools": kinds.each_of([kinds.attributes(pools)] * n),
            "levels": kinds.each_of([part()] * n),
        }

    def forward(self, damping: Sequence[float]) -> None:
        """Messages up, from the image to the class layer, and messages to W."""
        self.change = 0.0
        below = self._evidence
        for k, (pools, trees) in enumerate(zip(self._pools, self.levels, strict=True)):
            self._engine.or_to_U(pools, below)
            self.change = max(self.change, self._engine.pool_to_R(pools, damping[k]))
            trees.set_evidence(pools.to_R)
            trees.sweep(self._schedule, self._rng)
            self._up[k] = below = trees.up()
        exclusive = self.network.classes.p_on is None
        down = self._engine.class_to_S(self._class_prior, self._up[-1], exclusive)
        self.levels[-1].set_placement_prior(down)

    def backward(self, explain_away: int = 1) -> None:
        """Messages down, from the class layer to the image.

        An active set sends minus infinity in place of messages that could not change anything.
        The ORs and pools of a level exchange messages `explain_away` times before the level below
        gets its messages.
        """
        for k in reversed(range(len(self.levels))):
            pools, trees = self._pools[k], self.levels[k]
            above = trees.down(self._least(k))
            below = self._up[k - 1] if k else self._evidence
            for turn in range(explain_away):
                if turn:
                    self._engine.or_to_U(pools, below)
                self._engine.pool_to_U(pools, above)
            down = self._engine.or_to_S(pools)
            if k:
                self.levels[k - 1].set_placement_prior(down)
            else:
                self._image_down = down

    def _least(self, k: int) -> float:
        """A bound: lower messages down to R of a level change nothing below it.

        They cannot make an S below probable, whatever messages it gets from further below.
        """
        if not k:
            return -self._strongest
        strongest = self._up[k - 1], self._pools[k - 1].to_R
        return -sum(self._engine.largest(messages) for messages in strongest)

    def weight_beliefs(self) -> list[FloatArray]:
        """Max-marginal differences of W, (features, channels, height, width) per level."""
        return [np.swapaxes(trees.weight_beliefs(), 0, 1) for trees in self.levels]

    @property
    def up(self) -> list[FloatArray]:
        """Messages up to S¹ … Sᴸ."""
        return [self._engine.fetch(up) for up in self._up]

    def placement_beliefs(self) -> list[FloatArray]:
        """Max-marginal differences of S¹ … Sᴸ."""
        return [trees.placement_beliefs() for trees in self.levels]

    def pixel_beliefs(self) -> FloatArray:
        """Max-marginal differences of S⁰, the pixels before the noise."""
        return np.asarray(self._engine.fetch(self._image_down) + self._engine.fetch(self._evidence))


def ink(network: Network, evidence: FloatArray) -> BoolArray:
    """The elements of the lowest R that have ink in their pool: no other can ever become probable.

    The first pass decides this.  Later passes can only explain ink away.
    """
    first = network.levels[0]
    return np.asarray(max_pool(first.pool, first.log_prior, evidence) > 0)


def count_ink(engine: ReadyEngine, network: Network, images: Images) -> int | None:
    """The number of elements with `ink`, for engines that use it."""
    return (
        int(ink(network, images.evidence_on_grid(network.noise)).sum()) if engine.uses_ink else None
    )


def passing_memory(
    engine: ReadyEngine, network: Network, n_images: int, n_ink: int | None = None
) -> int:
    """Bytes that message passing takes, known before it starts; `n_ink` is that of `count_ink`."""
    total = 0
    for k, level in enumerate(network.levels):
        layer = level.features
        trees = n_images * layer.n_channels * int(np.prod(layer.image_size))
        near = n_ink if k == 0 else None
        total += engine.memory(layer, n_images, trees, near) + 8 * trees
        if near is None and engine.keeps_active_set(layer, n_images, trees):
            # Messages up and down of all placements; a GPU also lists those that send messages.
            per_placement = 44 if engine.gpu else 28
            total += per_placement * n_images * layer.n_positions * layer.n_features
        total += pool_memory(level.pool, n_images)
    return total
