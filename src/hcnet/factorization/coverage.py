"""What each component of a table covers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.factorization.binary_factors import Factors
from hcnet.factorization.packed import CHUNK, Entries
from hcnet.images import BoolArray

Coverage = NDArray[np.int64]
_COLUMNS = ("rows", "covers", "alone", "shared", "wrong")


def coverage(factors: Factors, table: Entries) -> Coverage:
    """A row per component: rows that have it, ones that it covers, alone and not, and zeros."""
    found = np.zeros((factors.rank, len(_COLUMNS)), np.int64)
    found[:, 0] = factors.S.sum(axis=0)
    W = factors.W.astype(np.float32)
    rows = max(1, CHUNK // max(table.shape[1], 1))
    for first in range(0, table.shape[0], rows):
        last = min(first + rows, table.shape[0])
        on, off, _ = table.rows(first, last)
        S = factors.S[first:last].astype(np.float32)
        once = S @ W.T == 1
        found[:, 1] += _inside(S, on, W)
        found[:, 2] += _inside(S, on & once, W)
        found[:, 4] += _inside(S, off, W)
    found[:, 3] = found[:, 1] - found[:, 2]
    return found


def _inside(S: Any, entries: BoolArray, W: Any) -> NDArray[np.int64]:
    """Number of some entries in the rows and columns of each component."""
    per_row = entries.astype(np.float32) @ W
    return np.asarray((per_row * S).sum(axis=0, dtype=np.double).astype(np.int64))


def coverage_rows(found: Coverage, components: BoolArray, names: Any) -> list[dict[str, Any]]:
    """Coverage with the names of each component's columns."""
    words = [str(k) for k in range(components.shape[1])] if names is None else list(names)
    columns = [", ".join(words[j] for j in np.flatnonzero(one)) for one in components]
    rows = zip(found.tolist(), columns, strict=True)
    return [dict(zip(_COLUMNS, row, strict=True)) | {"columns": text} for row, text in rows]


def component_table(found: Coverage, components: BoolArray, names: Any) -> Any:
    """The same as a DataFrame if pandas is there, otherwise as an array with names."""
    rows = coverage_rows(found, components, names)
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        width = max((len(row["columns"]) for row in rows), default=1)
        kinds = [(name, np.int64) for name in _COLUMNS] + [("columns", f"U{max(width, 1)}")]
        return np.array([tuple(row.values()) for row in rows], dtype=kinds)
    table = pandas.DataFrame(rows, columns=[*_COLUMNS, "columns"])
    return table.rename_axis("component")
