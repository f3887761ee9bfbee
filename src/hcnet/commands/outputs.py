"""Files that a command will write: looked at before the work, not after."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def check_free(force: bool, *paths: Path | None) -> None:
    """Raise if a file is in the way, or its folder is not there or not writable."""
    import os

    from hcnet.whole_files import refuse_existing

    for path in paths:
        if path is None:
            continue
        refuse_existing(path, force)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path.parent} cannot be written to; choose another folder.")


def check_images(force: bool, path: Path) -> None:
    """The same for images; what is in a folder is looked at when its names are known."""
    from hcnet.image_files import images_path

    if images_path(path).suffix:
        check_free(force, path)


def check_picture(force: bool, path: Path | None) -> None:
    """The same for a picture, which must be named like one."""
    if path is not None:
        from hcnet.plotting.drawing import picture_path

        check_free(force, picture_path(path))


def check_report(force: bool, path: Path | None) -> None:
    """The same for a report."""
    if path is not None:
        from hcnet.reporting.page import report_path

        check_free(force, report_path(path))


def write_text(path: Path, text: str, force: bool) -> Path:
    """Write a text file that appears whole or not at all."""
    from hcnet.whole_files import write_whole

    return write_whole(path, lambda file: file.write(text.encode()), force)


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for spreadsheets."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def deliver(text: str, path: Path | None, force: bool) -> None:
    """A text to a file, or to the terminal without one."""
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text, force)
