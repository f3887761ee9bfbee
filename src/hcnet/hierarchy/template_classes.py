"""Assignment of templates to classes after learning from few labels.

Templates are exchangeable: swapping the weights of two of them does not change the probability of
unlabelled images.  Where most images have no label, message passing finds the templates, but the
few labels may not decide to which class each belongs.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from hcnet.hierarchy.explaining import explain
from hcnet.hierarchy.network import Network, Weights
from hcnet.images import BoolArray, Images

# Votes for the present class of a template, to break ties.
INERTIA = 1e-3


def reassign_templates(
    network: Network, weights: Weights, images: Images, allowed: BoolArray
) -> list[BoolArray]:
    """The same templates, each assigned to the class of most labelled images that it explains best.

    `allowed` (images, templates) leaves out the templates that contradict a label.
    """
    labelled = ~allowed.all(axis=1)
    if (
        not labelled.any() or labelled.all()
    ):  # with all labels, every template has learned its class
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
