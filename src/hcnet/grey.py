"""Grey images: which arrays are some, and what is white in them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_grey(X: ArrayLike) -> tuple[NDArray[Any], float]:
    """Images (n, height, width) as they came, and the value that is white in them.

    White is 255 in bytes, and 1 in floats and booleans.
    """
    array = np.asarray(X)
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3 or array.size == 0:
        raise ValueError(
            f"X must be grey images of shape (n, height, width) or (n, 1, height, width), got "
            f"shape {array.shape}; for one image pass image[None], and average colours first."
        )
    if array.dtype == np.uint8:
        if array.max() == 1:
            warnings.warn(
                "X is uint8 but holds only 0 and 1, which is all but black where 255 is white; for "
                "binary images pass X.astype(bool).",
                UserWarning,
                stacklevel=3,
            )
        return array, 255.0
    if array.dtype.kind not in "fb":
        raise TypeError(
            f"X must be uint8 from 0 to 255, or floats or booleans from 0 to 1, got dtype "
            f"{array.dtype}; convert it, for example with X.astype(np.uint8)."
        )
    least, most = array.min(), array.max()
    if not (least >= 0 and most <= 1):  # NaN is neither
        raise ValueError(
            f"X of dtype {array.dtype} must lie from 0 (black) to 1 (white), got {least:g} to "
            f"{most:g}; divide by the value that is white, and replace what is missing."
        )
    return array, 1.0
