"""Labels of images, from a file or from the names of their folders."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.image_files.decoding import ARRAY_SUFFIXES, read_array

FOLDERS = "folders"
UNLABELLED = "-1"
_KEYS = ("y", "labels")


def read_labels(source: str | os.PathLike[str], files: Sequence[Path]) -> NDArray[Any]:
    """One label per image; -1 where there is none.

    Args:
        source: "folders" for the name of the folder that an image is in; a text file with a label
            per line in the order of the images; a ``.csv`` file with the columns ``file`` and
            ``label``; or an ``.npy`` or ``.npz`` file.
        files: the file of every image, as `ImageSet.files`.

    """
    if source == FOLDERS:
        return _typed([file.resolve().parent.name for file in files])
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there; pass a file with a label per image, or the word {FOLDERS!r}."
        )
    if path.suffix.lower() in ARRAY_SUFFIXES:
        labels = read_array(path, _KEYS)
    else:
        labels = _typed(_table(path, files))
    if labels.shape != (len(files),):
        raise ValueError(
            f"{path} holds {len(labels)} labels for {len(files)} images; give one per image, -1 "
            f"for those without."
        )
    return labels


def _table(path: Path, files: Sequence[Path]) -> list[str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a table of labels ({error}); it should be text, a label per line."
        ) from error
    if not rows or len(rows[0]) == 1:
        return [row[0].strip() for row in rows]
    if not {"file", "label"} <= set(rows[0]):
        raise ValueError(
            f"{path} has the columns {', '.join(rows[0])}; it needs the columns file and label, or "
            f"one label per line and nothing else."
        )
    name, label = rows[0].index("file"), rows[0].index("label")
    by_name = {Path(row[name]).name: row[label].strip() for row in rows[1:]}
    return [by_name.get(file.name, UNLABELLED) for file in files]


def _typed(labels: list[str]) -> NDArray[Any]:
    """Whole numbers if all are, otherwise words; the missing label is a number among words."""
    try:
        return np.array([int(label) for label in labels])
    except ValueError:
        if UNLABELLED not in labels:
            return np.array(labels)
        return np.array([-1 if one == UNLABELLED else one for one in labels], object)
