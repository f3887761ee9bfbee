"""Using a learned network on new images, in batches that fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.choice import preset_schedule
from hcnet.factors import HUGE
from hcnet.hierarchy import matching
from hcnet.hierarchy.batches import explaining_memory, in_batches
from hcnet.hierarchy.decoding import Configuration, Scene, decode, each
from hcnet.hierarchy.explaining import (
    all_allowed,
    entry_categories,
    explain,
    explain_classes,
    template_scores,
)
from hcnet.hierarchy.forward import forward
from hcnet.hierarchy.matching import match
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.network import Network
from hcnet.hierarchy.passing import NetworkPassing, passing_memory
from hcnet.hierarchy.specification import perturbed_window
from hcnet.images import BoolArray, FloatArray, Images

Method = Literal["explain", "forward", "passing", "match"]
METHODS: tuple[str, ...] = get_args(Method)

# Images come in small batches; with an active set, answers would depend on their number.
DEFAULT_ENGINE = "dense"
# Turns of ORs and pools in a backward pass.
EXPLAIN_AWAY = 10
# Share by which positions of a pool are made less probable than its centre, against ties.
TIES = 0.05


@dataclass(frozen=True, slots=True)
class How:
    """How known weights are used."""

    method: Method
    candidates: int  # of "explain"
    n_passes: int  # of "passing"
    engine: str = DEFAULT_ENGINE  # of "passing"


def configuration(
    model: NetworkModel, images: Images, allowed: BoolArray | None, how: How
) -> Configuration:
    """What is on in every layer, for every image."""
    network = model.network
    if allowed is None:
        allowed = all_allowed(network, images.n_images)

    def one(batch: Images, rows: slice) -> Configuration:
        if how.method == "passing":
            passing = pass_messages(model, batch, allowed[rows], how)
            top = _decide_templates(passing)
            return decode(Scene(network, model.weights, batch, passing.up), top)
        if how.method == "match":
            return _best_match(model, batch, allowed[rows])
        few = how.candidates if how.method == "explain" else 1
        return explain(network, model.weights, batch, allowed[rows], few)

    parts = in_batches(images, _memory(network, how), one)
    return each(lambda *levels: np.concatenate(levels), *parts)


def pixel_beliefs(
    model: NetworkModel, images: Images, allowed: BoolArray | None, how: How
) -> FloatArray:
    """Max-marginal differences of the pixels before the noise, by message passing."""
    network = model.network
    if allowed is None:
        allowed = all_allowed(network, images.n_images)

    def one(batch: Images, rows: slice) -> FloatArray:
        return pass_messages(model, batch, allowed[rows], how).pixel_beliefs()

    return np.concatenate(in_batches(images, _memory(network, how), one))


def class_scores(model: NetworkModel, images: Images, how: How) -> NDArray[np.float64]:
    """Max-marginal of every class, up to a constant per image: (images, classes)."""
    network, weights = model.network, model.weights

    def one(batch: Images, rows: slice) -> NDArray[np.float64]:
        if how.method == "explain":
            return explain_classes(network, weights, batch, how.candidates)
        everything = all_allowed(network, batch.n_images)
        if how.method == "match":
            matches = match(network, weights, batch, everything)
            return matching.class_scores(network, matches, entry_categories(network))
        if how.method == "passing":
            up = pass_messages(model, batch, everything, how).up[-1]
        else:
            up = forward(network, weights, batch.evidence(network.noise))[-1]
        score = template_scores(network, up, everything)
        return _class_maxima(network, score)

    return np.concatenate(in_batches(images, _memory(network, how), one))


def pass_messages(
    model: NetworkModel, images: Images, allowed: BoolArray, how: How
) -> NetworkPassing:
    """Forward and backward passes with the weights clamped, undamped, from the initial state.

    The order of updates is random; all images get the same one, whatever is beside them.
    """
    # Where all positions of a pool are alike nothing could be decided: a random little decides.
    rng = np.random.default_rng(0)
    levels = [
        replace(level, window=level.window * perturbed_window(level.pool.window, TIES, rng))
        for level in model.network.levels
    ]
    network = replace(model.network, levels=tuple(levels))
    clamped = [np.where(W, HUGE, -HUGE).astype(np.float32) for W in model.weights]
    evidence = images.evidence(network.noise)
    passing = NetworkPassing(network, evidence, clamped, allowed, how.engine, rng, True)
    # Clamped weights hear nothing, so that images beside each other do not see each other.
    schedule = replace(preset_schedule(how.engine), shuffle=False)
    for _ in range(how.n_passes):
        passing.forward(schedule, [1.0] * len(network.levels))
        passing.backward(EXPLAIN_AWAY)
    return passing


def _best_match(model: NetworkModel, images: Images, allowed: BoolArray) -> Configuration:
    network, weights = model.network, model.weights
    best = match(network, weights, images, allowed).argmax(axis=1)
    up = forward(network, weights, images.evidence(network.noise))
    top = np.zeros((images.n_images, up[-1][0].size), bool)
    top[np.arange(len(top)), best] = True
    return decode(Scene(network, weights, images, up), top.reshape(up[-1].shape))


def _decide_templates(passing: NetworkPassing) -> BoolArray:
    beliefs = passing.placement_beliefs()[-1]
    flat = beliefs.reshape(len(beliefs), -1)
    top = np.zeros(flat.shape, bool)
    top[np.arange(len(flat)), flat.argmax(axis=1)] = True
    return top.reshape(beliefs.shape)


def _class_maxima(network: Network, score: FloatArray) -> NDArray[np.float64]:
    categories = entry_categories(network)
    best = [score[:, categories == k].max(axis=1) for k in range(network.classes.n_classes)]
    return np.stack(best, axis=1).astype(float)


def _memory(network: Network, how: How) -> int:
    """Bytes that one image takes."""
    if how.method == "passing":
        return passing_memory(how.engine, network, 1)
    return explaining_memory(network)
