"""Names of parts: what a person typed, in a model and in a table."""

from __future__ import annotations

import csv
import io
import os
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from hcnet.atomic_files import file_path
from hcnet.validation.parameters import check_has_parts, check_part_name

# Bytes of a names file: a thousand parts have far less.
MOST_BYTES = 2**20
HEADER = ["part", "name"]


def name_parts(model: Any, names: Mapping[int, str]) -> None:
    """Set names of some parts of a fitted `FeatureLearner`; the others keep theirs.

    The key is the number of a part.  "" takes a name away.  The name " " prints nothing: it is for
    pieces of letters, such as the dots of i and j, and for specks and rules.
    """
    check_has_parts(model)
    if not isinstance(names, Mapping):
        raise TypeError(
            f"names must be a dictionary of part numbers and names, got {reprlib.repr(names)}; "
            f"pass for example {{0: 'e'}}."
        )
    n_parts = len(model.features_)
    changed = model.part_names_.copy()
    for part, name in names.items():
        if (
            isinstance(part, bool)
            or not isinstance(part, int | np.integer)
            or not 0 <= part < n_parts
        ):
            raise ValueError(
                f"There is no part {part!r}; the model has {n_parts} parts, numbered from 0 as in "
                f"its report."
            )
        try:
            changed[part] = check_part_name(name)
        except (TypeError, ValueError) as error:
            raise type(error)(f"The name of part {part} {error}") from None
    model.part_names_ = changed


def read_names(path: str | os.PathLike[str]) -> dict[int, str]:
    """The names in a CSV file with the columns part and name, as a report saves it."""
    path = file_path(path)
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        if len(content) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        return _parse_names(content.decode("utf-8-sig"))
    except (ValueError, csv.Error) as error:  # bytes that are no UTF-8 are a ValueError
        raise ValueError(
            f"{path} is not a file of names ({error}); write part,name into its first line, and "
            f"into each other line the number of a part and its name, such as 12,e."
        ) from None


def _parse_names(text: str) -> dict[int, str]:
    lines = text.splitlines()
    # Spreadsheets of some countries write semicolons.
    semicolon = bool(lines) and lines[0].replace(" ", "").lower() == ";".join(HEADER)
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=";" if semicolon else ",", strict=True
    )
    first = next(rows, [])
    if [cell.strip().lower() for cell in first] != HEADER:
        raise ValueError(f"its first line is {reprlib.repr(','.join(first))}")
    names: dict[int, str] = {}
    for row in rows:
        line = f"line {rows.line_num}"
        if not any(row):
            continue
        if len(row) != 2:
            raise ValueError(
                f"{line} has {len(row)} columns; a name that holds a comma stands in quotation "
                f'marks, as in 12,","'
            )
        number, name = row[0].strip(), row[1]
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise ValueError(f"{line} has {reprlib.repr(row[0])} instead of the number of a part")
        try:
            name = check_part_name(name)
        except ValueError as error:
            raise ValueError(f"the name in {line} {str(error).removesuffix('.')}") from None
        if names.setdefault(int(number), name) != name:
            raise ValueError(f"{line} names part {int(number)} for the second time")
    return names
