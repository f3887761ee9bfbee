"""RCN on images of digits; runs by itself, in an environment that has what its code imports.

Takes a folder with ``problem.npz`` (``images``, ``labels``, ``tested`` and ``seconds``) and leaves
``solution.npz`` (``labels`` of the first of the tested images, as many as the seconds allowed).
Images are enlarged to 112×112 and padded to 200×200, as its own experiment does.
"""

from __future__ import annotations

import collections
import collections.abc
import sys
import time
from pathlib import Path

import networkx
import numpy as np
from PIL import Image

# The code was written for older versions of these.
for name, kind in (("int", int), ("float", float)):
    setattr(np, name, kind)
if not hasattr(networkx, "from_numpy_matrix"):
    networkx.from_numpy_matrix = networkx.from_numpy_array
collections.Iterable = collections.abc.Iterable

from science_rcn.inference import test_image  # noqa: E402
from science_rcn.learning import train_image  # noqa: E402

SIDE, MARGIN, POOL, PERTURBED = 112, 44, (25, 25), 2.0


def main(folder: Path) -> None:
    """Learn from the images in a folder, and classify others."""
    problem = np.load(folder / "problem.npz")
    factors = [train_image(_large(image), perturb_factor=PERTURBED) for image in problem["images"]]
    model = list(zip(*factors, strict=True))
    found, began = [], time.perf_counter()
    for image in problem["tested"]:
        winner, _ = test_image(_large(image), model_factors=model, pool_shape=POOL)
        found.append(problem["labels"][winner])
        if time.perf_counter() - began > problem["seconds"]:
            break
    np.savez(folder / "solution.npz", labels=np.array(found))


def _large(image: np.ndarray) -> np.ndarray:
    return np.pad(np.array(Image.fromarray(image).resize((SIDE, SIDE))), MARGIN)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
