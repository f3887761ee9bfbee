"""Scattering coefficients of images by kymatio; runs by itself, in an environment that has it.

Takes a folder with ``problem.npz`` (``images`` of a side that is a power of two, from 0 to 1, and
``scales``) and leaves ``solution.npz`` (``coefficients``) there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from kymatio.numpy import Scattering2D

# Images at once: their coefficients take 30 MB.
CHUNK = 500


def main(folder: Path) -> None:
    """Transform the images in a folder."""
    problem = np.load(folder / "problem.npz")
    images = problem["images"]
    transform = Scattering2D(J=int(problem["scales"]), shape=images.shape[1:])
    parts = [
        np.asarray(transform(images[k : k + CHUNK]), np.float32)
        for k in range(0, len(images), CHUNK)
    ]
    np.savez(folder / "solution.npz", coefficients=np.concatenate(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
