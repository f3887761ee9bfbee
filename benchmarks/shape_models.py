"""Networks for the shapes: learned ones, the true one, and how far apart they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from hcnet import HCN, Inference, Layer
from hcnet.datasets import shapes
from hcnet.datasets.shapes import ShapesData
from hcnet.metrics import part_iou

SIZES = (19, 20, 21)


def network(feature_size: int, supervised: bool, **options: Any) -> HCN:
    """The architecture that makes the data: four features, four templates, 3×3 pools."""
    layers = [Layer(4, size=feature_size), Layer()]
    if supervised:
        return HCN(layers, templates_per_class=2, **options)
    return HCN(layers, n_classes=4, **options)


def true_network(data: ShapesData, supervised: bool, reverse: bool = False) -> HCN:
    """The network with the weights that made the data, its templates perhaps in reverse."""
    weights = [data.features, data.template_weights[:: -1 if reverse else 1]]
    model = network(data.features.shape[2], supervised)
    return model.set_weights(weights, data.images.shape[2:])


def true_wrong(
    data: ShapesData, supervised: bool, inference: str | Inference, n: int | None = None
) -> float:
    """`wrong` with the weights that made the data.

    Where templates explain an image equally well, which the fast pass often finds, the first of
    them wins.  Learned clusters come in any order; the true ones are therefore taken in two
    orders, one the reverse of the other, so that a tie counts half.  With labels the order of the
    classes is given, and the same for all.
    """
    found = [wrong(true_network(data, supervised), data, inference, n)]
    if not supervised:
        backwards = true_network(data, supervised, reverse=True)
        found.append(wrong(backwards, data, inference, n))
    return float(np.mean(found))


def truth_of(model: HCN, data: ShapesData) -> NDArray[np.int64]:
    """What the model should predict: categories if it has two classes, else patterns."""
    return data.labels if len(model.classes_) == 2 else data.templates


def wrong(model: HCN, data: ShapesData, inference: str | Inference, n: int | None = None) -> float:
    """Share of images in the wrong class; clusters are matched to patterns one to one."""
    predicted = model.set_params(inference=inference).predict(data.images[:n])
    truth = truth_of(model, data)[:n]
    model.set_params(inference="explain")
    if len(model.classes_) == 2:
        return float((predicted != truth).mean())
    table = np.zeros((4, 4))
    np.add.at(table, (predicted, truth), 1)
    return 1 - float(table[linear_sum_assignment(-table)].sum()) / len(truth)


def compare(model: HCN, data: ShapesData) -> tuple[bool, NDArray[np.float64]]:
    """Whether W² is exactly right up to relabelling, and the IoU of every feature of W¹."""
    W1, W2 = model.weights_
    iou = np.array([[part_iou(true, found) for found in W1] for true in data.features])
    true, found = linear_sum_assignment(-iou)
    stands_for = dict(zip(found.tolist(), true.tolist(), strict=True))
    patterns = [frozenset(np.flatnonzero(row)) for row in data.template_weights.reshape(4, 4)]
    learned = [frozenset(stands_for[f] for f in np.flatnonzero(row)) for row in W2.reshape(4, 4)]
    exact = set(learned) == set(patterns)
    if len(model.classes_) == 2:  # two templates of each class
        exact = exact and set(learned[:2]) == set(patterns[:2])
    return exact, iou[true, found]


def test_set(feature_size: int, n: int, first_seed: int) -> ShapesData:
    """Test images; no training set has this seed."""
    return shapes(n_images=n, feature_size=feature_size, random_state=first_seed + 1_000_000)
