"""Labels of images: from a table, a list, an array, or the folders that the images are in."""

from __future__ import annotations

import csv
import os
import reprlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.checks import in_short, one_line
from hcnet.image_files.opening import ARRAY_SUFFIXES, RefusedFileError, read_array

FOLDERS = "folders"
UNLABELLED = "-1"
_LABEL_KEYS = ("y", "labels")


def read_labels(source: str | os.PathLike[str], files: Sequence[Path]) -> NDArray[Any]:
    """One label per image; -1 where there is none.

    Args:
        source: "folders" for the name of the folder that an image is in; a text file with a label
            per line in the order of the images; a ``.csv`` file with the columns ``file`` and
            ``label``; or an ``.npy`` or ``.npz`` file.  A file of the table may be a whole path or
            the end of one, such as ``cat/1.png``, as long as it is the end of one image's path
            only.  Images that the table does not name have no label.
        files: the file of every image, as `ImageSet.files`.

    """
    if source == FOLDERS:
        return _typed([_absolute(file).parent.name for file in files])
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there; pass a file with a label per image, or the word {FOLDERS!r}."
        )
    if path.suffix.lower() in ARRAY_SUFFIXES:
        return read_array(path, _LABEL_KEYS, lambda *about: _check_array(path, files, *about))
    labels = _from_text(path, files)
    _check_number(path, files, (len(labels),))
    return _typed(labels)


def _check_array(
    path: Path, files: Sequence[Path], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    if dtype.kind not in "biufUST":
        raise RefusedFileError(f"{path} holds labels of {dtype}; give numbers or words.")
    _check_number(path, files, shape)


def _check_number(path: Path, files: Sequence[Path], shape: tuple[int, ...]) -> None:
    if shape != (len(files),):
        found = str(shape[0]) if len(shape) == 1 else f"an array of shape {shape} instead of"
        raise RefusedFileError(
            f"{path} holds {found} labels for {len(files)} images; give one per image, -1 for "
            f"those without."
        )


def _absolute(path: str | os.PathLike[str]) -> Path:
    """The path from the root.

    Links are not followed: the place of an image says what it is, not that of the file in a pool.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100


def _from_text(path: Path, files: Sequence[Path]) -> list[str]:
    try:
        # Spreadsheets write a mark before the first character.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            rows = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise RefusedFileError(
            f"{path} is not a table of labels ({in_short(error)}); it should be text, a label per "
            f"line."
        ) from error
    columns = rows[0][1] if rows else []
    if len(columns) <= 1:
        return [label for _, label in _cells(path, rows, 1, 0)]
    if not {"file", "label"} <= set(columns):
        raise RefusedFileError(
            f"{path} has the columns {one_line(', '.join(columns))}; it needs the columns file and "
            f"label, or one label per line and nothing else."
        )
    names = [row[columns.index("file")] for _, row in rows[1:] if len(row) == len(columns)]
    labels = list(_cells(path, rows[1:], len(columns), columns.index("label")))
    by_file = _matched(path, files, names, labels)
    return [by_file.get(_absolute(file), UNLABELLED) for file in files]


def _cells(
    path: Path, rows: list[tuple[int, list[str]]], n_columns: int, column: int
) -> Iterator[tuple[int, str]]:
    """The line of every label, and the label."""
    for line, row in rows:
        if len(row) != n_columns:
            raise RefusedFileError(
                f"{path} has {len(row)} column{'s' * (len(row) != 1)} in line {line} instead of "
                f"{n_columns}; a label or name that holds a comma stands in quotation marks."
            )
        label = row[column].strip()
        if not label:
            raise RefusedFileError(f"{path} has no label in line {line}; write -1 for none.")
        yield line, label


def _matched(
    path: Path, files: Sequence[Path], names: list[str], labels: list[tuple[int, str]]
) -> dict[Path, str]:
    """The label of every file that a table names."""
    wanted = [_end(path, name) for name in names]
    by_end: dict[tuple[str, ...], set[Path]] = {}
    lengths = {len(end) for end in wanted}
    for file in {_absolute(file) for file in files}:
        for length in lengths:
            by_end.setdefault(file.parts[-length:], set()).add(file)
    found: dict[Path, str] = {}
    for name, end, (line, label) in zip(names, wanted, labels, strict=True):
        about = f"{path} names {reprlib.repr(name)} in line {line}"
        those = sorted(by_end.get(end, ()))
        if not those:
            raise RefusedFileError(
                f"{about}, which is none of the images; correct it, or remove the line."
            )
        if len(those) > 1:
            raise RefusedFileError(
                f"{about}, which may be {those[0]} or {those[1]}; write more of its path, such as "
                f"{'/'.join(those[0].parts[-len(end) - 1 :])}."
            )
        if found.setdefault(those[0], label) != label:
            raise RefusedFileError(f"{about} for the second time, with another label.")
    return found


def _end(table: Path, name: str) -> tuple[str, ...]:
    """The parts of a path in a table."""
    parts = PurePath(name).parts
    return _absolute(table.parent / name).parts if ".." in parts else parts


def _typed(labels: list[str]) -> NDArray[Any]:
    """Whole numbers if all are, otherwise words; the missing label is a number among words."""
    try:
        numbers = [int(label) for label in labels]
        array = np.array(numbers, np.int64)
    except (ValueError, OverflowError):
        pass
    else:
        if len(set(numbers)) == len(set(labels)):  # "1" and "01" are two words
            return array
    if UNLABELLED not in labels:
        return np.array(labels)
    return np.array([-1 if one == UNLABELLED else one for one in labels], object)
