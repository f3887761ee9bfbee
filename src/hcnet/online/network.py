"""The multi-layer network from a stream: some passes over each minibatch, then on to the next."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import Contents, Section
from hcnet.engine.choice import ENGINE_NAMES
from hcnet.engine.driver import Measurement
from hcnet.engine.schedules import SCHEDULE_NAMES, Schedule
from hcnet.hierarchy.learn import VOTERS, NetworkOptions, dead_start, joint, majority, on_weights
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.network import Network
from hcnet.hierarchy.passing import NetworkPassing, passing_memory
from hcnet.images import BoolArray
from hcnet.learning.passing import weight_prior
from hcnet.online.forgetting import Beliefs
from hcnet.online.generators import generator_state, restored_generator
from hcnet.online.minibatches import LabelledImages

# A minibatch must show every template a few times, and what the levels above say of the lower ones
# takes passes to arrive: docs/online.md has the measurements.
BATCH_SIZE = 50
PASSES = 20
FORGETTING = 0.7


class NetworkStream:
    """Everything that learning carries from minibatch to minibatch."""

    def __init__(
        self,
        network: Network,
        classes: NDArray[Any],
        options: NetworkOptions,
        forgetting: float,
        rng: np.random.Generator,
    ) -> None:
        self.network = network
        self.classes = classes
        self.options = options
        self.rng = rng
        initial = [weight_prior(level.p_W, level.weight_shape, rng) for level in network.levels]
        self.beliefs = Beliefs(initial, forgetting)
        self.voters: deque[list[BoolArray]] = deque(maxlen=VOTERS)
        self.made_for: tuple[Any, ...] = ()  # parameters that must not change on the way
        self.n_images = 0
        self.n_batches = 0

    def configure(self, options: NetworkOptions, forgetting: float) -> None:
        """Go on in another way."""
        self.options, self.beliefs.forgetting = options, forgetting

    @property
    def dead(self) -> str | None:
        """Why nothing can be learned, if so."""
        return dead_start(self.network)

    @property
    def passes(self) -> int:
        """Passes over a minibatch."""
        return self.options.max_iter or PASSES

    def memory(self, batch: LabelledImages) -> int:
        """Bytes that a minibatch takes at its peak."""
        n = batch.images.n_images
        lanes = self.options.schedule.lanes(n)
        return passing_memory(self.options.engine, self.network, n, lanes)

    def learn(self, batch: LabelledImages) -> Measurement:
        """Some forward and backward passes over a minibatch."""
        images, allowed = batch.images, batch.allowed
        passing = NetworkPassing(
            self.network,
            images.evidence(self.network.noise),
            self.beliefs.prior(),
            allowed,
            self.options.engine,
            self.rng,
        )
        for _ in range(self.passes):
            passing.forward(self.options.schedule, self.options.damping)
            passing.backward()
        change = self.beliefs.update(passing.weight_beliefs())
        before = self.weights() if self.voters else None
        self.voters.append(on_weights(self.beliefs.now or []))
        weights = self.weights()
        changed = sum(
            int((new != old).sum()) for new, old in zip(weights, before or weights, strict=True)
        )
        self.n_images += images.n_images
        self.n_batches += 1
        value = joint(self.network, weights, images, allowed)
        return Measurement(value, changed, change, f"{self.n_images:,} images")

    def weights(self) -> list[BoolArray]:
        """Every weight as it was after most of the last minibatches."""
        if not self.options.vote:
            return self.voters[-1]
        return majority(self.voters)

    def model(self) -> NetworkModel:
        """The network with its weights as they are now."""
        return NetworkModel(self.network, self.weights(), self.classes)

    def contents(self) -> Contents:
        """What goes into a file beside the network: enough to go on as if nothing had happened."""
        options = self.options
        header = {
            "engine": options.engine,
            "schedule": options.schedule.name,
            "damping": list(options.damping),
            "max_iter": options.max_iter,
            "vote": options.vote,
            "generator": generator_state(self.rng),
            "n_images": self.n_images,
            "n_batches": self.n_batches,
            "voters": len(self.voters),
        }
        arrays: dict[str, NDArray[Any]] = {}
        for n, voter in enumerate(self.voters):
            for k, W in enumerate(voter):
                arrays[f"voter-{n}-{k}"] = np.packbits(W)
        return Contents(header, arrays).with_part("beliefs", self.beliefs.contents())

    @classmethod
    def read(cls, file: Section, network: Network, classes: NDArray[Any]) -> NetworkStream:
        """The stream of a file whose network and classes are known."""
        header = file.header
        options = NetworkOptions(
            damping=tuple(float(damping) for damping in header["damping"]),
            engine=header["engine"],
            schedule=Schedule(header["schedule"]),
            vote=bool(header["vote"]),
            max_iter=None if header["max_iter"] is None else int(header["max_iter"]),
        )
        if options.engine not in ENGINE_NAMES or options.schedule.name not in SCHEDULE_NAMES:
            raise ValueError("its way of passing messages is unknown")
        if not all(0 < damping <= 1 and math.isfinite(damping) for damping in options.damping):
            raise ValueError("its damping is no share")
        shapes = [level.weight_shape for level in network.levels]
        if len(options.damping) != len(shapes):
            raise ValueError("its damping is incomplete")
        counts = int(header["n_images"]), int(header["n_batches"]), int(header["voters"])
        if (
            min(*counts, 1 if options.max_iter is None else options.max_iter) < 1
            or counts[2] > VOTERS
        ):
            raise ValueError("its counts are none")
        beliefs = Beliefs.read(file.part("beliefs"), shapes)
        stream = cls(network, classes, options, beliefs.forgetting, np.random.default_rng(0))
        stream.beliefs = beliefs
        stream.rng = restored_generator(header["generator"])
        stream.n_images, stream.n_batches = counts[:2]
        for n in range(counts[2]):
            voter = [file.bits(f"voter-{n}-{k}", shape) for k, shape in enumerate(shapes)]
            stream.voters.append(voter)
        return stream
