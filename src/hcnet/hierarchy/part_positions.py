"""Better positions for the parts of an explanation, one part at a time.

Decoding puts each part where it would explain most if it were alone.  Where parts overlap, or much
of one is hidden, that is often a pixel off, and a comparison of templates would not be fair.  So
every part tries all positions of its window, with all levels below it decided again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.factors import HUGE
from hcnet.hierarchy.decoding import Configuration, Scene, decode, improved

# Most positions that are tried for one image; in images with more, parts keep their positions.
MOST_TRIALS = 256


def improve_positions(scene: Scene, found: Configuration) -> Configuration:
    """The same templates, with parts moved where that raises the log-evidence."""
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
    """Try one part of each of these images at all positions of its window, and keep the best."""
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
