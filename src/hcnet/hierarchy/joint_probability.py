"""Joint log-probability of weights and images, at configurations that one forward pass finds.

The forward pass chooses a template per image (or one after the other, where several can be on), and
the levels below it are decoded: on the CPU, or on the GPU that holds the messages.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.engines import ReadyEngine
from hcnet.grid import single
from hcnet.hierarchy.batches import explaining_memory, in_batches
from hcnet.hierarchy.decoding import pixel_log_probabilities, top_log_prior, weight_log_prior
from hcnet.hierarchy.explaining import MOST_OBJECTS, explain
from hcnet.hierarchy.network import Network, Weights
from hcnet.images import BoolArray, Images
from hcnet.pool_messages import class_log_prior


class Joint(Protocol):
    """Joint log-probability of some images as a function of the weights."""

    def of(self, weights: Weights) -> float:
        """Joint log-probability with these weights."""


def start_joint(engine: ReadyEngine, network: Network, images: Images, allowed: BoolArray) -> Joint:
    """On the device of the engine; `allowed` (images, templates) leaves out templates."""
    kind = DeviceJoint if engine.gpu else HostJoint
    return kind(network, images, allowed)


def joint_memory(engine: ReadyEngine, network: Network, n_images: int) -> int:
    """Bytes that it takes beside the messages; on the CPU it works in small batches."""
    if not engine.gpu:
        return 0
    weights = sum(int(np.prod(level.weight_shape)) for level in network.levels)
    return n_images * explaining_memory(network) + 5 * weights


class HostJoint:
    """On the CPU."""

    def __init__(self, network: Network, images: Images, allowed: BoolArray) -> None:
        self._network, self._images, self._allowed = network, images, allowed

    def of(self, weights: Weights) -> float:
        """Joint log-probability with these weights."""
        total = weight_log_prior(self._network, weights)
        parts = [
            explain(self._network, weights, batch, self._allowed[rows], candidates=1).log_joint
            for batch, rows in in_batches(self._images, explaining_memory(self._network))
        ]
        return float(np.concatenate(parts).sum()) + total


class DeviceJoint:
    """On a GPU: images are copied once, weights for every evaluation."""

    def __init__(self, network: Network, images: Images, allowed: BoolArray) -> None:
        from hcnet.engine.cuda import arrays, explaining  # needs a GPU

        self._arrays, self._device = arrays, explaining
        self._network = network
        n = images.n_images
        self._levels = [
            explaining.DeviceLevel.start(level.pool, level.features, level.log_prior, n)
            for level in network.levels
        ]
        evidence = images.evidence(network.noise)
        self._evidence, self._left = arrays.hold(evidence), arrays.hold(evidence)
        up = self._levels[-1].up
        prior = class_log_prior(network.classes, up.shape, allowed)
        self._prior = single(prior)
        self._shape = up.shape

    def of(self, weights: Weights) -> float:
        """Joint log-probability with these weights."""
        for level, W in zip(self._levels, weights, strict=True):
            level.weigh(W)
        several = self._network.classes.p_on is not None
        found = self._several() if several else self._one()
        return float(found.sum()) + weight_log_prior(self._network, weights)

    def _one(self) -> NDArray[np.float64]:
        self._forward(self._evidence)
        return self._decided(self._with_best(np.zeros(self._shape, np.uint8)))

    def _several(self) -> NDArray[np.float64]:
        """One object after the other, as `explain` does."""
        tops = np.zeros(self._shape, np.uint8)
        self._forward(self._evidence)
        best = self._decided(tops)
        explained = self._arrays.copied(self._levels[0].taken)
        for _ in range(MOST_OBJECTS):
            self._device.remove_explained(self._evidence, explained, self._left)
            self._forward(self._left)
            new = self._with_best(tops)
            self._forward(self._evidence)  # decisions use all of the evidence
            found = self._decided(new)
            better = found > best
            if not better.any():
                break
            best = np.where(better, found, best)
            tops[better] = new[better]
            self._device.replace_images(better, self._levels[0].taken, explained)
        return best

    def _forward(self, evidence: object) -> None:
        below = evidence
        for level in self._levels:
            below = level.forward(below)

    def _with_best(self, tops: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """One more template per image: the best of the last forward pass."""
        n = len(tops)
        up = self._arrays.fetch(self._levels[-1].up).reshape(n, -1)
        new = tops.reshape(n, -1).copy()
        new[np.arange(n), (up + self._prior).argmax(axis=1)] = 1
        return new.reshape(tops.shape)

    def _decided(self, tops: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Log-probabilities of all images, with everything below these templates decided."""
        S = self._arrays.hold(tops)
        total = top_log_prior(self._network, tops > 0)
        for k in reversed(range(len(self._levels))):
            below = self._levels[k - 1].up if k else self._evidence
            S = self._levels[k].decide(S, below)
            total = total + self._levels[k].log_priors()
        counts = self._device.tally(self._evidence, S)
        return np.asarray(total + counts @ pixel_log_probabilities(self._network.noise).ravel())
