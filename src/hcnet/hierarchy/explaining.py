"""The most probable explanation of images by known weights: a discrete search over templates.

The forward pass scores every template as if it were alone, and as if every element of R could take
the best pixel of its window, even one that another has taken.  So the templates that it likes best
are decoded one by one, and how well each explains the image decides (`log_evidence`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.factors import HUGE
from hcnet.hierarchy.decoding import Configuration, decode
from hcnet.hierarchy.forward import forward
from hcnet.hierarchy.network import Network, Weights
from hcnet.images import BoolArray, FloatArray, Images
from hcnet.pool_messages import class_log_prior

IntArray = NDArray[np.int64]

# Templates, at their positions, that are decoded for each image.
CANDIDATES = 8
# Most objects that are looked for in one image.
MOST_OBJECTS = 32


def all_allowed(network: Network, n_images: int) -> BoolArray:
    """No label rules out a template: (images, templates)."""
    return np.ones((n_images, network.classes.n_templates), bool)


def template_scores(network: Network, up: FloatArray, allowed: BoolArray) -> FloatArray:
    """Messages up to the templates plus their prior: (images, templates × positions)."""
    prior = class_log_prior(network.classes, up.shape, allowed)
    return np.asarray(up.reshape(len(up), -1) + prior)


def explain(
    network: Network,
    weights: Weights,
    images: Images,
    allowed: BoolArray | None = None,
    candidates: int = CANDIDATES,
) -> Configuration:
    """The most probable configuration found for every image.

    `allowed` (images, templates) leaves out templates.  With one candidate the forward pass alone
    decides.
    """
    if allowed is None:
        allowed = all_allowed(network, images.n_images)
    up = forward(network, weights, images.evidence(network.noise))
    if network.classes.p_on is not None:
        return _several(network, weights, images, allowed, candidates, up)
    best = None
    for one in _candidates(network, template_scores(network, up[-1], allowed), candidates):
        top = _with(np.zeros(up[-1].shape, bool), one)
        found = decode(network, weights, images, up, top, compare=candidates > 1)
        best = found if best is None else _pick(best, found, found.log_evidence > best.log_evidence)
    assert best is not None
    return best


def explain_classes(
    network: Network, weights: Weights, images: Images, candidates: int = CANDIDATES
) -> NDArray[np.float64]:
    """How well the best configuration found of every class explains an image: (images, classes)."""
    up = forward(network, weights, images.evidence(network.noise))
    score = template_scores(network, up[-1], all_allowed(network, images.n_images))
    categories = entry_categories(network)
    found = np.full((images.n_images, network.classes.n_classes), -np.inf)
    for one in _candidates(network, score, max(candidates, 2)):
        top = _with(np.zeros(up[-1].shape, bool), one)
        value = decode(network, weights, images, up, top).log_evidence
        np.maximum.at(found, (np.arange(len(found)), categories[one]), value)
    return found


def _candidates(network: Network, score: FloatArray, n: int) -> list[IntArray]:
    """What to work out: the best of all, and the best of every class unless one is enough."""
    few = list(_highest(score, n).T)
    if n == 1 or n >= score.shape[1]:
        return few
    categories = entry_categories(network)
    for k in range(network.classes.n_classes):
        own = np.where(categories == k, score, -HUGE)
        best = own.argmax(axis=1)
        # A class that a label rules out has none.
        possible = np.take_along_axis(own, best[:, None], axis=1)[:, 0] > -HUGE / 2
        few.append(np.where(possible, best, few[0]))
    return few


def entry_categories(network: Network) -> IntArray:
    """The category of every template at every position."""
    return np.repeat(np.array(network.classes.categories), int(np.prod(network.top_size)))


def _several(
    network: Network,
    weights: Weights,
    images: Images,
    allowed: BoolArray,
    candidates: int,
    up: list[FloatArray],
) -> Configuration:
    """One object after the other, as long as one makes the configuration more probable."""
    best = decode(network, weights, images, up, np.zeros(up[-1].shape, bool))
    evidence = images.evidence(network.noise)
    for _ in range(MOST_OBJECTS):
        # Pixels that are explained already are no reason for another object.
        left = np.where(best.S[0] & (evidence > 0), 0, evidence).astype(np.float32)
        seen = forward(network, weights, left)[-1]
        start, before = best.S[-1], best.log_joint
        for one in _highest(template_scores(network, seen, allowed), candidates).T:
            found = decode(network, weights, images, up, _with(start, one))
            # Not by evidence: undecided elements cost nothing where another object is already.
            best = _pick(best, found, found.log_joint > best.log_joint)
        if not (best.log_joint > before).any():
            break
    return best


def _with(top: BoolArray, one: IntArray) -> BoolArray:
    """The same templates and one more per image."""
    more = top.reshape(len(top), -1).copy()
    more[np.arange(len(top)), one] = True
    return more.reshape(top.shape)


def _highest(score: FloatArray, n: int) -> IntArray:
    """Columns of the n highest scores of each row, the highest first.

    Where fewer are possible, the highest stands in for the others.
    """
    n = min(n, score.shape[1])
    few = np.argpartition(-score, n - 1, axis=1)[:, :n]
    order = np.argsort(-np.take_along_axis(score, few, axis=1), axis=1)
    few = np.take_along_axis(few, order, axis=1)
    return np.where(np.take_along_axis(score, few, axis=1) > -HUGE / 2, few, few[:, :1])


def _pick(a: Configuration, b: Configuration, where: BoolArray) -> Configuration:
    """Configuration b where told, a elsewhere."""

    def pick(x: BoolArray, y: BoolArray) -> BoolArray:
        return np.where(where[:, None, None, None], y, x)

    return Configuration(
        S=[pick(x, y) for x, y in zip(a.S, b.S, strict=True)],
        R=[pick(x, y) for x, y in zip(a.R, b.R, strict=True)],
        log_joint=np.where(where, b.log_joint, a.log_joint),
        log_evidence=np.where(where, b.log_evidence, a.log_evidence),
    )
