"""Networks that are fitted in no time, or need no fit."""

import numpy as np

from hcnet import HCN, Layer
from hcnet.datasets import shapes
from hcnet.hierarchy.explaining import agreeing
from hcnet.hierarchy.inference import configuration
from hcnet.images import Images


def tiny(**options):
    """One layer over small images whose pixels stay where they are: fitted in milliseconds."""
    return HCN([Layer(pool=1)], **{"random_state": 0, "n_init": 1, "max_iter": 10, **options})


def small(n=24, seed=0):
    """Images of 7×7 in two classes of two templates each."""
    return shapes(feature_size=7, jitter=1, n_images=n, random_state=seed)


def known(data, **options):
    """The network that made the data; two templates per class."""
    options = {"templates_per_class": 2, **options}
    model = HCN([Layer(4, size=9), Layer()], **options)
    return model.set_weights([data.features, data.template_weights], 13, ["alike", "unlike"])


def log_joints(model, X, y=None):
    """Log p(X, H | W) of every image with its best explanation H, of class y where given."""
    network = model._model.network
    allowed = None if y is None else agreeing(network, np.asarray(y))
    images = Images(X, np.ones_like(X))
    return configuration(model._model, images, model._inference(), allowed).log_joint


def features_on(model, X):
    """Where the features are: S¹ … Sᴸ, each (images, features, rows, columns)."""
    images = Images(X, np.ones_like(X))
    return configuration(model._model, images, model._inference()).S[1:]
