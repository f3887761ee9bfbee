"""Small streams, and all numbers that they hold."""

import numpy as np

from hcnet import HCN, FeatureLearner, Layer


def parts(**options):
    return FeatureLearner(3, 4, random_state=0, **options)


def network(**options):
    layers = [Layer(3, size=4, pool=2), Layer(pool=2)]
    return HCN(layers, 2, max_iter=4, random_state=0, **options)


def few(n=12, seed=0):
    """Images with a cross or a corner, in turn."""
    rng = np.random.default_rng(seed)
    shapes = np.array([[[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[1, 1, 1], [1, 0, 0], [1, 0, 0]]], bool)
    images = np.zeros((n, 8, 8), bool)
    for k, image in enumerate(images):
        r, c = rng.integers(2, 4, 2)
        image[r : r + 3, c : c + 3] = shapes[k % 2]
    return images


def state(model):
    """All numbers that a stream and its model hold."""
    stream = model._stream
    found = [*stream.beliefs.initial, *stream.beliefs.now, [stream.n_images, stream.n_batches]]
    if isinstance(model, HCN):
        return [*found, *(W for voter in stream.voters for W in voter), *model.weights_]
    tally, recent = stream.tally, (single.images.pixels for single in stream.recent)
    return [*found, tally.use, tally.pixels, tally.positions, *recent, model.features_]


def assert_same(one, other):
    for x, y in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(x, y)
