"""Networks that are fitted in no time, or need no fit."""

from hcnet import HCN, Layer
from hcnet.datasets import shapes


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
