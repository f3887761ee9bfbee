"""Files that a command writes: checked before the work, written whole or not at all."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hcnet.commands.command import as_json, note


def check_outputs(options: argparse.Namespace) -> None:
    """Raise if a file to write is in the way, has a wrong ending, or cannot be written."""
    for option, kind in options.outputs.items():
        path = getattr(options, option)
        if path is None:
            continue
        if kind == "images":
            from hcnet.image_files import images_path

            if not images_path(path).suffix:
                continue  # a folder: its files are checked when their names are known
        elif kind == "picture":
            from hcnet.plotting.drawing import picture_path

            picture_path(path)
        elif kind == "report":
            from hcnet.reporting.page import report_path

            report_path(path)
        _check_free(path, options.force)


def _check_free(path: Path, force: bool) -> None:
    from hcnet.atomic_files import refuse_existing

    refuse_existing(path, force)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent} cannot be written to; choose another folder.")


def save(options: argparse.Namespace, picture: Any, path: Path) -> None:
    """Write a picture or a chart."""
    from hcnet.plotting import save_picture

    save_picture(picture, path, overwrite=options.force)


def write_table(
    options: argparse.Namespace,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    name: str,
    more: dict[str, Any],
) -> None:
    """A table as CSV, or as JSON under its `name` with `more`; to a file or to the terminal."""
    path = options.output
    if options.json or (path is not None and path.suffix == ".json"):
        content = more | {name: [dict(zip(header, row, strict=True)) for row in rows]}
        text = as_json(content) + "\n"
    else:
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
        text = file.getvalue()
    if path is None:
        sys.stdout.write(text)
        return
    from hcnet.atomic_files import write_atomically

    write_atomically(path, lambda target: target.write(text.encode()), options.force)
    note(options, f"{len(rows):,} rows written to {path}.")
