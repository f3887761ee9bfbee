"""Message passing through the whole network: the paper's Algorithm 1, one pass at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hcnet.engine.base import Engine
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.hierarchy.network import Network
from hcnet.images import BoolArray, FloatArray
from hcnet.messages import Layout, all_elements, start_messages
from hcnet.pool_messages import pool_memory, start_pools

# Beliefs are running sums of float32 messages; every so many passes they are added up anew.
REBUILD_EVERY = 10
# A float32 belief of this size still holds its messages to a thousandth.
LARGEST_EXACT = 1e4


class NetworkPassing:
    """The messages of all levels, for some images."""

    def __init__(
        self,
        network: Network,
        evidence: FloatArray,
        weight_priors: Sequence[FloatArray],
        allowed: BoolArray,
        engine: Engine,
        rng: np.random.Generator,
        alike: bool = False,
    ) -> None:
        """Start as Algorithm 1 does: messages up are 0, messages down are minus infinity.

        `weight_priors` are log-odds, (features, channels, height, width) per level; `allowed` is
        (images, templates); with `alike` all images have their trees in the same order.
        """
        self.network = network
        self._engine = engine
        self._rng = rng
        self._evidence = evidence
        self._allowed = allowed
        n = len(evidence)
        self._pools = [start_pools(level.pool, n, level.log_prior) for level in network.levels]
        self._trees = []
        self._elements = []
        self._up = []  # messages up to every S
        self._sums = []  # sums of all messages to S and W, in the layout of the trees
        for level, prior in zip(network.levels, weight_priors, strict=True):
            layer = level.features
            shape = (n, layer.n_channels, *layer.image_size)
            elements = all_elements(shape, rng, alike)
            nothing = np.zeros(shape, np.float32)
            channels_first = np.swapaxes(prior, 0, 1)
            self._trees.append(start_messages(layer, elements, nothing, -HUGE, channels_first))
            self._elements.append(np.ravel_multi_index(tuple(elements.T), shape))
            self._sums.append((np.zeros(0, np.float32), np.zeros(0, np.float32)))
            self._up.append(np.zeros((n, layer.n_features, *layer.placement_size), np.float32))
        self._passes = 0
        self.change = np.inf  # of the messages from the pools to R, in the last pass
        self.image_down = np.full_like(evidence, -HUGE)

    def forward(self, schedule: Schedule, damping: Sequence[float]) -> None:
        """Messages up, from the image to the class layer; those to W on the way."""
        self._passes += 1
        self.change = 0.0
        below = self._evidence
        for k, (pools, trees) in enumerate(zip(self._pools, self._trees, strict=True)):
            self._engine.or_to_U(pools, below)
            before = pools.to_R.copy()
            self._engine.pool_to_R(pools, damping[k])
            self.change = max(self.change, float(np.abs(pools.to_R - before).max()))
            trees.evidence[:] = pools.to_R.reshape(-1)[self._elements[k]]
            for batch in schedule.batches(trees.images, self._rng):
                self._engine.update(trees, batch, 1.0)
            self._sum_up(k)
            self._up[k] = below = np.array(trees.placement_beliefs(), order="C")
            self._sums[k] = trees.field.copy(), trees.kernel.copy()
            trees.add_priors()
        down = self._engine.class_to_S(self.network.classes, self._up[-1], self._allowed)
        self._expect(len(self._trees) - 1, down)

    def backward(self, explain_away: int = 1) -> None:
        """Messages down, from the class layer to the image.

        With `explain_away` > 1 the ORs and the pools of a level talk to each other so many times
        before the level below hears of it.
        """
        for k in reversed(range(len(self._trees))):
            pools, trees = self._pools[k], self._trees[k]
            down = np.empty(pools.to_R.size, np.float32)
            down[self._elements[k]] = self._engine.trees_to_R(trees)
            above = down.reshape(pools.to_R.shape)
            below = self._up[k - 1] if k else self._evidence
            for turn in range(explain_away):
                if turn:
                    self._engine.or_to_U(pools, below)
                self._engine.pool_to_U(pools, above)
            heard = self._engine.or_to_S(pools)
            if k:
                self._expect(k - 1, heard)
            else:
                self.image_down = heard

    def weight_beliefs(self) -> list[FloatArray]:
        """Max-marginal differences of W, (features, channels, height, width) per level."""
        return [np.swapaxes(trees.weight_beliefs(), 0, 1) for trees in self._trees]

    @property
    def up(self) -> list[FloatArray]:
        """Messages up to S¹ … Sᴸ."""
        return self._up

    def placement_beliefs(self) -> list[FloatArray]:
        """Max-marginal differences of S¹ … Sᴸ."""
        return [trees.placement_beliefs() for trees in self._trees]

    def pixel_beliefs(self) -> FloatArray:
        """Max-marginal differences of S⁰, the pixels before the noise."""
        return np.asarray(self.image_down + self._evidence)

    def _sum_up(self, k: int) -> None:
        """Sums of all messages of a level in place of its beliefs.

        Beliefs minus priors, unless a prior is so large that it has swallowed messages; and added
        up anew every so often, against the drift of float32.
        """
        trees = self._trees[k]
        layer = trees.layout
        priors = layer.from_field(trees.field_prior), layer.from_kernel(trees.kernel_prior)
        small = max(float(np.abs(prior).max()) for prior in priors) < LARGEST_EXACT
        if small and self._passes % REBUILD_EVERY:
            trees.field -= trees.field_prior
            trees.kernel -= trees.kernel_prior
        else:
            self._engine.collect(trees)

    def _expect(self, k: int, down: FloatArray) -> None:
        """Take up new messages down to the S of a level."""
        trees = self._trees[k]
        trees.field[:], trees.kernel[:] = self._sums[k]
        trees.set_placement_prior(down)
        trees.add_priors()


def passing_memory(network: Network, n_images: int, lanes: int = 1) -> int:
    """Bytes that message passing takes, known before it starts."""
    total = 0
    for level in network.levels:
        layer = level.features
        trees = n_images * layer.n_channels * int(np.prod(layer.image_size))
        total += Layout(layer, n_images).memory(trees, lanes) + 8 * trees
        total += pool_memory(level.pool, n_images)
    return total
