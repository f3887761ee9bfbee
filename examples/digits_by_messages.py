"""Learn handwritten digits by message passing alone; fill in half-erased ones, and draw new ones.

python examples/digits_by_messages.py [picture.png]

The network is the paper's, with fewer parts and examples so that it learns in a minute on one core:
strokes of the digits, and ten templates per class that are made of them.  The digits are those of
MNIST: downloaded (11 MB), or from the folder that HCNET_DATA names.
"""

from __future__ import annotations

import math
import sys

from digits import use
from sklearn.base import clone

from hcnet import HCN, Layer
from hcnet.datasets import mnist
from hcnet.preprocessing import OrientedEdges

DIRECTIONS, PER_CLASS, TEMPLATES, TESTED = 8, 20, 10, 500


def main() -> None:
    """Learn, recognise new digits, fill in some of which half is missing, draw some of each."""
    path = sys.argv[1] if len(sys.argv) > 1 else "digits_by_messages.png"
    data, edges = mnist(), OrientedEdges(DIRECTIONS, shared=0.9)
    train = data.first(PER_CLASS)
    how = {"pool": 3, "damping": 0.5, "perturbation": 0.1}
    learned = HCN(
        [Layer(48, size=26, pool_border="same", p_W=0.001, **how), Layer(p_W=0.05, **how)],
        templates_per_class=TEMPLATES,
        # A pixel gives strong evidence while learning; otherwise nothing is decided.
        p01=math.exp(-50),
        p10=math.exp(-100),
        n_init=1,
        max_iter=40,
        engine="beliefs",
        inference="match",
        random_state=0,
        verbose=True,
    ).fit(edges.transform(train.images), train.labels)
    # In a new digit, pixels of a template are often missing, and few others are on.
    model = clone(learned).set_params(p01=0.25, p10=0.01)
    model.set_weights(learned.weights_, train.images.shape[1:], learned.classes_)

    use(model, edges, data, TESTED, path)


if __name__ == "__main__":
    main()
