"""The most probable explanation of images by known weights: a discrete search over templates.

The forward pass scores every template as if it were alone, and as if every element of R could take
the best pixel of its window, even one that another element has taken.  So the templates with the
best forward scores are decoded one by one, and the best explanation (`log_evidence`) decides.

The joint log-probability, by which learning is judged, takes the template of the forward pass and
decodes once: on the CPU, or on the GPU that holds the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.driver import look
from hcnet.engine.engines import ReadyEngine
from hcnet.factors import HUGE
from hcnet.grid import FLOAT, single
from hcnet.hierarchy.decoding import (
    Configuration,
    Scene,
    decode,
    forward,
    improved,
    pixel_log_likelihood,
    pixel_log_probabilities,
    top_log_prior,
    weight_log_prior,
)
from hcnet.hierarchy.network import Network, Weights, explaining_memory, in_batches
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.messages import class_log_prior

IntArray = NDArray[np.int64]

# Templates, at their positions, that are decoded for each image.
CANDIDATES = 8
# The parts of a candidate are moved if it is worse than the best candidate by at most this many
# pixels: benchmarks/NOTES.md has the measurement.
MARGIN = 9
# Most positions of parts that are tried for one image; in images with more, parts stay.
MOST_TRIALS = 256
# Most objects that are looked for in one image.
MOST_OBJECTS = 32


def all_allowed(network: Network, n_images: int) -> BoolArray:
    """All templates, for images without labels: (images, templates)."""
    return np.ones((n_images, network.classes.n_templates), bool)


def agreeing(network: Network, codes: IntArray) -> BoolArray:
    """Templates that agree with the label of every image; all for an image without one (-1)."""
    categories = np.array(network.classes.categories)
    return np.asarray((codes[:, None] < 0) | (codes[:, None] == categories))


def template_scores(network: Network, up: FloatArray, allowed: BoolArray) -> FloatArray:
    """Messages up to the templates plus their prior: (images, templates × positions)."""
    prior = single(class_log_prior(network.classes, up.shape, allowed))
    return np.asarray(up.reshape(len(up), -1) + prior)


def explain(
    network: Network,
    weights: Weights,
    images: Images,
    allowed: BoolArray | None = None,
    candidates: int = CANDIDATES,
) -> Configuration:
    """The most probable configuration found for every image.

    `allowed` (images, templates) leaves out templates.  With one candidate the forward pass
    chooses the template.
    """
    if allowed is None:
        allowed = all_allowed(network, images.n_images)
    up = forward(network, weights, images.evidence(network.noise))
    scene = Scene(network, weights, images, up)
    if network.classes.p_on is not None:
        return _several(scene, allowed, candidates)
    few = _candidates(network, template_scores(network, up[-1], allowed), candidates)
    best = decode(scene, scene.single(few[0]), compare=candidates > 1)
    if candidates == 1:
        return best
    for one, rival in zip(few, _scores(scene, few)[1], strict=True):
        rows = np.flatnonzero(rival)
        if len(rows):
            part = scene.of(rows)
            found = decode(part, part.single(one[rows]))
            best = improved(best, rows, improve_positions(part, found))
    return best


def explain_classes(
    network: Network, weights: Weights, images: Images, candidates: int = CANDIDATES
) -> NDArray[np.float64]:
    """Log-evidence of the best configuration found with every class: (images, classes).

    Parts are moved only in images for which several classes are in question.
    """
    up = forward(network, weights, images.evidence(network.noise))
    scene = Scene(network, weights, images, up)
    everything = all_allowed(network, images.n_images)
    few = _candidates(network, template_scores(network, up[-1], everything), max(candidates, 2))
    score, rivals = _scores(scene, few)
    category = network.entry_categories[few]
    leader = np.take_along_axis(category, score.argmax(axis=0)[None], axis=0)
    rivals &= (rivals & (category != leader)).any(axis=0)
    found = np.full((images.n_images, network.classes.n_classes), -np.inf)
    for one, own, rival, value in zip(few, category, rivals, score, strict=True):
        rows = np.flatnonzero(rival)
        if len(rows):
            part = scene.of(rows)
            better = decode(part, part.single(one[rows]))
            value[rows] = improve_positions(part, better).log_evidence
        np.maximum.at(found, (np.arange(images.n_images), own), value)
    return found


def _scores(scene: Scene, few: IntArray) -> tuple[NDArray[np.float64], BoolArray]:
    """Log-evidence of the candidates, each decoded once: (candidates, images).

    And whether a candidate may become the best once its parts are moved.
    """
    score = np.full(few.shape, -np.inf)
    for k, one in enumerate(few):
        new = np.flatnonzero((one != few[:k]).all(axis=0))
        if len(new):
            part = scene.of(new)
            score[k, new] = decode(part, part.single(one[new])).log_evidence
    pixel = max(scene.network.noise.k1, -scene.network.noise.k0)
    return score, np.asarray(score >= score.max(axis=0) - MARGIN * pixel)


def _candidates(network: Network, score: FloatArray, n: int) -> IntArray:
    """Entries to decode: the best of all, and the best of every class unless n is 1.

    (candidates, images); an image with fewer candidates has some of them twice.
    """
    few = list(_highest(score, n).T)
    if n == 1 or n >= score.shape[1]:
        return np.array(few)
    categories = network.entry_categories
    for k in range(network.classes.n_classes):
        own = np.where(categories == k, score, -HUGE)
        best = own.argmax(axis=1)
        # A class that contradicts the label has no candidate.
        possible = np.take_along_axis(own, best[:, None], axis=1)[:, 0] > -HUGE / 2
        few.append(np.where(possible, best, few[0]))
    return np.array(few)


def _several(scene: Scene, allowed: BoolArray, candidates: int) -> Configuration:
    """One object after the other, as long as one makes the configuration more probable."""
    best = decode(scene, np.zeros(scene.up[-1].shape, bool), compare=False)
    network = scene.network
    evidence = scene.images.evidence(network.noise)
    for _ in range(MOST_OBJECTS):
        # Pixels that are explained already do not count as evidence for another object.
        left = np.where(best.S[0] & (evidence > 0), 0, evidence).astype(FLOAT)
        seen = forward(network, scene.weights, left)[-1]
        start, before = best.S[-1], best.log_joint
        for one in _highest(template_scores(network, seen, allowed), candidates).T:
            more = start.reshape(len(start), -1).copy()
            more[np.arange(len(start)), one] = True
            found = decode(scene, more.reshape(start.shape), compare=False)
            # Not by log-evidence: undecided elements cost nothing where an object is already.
            best = improved(best, np.arange(len(start)), found, by="log_joint")
        if not (best.log_joint > before).any():
            break
    return best


def _highest(score: FloatArray, n: int) -> IntArray:
    """Columns of the n highest scores of each row, the highest first.

    Where fewer are possible, the highest takes the place of the others.
    """
    n = min(n, score.shape[1])
    # Stable: ties are common, and other ways of sorting break them differently on every machine.
    few = np.argsort(-score, axis=1, kind="stable")[:, :n]
    return np.where(np.take_along_axis(score, few, axis=1) > -HUGE / 2, few, few[:, :1])


def improve_positions(scene: Scene, found: Configuration) -> Configuration:
    """The same templates, with parts moved where that raises the log-evidence.

    Decoding puts each part where it would explain most if it were alone.  Where parts overlap, or
    much of one is hidden, that is often a pixel off, and a comparison of templates would not be
    fair.  So every part tries all positions of its window, with all levels below it decided again.
    """
    levels, n = scene.network.levels, scene.images.n_images
    trials = np.zeros(n, np.int64)
    for level, R in zip(levels[1:], found.R[1:], strict=True):
        trials += R.sum(axis=(1, 2, 3)) * level.pool.n_members
    few = trials <= MOST_TRIALS
    for k in reversed(range(1, len(levels))):
        parts = (found.R[k] & few[:, None, None, None]).reshape(n, -1)
        for turn in range(int(parts.sum(axis=1).max(initial=0))):
            rows = np.flatnonzero(parts.sum(axis=1) > turn)
            # The part of each image whose turn it is.
            which = (parts[rows].cumsum(axis=1) == turn + 1).argmax(axis=1)
            part = np.unravel_index(which, found.R[k].shape[1:])
            for member in range(levels[k].pool.n_members):
                other = found.choices[k][(rows, *part)] != member
                prior = levels[k].log_prior
                possible = prior[(part[0] % len(prior), *part[1:], member)] > -HUGE / 2
                here = np.flatnonzero(other & possible)
                if len(here) == 0:
                    continue
                chosen = rows[here]
                choices = [choice[chosen] for choice in found.choices[k:]]
                choices[0][(np.arange(len(here)), *(axis[here] for axis in part))] = member
                tried = decode(scene.of(chosen), found.S[-1][chosen], choices)
                found = improved(found, chosen, tried)
    return found


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
        look()
        up = forward(network, weights, batch.evidence(network.noise))
        best = template_scores(network, up[-1], allowed[rows]).argmax(axis=1)
        scene = Scene(network, weights, batch, up)
        parts.append(decode(scene, scene.single(best), compare=False).log_joint)
    return float(np.concatenate(parts).sum()) + weight_log_prior(network, weights)


def joint_of_nothing(network: Network, images: Images, allowed: BoolArray) -> float:
    """Joint log-probability with all weights off, which takes no decoding.

    Of a network that is being learned: every image shows one template.
    """
    value = pixel_log_likelihood(network, images, np.zeros(images.pixels.shape, bool))
    shape = images.n_images, network.classes.n_templates, *network.top_size
    value += class_log_prior(network.classes, shape, allowed).max(axis=1)
    off = [np.zeros(level.weight_shape, bool) for level in network.levels]
    return float(value.sum()) + weight_log_prior(network, off)


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
