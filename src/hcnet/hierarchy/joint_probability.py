"""Joint log-probability of weights and images, at configurations that one forward pass finds.

The forward pass chooses a template per image, and the levels below it are decoded: on the CPU, or
on the GPU that holds the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hcnet.engine.engines import ReadyEngine
from hcnet.grid import single
from hcnet.hierarchy.decoding import (
    Scene,
    decode,
    forward,
    pixel_log_probabilities,
    top_log_prior,
    weight_log_prior,
)
from hcnet.hierarchy.explaining import template_scores
from hcnet.hierarchy.network import Network, Weights, explaining_memory, in_batches
from hcnet.images import BoolArray, Images
from hcnet.messages import class_log_prior


def joint_function(
    engine: ReadyEngine, network: Network, images: Images, allowed: BoolArray
) -> Callable[[Weights], float]:
    """The joint log-probability as a function of the weights, on the device of the engine.

    `allowed` (images, templates) leaves out templates.
    """
    if engine.gpu:
        return DeviceJoint(network, images, allowed)
    return partial(host_joint, network, images, allowed)


def joint_memory(engine: ReadyEngine, network: Network, n_images: int) -> int:
    """Bytes that it takes beside the messages; on the CPU it works in small batches."""
    if not engine.gpu:
        return 0
    weights = sum(int(np.prod(level.weight_shape)) for level in network.levels)
    return n_images * explaining_memory(network) + 5 * weights


def host_joint(network: Network, images: Images, allowed: BoolArray, weights: Weights) -> float:
    """Joint log-probability, on the CPU."""
    parts = []
    for batch, rows in in_batches(images, explaining_memory(network)):
        up = forward(network, weights, batch.evidence(network.noise))
        scene = Scene(network, weights, batch, up)
        best = template_scores(network, up[-1], allowed[rows]).argmax(axis=1)
        parts.append(decode(scene, scene.single(best), compare=False).log_joint)
    return float(np.concatenate(parts).sum()) + weight_log_prior(network, weights)


class DeviceJoint:
    """Joint log-probability, on a GPU: images are copied once, weights for every evaluation."""

    def __init__(self, network: Network, images: Images, allowed: BoolArray) -> None:
        from hcnet.engine.cuda import arrays, pools  # needs a GPU

        self._arrays, self._device = arrays, pools
        self._network = network
        self._levels = [
            pools.DeviceLevel(level.pool, level.features, level.log_prior, images.n_images)
            for level in network.levels
        ]
        self._evidence = arrays.hold(images.evidence(network.noise))
        self._prior = single(class_log_prior(network.classes, self._levels[-1].up.shape, allowed))

    def __call__(self, weights: Weights) -> float:
        """Joint log-probability with these weights."""
        below = self._evidence
        for level, W in zip(self._levels, weights, strict=True):
            level.weigh(W)
            below = level.forward(below)
        score = self._arrays.fetch(below).reshape(self._prior.shape) + self._prior
        top = np.zeros(score.shape, bool)
        top[np.arange(len(top)), score.argmax(axis=1)] = True
        top = top.reshape(below.shape)
        S = self._arrays.hold(top.view(np.uint8))
        total = top_log_prior(self._network, top)
        for k in reversed(range(len(self._levels))):
            S = self._levels[k].decide(S, self._levels[k - 1].up if k else self._evidence)
            total = total + self._levels[k].log_priors()
        counts = self._device.tally(self._evidence, S)
        total = total + counts @ pixel_log_probabilities(self._network.noise).ravel()
        return float(total.sum()) + weight_log_prior(self._network, weights)
