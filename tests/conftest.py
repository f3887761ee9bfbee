"""Compiled code must be the code under test, and it must run on several threads.

Numba notices a change in the file of a cached function, but not in the functions that it
calls.  The cache of a test run therefore lives in a folder named after all compiled source.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED = ("factors.py", "engine/*.py", "solutions/kernels.py", "factorization/factors.py")
_digest = hashlib.sha256()
for _pattern in COMPILED:
    for _path in sorted((ROOT / "src" / "hcnet").glob(_pattern)):
        _digest.update(_path.read_bytes())
# Also on one core: results must not depend on the number of threads anywhere.
os.environ["NUMBA_NUM_THREADS"] = str(max(2, os.cpu_count() or 1))
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / _digest.hexdigest()[:16])
