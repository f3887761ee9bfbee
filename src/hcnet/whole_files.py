"""Files that appear whole or not at all, and never in place of another by accident."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_whole(path: Path, save: Callable[[IO[bytes]], object], overwrite: bool) -> Path:
    """Let `save` write into a file that appears when it is complete, and on the disk.

    Whatever happens on the way, a file that was there before stays as it was.
    """
    if not overwrite:
        refuse_existing(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    # A name of its own in the same folder: nothing of the user's is in the way of it.  A file of
    # `tempfile` would stay readable for its owner only.
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x+b") as target:
            save(target)
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return path


def refuse_existing(path: Path) -> None:
    """Raise if a file is in the way."""
    if path.exists():
        raise FileExistsError(
            f"{path} exists already; choose another name, or pass overwrite=True to replace it."
        )


def remove_unfinished(path: Path) -> None:
    """Take away what a process that was killed while it wrote this file has left behind."""
    pattern = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.part")
    for other in path.parent.iterdir():
        if pattern.fullmatch(other.name):
            other.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk only when its folder is."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
