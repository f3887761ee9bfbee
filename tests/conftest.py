"""Compiled code must be the code under test, and it must run on several threads.

Numba notices a change in the file of a cached function, but not in the functions that it
calls.  The cache of a test run therefore lives in a folder named after all compiled source.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

ROOT = Path(__file__).resolve().parent.parent
COMPILED = (
    "factors.py",
    "codec/**/*.py",
    "engine/**/*.py",
    "solutions/*.py",
    "factorization/*.py",
    "hierarchy/*.py",
    "soft/co*.py",
    "soft/merging.py",
    "templates/*.py",
)
_digest = hashlib.sha256()
for _pattern in COMPILED:
    for _path in sorted((ROOT / "src" / "hcnet").glob(_pattern)):
        _digest.update(_path.read_bytes())
# Also on one core: results must not depend on the number of threads anywhere.
os.environ["NUMBA_NUM_THREADS"] = str(max(2, os.cpu_count() or 1))
# The networks of the baseline learn the same, and compiling them takes half of the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _digest.hexdigest()[:16])


@pytest.fixture(scope="session")
def digits_folder(tmp_path_factory):
    """Handwritten digits (of scikit-learn, three times as large) in the files of MNIST."""
    folder = tmp_path_factory.mktemp("data")
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) * (255 / 16)).repeat(3, axis=1).repeat(3, axis=2)
    images = np.pad(images, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
    for name, rows in (("train", slice(0, 1500)), ("t10k", slice(1500, None))):
        for kind, array in (("images-idx3", images[rows]), ("labels-idx1", labels[rows])):
            sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
            content = bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()
            (folder / f"{name}-{kind}-ubyte").write_bytes(content)
    return folder
