"""Checks on tables of zeros and ones, with names from a DataFrame and weights of entries."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hcnet.checks import as_array
from hcnet.images import BoolArray, FloatArray
from hcnet.validation.images import check_images, refuse_paths

# Names that a message shows at most.
SHOWN = 40


@dataclass(frozen=True, eq=False)
class TableInput:
    """A checked table, and the names of its rows and columns if it came with any."""

    values: BoolArray
    observed: BoolArray
    row_names: list[str] | None = None
    column_names: list[str] | None = None


def check_table(
    X: ArrayLike | sparse.sparray, mask: ArrayLike | None = None, learning: bool = False
) -> TableInput:
    """A 0/1 table, dense or sparse or a DataFrame: its values and where they are observed.

    A table to learn from gets a warning about rows and columns of which nothing is observed.
    """
    refuse_paths(X, "pandas.read_csv(X)")
    rows, columns = _names(X)
    array = X.toarray() if sparse.issparse(X) else _cells(X, rows, columns)  # type: ignore[union-attr]
    hidden = mask.toarray() if sparse.issparse(mask) else mask  # type: ignore[union-attr]
    if array.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (rows, columns), got {array.ndim} dimensions "
            f"{array.shape}; Reshape your data, for one row for example to (1, columns)."
        )
    _check_cells(array, hidden, rows, columns)
    images = check_images(array, hidden, warn=mask is not None or columns is None).images
    found = TableInput(images.pixels[0, 0], images.observed[0, 0], rows, columns)
    if learning:
        _warn_about_nothing(found)
    return found


def sparse_ones(X: Any) -> sparse.csr_array:
    """A sparse table of zeros and ones, checked, that stays sparse."""
    if X.ndim != 2:
        raise ValueError(f"X must be a table of shape (rows, columns), got shape {X.shape}.")
    if 0 in X.shape:
        raise ValueError(
            f"X holds no entry: 0 sample(s) or 0 feature(s) (shape={X.shape}) while a minimum of 1 "
            f"is required; pass at least one row and one column."
        )
    table = sparse.csr_array(X)
    odd = table.data[(table.data != 0) & (table.data != 1)] if table.dtype.kind in "biuf" else None
    if odd is None or odd.size:
        what = f"dtype {table.dtype}" if odd is None else f"values such as {odd[0]:g}"
        raise ValueError(f"X must hold only 0 and 1, got {what}; binarise first, as in X > 0.")
    return table


def check_rank(rank: int | None, shape: tuple[int, int]) -> None:
    """An error if there are to be more components than a table can use."""
    if rank is not None and rank > min(shape):
        side = "rows" if shape[0] <= shape[1] else "columns"
        raise ValueError(
            f"n_components is {rank}, but X has {shape[0]} rows and {shape[1]} columns, and one "
            f"component for each of the {min(shape)} {side} already gives X without an error; "
            f"lower n_components, or pass None to have it chosen."
        )


def check_weights(weights: ArrayLike | None, table: TableInput) -> FloatArray | None:
    """How much each entry counts; None if all count the same."""
    if weights is None:
        return None
    array = as_array("weights", weights)
    shape = table.values.shape
    if array.dtype.kind not in "biuf" or array.shape != shape:
        raise ValueError(
            f"weights must hold a number for each entry of X, shape {shape}, got dtype "
            f"{array.dtype} and shape {array.shape}; for a weight per row pass "
            f"np.broadcast_to(weights[:, None], X.shape)."
        )
    found = np.where(table.observed, array, 0).astype(np.float32)
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise ValueError(
            "weights must be finite numbers of at least 0, some of them above 0; use the mask for "
            "entries that are not observed."
        )
    return found


def named(kind: str, number: int, names: list[str] | None) -> str:
    """A row or a column in a message."""
    if names is None:
        return f"{kind} {number}"
    name = names[number]
    return f"{kind} {name if len(name) <= SHOWN else name[:SHOWN] + '…'!r}"


def _names(X: Any) -> tuple[list[str] | None, list[str] | None]:
    """Names of rows and columns of a DataFrame."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray) or sparse.issparse(X):
        return None, None
    index = getattr(X, "index", None)
    rows = None if index is None or callable(index) else [str(name) for name in index]
    return rows, [str(name) for name in columns]


def _cells(X: Any, rows: list[str] | None, columns: list[str] | None) -> NDArray[Any]:
    """An array; the missing values of a DataFrame become NaN."""
    array = np.asarray(X)
    if columns is None or array.dtype != object or array.ndim != 2:
        return array
    found = np.empty(array.shape)
    for (i, j), cell in np.ndenumerate(array):
        if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
            found[i, j] = math.nan
        elif isinstance(cell, bool | int | float | np.bool_ | np.number):
            found[i, j] = cell
        else:
            raise _odd(cell, i, j, rows, columns)
    return found


def _check_cells(
    array: NDArray[Any], mask: Any, rows: list[str] | None, columns: list[str] | None
) -> None:
    """The first cell that is neither 0 nor 1 nor missing gets a sentence that says where it is."""
    if array.dtype.kind not in "biuf" or array.size == 0:
        return
    odd = (array != 0) & (array != 1) & (array == array)
    if mask is not None and np.shape(mask) == array.shape:
        odd &= ~np.asarray(mask, bool)
    if odd.any():
        i, j = np.argwhere(odd)[0]
        raise _odd(array[i, j], int(i), int(j), rows, columns, int(odd.sum()))


def _odd(
    cell: Any, i: int, j: int, rows: Any, columns: Any, count: int | None = None
) -> ValueError:
    where = f"{named('row', i, rows)}, {named('column', j, columns)}"
    if isinstance(cell, str):
        what = repr(cell if len(cell) <= SHOWN else cell[:SHOWN] + "…")
        return ValueError(
            f"X must hold only 0 and 1, got the text {what} in {where}; say what is on, for "
            f"example with X == {what}, make a column for each value (pandas.get_dummies), and "
            f"leave out columns that are names."
        )
    many = "" if count is None else f" ({count} of the entries are neither)"
    return ValueError(
        f"X must hold only 0 and 1, got values such as {cell:g} in {where}{many}; binarise first, "
        f"for example X > 0, or make a column for each value or range of values."
    )


def _warn_about_nothing(table: TableInput) -> None:
    for axis, kind, names in ((1, "row", table.row_names), (0, "column", table.column_names)):
        empty = np.flatnonzero(~table.observed.any(axis=axis))
        if len(empty):
            warnings.warn(
                f"Nothing is observed in {named(kind, int(empty[0]), names)} of X ({len(empty)} "
                f"{kind}s in all); no component will have it; leave such {kind}s out.",
                UserWarning,
                stacklevel=4,
            )
