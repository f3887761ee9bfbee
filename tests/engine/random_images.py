"""Images of random parts, for any layer; and runs with one thread and with several."""

import numba
import numpy as np

from hcnet.grid import on_grid


def random_images(layer, n_images, placements, rng):
    """Parts (features, channels, height, width), and images with so many of them each."""
    h, w = layer.feature_size
    parts = rng.random((layer.n_features, layer.n_channels, h, w)) < 0.5
    oh, ow = layer.overhang
    H, W = layer.image_size
    board = np.zeros((n_images, layer.n_channels, H + 2 * oh, W + 2 * ow), bool)
    for k in range(n_images):
        for _ in range(placements):
            r, c = (rng.integers(size) for size in layer.placement_size)
            board[k, :, r : r + h, c : c + w] |= parts[rng.integers(layer.n_features)]
    return parts, board[:, :, oh : oh + H, ow : ow + W]


K = 6.9  # evidence of a pixel


def problem(layer, n_images, seed, lead):
    """Images of random parts, not all pixels observed; W's priors lead to the parts, or not."""
    rng = np.random.default_rng(seed)
    parts, pixels = random_images(layer, n_images, 3, rng)
    observed = rng.random(pixels.shape) < 0.9
    evidence = on_grid(np.where(observed, np.where(pixels, K, -K), 0))
    prior = rng.uniform(-0.6, -0.4, (layer.n_channels, layer.n_features, *layer.feature_size))
    prior += lead * np.where(np.swapaxes(parts, 0, 1), 1, -1)
    return layer, observed, evidence, float(on_grid(-3 * K)), on_grid(prior)


def with_one_thread_and_several(run):
    """What a function returns with one thread, and with as many as there are."""
    threads = numba.get_num_threads()
    assert threads > 1
    several = run()
    numba.set_num_threads(1)
    try:
        return run(), several
    finally:
        numba.set_num_threads(threads)
