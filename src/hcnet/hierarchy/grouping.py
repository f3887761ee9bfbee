"""Which template belongs to which class, where few labels had little say in learning.

Templates are exchangeable: the weights of any two can be swapped without changing what the network
says about unlabelled images.  Where most images carry no label, message passing finds templates,
but a handful of labels may come too late to decide whose they are.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from hcnet.hierarchy.explaining import explain
from hcnet.hierarchy.network import Network, Weights
from hcnet.images import BoolArray, Images

# Votes for leaving a template where it is, to decide between equals.
INERTIA = 1e-3


def regroup(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> list[BoolArray]:
    """The same templates, each given to the class of most labelled images that it explains best.

    `allowed` (images, templates) says which templates the label of an image allows.
    """
    labelled = ~allowed.all(axis=1)
    if not labelled.any() or labelled.all():  # where all are, every template learned its class
        return list(weights)
    few = Images(images.pixels[labelled], images.observed[labelled])
    best = explain(network, weights, few).S[-1].any(axis=(2, 3)).argmax(axis=1)
    categories = np.array(network.classes.categories)
    votes = np.zeros((network.classes.n_templates, network.classes.n_classes))
    np.add.at(votes, (best, categories[allowed[labelled].argmax(axis=1)]), 1)
    support = votes[:, categories] + INERTIA * np.eye(len(categories))
    template, slot = linear_sum_assignment(-support)
    order = np.empty(len(categories), np.int64)
    order[slot] = template
    return [*weights[:-1], weights[-1][order]]
