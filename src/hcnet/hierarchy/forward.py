"""The fast forward pass: max-pooling and correlation, level by level, as in a CNN.

With decided weights and nothing expected from above, the first forward pass of message passing
has this closed form: ORs and trees pass the messages up unchanged, pools take a maximum, and a
placement adds up what its feature covers.
"""

from __future__ import annotations

from hcnet.engine.cpu_pools import max_pool
from hcnet.hierarchy.convolution import correlate
from hcnet.hierarchy.network import Network, Weights
from hcnet.images import FloatArray


def forward(network: Network, weights: Weights, evidence: FloatArray) -> list[FloatArray]:
    """Messages up to S¹ … Sᴸ, each (images, features, height, width)."""
    up: list[FloatArray] = []
    below = evidence
    for level, W in zip(network.levels, weights, strict=True):
        below = correlate(max_pool(level.pool, level.log_prior, below), W)
        up.append(below)
    return up
