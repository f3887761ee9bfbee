"""Known weights on new images, in batches that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hcnet.engine.engines import Engine
from hcnet.factors import HUGE
from hcnet.grid import FLOAT
from hcnet.hierarchy.decoding import Configuration, Scene, combined, decode, forward
from hcnet.hierarchy.explaining import (
    CANDIDATES,
    all_allowed,
    explain,
    explain_classes,
    template_scores,
)
from hcnet.hierarchy.network import NetworkModel, explaining_memory, in_batches, perturbed_window
from hcnet.hierarchy.network_messages import NetworkPassing, passing_memory
from hcnet.images import BoolArray, Images
from hcnet.names import METHODS as METHODS
from hcnet.templates import matching

# Message passing stores all messages: batches are small, and the answers of an active set would
# depend on the number of images in a batch.
ENGINE = Engine("dense").on("cpu").in_stored_order()
# Rounds of ORs and pools in a backward pass.
EXPLAIN_AWAY = 10
# Largest share by which a position of a pool is made less probable than its centre, to break ties.
TIES = 0.05


@dataclass(frozen=True)
class Inference:
    """How an `HCN` uses its weights on new images.

    Parameters
    ----------
    name : {"explain", "forward", "passing", "match"}, default="explain"
        "explain": decode the templates with the best forward score down to the pixels, and take
        the best explanation; the most accurate for whole images.  "forward": one forward pass, as
        in a CNN; the fastest.  "passing": forward and backward passes of messages, as the paper
        does for imputation.  "match": score all templates by the elements that the image lacks and
        by the pixels that they leave unexplained, weighed by p01 and p10; for many templates,
        clutter and deformation.
    candidates : int, default=8
        Templates that "explain" decodes for each image.
    n_passes : int, default=1
        Forward and backward passes of "passing".

    """

    name: str = "explain"
    candidates: int = CANDIDATES
    n_passes: int = 1


def configuration(
    model: NetworkModel, images: Images, inference: Inference, allowed: BoolArray | None = None
) -> Configuration:
    """The elements of every layer that are on, for every image."""
    network, weights, found = model.network, model.weights, []
    for batch, possible in _batches(model, images, inference, allowed):
        if inference.name in ("explain", "forward"):
            few = inference.candidates if inference.name == "explain" else 1
            found.append(explain(network, weights, batch, possible, few))
            continue
        if inference.name == "passing":
            passing = pass_messages(model, batch, possible, inference.n_passes)
            up, beliefs = passing.up, passing.placement_beliefs()[-1]
            best = beliefs.reshape(batch.n_images, -1).argmax(axis=1)
        else:
            up = forward(network, weights, batch.evidence(network.noise))
            best = matching.match(network, weights, batch, possible).argmax(axis=1)
        scene = Scene(network, weights, batch, up)
        found.append(decode(scene, scene.single(best)))
    return combined(lambda *parts: np.concatenate(parts), *found)


def class_scores(model: NetworkModel, images: Images, inference: Inference) -> NDArray[np.float64]:
    """Max-marginal of every class, up to a constant per image: (images, classes)."""
    network, weights, found = model.network, model.weights, []
    for batch, everything in _batches(model, images, inference, None):
        if inference.name == "explain":
            found.append(explain_classes(network, weights, batch, inference.candidates))
        elif inference.name == "match":
            score = matching.match(network, weights, batch, everything)
            found.append(network.by_class(score, logsumexp))
        else:
            if inference.name == "passing":
                up = pass_messages(model, batch, everything, inference.n_passes).up
            else:
                up = forward(network, weights, batch.evidence(network.noise))
            score = template_scores(network, up[-1], everything).astype(float)
            found.append(network.by_class(score, np.max))
    return np.concatenate(found)


def clean_pixels(
    model: NetworkModel, images: Images, inference: Inference, allowed: BoolArray | None = None
) -> BoolArray:
    """The pixels before the noise."""
    if inference.name != "passing":
        return configuration(model, images, inference, allowed).S[0]
    beliefs = [
        pass_messages(model, batch, possible, inference.n_passes).pixel_beliefs()
        for batch, possible in _batches(model, images, inference, allowed)
    ]
    return np.asarray(np.concatenate(beliefs) > 0)


def pass_messages(
    model: NetworkModel, images: Images, allowed: BoolArray, n_passes: int
) -> NetworkPassing:
    """Forward and backward passes with the weights clamped, undamped, from the initial state.

    The order of updates is random, and the same for every image, whatever the other images are.
    """
    # Equal positions of a pool would leave ties, which small random differences break.
    rng = np.random.default_rng(0)
    levels = [
        replace(level, window=level.window * perturbed_window(level.pool, TIES, rng))
        for level in model.network.levels
    ]
    network = replace(model.network, levels=tuple(levels))
    clamped = [np.where(W, HUGE, -HUGE).astype(FLOAT) for W in model.weights]
    evidence = images.evidence(network.noise)
    passing = NetworkPassing(network, evidence, clamped, allowed, ENGINE, rng, True)
    # Clamped weights receive nothing, so that images cannot influence each other.
    for _ in range(n_passes):
        passing.forward([1.0] * len(network.levels))
        passing.backward(EXPLAIN_AWAY)
    return passing


def _batches(
    model: NetworkModel, images: Images, inference: Inference, allowed: BoolArray | None
) -> Iterator[tuple[Images, BoolArray]]:
    """Batches of images, each with the templates (images, templates) that are allowed."""
    network = model.network
    if allowed is None:
        allowed = all_allowed(network, images.n_images)
    passing = inference.name == "passing"
    needed = passing_memory(ENGINE, network, 1) if passing else explaining_memory(network)
    for batch, rows in in_batches(images, needed):
        yield batch, allowed[rows]
