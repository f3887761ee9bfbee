"""Images of random parts, for any layer."""

import numpy as np


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
