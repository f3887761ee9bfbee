"""RCN, the recursive cortical network (George et al. 2017), by its public code.

The code, ``vicariousinc/science_rcn``, is not in a package: the variable ``SCIENCE_RCN`` names the
folder that holds it.  What it imports is in an environment of its own (`.cache/rcn`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.own_environment import OwnEnvironment, UnavailableError

VARIABLE = "SCIENCE_RCN"
# Seconds of testing: 400 templates take ten seconds per digit.
SECONDS = 300.0


class RCN:
    """It takes seconds per digit, so that only the first of those tested are classified."""

    def __init__(self, create: bool = True, seconds: float = SECONDS) -> None:
        self.create, self.seconds = create, seconds

    def fit(self, images: NDArray[np.uint8], labels: NDArray[Any], held_out: object) -> Self:
        """Keep the images; its settings are those of its own experiment."""
        folder = os.environ.get(VARIABLE)
        if not folder or not (Path(folder) / "science_rcn").is_dir():
            raise UnavailableError(
                f"{VARIABLE} must name the folder of the code, which holds science_rcn"
            )
        self.environment = OwnEnvironment(
            "RCN",
            (("networkx", "numpy", "scipy", "pillow"),),
            "import networkx",
            "rcn_worker.py",
            extra_path=folder,
        )
        self.images, self.labels = images, labels
        self.interpreter = self.environment.python(self.create)
        return self

    def predict(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Classes of the first of the images: as many as time allows."""
        problem = {
            "images": self.images,
            "labels": self.labels,
            "tested": images,
            "seconds": self.seconds,
        }
        learning = 10.0 * len(self.images)
        found = self.environment.solve(self.interpreter, problem, 2 * self.seconds + learning)
        return np.asarray(found["labels"])
