"""Convolution and correlation with binary weights, as products of matrices.

Both loop over the smaller of two grids, the positions of S or the window of W, so that the products
are few and large.  Where few weights are on, correlation adds up those alone.  S is (images,
features, hs, ws), W (features, channels, h, w) and R (images, channels, hs + h - 1, ws + w - 1).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from hcnet.engine.threads import over_threads
from hcnet.factors import GRID
from hcnet.images import BoolArray, FloatArray

# Share of the weights up to which adding up those that are on beats a product of matrices.
FEW = 0.05


def correlate(R: FloatArray, W: BoolArray) -> FloatArray:
    """What every placement gathers from R: the sum of R over the weights that are on."""
    n, channels = R.shape[:2]
    F, _, h, w = W.shape
    hs, ws = R.shape[2] - h + 1, R.shape[3] - w + 1
    exact = np.rint(R.astype(np.float64) * GRID) / GRID
    out = np.zeros((n, F, hs, ws))
    if W.mean() <= FEW:
        f, a, i, j = np.nonzero(W)
        _add_up(n, exact, np.searchsorted(f, np.arange(F + 1)), a, i, j, out)
    elif hs * ws <= h * w:
        weights = W.reshape(F, -1).T.astype(np.float64)
        for i, j in np.ndindex(hs, ws):
            out[:, :, i, j] = exact[:, :, i : i + h, j : j + w].reshape(n, -1) @ weights
    else:
        for i, j in np.ndindex(h, w):
            at = W[:, :, i, j].astype(np.float64)
            part = exact[:, :, i : i + hs, j : j + ws].reshape(n, channels, -1)
            out += (at @ part).reshape(n, F, hs, ws)
    return out.astype(np.float32)


@over_threads
@nb.njit(nogil=True, cache=True)
def _add_up(first: Any, last: Any, R: Any, start: Any, a: Any, i: Any, j: Any, out: Any) -> None:
    for n in range(first, last):
        for f in range(out.shape[1]):
            for b in range(start[f], start[f + 1]):
                for r in range(out.shape[2]):
                    for c in range(out.shape[3]):
                        out[n, f, r, c] += R[n, a[b], r + i[b], c + j[b]]


def bconv(S: BoolArray, W: BoolArray) -> BoolArray:
    """Binary convolution, R: the OR of all placed features."""
    n = len(S)
    F, channels, h, w = W.shape
    hs, ws = S.shape[2:]
    R = np.zeros((n, channels, hs + h - 1, ws + w - 1), bool)
    for i, j in np.ndindex(hs, ws):
        used = np.flatnonzero(S[:, :, i, j].any(axis=1))
        if len(used):
            placed = _dot(S[used, :, i, j], W.reshape(F, -1)).reshape(-1, channels, h, w)
            R[used, :, i : i + h, j : j + w] |= placed
    return R


def _dot(a: BoolArray, b: BoolArray) -> NDArray[np.bool_]:
    """Boolean matrix product; float32 counts exactly up to 2**24 terms, and is what BLAS knows."""
    return np.asarray(a.astype(np.float32) @ b.astype(np.float32) > 0)
