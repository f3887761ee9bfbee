"""The multi-layer network from a stream: some passes over each minibatch."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Node, restore
from hcnet.engine.driver import Measurement
from hcnet.hierarchy.explaining import joint_function, joint_memory
from hcnet.hierarchy.network import Network, NetworkModel
from hcnet.hierarchy.network_learning import (
    VOTERS,
    NetworkOptions,
    dead_start,
    majority,
    on_weights,
)
from hcnet.hierarchy.network_messages import NetworkPassing, count_ink, passing_memory
from hcnet.images import BoolArray
from hcnet.learning.message_passing import weight_prior
from hcnet.online.stream import Beliefs, Minibatch, Stream

# A minibatch must show every template a few times, and what the levels above say of the lower ones
# takes passes to arrive: benchmarks/NOTES.md has figures.
BATCH_SIZE = 50
PASSES = 20
FORGETTING = 0.7


class NetworkStream(Stream):
    """A stream that a network is learned from: also the weights after the last minibatches."""

    def __init__(
        self,
        network: Network,
        classes: NDArray[Any],
        options: NetworkOptions,
        forgetting: float,
        rng: np.random.Generator,
    ) -> None:
        initial = [weight_prior(level.p_W, level.weight_shape, rng) for level in network.levels]
        super().__init__(Beliefs(initial, forgetting), options, rng)
        self.network = network
        self.classes = classes
        self.problem = dead_start(network)
        self.voters: deque[list[BoolArray]] = deque(maxlen=VOTERS)
        self.made_for: tuple[Any, ...] = ()  # parameters that must not change on the way

    def memory(self, batch: Minibatch) -> int:
        """Bytes that a minibatch takes at its peak."""
        engine, network, n = self.options.engine, self.network, batch.images.n_images
        needed = passing_memory(engine, network, n, count_ink(engine, network, batch.images))
        return needed + joint_memory(engine, network, n)

    def learn(self, batch: Minibatch) -> Measurement:
        """Some forward and backward passes over a minibatch."""
        images, allowed = batch.images, batch.allowed
        assert allowed is not None
        passing = NetworkPassing(
            self.network,
            images.evidence_on_grid(self.network.noise),
            self.beliefs.prior(),
            allowed,
            self.options.engine,
            self.rng,
            exact=True,
        )
        for _ in range(self.options.max_iter or PASSES):
            passing.forward(self.options.damping)
            passing.backward()
        change = self.beliefs.update(passing.weight_beliefs())
        before = self.weights() if self.voters else None
        self.voters.append(on_weights(self.beliefs.now or []))
        weights = self.weights()
        changed = sum(
            int((new != old).sum()) for new, old in zip(weights, before or weights, strict=True)
        )
        value = joint_function(self.options.engine, self.network, images, allowed)(weights)
        return self._counted(batch, value, changed, change)

    def weights(self) -> list[BoolArray]:
        """Every weight as it was after most of the last minibatches."""
        if not self.options.vote:
            return self.voters[-1]
        return majority(self.voters)

    def model(self) -> NetworkModel:
        """The network with its current weights."""
        return NetworkModel(self.network, self.weights(), self.classes)

    def saved_fields(self, finished: bool) -> Fields:
        """Also the weights after the last minibatches."""
        voter = kinds.each_of(
            [kinds.binary_array(level.weight_shape) for level in self.network.levels]
        )
        voters = kinds.converted(
            kinds.list_of(voter, 1, VOTERS), list, lambda found: deque(found, VOTERS)
        )
        return {**super().saved_fields(finished), "voters": voters}

    @classmethod
    def read(
        cls, file: Node, network: Network, classes: NDArray[Any], options: NetworkOptions
    ) -> NetworkStream:
        """The stream of a file whose network and classes are known."""
        stream = cls(network, classes, options, 0.0, np.random.default_rng(0))
        restore(stream, file)
        return stream
