"""``hcnet factor``: the factors of a yes/no table in a CSV file."""

from __future__ import annotations

import argparse
import csv
import io
import math
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import command
from hcnet.commands.running import ProgressLines

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What a cell may hold, in lower case; an empty cell is missing.
CELLS = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), 1.0),
    **dict.fromkeys(("0", "0.0", "false", "no"), 0.0),
    **dict.fromkeys(("", "na", "nan", "?"), math.nan),
}
COMPONENTS, ROWS, PICTURE = "components.csv", "rows.csv", "table.png"


class _NamedTable:
    """A table with the names of its rows and columns, as a DataFrame has them."""

    def __init__(self, cells: NDArray[Any], index: list[str], columns: list[str]) -> None:
        self.cells, self.index, self.columns = cells, index, columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.cells

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.cells.shape


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table",
        type=command.path,
        metavar="TABLE",
        help="a CSV file with a header; cells are 0 or 1, empty where nothing is known",
    )
    parser.add_argument(
        "--rank", type=int, metavar="N", help="number of components (default: it is chosen)"
    )
    parser.add_argument(
        "--objective",
        choices=("error", "probability"),
        default="error",
        help="the fewest wrong entries, or the most probable factors (default: error)",
    )
    parser.add_argument(
        "--random-state", type=command.seed, metavar="N", help="the same number, the same result"
    )
    parser.add_argument("--max-seconds", type=float, metavar="S", help="stop after about this time")
    parser.add_argument(
        "--output",
        "-o",
        type=command.path,
        metavar="DIR",
        help="folder for the results, which is created (default: the table's name and -factors)",
    )
    command.add_force(parser)


@command.command("hcnet factor table.csv --rank 5", _arguments)
def factor(options: argparse.Namespace) -> int:
    """Find what goes together in a yes/no table."""
    from hcnet.atomic_files import refuse_existing

    folder = options.output or Path(f"{options.table.stem}-factors")
    for name in (COMPONENTS, ROWS, PICTURE):
        refuse_existing(folder / name, options.force)
    table = read_table(options.table)
    from hcnet import BooleanMatrixFactorization, plotting
    from hcnet.engine.driver import Status

    progress = ProgressLines()
    model = BooleanMatrixFactorization(
        options.rank,
        objective=options.objective,
        max_seconds=options.max_seconds,
        random_state=options.random_state,
        verbose=command.on_a_terminal(options),
        callback=progress,
    )
    if options.quiet or command.on_a_terminal(options):
        model.set_params(callback=None).fit(table)
    else:
        with progress:
            model.fit(table)
    if model.status_ == Status.INTERRUPTED.value:
        raise KeyboardInterrupt
    folder.mkdir(parents=True, exist_ok=True)
    rank = len(model.components_)
    components = [[k, *row] for k, row in enumerate(model.components_.astype(int).tolist())]
    text = command.as_csv(["component", *table.columns], components)
    command.write_text(folder / COMPONENTS, text, options.force)
    codes = [
        [n, *row] for n, row in zip(table.index, model.codes_.astype(int).tolist(), strict=True)
    ]
    text = command.as_csv(["row", *map(str, range(rank))], codes)
    command.write_text(folder / ROWS, text, options.force)
    plotting.save_picture(plotting.show_factors(model, table), folder / PICTURE, options.force)
    return _report(options, model, table, folder)


def _report(options: argparse.Namespace, model: Any, table: _NamedTable, folder: Path) -> int:
    from hcnet.factorization.coverage import coverage_rows

    observed = int((table.cells == table.cells).sum())
    found = coverage_rows(model.coverage_, model.components_, table.columns)
    result = {
        "folder": str(folder),
        "shape": list(table.shape),
        "components": found,
        "errors": model.errors_,
        "observed": observed,
        "seconds": model.seconds_,
        "status": model.status_,
    }
    shape = f"{table.shape[0]:,} rows, {table.shape[1]:,} columns"
    wrong = f"{model.errors_:,.0f} of {observed:,} entries ({model.errors_ / observed:.1%})"
    lines = [
        ("Table", f"{shape}, {table.cells.size - observed:,} entries missing"),
        ("Components", f"{len(found)}"),
        ("Wrong", wrong),
        ("Written", f"{COMPONENTS}, {ROWS} and {PICTURE} in {folder}"),
        ("", ""),
    ]
    lines += [(f"{k}: {one['rows']} rows", one["columns"]) for k, one in enumerate(found)]
    return command.print_result(options, result, command.aligned(lines))


def read_table(path: Path) -> _NamedTable:
    """A CSV file with a header; a first column of other words than 0 and 1 names the rows."""
    import numpy as np

    from hcnet.checks import in_short

    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; pass a CSV file with a header.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8; save the table as CSV.") from None
    first = text.partition("\n")[0]
    mark = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(
            f"{path} cannot be read as CSV ({in_short(error)}); save the table as CSV."
        ) from None
    if len(lines) < 2:
        raise ValueError(
            f"{path} must have a header with the names of the columns and at least one row below "
            f"it, got {len(lines)} lines."
        )
    (_, header), *rows = lines
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {number} has {len(row)} cells and the header {len(header)}; give "
                f"each row a cell per column, empty where nothing is known."
            )
    if all(cell.strip().lower() in ("0", "1") for cell in header):
        raise ValueError(f"{path} has no header; put the names of the columns into its first line.")
    named = len(header) > 1 and all(row[0].strip().lower() not in CELLS for _, row in rows)
    index = [row[0] for _, row in rows] if named else [str(k) for k in range(len(rows))]
    cells = np.empty((len(rows), len(header) - named))
    for i, (number, row) in enumerate(rows):
        for j, cell in enumerate(row[named:]):
            value = CELLS.get(cell.strip().lower())
            if value is None:
                raise ValueError(
                    f"{path}: line {number}, column {reprlib.repr(header[j + named])} holds "
                    f"{reprlib.repr(cell)}, and cells must be 0 or 1, or empty where nothing is "
                    f"known; make a column for each value, and leave out columns of text except "
                    f"for names in the first."
                )
            cells[i, j] = value
    return _NamedTable(cells, index, header[named:])


COMMANDS = (factor,)
