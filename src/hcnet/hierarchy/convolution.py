"""Convolution and correlation with binary weights.

Convolution visits the elements that are on.  Correlation does so if few weights are on; otherwise
it is a few large products of matrices, in a loop over the smaller of two grids, the positions of S
or the window of W.  S is (images, features, hs, ws), W (features, channels, h, w) and R (images,
channels, hs + h - 1, ws + w - 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcnet.engine.cpu_compilation import kept
from hcnet.engine.driver import look
from hcnet.engine.threads import over_threads
from hcnet.factors import GRID
from hcnet.grid import FLOAT
from hcnet.images import BoolArray, FloatArray

# Share of weights that are on up to which adding them up is faster than a product of matrices.
FEW = 0.05


def elements(W: BoolArray) -> NDArray[np.int64]:
    """The indices of the elements that are on, a row for each axis.

    Unlike those of `np.nonzero`, the rows are contiguous for any number of elements, so that
    functions are compiled for one layout only.
    """
    return np.array(np.nonzero(W))


def correlate(R: FloatArray, W: BoolArray) -> FloatArray:
    """The sum of R over the weights that are on, for every placement."""
    n, channels = R.shape[:2]
    F, _, h, w = W.shape
    hs, ws = R.shape[2] - h + 1, R.shape[3] - w + 1
    exact = np.rint(R.astype(np.float64) * GRID) / GRID
    out = np.zeros((n, F, hs, ws))
    if W.mean() <= FEW:
        f, a, i, j = elements(W)
        _add_up(n, exact, np.searchsorted(f, np.arange(F + 1)), a, i, j, out)
    elif hs * ws <= h * w:
        weights = W.reshape(F, -1).T.astype(np.float64)
        for i, j in np.ndindex(hs, ws):
            out[:, :, i, j] = exact[:, :, i : i + h, j : j + w].reshape(n, -1) @ weights
    else:
        for i, j in np.ndindex(h, w):
            at = W[:, :, i, j].astype(np.float64)
            look()
            part = exact[:, :, i : i + hs, j : j + ws].reshape(n, channels, -1)
            out += (at @ part).reshape(n, F, hs, ws)
    return out.astype(FLOAT)


@over_threads
@kept(nogil=True)
def _add_up(first, last, R, start, a, i, j, out):
    rows, columns = out.shape[2:]
    for n in range(first, last):
        for f in range(out.shape[1]):
            for b in range(start[f], start[f + 1]):
                below = R[n, a[b], i[b] : i[b] + rows, j[b] : j[b] + columns]
                above = out[n, f]
                # Indices that count from zero become vector instructions.
                for r in range(rows):
                    for c in range(columns):
                        above[r, c] += below[r, c]


def bconv(S: BoolArray, W: BoolArray) -> BoolArray:
    """Binary convolution, R: the OR of all placed features."""
    n, F, hs, ws = S.shape
    channels, h, w = W.shape[1:]
    R = np.zeros((n, channels, hs + h - 1, ws + w - 1), bool)
    f, a, i, j = np.unravel_index(np.flatnonzero(W), W.shape)  # three times as fast as nonzero
    where = np.ravel_multi_index((a, i, j), R.shape[1:])
    _place(n, S, np.searchsorted(f, np.arange(F + 1)), where, R.reshape(n, -1), R.shape[3])
    return R


@over_threads
@kept(nogil=True)
def _place(first, last, S, start, where, R, columns):
    for n in range(first, last):
        for f in range(S.shape[1]):
            for r in range(S.shape[2]):
                for c in range(S.shape[3]):
                    if S[n, f, r, c]:
                        for b in range(start[f], start[f + 1]):
                            R[n, r * columns + c + where[b]] = True
