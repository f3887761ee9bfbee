"""Small images of two known parts, and a learner for them."""

import numpy as np

from hcnet import FeatureLearner

BLOCK = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 1]], bool)
RING = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], bool)


def scene(seed=0, n=6, size=16, parts=(BLOCK, RING), channels=1):
    """Images of two small parts on a grid of places, and where they are."""
    rng = np.random.default_rng(seed)
    images = np.zeros((n, channels, size, size), bool)
    placed = []
    for k, r, c in np.ndindex(n, size // 5, size // 5):
        f = int(rng.integers(len(parts) + 1))
        if f < len(parts):
            row, column = 5 * r + int(rng.integers(3)), 5 * c + int(rng.integers(3))
            part = np.broadcast_to(parts[f], (channels, 3, 3))
            images[k, :, row : row + 3, column : column + 3] |= part
            placed.append((k, f, row, column))
    return images, np.array(placed)


TRUE_PARTS = np.stack([BLOCK, RING])[:, None]


def learner(**options):
    return FeatureLearner(**{"feature_size": 3, "n_init": 1, "random_state": 0, **options})
