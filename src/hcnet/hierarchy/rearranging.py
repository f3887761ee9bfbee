"""A better place for the parts of an explanation, one part after the other.

Levels are decided from the top down, each part going where it would explain most if it were alone.
Where parts lie on each other, or much of one is hidden, that is often a pixel off, and templates
could not be compared fairly.  So every part tries all positions of its window, with everything
below it decided anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.factors import HUGE
from hcnet.hierarchy.decoding import Configuration, Scene, decode, improved

# Most positions that are tried for one image: beyond it, parts stay where they are.
MOST_TRIALS = 256


def rearrange(scene: Scene, found: Configuration) -> Configuration:
    """The same templates, their parts moved as long as the log-evidence rises."""
    levels, n = scene.network.levels, scene.images.n_images
    trials = np.zeros(n, np.int64)
    for level, R in zip(levels[1:], found.R[1:], strict=True):
        trials += R.sum(axis=(1, 2, 3)) * level.pool.n_members
    few = trials <= MOST_TRIALS
    for k in reversed(range(1, len(levels))):
        parts = (found.R[k] & few[:, None, None, None]).reshape(n, -1)
        for turn in range(int(parts.sum(axis=1).max(initial=0))):
            rows = np.flatnonzero(parts.sum(axis=1) > turn)
            # The part of each image whose turn it is.
            which = (parts[rows].cumsum(axis=1) == turn + 1).argmax(axis=1)
            found = _try_all(scene, found, k, rows, which)
    return found


def _try_all(
    scene: Scene,
    found: Configuration,
    k: int,
    rows: NDArray[np.int64],
    which: NDArray[np.int64],
) -> Configuration:
    """One part of each of these images at all positions of its window; the best stays."""
    level = scene.network.levels[k]
    part = np.unravel_index(which, found.R[k].shape[1:])
    for member in range(level.pool.n_members):
        other = found.choices[k][(rows, *part)] != member
        possible = level.log_prior[(*part[1:], member)] > -HUGE / 2
        here = np.flatnonzero(other & possible)
        if len(here) == 0:
            continue
        chosen = rows[here]
        choices = [choice[chosen] for choice in found.choices[k:]]
        choices[0][(np.arange(len(here)), *(axis[here] for axis in part))] = member
        tried = decode(scene.of(chosen), found.S[-1][chosen], choices)
        found = improved(found, chosen, tried)
    return found
