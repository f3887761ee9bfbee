"""A whole configuration of the network for every image, from the top down, and its probability.

Thresholding beliefs one by one gives variables that contradict each other.  Here each level is
decided given the one above: templates first, then where every active element of R moves to, so that
the configuration is always possible and its joint log-probability a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcnet.hierarchy.convolution import bconv
from hcnet.hierarchy.network import Network, Weights
from hcnet.hierarchy.settling import settle
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.pool_messages import template_log_prior


@dataclass(frozen=True, eq=False)
class Configuration:
    """All that is on, for some images."""

    S: list[BoolArray]  # S⁰ … Sᴸ, each (images, features, height, width)
    R: list[BoolArray]  # R¹ … Rᴸ
    log_joint: NDArray[np.float64]  # (images,): log p(X, H | W)
    # (images,): the same without deciding where pixels move to, by which explanations are compared.
    # Deciding costs a dense template more than a sparse one, most of all where nothing is seen.
    log_evidence: NDArray[np.float64]


def decode(
    network: Network,
    weights: Weights,
    images: Images,
    up: Sequence[FloatArray],
    top: BoolArray,
    compare: bool = True,
) -> Configuration:
    """Decide all levels given the templates `top` that are on and the messages up to S¹ … Sᴸ.

    Without `compare` the log-evidence is left out: not a number.
    """
    evidence = images.evidence(network.noise)
    S: list[BoolArray] = [top]
    R: list[BoolArray] = []
    log_prior = top_log_prior(network, top)
    for k in reversed(range(len(network.levels))):
        level = network.levels[k]
        R.insert(0, bconv(S[0], weights[k]))
        below = up[k - 1] if k else evidence
        settled = settle(level, R[0], below, spread=k == 0 and compare)
        S.insert(0, settled.S)
        if k:
            log_prior += settled.log_prior
    log_joint = log_prior + settled.log_prior + pixel_log_likelihood(network, images, S[0])
    nothing = pixel_log_likelihood(network, images, np.zeros_like(S[0]))
    log_evidence = log_prior + nothing + settled.gain if compare else np.full(len(top), np.nan)
    return Configuration(S, R, log_joint, log_evidence)


def top_log_prior(network: Network, top: BoolArray) -> NDArray[np.float64]:
    """Log p of the templates that are on, per image."""
    positions = int(np.prod(top.shape[2:]))
    on = top.sum(axis=(2, 3)) @ template_log_prior(network.classes, positions)
    if network.classes.p_on is not None:  # log-odds: everything else is off
        on = on + positions * top.shape[1] * np.log1p(-network.classes.p_on)
    return np.asarray(on)


def pixel_log_likelihood(network: Network, images: Images, S: BoolArray) -> NDArray[np.float64]:
    """Log p(X | S⁰) of the observed pixels, per image."""
    p01, p10 = network.noise.p01, network.noise.p10
    on = np.where(S, np.log1p(-p01), np.log(p10))
    off = np.where(S, np.log(p01), np.log1p(-p10))
    value = np.where(images.pixels, on, off) * images.observed
    return np.asarray(value.sum(axis=(1, 2, 3)))


def weight_log_prior(network: Network, weights: Weights) -> float:
    """Log p(W) of all levels."""
    total = 0.0
    for level, W in zip(network.levels, weights, strict=True):
        total += W.sum() * np.log(level.p_W) + (W.size - W.sum()) * np.log1p(-level.p_W)
    return float(total)
